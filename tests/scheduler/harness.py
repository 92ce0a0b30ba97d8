"""Plays the shell for a scheduler core: keys, rows, facts evolved one by one, wakeups, and time that passes as told.

Every fact goes through its record form on the way, and `reload` drops all states, so that rows have to say everything.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import orjson

from runtime.machine import PARTITION, Moment, Output, Reached, Woken
from runtime.record import Record
from scheduler.core import SchedulerCore
from schemas import codec, topics
from schemas.commands import COMMANDS
from schemas.facts import (
    CatalogEntry,
    Cause,
    Fact,
    OccurrenceDeferred,
    OccurrenceSkipped,
    Outcome,
    RunCreated,
    RunFinished,
)
from schemas.faults import Refused
from schemas.internal import CommandAnswered

F = TypeVar("F", bound=Fact)

TZ = "2026f"
ONE = topics.Layout(schedule=1, shard=1)
STEPS_MAX = 100_000  # a step that makes no progress would go on for ever
KINDS = {kind.__name__: type_ for type_, kind in COMMANDS.items()}


def at(text: str) -> datetime:
    """An instant; without a zone it is UTC."""
    instant = datetime.fromisoformat(text)
    return instant.astimezone(UTC) if instant.tzinfo else instant.replace(tzinfo=UTC)


def definition(cron: str = "* * * * *", **more: Any) -> dict[str, Any]:
    """A definition of a cron schedule with a plain job."""
    trigger = {"cron": cron, **more.pop("trigger", {})}
    return {"trigger": trigger, "job": {"target": {"type": "task", "name": "t"}}, **more}


class Rows:
    """One key's rows."""

    def __init__(self) -> None:
        self.data: dict[bytes, bytes] = {}

    def get(self, row: bytes) -> bytes | None:
        return self.data.get(row)

    def put(self, row: bytes, value: bytes) -> None:
        self.data[row] = value

    def delete(self, row: bytes) -> None:
        self.data.pop(row, None)

    def scan(self, start: bytes = b"", end: bytes | None = None, *, reverse: bool = False) -> Iterator[Any]:
        found = [item for item in self.data.items() if start <= item[0] and (end is None or item[0] < end)]
        return iter(sorted(found, reverse=reverse))


