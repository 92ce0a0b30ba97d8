"""Histories written by hand, transaction by transaction, for checkers to judge.

Every topic has one partition here. `calm` is a history in which nothing is wrong; a test adds what is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import orjson

from runtime.record import TopicPartition
from schemas import topics
from simulation.evidence import Committed, Evidence, Execution, Place, StoreContents, Transaction, Violation

RUN = "s.20260301T120005Z"
NEXT = "s.20260301T120010Z"
DEFINITION = {
    "trigger": {"cron": "*/5 * * * * *", "timezone": "UTC", "gap_policy": "shift", "fold_policy": "first"}
}  # fmt: skip
JOB = {"queue": "default", "target": {"type": "task", "name": "work"}, "retry": {"max_attempts": 3}}
TOPICS = (*(spec.name for spec in topics.topic_table(topics.Retention())), topics.dispatch_topic("default"))
INPUTS = {
    "scheduler": (topics.SCHEDULE_CHANGES, topics.RUN_OUTCOMES, topics.LINKS, topics.CATALOG),
    "dispatcher": (topics.RUNS, topics.ATTEMPTS, topics.CATALOG),
}


def told(violations: Iterable[Violation]) -> list[str]:
    """Violations as they are printed, without the prefix that all topics have."""
    return [str(violation).replace(topics.PREFIX, "") for violation in violations]


def at(text: str) -> datetime:
    """`12:00:05` on the day of these tests."""
    return datetime.fromisoformat(f"2026-03-01T{text}").replace(tzinfo=UTC)


def z(text: str) -> str:
    """The same as it stands in JSON."""
    return f"2026-03-01T{text}Z"


def event(type_: str, *, id_: str | None = None, subject: str = "acme/s", **data: Any) -> dict[str, Any]:
    """A CloudEvent. A field called `from_` is `from`."""
    data = {name.removesuffix("_"): value for name, value in data.items()}
    full = f"tidewheel.{type_}.v1"
    canonical = orjson.dumps(data, option=orjson.OPT_SORT_KEYS)
    known = hashlib.sha256(b"\0".join((full.encode(), subject.encode(), canonical))).hexdigest()[:32]
    return {"specversion": "1.0", "type": full, "subject": subject, "id": id_ or known, "data": orjson.loads(canonical)}


def of_schedule(type_: str, *, id_: str | None = None, **data: Any) -> dict[str, Any]:
    """An event about acme/s."""
    return event(type_, id_=id_, **{"tenant": "acme", "schedule": "s"} | data)


def created(nominal: str = "12:00:05", **other: Any) -> dict[str, Any]:
    """A run of acme/s, created on time."""
    said: dict[str, Any] = {
        "run_id": f"s.20260301T{nominal.replace(':', '')}Z", "version": 1, "cause": "schedule",
        "nominal_time": z(nominal), "created_at": z(nominal), "due_at": z(nominal), "shard": 0, "job": JOB,
        "tz_version": "2026a",
    }  # fmt: skip
    return of_schedule("run.created", **{**said, **other})


def handed_out(run: Mapping[str, Any], offset: int, *, attempt: int = 1, **other: Any) -> dict[str, Any]:
    """The record that gives a run to worker 1."""
    said: dict[str, Any] = {
        "incarnation": "incarnation-1", "inbox": 0, "shard": 0, "offset": offset, "attempt": attempt,
        "lease": f"default.0.{offset}.key", "may_have_run": attempt > 1, "run": run["data"],
    }  # fmt: skip
    return event("run.handed_out", subject="incarnation-1", **said | other)


def started(handout: int, *, run: str = RUN, attempt: int = 1, **other: Any) -> dict[str, Any]:
    """User code began."""
    return of_schedule("attempt.started", run_id=run, attempt=attempt, handout=handout, **other)


def ended(
    handout: int, outcome: str = "succeeded", *, run: str = RUN, attempt: int = 1, **other: Any
) -> dict[str, Any]:
    """An attempt ended."""
    said: dict[str, Any] = {"run_id": run, "attempt": attempt, "handout": handout, "outcome": outcome, "counted": True}
    return of_schedule("attempt.finished", **said | other)


def finished(outcome: str = "succeeded", *, run: str = RUN, **other: Any) -> dict[str, Any]:
    """A run ended."""
    said: dict[str, Any] = {"run_id": run, "outcome": outcome, "attempts": 1, "finished_at": z("12:00:06")}
    return of_schedule("run.finished", **said | other)


def execution(lease: int = 0, started_at: str = "12:00:05.5", **other: Any) -> Execution:
    """User code of the first run that ran as it should."""
    said: dict[str, Any] = {
        "run_id": RUN, "tenant": "acme", "attempt": 1, "lease": f"default.0.{lease}.key",
        "incarnation": "incarnation-1", "worker": "worker-1", "started_at": at(started_at),
        "fencing_token": f"1-{lease}", "ended_at": at("12:00:06"), "outcome": "succeeded",
    }  # fmt: skip
    return Execution(**said | other)


def word(*offsets: int, outcome: str = "succeeded", **other: Any) -> dict[str, Any]:
    """A report of worker 1: how the attempts of these hand-outs have ended."""
    ends = [{"lease": f"default.0.{offset}.key", "outcome": outcome} for offset in offsets]
    return event("worker.report", **{"incarnation": "incarnation-1", "finished": ends} | other)


class Given:
    """A log that is written by hand."""

    def __init__(self) -> None:
        self.records: dict[TopicPartition, list[Committed]] = {TopicPartition(topic, 0): [] for topic in TOPICS}
        self.transactions: dict[int, Transaction] = {}
        self._sequences = {"scheduler": 0, "dispatcher": 0}

    def append(
        self, topic: str, value: Any, *, key: bytes | None = b"", now: str = "12:00:00", transaction: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Place:  # fmt: skip
        """Add one record; what is no bytes is written as JSON."""
        there = self.records.setdefault(TopicPartition(topic, 0), [])
        offset = there[-1].offset + 1 if there else 0
        raw = value if value is None or isinstance(value, bytes) else orjson.dumps(value)
        named = tuple((name, text.encode()) for name, text in (headers or {}).items())
        there.append(Committed(offset, key, raw, named, at(now), transaction))
        return Place(topic, 0, offset)

    def transaction(  # noqa: PLR0913 -- all that a test may want to be otherwise in a transaction
        self, role: str, now: str, facts: Sequence[Any] = (), outputs: Sequence[tuple[str, Any]] = (),
        rows: Mapping[bytes, bytes | None] | None = None, *, torn: bool = False, whole: bool = True, epoch: int = 1,
        sequence: int | None = None, transaction: int | None = None, read_until: str | None = None, **wrong: Any,
    ) -> Place:  # fmt: skip
        """Add a transaction; the place of its decision. `torn`: without its footer. `wrong` replaces footer fields."""
        number = self._sequences[role] + 1 if sequence is None else sequence
        changelog, rows = topics.changelog_topic(role), rows or {}
        frame = {"role": role, "partition": 0, "epoch": epoch, "sequence": number, "positions": self.positions(role)}
        head = frame | {"part": 0, "last": whole, "now": z(now), "decided_until": z(now), "facts": list(facts)}
        head |= {} if read_until is None else {"read_until": z(read_until)}
        place = Place(changelog, 0, -1)
        if facts:
            place = self.append(changelog, head, key=b"\0decision-0000", now=now, transaction=transaction)
        for topic, value in outputs:
            headers = {"tw-seq": f"{role}-0-{number}"}
            self.append(topic, value, now=now, headers=headers, transaction=transaction)
        for key, row in rows.items():
            self.append(changelog, row, key=b"r" + key, now=now, transaction=transaction)
        if torn:
            return place
        counts = {"facts": len(facts), "outputs": len(outputs), "rows": len(rows), "decision_parts": int(bool(facts))}
        said = {name.removesuffix("_"): value for name, value in wrong.items()}
        footer = frame | counts | {"clock_mark": z(now), "decided_until": z(now)} | said
        footer_at = self.append(changelog, footer, key=b"\0footer", now=now, transaction=transaction)
        self._sequences[role] = number
        return place if facts else footer_at

    def positions(self, role: str) -> list[dict[str, Any]]:
        """All inputs of a role read to their ends."""
        ends = {topic: self.records[TopicPartition(topic, 0)] for topic in INPUTS[role]}
        return [
            {"topic": topic, "partition": 0, "offset": there[-1].offset + 1 if there else 0, "topic_id": "1"}
            for topic, there in ends.items()
        ]

    def evidence(self, **fields: Any) -> Evidence:
        """What checkers get to see."""
        records = {place: tuple(there) for place, there in self.records.items()}
        return Evidence(records=records, transactions=self.transactions, **fields)


def run_created(given: Given, run: dict[str, Any], now: str, **other: Any) -> Place:
    """The scheduler decides on a run."""
    outputs = [(topics.RUNS, run), (topics.RUN_EVENTS, run)]
    return given.transaction("scheduler", now, [run], outputs, **other)


def run_taken(given: Given, run: dict[str, Any], offset: int, now: str) -> Place:
    """The dispatcher reads it and hands it out."""
    handout = handed_out(run, offset)
    return given.transaction("dispatcher", now, [run, handout], [(topics.dispatch_topic("default"), handout)])


def run_ended(given: Given, offset: int, now: str, *, run: str = RUN, **other: Any) -> Place:
    """The dispatcher reads that it has succeeded."""
    facts = [started(offset, run=run), ended(offset, run=run), finished(run=run, **other)]
    outputs = [*((topics.RUN_EVENTS, fact) for fact in facts), (topics.RUN_OUTCOMES, facts[-1])]
    return given.transaction("dispatcher", now, facts, outputs)


def calm() -> Given:
    """A schedule every five seconds; two runs of it succeed; all up to 12:00:12 is decided."""
    given = Given()
    command = event("schedule.put", id_="command-1", tenant="acme", name="s", definition=DEFINITION)
    given.append(topics.SCHEDULE_CHANGES, command | {"source": "publisher"})
    given.append(topics.ATTEMPTS, word(0, 1))
    adopted = event(
        "tz.adopted", subject="_/scheduler-0", role="scheduler", partition=0, version="2026a", adopted_at=z("12:00:00")
    )  # fmt: skip
    accepted = of_schedule(
        "schedule.accepted", version=1, definition=DEFINITION, effective_at=z("12:00:00"), tz_version="2026a",
        command_id="command-1", source="publisher",
    )  # fmt: skip
    remembered = event(
        "command.remembered", of="schedule", tenant="acme", name="s", source="publisher", command_id="command-1",
        status=201, body={},
    )  # fmt: skip
    version = of_schedule(
        "schedule.version", version=1, definition=DEFINITION, effective_from=z("12:00:00"), tz_version="2026a"
    )
    outputs = [(topics.RUN_EVENTS, adopted), (topics.RUN_EVENTS, accepted), (topics.VERSIONS, version)]
    given.transaction("scheduler", "12:00:00", [adopted, accepted, remembered], outputs, {b"\0\3s/as": b"1"})
    reported = event("worker.reported", subject="incarnation-1", incarnation="incarnation-1")
    given.transaction("dispatcher", "12:00:00", [reported], (), {b"\0\3q/dw": b"1"})
    for offset, nominal, ended_at, run in ((0, "12:00:05", "12:00:06", RUN), (1, "12:00:10", "12:00:11", NEXT)):
        this = created(nominal)
        run_created(given, this, nominal)
        run_taken(given, this, offset, nominal)
        run_ended(given, offset, ended_at, run=run)
    settled = of_schedule("run.settled", run_id=NEXT, outcome="succeeded")
    given.transaction("scheduler", "12:00:12", [settled], (), {b"\0\3s/as": b"2"})
    given.transaction("dispatcher", "12:00:12")
    return given


def rested(given: Given, **fields: Any) -> Evidence:
    """The evidence of a run that came to rest at 12:00:12, with all that a calm run leaves behind."""
    ends = {
        role: {TopicPartition(item["topic"], 0): item["offset"] for item in given.positions(role)} for role in INPUTS
    }
    at_rest: dict[str, Any] = {
        "faults_off_at": at("12:00:09"), "rested_at": at("12:00:12"), "ended_at": at("12:00:13"), "positions": ends,
        "owners": {("scheduler", 0): "node-1", ("dispatcher", 0): "node-1"},
        "stores": (store(given, "scheduler", {b"\0\3s/as": b"2"}), store(given, "dispatcher", {b"\0\3q/dw": b"1"})),
        "executions": (
            execution(),
            execution(1, "12:00:10.5", run_id=NEXT, ended_at=at("12:00:11")),
        ),
    }  # fmt: skip
    return given.evidence(**at_rest | fields)


def store(given: Given, role: str, rows: Mapping[bytes, bytes], **other: Any) -> StoreContents:
    """The store of a role's one partition, up to its last footer."""
    changelog = given.records[TopicPartition(topics.changelog_topic(role), 0)]
    last = max((n for n, record in enumerate(changelog) if record.key == b"\0footer"), default=None)
    assert last is not None
    checkpoint = {
        "role": role, "partition": 0, "changelog_offset": changelog[last].offset + 1,
        "footer": orjson.loads(changelog[last].value or b""),
    }  # fmt: skip
    entries = {b"m": orjson.dumps(checkpoint)} | {b"r" + key: value for key, value in rows.items()}
    said: dict[str, Any] = {
        "role": role,
        "partition": 0,
        "machine": "node-1",
        "entries": tuple(sorted(entries.items())),
        "owned": True,
    }
    return StoreContents(**said | other)
