"""A small log written by hand: whoever writes it may plant any fault."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from runtime.footer import FOOTER_KEY, Footer, footer_bytes
from runtime.logs.embedded import EmbeddedLog
from runtime.logs.simulated import SimulatedLog
from runtime.record import Outgoing
from schemas import codec, definitions, identity, topics
from schemas.facts import (
    CatalogAdopted,
    CatalogEntry,
    Cause,
    DeferReason,
    Fact,
    HistoryTrimmed,
    JobSnapshot,
    NominalRange,
    OccurrenceDeferred,
    OccurrenceSkipped,
    Outcome,
    RetryPolicy,
    RunCreated,
    RunFinished,
    SkipReason,
)
from schemas.internal import ScheduleVersion
from simulation.clock import ManualClock

LAYOUT = topics.Layout(schedule=2, shard=2)
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
JOB = JobSnapshot(
    queue="default",
    target={"type": "task", "name": "x"},
    payload={},
    priority="normal",
    timeout=timedelta(hours=1),
    deadline=timedelta(days=7),
    lease=timedelta(seconds=30),
    retry=RetryPolicy(
        max_attempts=3, initial=timedelta(seconds=1), factor=2.0, max=timedelta(minutes=5), jitter="full"
    ),
)


def at(text: str) -> datetime:
    """An instant of the day of the tests, or of another one: 12:03, 2026-03-08T07:00."""
    day, _, time = text.rpartition("T")
    return datetime.fromisoformat(f"{day or '2026-03-02'}T{time}").replace(tzinfo=UTC)


class World:
    """One tenant, `acme`; by default a schedule `tick` of every minute, version 1 from noon on."""

    def __init__(self, log: Any = None) -> None:
        self.clock = ManualClock(NOON)
        self.log = log or SimulatedLog(1, self.clock)
        self.log.create({spec: LAYOUT.partitions(spec.family) for spec in topics.topic_table(topics.Retention())})

    def version(
        self,
        number: int = 1,
        schedule: str = "tick",
        *,
        start: datetime = NOON,
        end: datetime | None = None,
        **trigger: Any,
    ) -> None:
        """A version of a schedule."""
        document = {"trigger": trigger or {"cron": "* * * * *"}, "job": {"target": {"type": "task", "name": "x"}}}
        model, _ = definitions.read_schedule(document, strict=True)
        fact = ScheduleVersion(
            tenant="acme",
            schedule=schedule,
            version=number,
            definition=definitions.normal_form(model),
            effective_from=start,
            effective_to=end,
            tz_version="2026a",
        )
        key = f"acme/{schedule}/{number}"
        self._append(topics.VERSIONS, identity.partition_of(key, LAYOUT.schedule), key, fact)

    def decided(self, until: datetime) -> None:
        """Every partition says that it has decided up to an instant."""
        for partition in range(LAYOUT.schedule):
            footer = Footer(
                role="scheduler",
                partition=partition,
                epoch=1,
                sequence=1,
                clock_mark=until,
                decided_until=until,
                positions=(),
                facts=0,
                outputs=0,
                rows=0,
                decision_parts=0,
            )
            changelog = topics.changelog_topic("scheduler")
            self.log.append([Outgoing(changelog, partition, FOOTER_KEY, footer_bytes(footer))])

    def created(
        self, *times: datetime | str, schedule: str = "tick", delivered: bool = True, **fields: Any
    ) -> RunCreated:
        """Runs of occurrences, on both topics; the last of them is answered."""
        for time in times:
            nominal = at(time) if isinstance(time, str) else time
            run = RunCreated(
                **{
                    "tenant": "acme",
                    "schedule": schedule,
                    "run_id": identity.occurrence_run_id(schedule, nominal),
                    "version": 1,
                    "cause": Cause.SCHEDULE,
                    "created_at": nominal,
                    "due_at": nominal,
                    "deadline_at": nominal + timedelta(days=7),
                    "shard": 0,
                    "job": JOB,
                    "rule": "cron",
                    "tz_version": "2026a",
                    "nominal_time": nominal,
                    **fields,
                }
            )
            if delivered:
                self._append(topics.RUNS, 0, run.run_id, run)
            self.event(run)
        return run

    def skipped(
        self, time: str, reason: SkipReason = SkipReason.OVERLAP, *, until: str = "", count: int = 1, **fields: Any
    ) -> None:
        """An occurrence without a run, or a range of them."""
        when: dict[str, Any] = {"nominal_time": at(time)}
        if until:
            when = {"range": NominalRange(from_=at(time), to=at(until), count=count)}
        fact: dict[str, Any] = {
            "tenant": "acme",
            "schedule": "tick",
            "version": 1,
            "reason": reason,
            "decided_at": NOON,
        }
        self.event(OccurrenceSkipped(**{**fact, "rule": "cron", "tz_version": "2026a", **when, **fields}))

    def waiting(self, time: str, until: str) -> None:
        """An occurrence that waits for other schedules, until then at the latest."""
        fact = OccurrenceDeferred(
            tenant="acme", schedule="tick", version=1, nominal_time=at(time), reason=DeferReason.WAITING,
            decided_at=at(time), until=at(until), since=at(time), detail="waits for load",
        )  # fmt: skip
        self.event(fact)

    def deferred(self, time: str, reason: DeferReason = DeferReason.BUFFERED, **fields: Any) -> None:
        """An occurrence that waits."""
        self.event(
            OccurrenceDeferred(
                tenant="acme",
                schedule="tick",
                version=1,
                nominal_time=at(time),
                reason=reason,
                decided_at=NOON,
                **fields,
            )
        )

    def entry(self, kind: str, name: str, version: int, definition: Any) -> CatalogEntry:
        """A version of something in the catalog."""
        tenant = "_" if kind == "queue" else "acme"
        return CatalogEntry(
            kind=kind, tenant=tenant, name=name, version=version, changed_at=NOON, definition=definition
        )  # fmt: skip

    def catalog(self, kind: str, name: str, version: int, definition: Any) -> None:
        """It stands on `catalog`, where compaction leaves the newest."""
        fact = self.entry(kind, name, version, definition)
        self._append(topics.CATALOG, 0, fact.subject, fact)

    def adopted(self, kind: str, name: str, version: int, definition: Any) -> None:
        """A partition tells that it uses it."""
        entry = self.entry(kind, name, version, definition)
        fact = CatalogAdopted(role="scheduler", partition=0, offset=version, adopted_at=NOON, entries=(entry,))
        self._append(topics.RUN_EVENTS, 0, fact.subject, fact)

    def finished(self, run: RunCreated, outcome: Outcome = Outcome.SUCCEEDED, **fields: Any) -> None:
        """A run's outcome."""
        fact = RunFinished(
            tenant=run.tenant,
            schedule=run.schedule,
            run_id=run.run_id,
            version=run.version,
            cause=run.cause,
            outcome=outcome,
            attempts=1,
            created_at=run.created_at,
            **{"finished_at": run.created_at, **fields},
        )
        self._append(topics.RUN_OUTCOMES, self.partition(run.schedule), fact.subject, fact)

    def trimmed(self, until: datetime) -> None:
        """Every partition says that decisions up to an instant are gone."""
        for partition in range(LAYOUT.schedule):
            fact = HistoryTrimmed(role="scheduler", partition=partition, until=until)
            self._append(topics.RUN_EVENTS, partition, fact.subject, fact)

    def event(self, fact: Fact) -> None:
        """Anything, into the story of its schedule."""
        _, _, schedule = fact.subject.rpartition("/")
        self._append(topics.RUN_EVENTS, self.partition(schedule), fact.subject, fact)

    def partition(self, schedule: str) -> int:
        """Where a schedule lives."""
        return identity.partition_of(f"acme/{schedule}", LAYOUT.schedule)

    def _append(self, topic: str, partition: int, key: str, fact: Fact) -> None:
        _, value = codec.encode(fact, source="tidewheel/scheduler/0", time=self.clock.now())
        self.log.append([Outgoing(topic, partition, key.encode(), value)])


def leave_with_one_lost(folder: Path) -> None:
    """A data folder in which 12:01 was created and 12:02 was lost, as a server that stopped leaves it."""
    leave(folder, decided="12:02:30")


def leave(folder: Path, *, decided: str) -> None:
    """A data folder in which 12:01 was created, and all is decided until then."""
    log = EmbeddedLog(folder / "log", World().clock)
    world = World(log)
    world.version()
    world.created("12:01")
    world.decided(at(decided))
    log.close()