class Shell:
    """One partition of the scheduler and its clock."""

    def __init__(self, now: str = "2024-01-01T00:00:00", *, layout: topics.Layout = ONE, number: int = 0) -> None:
        self.core = SchedulerCore(layout, number, TZ)
        self.layout, self.number = layout, number
        self.now = at(now)
        self.read_until: datetime | None = None  # None: as far as now
        self.rows: dict[bytes, Rows] = {}
        self.states: dict[bytes, Any] = {}
        self.facts: list[Fact] = []
        self.outputs: list[Output] = []
        self.commands = 0
        self.offset = 0

    # --- what a test says -----------------------------------------------------------------------------------------

    def put(self, name: str = "s", body: dict[str, Any] | None = None, **more: Any) -> list[Fact]:
        return self.send("SchedulePut", name=name, definition=body or definition(), **more)

    def send(self, kind: str, *, name: str = "s", published: str | None = None, **data: Any) -> list[Fact]:
        """A command, published now or at an instant of the past, and what follows from it."""
        self.commands += 1
        envelope = {"id": data.pop("id", f"c{self.commands}"), "source": data.pop("source", "test")}
        reply_to = data.pop("reply_to", 3)
        body = {"tenant": data.pop("tenant", "acme"), "name": name, **data}
        value = {"specversion": "1.0", "type": KINDS[kind], "data": body, **envelope}
        return self.record(topics.SCHEDULE_CHANGES, value, published=published, reply_to=reply_to)

    def finish(self, run: RunCreated | str, outcome: str = "succeeded", *, published: str | None = None) -> list[Fact]:
        """The outcome of a run, as its dispatcher says it."""
        created = run if isinstance(run, RunCreated) else self.run(run)
        fact = RunFinished(
            tenant=created.tenant, schedule=created.schedule, run_id=created.run_id, version=created.version,
            cause=created.cause, outcome=Outcome(outcome), attempts=1, created_at=created.created_at,
            finished_at=self.now if published is None else at(published), nominal_time=created.nominal_time,
        )  # fmt: skip
        _, value = codec.encode(fact, source="tidewheel/dispatcher/0", time=self.now)
        return self.record(topics.RUN_OUTCOMES, codec.parse(value), published=published)

    def record(
        self, topic: str, value: Any, *, published: str | None = None, reply_to: int | None = None, **more: str
    ) -> list[Fact]:
        """Any record."""
        raw = value if isinstance(value, bytes) else orjson.dumps(value)
        texts = more if reply_to is None else {"tw_reply_to": str(reply_to), **more}
        headers = tuple((name.replace("_", "-"), text.encode()) for name, text in texts.items())
        self.offset += 1
        appended = self.now if published is None else at(published)
        record = Record(topic, self.number, self.offset, None, raw, headers, appended)
        before = len(self.facts)
        try:
            read = self.core.read(record)
        except Refused as refusal:
            for fact in self.core.refuse(record, refusal.faults, self.moment):
                self.apply(fact)
        else:
            if read is not None:
                self.decide(read[0], read[1])
        return self.facts[before:]

    def until(self, instant: str | datetime) -> None:
        """Live up to an instant: each wakeup is answered when it is due."""
        end = at(instant) if isinstance(instant, str) else instant
        self.settle()
        while (due := self.next_wakeup()) is not None and due <= end:
            self.now = max(self.now, due)
            self.settle()
        self.now = end
        self.settle()

    def sleep_until(self, instant: str) -> None:
        """Nothing runs up to an instant, and nothing is decided yet then."""
        self.now = at(instant)

    def settle(self, steps: int = STEPS_MAX) -> bool:
        """Answer what is due now, at most so many steps; whether all of it was answered."""
        for _ in range(steps):
            key = self.due_key()
            if key is None:
                self.decide(PARTITION, Reached(until=self.moment.read_until))
                return True
            assert self.decide(key, Woken()), f"{key!r} is due and decides nothing"
        assert steps < STEPS_MAX, "this would go on for ever"
        return False

    def catalog(self, position: str = "scheduler-0-1") -> None:
        """Let the partition read what the job owners wrote to the catalog, in one transaction."""
        for output in [output for output in self.outputs if output.topic == topics.CATALOG]:
            assert isinstance(output.fact, CatalogEntry)
            _, value = codec.encode(output.fact, source="x", time=self.now)
            self.record(topics.CATALOG, codec.parse(value), tw_seq=position)
            self.outputs.remove(output)

    def deliver(self) -> list[Fact]:
        """Let owners read what they have told each other, until nobody has anything more to say."""
        before = len(self.facts)
        while told := [output for output in self.outputs if output.topic == topics.LINKS]:
            self.outputs = [output for output in self.outputs if output.topic != topics.LINKS]
            for output in told:
                _, value = codec.encode(output.fact, source="x", time=self.now)
                self.record(topics.LINKS, codec.parse(value))
        return self.facts[before:]

    # --- what a test sees -----------------------------------------------------------------------------------------

    def all(self, kind: type[F], name: str = "s") -> list[F]:
        """The facts of a kind about a schedule."""
        return [f for f in self.facts if isinstance(f, kind) and getattr(f, "schedule", name) == name]

    def created(self, name: str = "s") -> list[str]:
        """Runs as `nominal`, or `nominal@created` where they came later, or `manual`."""
        return [_run_text(run) for run in self.all(RunCreated, name)]

    def skipped(self, name: str = "s") -> list[str]:
        """Skipped occurrences as `nominal reason`, ranges as `from..to xcount reason`."""
        return [_skip_text(fact) for fact in self.all(OccurrenceSkipped, name)]

    def deferred(self, name: str = "s") -> list[str]:
        """Waiting occurrences as `nominal until`."""
        return [
            f"{clock(fact.nominal_time)} {clock(fact.until) if fact.until else 'open'}"
            for fact in self.all(OccurrenceDeferred, name)
        ]

    def run(self, run_id: str) -> RunCreated:
        return next(fact for fact in self.facts if isinstance(fact, RunCreated) and fact.run_id == run_id)

    def last_run(self, name: str = "s") -> RunCreated:
        return self.all(RunCreated, name)[-1]

    def answer(self) -> CommandAnswered:
        """The last answer."""
        return next(fact for fact in reversed(self.facts) if isinstance(fact, CommandAnswered))

    def to(self, topic: str) -> list[Fact]:
        """The facts sent to a topic."""
        return [output.fact for output in self.outputs if output.topic == topic]

    # --- the shell ------------------------------------------------------------------------------------------------

    @property
    def moment(self) -> Moment:
        return Moment(now=self.now, read_until=self.read_until or self.now)

    @property
    def shared(self) -> Any:
        return self.state(PARTITION)

    def state(self, key: bytes) -> Any:
        if key not in self.states:
            self.states[key] = self.core.load(key, self.rows.setdefault(key, Rows()))
        return self.states[key]

    def schedule(self, name: str = "s", tenant: str = "acme") -> Any:
        return self.state(f"s/{tenant}/{name}".encode())

    def decide(self, key: bytes, input_: Any) -> list[Fact]:
        facts = list(self.core.decide(self.state(key), input_, self.moment, self.shared))
        for fact in facts:
            self.apply(fact)
        return facts

    def apply(self, fact: Fact) -> None:
        _, value = codec.encode(fact, source="tidewheel/scheduler/0", time=self.now)
        assert codec.read_fact(value) == fact
        key = self.core.key_of(fact)
        state = self.state(key)
        self.outputs += self.core.route(state, fact)
        self.states[key] = self.core.evolve(state, fact)
        self.core.save(key, self.states[key], self.rows[key])
        self.facts.append(fact)

    def reload(self) -> None:
        """Another process takes over: it has the rows, and they say what the states said."""
        for key, state in self.states.items():
            assert self.core.load(key, self.rows[key]) == state
        self.states = {}
        for key in self.rows:
            self.state(key)

    def next_wakeup(self) -> datetime | None:
        found = [self.core.wakeup(state).at for state in self.states.values()]
        return min((instant for instant in found if instant is not None), default=None)

    def due_key(self) -> bytes | None:
        due = [
            (instant, key)
            for key, state in self.states.items()
            if (instant := self.core.wakeup(state).at) is not None and instant <= self.moment.horizon
        ]
        return min(due)[1] if due else None


