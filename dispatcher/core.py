"""The dispatcher as the runtime sees it: one core over the shards of one partition."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from dispatcher import cancels, inputs, inquiries, reports, waking
from dispatcher.evolution import CHANGES
from dispatcher.routes import route
from dispatcher.shard import Shard, load_shard
from runtime.machine import NEVER, PARTITION, Moment, Output, Rows, Wakeup, Woken
from runtime.record import Record
from schemas.facts import Fact, RunCancelRequested, RunCreated
from schemas.faults import Fault
from schemas.internal import HandOut, RunInquired, WorkerReport
from schemas.topics import Layout, Retention

REMEMBERED_FOR = Retention().runs  # as long as `runs` is retained: what is read from it again is known


class Shared:
    """What all shards of a partition share: nothing yet."""


class DispatcherCore:
    """Implements `runtime.machine.Core`. A state is a `Shard`, or `Shared` under PARTITION."""

    role = "dispatcher"
    derivation = ""

    def __init__(self, layout: Layout, partition: int, *, remembered_for: timedelta = REMEMBERED_FOR) -> None:
        self._layout = layout
        self._partition = partition
        self._remembered_for = remembered_for

    def read(self, record: Record) -> tuple[bytes, Any] | None:
        """The shard and input of a record of `runs` or `attempts`; `Refused` for poison."""
        return inputs.read(record, self._layout, self._partition)

    def load(self, key: bytes, rows: Rows) -> Shard | Shared:
        """The state of a key."""
        if key == PARTITION:
            return Shared()
        queue, number = inputs.name_of(key)
        return load_shard(queue, number, rows, self._remembered_for)

    def opened(self, _states: Iterator[Shard | Shared], _shared: Any, _now: datetime) -> Sequence[Fact]:
        """See `runtime.machine.Core`. There is nothing."""
        return ()

    def save(self, key: bytes, state: Shard | Shared, rows: Rows) -> None:  # noqa: ARG002 -- the port names the key
        """Write what changed."""
        if isinstance(state, Shard):
            state.save(rows)

    def decide(self, state: Shard | Shared, input_: Any, moment: Moment, shared: Any) -> Sequence[Fact]:  # noqa: ARG002 -- nothing is shared yet
        """The facts that follow from one input."""
        if not isinstance(state, Shard):
            return ()
        if state.loaded_at is None:
            state.loaded_at = moment.now  # noted, not stored: it says since when this owner has been listening
        decision = DECISIONS[type(input_)]
        return decision(state, input_, moment)

    def key_of(self, fact: Fact) -> bytes:
        """The shard that a fact evolves; PARTITION for one that evolves nothing."""
        kind: Any = type(fact)
        if kind not in CHANGES:
            return PARTITION
        changes: Any = fact
        if kind is HandOut:
            return inputs.shard_key(changes.run.job.queue, changes.shard)
        return inputs.shard_key(changes.job.queue if kind is RunCreated else changes.queue, changes.shard)

    def evolve(self, state: Shard | Shared, fact: Fact) -> Shard | Shared:
        """The state after a fact."""
        change = CHANGES.get(type(fact))
        if change is not None:
            change(state, fact)
        return state

    def wakeup(self, state: Shard | Shared) -> Wakeup:
        """When the shard wants to be asked again."""
        return state.wakeup() if isinstance(state, Shard) else NEVER

    def route(self, state: Shard | Shared, fact: Fact) -> Sequence[Output]:  # noqa: ARG002 -- a fact says where it goes
        """Where a fact is published."""
        return route(fact)

    def refuse(self, record: Record, faults: Sequence[Fault], moment: Moment) -> Sequence[Fact]:
        """The facts that say a record was refused."""
        return inputs.refuse(record, faults, moment)


def _created(shard: Shard, run: RunCreated, _moment: Moment) -> Sequence[Fact]:
    """A run is taken once: `runs` may hold it twice after a failure."""
    return () if shard.knows(run) else (run,)


def _woken(shard: Shard, _input: Woken, moment: Moment) -> Sequence[Fact]:
    return waking.decide(shard, moment)


DECISIONS: Mapping[type, Callable[[Shard, Any, Moment], Sequence[Fact]]] = {
    RunCreated: _created,
    RunCancelRequested: cancels.decide,
    RunInquired: inquiries.decide,
    WorkerReport: reports.decide,
    Woken: _woken,
}
