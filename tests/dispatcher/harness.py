"""The shell in small: one dispatcher core over one shard, with rows in memory.

It does with a core what the runtime does: decide, evolve fact by fact, ask again while something is due, save. What a
due wakeup decides must be something, and wakeup must be the same for a state that was loaded anew.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from dispatcher.breakers import DEFAULT
from dispatcher.core import DispatcherCore
from dispatcher.inputs import partition_of, shard_key
from dispatcher.shard import Shard
from runtime.machine import Moment, Output, Wakeup, Woken
from runtime.record import Record
from schemas import codec, topics
from schemas.facts import (
    Cause,
    ErrorInfo,
    Fact,
    JobSnapshot,
    RetryPolicy,
    RunCancelRequested,
    RunCreated,
)
from schemas.internal import FinishedLease, HandOut, RunInquired, WorkerReport
from schemas.topics import Layout

T0 = datetime(2026, 3, 2, 10, 0, tzinfo=UTC)
NEVER_READ = datetime(1970, 1, 1, tzinfo=UTC)
QUEUE = "mail"
LAYOUT = Layout(schedule=4, shard=4)
TASK = "reports.nightly"
NEVER_HELD = replace(DEFAULT, failures=0)  # most tests are not about breakers, and fail as often as they like
STEPS_MAX = 10_000  # far beyond what any test needs: asking for ever is a fault

F = TypeVar("F", bound=Fact)


class MemoryRows:
    """Rows of one key."""

    def __init__(self, rows: dict[bytes, bytes] | None = None) -> None:
        self.rows = dict(rows or {})
        self.writes = 0

    def get(self, row: bytes) -> bytes | None:
        return self.rows.get(row)

    def put(self, row: bytes, value: bytes) -> None:
        self.writes += 1
        self.rows[row] = value

    def delete(self, row: bytes) -> None:
        self.writes += 1
        self.rows.pop(row, None)

    def scan(
        self, start: bytes = b"", end: bytes | None = None, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        keys = sorted(self.rows)
        low = bisect.bisect_left(keys, start)
        high = len(keys) if end is None else bisect.bisect_left(keys, end)
        chosen = keys[low:high]
        for row in reversed(chosen) if reverse else chosen:
            yield row, self.rows[row]


class Bench:
    """One shard under test. `facts` and `outputs` are everything so far; calls return what they added."""

    def __init__(self, *, queue: str = QUEUE, shard: int = 0, remembered_for: timedelta = timedelta(days=3)) -> None:
        self.partition = partition_of(queue, shard, LAYOUT)
        self.core = DispatcherCore(LAYOUT, self.partition, remembered_for=remembered_for)
        self.key = shard_key(queue, shard)
        self.queue, self.shard = queue, shard
        self.rows = MemoryRows()
        self.state = self._load(self.rows)
        self.now = T0
        self.read_until = T0
        self.facts: list[Fact] = []
        self.outputs: list[Output] = []
        self._entropy = 0
        self.shared: Any = None  # what the partition has adopted, where a test needs it

    # --- time ------------------------------------------------------------------------------------------------------

    def at(self, offset: timedelta | float, *, read: bool = True) -> list[Fact]:
        """Let the clock be T0 + offset (seconds, or a duration) and answer what is due; `read`: evidence included."""
        wanted = T0 + (offset if isinstance(offset, timedelta) else timedelta(seconds=offset))
        assert wanted >= self.now, "time goes on"
        self.now = wanted
        if read:
            self.read_until = wanted
        return self.wake()

    def later(self, seconds: float, *, read: bool = True) -> list[Fact]:
        return self.at(self.now - T0 + timedelta(seconds=seconds), read=read)

    def wake(self) -> list[Fact]:
        """Ask the shard until nothing is due."""
        added: list[Fact] = []
        for _ in range(STEPS_MAX):
            if not self.is_due():
                return added
            facts = self._decide(Woken())
            assert facts, "the shard was due and decided nothing: the shell would ask for ever"
            added += facts
        raise AssertionError("the shard is never done")

    def is_due(self) -> bool:
        """As the shell sees it: what is due at `read_until` is due."""
        wakeup = self.wakeup()
        instants = [instant for instant in (wakeup.at, wakeup.on_evidence_at) if instant is not None]
        return any(instant <= self.read_until for instant in instants)

    def wakeup(self) -> Wakeup:
        return self.core.wakeup(self.state)

    # --- inputs ----------------------------------------------------------------------------------------------------

    def give(self, input_: Fact) -> list[Fact]:
        """An input arrives, by way of its record; then what is due is answered."""
        return [*self.take(input_), *self.wake()]

    def take(self, input_: Fact) -> list[Fact]:
        """An input arrives; what is due waits."""
        read = self.core.read(self.record(input_))
        assert read is not None
        assert read[0] == self.key
        return self._decide(read[1])

    def record(self, fact: Fact) -> Record:
        topic = topics.ATTEMPTS if isinstance(fact, WorkerReport) else topics.RUNS
        _, value = codec.encode(fact, source="tidewheel/test", time=self.now)
        return Record(topic, self.partition, 0, b"", value, (), self.now)

    def happened(self, fact: Fact) -> None:
        """Something was decided that this harness does not decide."""
        self.core.evolve(self.state, fact)
        self.facts.append(fact)

    # --- the shell -------------------------------------------------------------------------------------------------

    def moment(self) -> Moment:
        self._entropy += 1
        return Moment(now=self.now, read_until=self.read_until, entropy=self._entropy.to_bytes(16, "big"))

    def save(self) -> None:
        self.core.save(self.key, self.state, self.rows)

    def take_over(self) -> None:
        """Another process loads the shard from its rows; nothing of the evidence is read yet."""
        self.save()
        self.rows = MemoryRows(self.rows.rows)
        self.state = self._load(self.rows)
        self.read_until = NEVER_READ

    def _load(self, rows: MemoryRows) -> Shard:
        state = self.core.load(self.key, rows)
        assert isinstance(state, Shard)
        return state

    def _decide(self, input_: Any) -> list[Fact]:
        moment = self.moment()
        facts = list(self.core.decide(self.state, input_, moment, self.shared))
        for fact in facts:
            self.outputs += self.core.route(self.state, fact)
            if self.core.key_of(fact) == self.key:
                self.core.evolve(self.state, fact)
        self.facts += facts
        return facts

    # --- questions -------------------------------------------------------------------------------------------------

    def all(self, kind: type[F]) -> list[F]:
        return of(self.facts, kind)

    def on(self, topic: str) -> list[Fact]:
        """What was published on a topic."""
        return [output.fact for output in self.outputs if output.topic == topic]

    def reloaded(self) -> Shard:
        """The shard as another process would load it."""
        self.save()
        return self._load(MemoryRows(self.rows.rows))

    def refolded(self) -> MemoryRows:
        """The rows that come out when everything decided so far is evolved anew, from its encoded form."""
        rows = MemoryRows()
        state = self._load(rows)
        for fact in self.facts:
            _, value = codec.encode(fact, source="tidewheel/test", time=self.now)
            if self.core.key_of(fact) == self.key:
                self.core.evolve(state, codec.read_fact(value))
        self.core.save(self.key, state, rows)
        return rows


class WorkerSim:
    """A worker as a test wants it: it reports what it is told to report."""

    def __init__(
        self, bench: Bench, name: str = "w1", *, incarnation: str = "", tasks: Sequence[str] = (TASK,)
    ) -> None:
        self.bench = bench
        self.name = name
        self.incarnation = incarnation or f"{name}-a"
        self.tasks = tuple(tasks)
        self.number = 0
        self.inbox = 3
        self.read_up_to = -1
        self._inbox: list[HandOut] = []
        self._looked_at = 0

    def report(
        self,
        *,
        slots: int = 1,
        held: Sequence[HandOut] = (),
        started: Sequence[HandOut] = (),
        finished: Sequence[FinishedLease] = (),
        draining: bool = False,
        **more: Any,
    ) -> list[Fact]:
        """Report, having read the whole inbox."""
        return self.bench.give(
            self.said(slots=slots, held=held, started=started, finished=finished, draining=draining, **more)
        )

    def said(
        self,
        *,
        slots: int = 1,
        held: Sequence[HandOut] = (),
        started: Sequence[HandOut] = (),
        finished: Sequence[FinishedLease] = (),
        draining: bool = False,
        **more: Any,
    ) -> WorkerReport:
        """The report as a record would carry it."""
        self.number += 1
        self.read_up_to = max([self.read_up_to, *(hand_out.offset for hand_out in self.inbox_records()[-1:])])
        report = WorkerReport(
            queue=self.bench.queue, shard=self.bench.shard, worker=self.name, incarnation=self.incarnation,
            number=self.number, inbox=self.inbox, read_up_to=self.read_up_to, slots=slots, tasks=self.tasks,
            held=tuple(item.lease for item in held), started=tuple(item.lease for item in started),
            finished=tuple(finished), draining=draining,
        )  # fmt: skip
        return replace(report, **more)

    def inbox_records(self) -> list[HandOut]:
        """Everything that was ever handed to this incarnation."""
        fresh, self._looked_at = self.bench.facts[self._looked_at :], len(self.bench.facts)
        self._inbox += [fact for fact in of(fresh, HandOut) if fact.incarnation == self.incarnation]
        return list(self._inbox)


def of(facts: Sequence[Fact], kind: type[F]) -> list[F]:
    """The facts of one kind."""
    return [fact for fact in facts if isinstance(fact, kind)]


def only(facts: Sequence[Fact], kind: type[F]) -> F:
    """The one fact of a kind."""
    found = of(facts, kind)
    assert len(found) == 1, f"{len(found)} of {kind.__name__}"
    return found[0]


def succeeded(hand_out: HandOut, result: Any = None) -> FinishedLease:
    return FinishedLease(lease=hand_out.lease, outcome="succeeded", result=result)


def failed(hand_out: HandOut, type_: str = "ValueError", message: str = "no") -> FinishedLease:
    return FinishedLease(lease=hand_out.lease, outcome="failed", error=ErrorInfo(type=type_, message=message))


def ended(hand_out: HandOut, outcome: str) -> FinishedLease:
    return FinishedLease(lease=hand_out.lease, outcome=outcome)


def retry(**given: Any) -> RetryPolicy:
    policy = RetryPolicy(
        max_attempts=3, initial=timedelta(seconds=1), factor=2.0, max=timedelta(minutes=5), jitter="none"
    )
    return replace(policy, **given)


def job(**given: Any) -> JobSnapshot:
    snapshot = JobSnapshot(
        queue=QUEUE, target={"type": "task", "name": TASK}, payload={}, priority="normal",
        timeout=timedelta(hours=1), deadline=timedelta(days=7), lease=timedelta(seconds=30), retry=retry(),
        breaker=NEVER_HELD,
    )  # fmt: skip
    return replace(snapshot, **given)


def run(number: int = 1, *, at: datetime = T0, job: JobSnapshot = job(), **given: Any) -> RunCreated:  # noqa: B008 -- frozen
    """A run created at `at`, due at once."""
    created = RunCreated(
        tenant="acme", schedule="nightly", run_id=f"nightly.{number}", version=1, cause=Cause.SCHEDULE, created_at=at,
        due_at=at, deadline_at=at + job.deadline, shard=0, job=job, rule="cron", tz_version="2026f", nominal_time=at,
    )  # fmt: skip
    return replace(created, **given)


def terminate(run_id: str = "nightly.1", *, at: datetime = T0) -> RunCancelRequested:
    """What a schedule that replaces its runs writes behind one of them."""
    return replace(cancel(run_id, reply_to=None, at=at), command_id="", terminate=True)


def cancel(run_id: str = "nightly.1", *, reply_to: int | None = 5, at: datetime = T0) -> RunCancelRequested:
    return RunCancelRequested(
        tenant="acme", schedule="nightly", run_id=run_id, requested_at=at, queue=QUEUE, shard=0,
        command_id="cancel-1", reply_to=reply_to,
    )  # fmt: skip


def inquiry(run: RunCreated, at: datetime = T0) -> RunInquired:
    return RunInquired(run=run, inquired_at=at)