def clock(instant: datetime) -> str:
    """`02:30`, with seconds and milliseconds where there are any."""
    spec = "%H:%M" if not instant.second and not instant.microsecond else "%H:%M:%S"
    return instant.strftime(spec) + (f".{instant.microsecond // 1000:03}" if instant.microsecond else "")


def _run_text(run: RunCreated) -> str:
    if run.upstream is not None:
        return f"after {run.upstream.run_id}"
    if run.cause is Cause.MANUAL or run.nominal_time is None:
        return "manual"
    late = "" if run.created_at == run.nominal_time else f"@{clock(run.created_at)}"
    return clock(run.nominal_time) + late


def _skip_text(fact: OccurrenceSkipped) -> str:
    if fact.range is not None:
        last = fact.range.to - timedelta(seconds=1)
        return f"{clock(fact.range.from_)}..{clock(last)} x{fact.range.count} {fact.reason.value}"
    if fact.upstream is not None:
        return f"after {fact.upstream.run_id} {fact.reason.value}"
    if fact.nominal_time is None:
        return f"({fact.local_time}) {fact.reason.value}"
    return f"{clock(fact.nominal_time)} {fact.reason.value}"


def text_of(instant: datetime | None) -> str:
    """As answers write it."""
    assert instant is not None
    return instant.strftime("%Y-%m-%dT%H:%M:%SZ")
