"""The dispatcher as the runtime sees it: one core over the shards of one partition."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from dispatcher import adoption, cancels, creating, inputs, inquiries, reports, resets, waking
from dispatcher.adoption import CatalogRead, Shared
from dispatcher.evolution import CHANGES
from dispatcher.routes import route
from dispatcher.shard import Shard, load_shard
from runtime.machine import NEVER, PARTITION, Moment, Output, Rows, Wakeup, Woken
from runtime.record import Record
from schemas.facts import CatalogAdopted, Fact, RunCancelRequested, RunCreated
from schemas.faults import Fault
from schemas.internal import BreakerResetRequested, HandOut, LimitsAdopted, RunInquired, WorkerReport
from schemas.topics import Layout, Retention

REMEMBERED_FOR = Retention().runs  # as long as `runs` is retained: what is read from it again is known


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

    def about(self, _record: Record) -> bytes | None:
        """See `runtime.machine.Core`. Which shard is told by nothing but the whole of it."""
        return None

    def strand(self, record: Record, key: bytes | None, input_: Any) -> bytes:  # noqa: ARG002 -- the port's signature
        """The tenant of a run, or of what is asked about its runs: no record of `runs` changes another tenant's."""
        return inputs.strand(record, input_)

    def load(self, key: bytes, rows: Rows) -> Shard | Shared:
        """The state of a key."""
        if key == PARTITION:
            return adoption.load(rows)
        queue, number = inputs.name_of(key)
        return load_shard(queue, number, rows, self._remembered_for)

    def opened(self, _states: Iterator[Shard | Shared], _shared: Any, _now: datetime) -> Sequence[Fact]:
        """See `runtime.machine.Core`. There is nothing."""
        return ()

    def save(self, key: bytes, state: Shard | Shared, rows: Rows) -> None:  # noqa: ARG002 -- the port names the key
        """Write what changed."""
        if isinstance(state, Shard):
            state.save(rows)
        else:
            adoption.save(state, rows)

    def decide(self, state: Shard | Shared, input_: Any, moment: Moment, shared: Any) -> Sequence[Fact]:
        """The facts that follow from one input; before them, what the shard takes over of the catalog."""
        if not isinstance(state, Shard):
            return adoption.adopt(state, input_, self._partition, moment) if type(input_) is CatalogRead else ()
        if state.loaded_at is None:
            state.loaded_at = moment.now  # noted, not stored: it says since when this owner has been listening
        followed = adoption.follow(state, shared, moment)
        if type(input_) is Woken:
            return followed or waking.decide(state, moment)  # what is due is asked for again
        facts = _decide(state, input_, moment, followed)
        return (*followed, *facts) if followed else facts

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
        elif type(fact) is CatalogAdopted and not isinstance(state, Shard):
            adoption.evolve(state, fact)
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


def _decide(shard: Shard, input_: Any, moment: Moment, followed: Sequence[LimitsAdopted]) -> Sequence[Fact]:
    if type(input_) is RunCreated:
        return creating.decide(shard, input_, moment, adoption.portion_of(shard, input_.tenant, followed))
    if type(input_) is RunInquired:
        return inquiries.decide(shard, input_, moment, adoption.portion_of(shard, input_.run.tenant, followed))
    return DECISIONS[type(input_)](shard, input_, moment)


DECISIONS: Mapping[type, Callable[[Shard, Any, Moment], Sequence[Fact]]] = {
    RunCancelRequested: cancels.decide,
    BreakerResetRequested: resets.decide,
    WorkerReport: reports.decide,
}
