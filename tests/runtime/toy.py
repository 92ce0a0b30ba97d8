"""A core so small that a test of the shell can be read without knowing any other.

Each key counts. An input adds to a key's counter, or asks it to be woken. The facts are borrowed words: `resumed`
for a count, `paused` for an answered wakeup.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import orjson

from runtime.machine import PARTITION, Moment, Output, Reached, Wakeup, Woken
from schemas import codec, topics
from schemas.facts import CommandRejected, Fact, Position, SchedulePaused, ScheduleResumed
from schemas.faults import Fault, Refused

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from runtime.machine import Rows
    from runtime.record import Record

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Count:
    """A key's state."""

    name: str
    count: int = 0
    woken: int = 0
    wake_at: datetime | None = None
    evidence_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Add:
    """Add `times`, and be woken at `wake_at` or when the evidence is read up to `evidence_at`."""

    name: str
    times: int = 1
    wake_at: datetime | None = None
    evidence_at: datetime | None = None


class ToyCore:
    """See `runtime.machine.Core`."""

    role = "scheduler"

    def __init__(self, late_by: timedelta = timedelta(0)) -> None:
        self.late_by = late_by  # a rule that wakeups follow from besides states
        self.derivation = f"late by {late_by}"
        self.also_to = ""  # a topic that every fact goes to as well
        self.also_is_optional = False
        self.decided: list[tuple[str, Any, Moment]] = []

    def read(self, record: Record) -> tuple[bytes, Any] | None:
        if record.topic not in (topics.SCHEDULE_CHANGES, topics.CATALOG):
            return None
        if record.value == b"impossible":
            raise AssertionError("an impossible state")
        add = codec.load(Add, codec.parse(record.value or b""))
        if add.times < 0:
            raise Refused(Fault(pointer="/times", code="range", message="must not be negative"))
        return add.name.encode(), add

    def about(self, record: Record) -> bytes | None:
        """See `runtime.machine.Core`."""
        try:
            name: str = orjson.loads(record.value or b"")["name"]
        except ValueError:
            return None
        return name.encode() if record.topic == topics.SCHEDULE_CHANGES else None

    def strand(self, record: Record, key: bytes | None, input_: Any) -> bytes:
        """What stands before the slash, if there is one."""
        return (key or self.about(record) or b"").rpartition(b"/")[0]

    def load(self, key: bytes, rows: Rows) -> Count:
        stored = rows.get(b"count")
        return Count(name=key.decode()) if stored is None else codec.load(Count, orjson.loads(stored))

    def opened(self, _states: Iterator[Count], _shared: Any, _now: datetime) -> Sequence[Fact]:
        """See `runtime.machine.Core`. There is nothing."""
        return ()

    def save(self, key: bytes, state: Count, rows: Rows) -> None:
        rows.put(b"count", codec.dump(state))

    def decide(self, state: Count, input_: Any, moment: Moment, shared: Count) -> Sequence[Fact]:
        if isinstance(input_, Reached):
            return []
        self.decided.append((state.name, input_, moment))
        common: dict[str, Any] = {
            "tenant": "t",
            "schedule": state.name,
            "effective_at": moment.now,
            "accepted_at": moment.now,
        }
        if isinstance(input_, Woken):
            return [SchedulePaused(version=state.woken + 1, **common)]
        note = "" if input_.wake_at is None else input_.wake_at.isoformat()
        by = "" if input_.evidence_at is None else input_.evidence_at.isoformat()
        return [ScheduleResumed(version=state.count + input_.times, note=note, by=by, **common)] if input_.times else []

    def key_of(self, fact: Fact) -> bytes:
        return PARTITION if isinstance(fact, CommandRejected) else fact.schedule.encode()  # type: ignore[attr-defined]

    def evolve(self, state: Count, fact: Fact) -> Count:
        match fact:
            case ScheduleResumed():
                wake_at = datetime.fromisoformat(fact.note) if fact.note else state.wake_at
                evidence_at = datetime.fromisoformat(fact.by) if fact.by else state.evidence_at
                return replace(state, count=fact.version, wake_at=wake_at, evidence_at=evidence_at)
            case SchedulePaused():
                return replace(state, woken=fact.version, wake_at=None, evidence_at=None)
        return state

    def wakeup(self, state: Count) -> Wakeup:
        return Wakeup(at=state.wake_at and state.wake_at + self.late_by, on_evidence_at=state.evidence_at)

    def route(self, state: Count, fact: Fact) -> Sequence[Output]:
        topic = topics.REJECTIONS if isinstance(fact, CommandRejected) else topics.RUN_EVENTS
        also = [
            Output(topic=topic, key=fact.subject, fact=fact, partition=0, optional=self.also_is_optional)
            for topic in (self.also_to,)
            if topic
        ]
        return [Output(topic=topic, key=fact.subject, fact=fact), *also]

    def refuse(self, record: Record, faults: Sequence[Any], moment: Moment) -> Sequence[Fact]:
        position = Position(topic=record.topic, partition=record.partition, offset=record.offset)
        return [
            CommandRejected(
                tenant="t", name="poison", reason="unreadable", faults=tuple(faults), position=position,
                rejected_at=moment.now,
            )
        ]  # fmt: skip
