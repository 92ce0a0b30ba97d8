"""The scheduler as the runtime knows it: `runtime.machine.Core` over schedules, jobs and what a partition shares."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from runtime.machine import NEVER, PARTITION, Moment, Output, Reached, Wakeup, Woken
from runtime.record import Record
from scheduler import (
    adoption,
    calendars,
    commands,
    delays,
    due,
    evolving,
    finishing,
    forwarding,
    freezes,
    keys,
    memory,
    pacing,
    partition,
    plan,
    reading,
    references,
    state,
    versions,
)
from scheduler.context import Context
from scheduler.forwarding import Misplaced
from scheduler.instants import from_millis, millis
from scheduler.links import exchange
from scheduler.links.exchange import LinkRead
from scheduler.occurrences import rules
from scheduler.partition import CatalogRead
from scheduler.reading import OutcomeRead
from scheduler.routing import Routes
from scheduler.state import PartitionState, ReferenceState, ScheduleState, State
from schemas import topics
from schemas.commands import Command
from schemas.facts import (
    CatalogAdopted,
    CatalogEntry,
    CommandRejected,
    Fact,
    HistoryTrimmed,
    RecoveryFinished,
    RecoveryStarted,
    TzAdopted,
)
from schemas.internal import BreakerResetRequested, CommandAnswered, RunInquired
from schemas.scheduling import (
    CatalogAwaited,
    CommandDelayed,
    CommandForwarded,
    CommandRemembered,
    CommandTaken,
    HistoryForgotten,
    HoldNoted,
    HoldsReviewed,
    TenantPaced,
    TzRulesNoted,
)

if TYPE_CHECKING:
    from runtime.machine import Rows


class SchedulerCore:
    """The decisions of one scheduler partition. Between calls it keeps no more than what it was last asked with."""

    role = partition.ROLE

    def __init__(
        self,
        layout: topics.Layout,
        partition_number: int,
        tz_version: str,
        *,
        retention: topics.Retention = topics.Retention(),  # noqa: B008 -- a frozen value
        tenant_rate: str = pacing.TENANT_RATE,
    ) -> None:
        self._layout = layout
        self._partition = partition_number
        self._tz_version = tz_version
        self.derivation = f"{tz_version} {due.RULE}"  # what wakeups follow from besides states
        self._history_seconds = int(retention.history.total_seconds())
        self._tenant_rate = tenant_rate
        self._routes = Routes(layout)
        self._met: tuple[Moment | None, PartitionState | None, Context | None] = (None, None, None)

    def read(self, record: Record) -> tuple[bytes, Any] | None:
        """See `runtime.machine.Core`."""
        return reading.read(record, self._partition, self._layout)

    def about(self, record: Record) -> bytes | None:
        """See `runtime.machine.Core`."""
        return reading.about(record)

    def strand(self, record: Record, key: bytes | None, input_: Any) -> bytes:  # noqa: ARG002 -- the port's signature
        """The tenant, of what is published by hand or by others: no command changes what another tenant has."""
        return reading.strand(record, key)

    def refuse(self, record: Record, faults: Sequence[Any], moment: Moment) -> Sequence[Fact]:
        """See `runtime.machine.Core`."""
        return reading.refuse(record, faults, moment)

    # --- state ----------------------------------------------------------------------------------------------------

    def load(self, key: bytes, rows: Rows) -> State:
        """See `runtime.machine.Core`. Raises `TzVersionTooOld` for a partition that this process must not have."""
        if key == PARTITION:
            shared = replace(state.stored(PartitionState, rows), rows=rows)
            return partition.check_tz(shared, self._partition, self._tz_version)
        kind, tenant, name = keys.parts(key)
        if kind != keys.SCHEDULES:
            kind = keys.KIND_OF[kind]
            return replace(state.stored(ReferenceState, rows), kind=kind, tenant=tenant, name=name, rows=rows)
        row = rows.get(keys.MAIN)
        return _with_plans(replace(state.stored(ScheduleState, rows), tenant=tenant, name=name, rows=rows, row=row))

    def save(self, key: bytes, state_: State, rows: Rows) -> None:  # noqa: ARG002 -- the port's signature
        """See `runtime.machine.Core`."""
        state.save(state_, rows)

    def key_of(self, fact: Fact) -> bytes:
        """See `runtime.machine.Core`."""
        return _KEYS.get(type(fact), _of_schedule)(fact)

    def opened(self, states: Iterator[State], shared: State, now: datetime) -> Sequence[Fact]:
        """See `runtime.machine.Core`."""
        assert isinstance(shared, PartitionState)
        return adoption.opened(
            states, shared, partition=self._partition, version=self._tz_version, here=rules.installed(), now=now
        )

    # --- deciding -------------------------------------------------------------------------------------------------

    def decide(self, state_: State, input_: Any, moment: Moment, shared: State) -> Sequence[Fact]:
        """See `runtime.machine.Core`."""
        assert isinstance(shared, PartitionState)
        facts = self._decide(state_, input_, self._context(moment, shared))
        if shared.tz_version != self._tz_version:
            first = adoption.adopted(shared, self._partition, self._tz_version, rules.installed(), moment.now)
            facts = (*first, *facts)
        return facts

    def _context(self, moment: Moment, shared: PartitionState) -> Context:
        """The context that follows; made once a batch, whose decisions nearly all have the same."""
        known_moment, known_shared, known = self._met
        if known is not None and known_moment is moment and known_shared is shared:
            return known
        context = Context(
            now=moment.now,
            horizon=moment.horizon,
            horizon_ms=millis(moment.horizon),
            shared=shared,
            partition=self._partition,
            tz_version=self._tz_version,
            history_seconds=self._history_seconds,
            tenant_rate=self._tenant_rate,
        )
        self._met = (moment, shared, context)
        return context

    def _decide(self, state_: State, input_: Any, context: Context) -> Sequence[Fact]:
        if isinstance(state_, ScheduleState):  # before all else what every run asks, twice
            if isinstance(input_, Woken):
                if delays.is_due(state_.delays, context.horizon_ms):
                    return commands.look(state_, context)
                return due.decide(freezes.bind(calendars.bind(state_, context), context), context)
            if isinstance(input_, OutcomeRead):
                return due.outcome_read(state_, input_.finished, millis(input_.appended_at))
            if isinstance(input_, LinkRead):
                return exchange.decide(state_, input_, context)
        match state_, input_:
            case ScheduleState() | ReferenceState(), Command():
                return commands.decide(state_, input_, context)
            case ReferenceState(), Woken() if delays.is_due(state_.delays, context.horizon_ms):
                return commands.look(state_, context)
            case ReferenceState(), Woken():
                return (memory.forgetting(state_.kind, state_.tenant, state_.name, state_.rows, context.horizon_ms),)
            case PartitionState(), Reached():
                return partition.reached(state_, input_, context)
            case PartitionState(), CatalogRead():
                return partition.adopt(state_, input_, context)
            case _, Misplaced():
                return (forwarding.forward(input_),)
        raise AssertionError(f"{type(state_).__name__} does not understand {type(input_).__name__}")

    def evolve(self, state_: State, fact: Fact) -> State:
        """See `runtime.machine.Core`."""
        if isinstance(state_, ScheduleState):
            return evolving.evolve(state_, fact)
        if isinstance(state_, PartitionState):
            return partition.evolve(state_, fact)
        return references.evolve(state_, fact)

    def wakeup(self, state_: State) -> Wakeup:
        """See `runtime.machine.Core`."""
        if isinstance(state_, ScheduleState):
            at_ms = due.wakeup_ms(state_, history_seconds=self._history_seconds)
        elif isinstance(state_, ReferenceState):
            at_ms = references.wakeup_ms(state_)
        else:
            at_ms = None
        return NEVER if at_ms is None else _at(at_ms)

    def route(self, state_: State, fact: Fact) -> Sequence[Output]:
        """See `runtime.machine.Core`."""
        return self._routes.of(state_, fact)


@lru_cache(maxsize=4096)  # thousands of schedules want to be woken in the same second
def _at(at_ms: int) -> Wakeup:
    return Wakeup(at=from_millis(at_ms))


def _of_schedule(fact: Any) -> bytes:
    return keys.schedule(fact.tenant, fact.schedule)


def _of_partition(_fact: Any) -> bytes:
    return PARTITION


def _of_either(fact: CommandRemembered | CommandDelayed | CatalogAwaited | CommandTaken | HistoryForgotten) -> bytes:
    return keys.of(fact.of, fact.tenant, fact.name)


# Whose state a fact changes, where it is not its schedule's. Answers and refusals change nobody's.
_KEYS: Mapping[type[Fact], Callable[[Any], bytes]] = {
    CatalogEntry: lambda entry: keys.of(entry.kind, entry.tenant, entry.name),
    CommandRemembered: _of_either,
    CommandDelayed: _of_either,
    CatalogAwaited: _of_either,
    CommandTaken: _of_either,
    HistoryForgotten: _of_either,
    RunInquired: lambda inquired: _of_schedule(inquired.run),
    CatalogAdopted: _of_partition,
    RecoveryStarted: _of_partition,
    HistoryTrimmed: _of_partition,
    RecoveryFinished: _of_partition,
    TzAdopted: _of_partition,
    TenantPaced: _of_partition,
    HoldNoted: _of_partition,
    HoldsReviewed: _of_partition,
    TzRulesNoted: _of_partition,
    CommandForwarded: _of_partition,
    BreakerResetRequested: _of_partition,
    CommandAnswered: _of_partition,
    CommandRejected: _of_partition,
}


def _with_plans(schedule: ScheduleState) -> ScheduleState:
    """The schedule with the plans of the versions that still decide something, and of the one in force."""
    if not schedule.version:
        return schedule
    hash_key = f"{schedule.tenant}/{schedule.name}"
    plans = {}
    for version in range(versions.oldest_deciding(schedule), schedule.version + 1):
        row = schedule.rows.get(versions.row(version))
        if row is not None:
            plans[version] = finishing.bound(plan.of_version(row, hash_key), schedule.chain)
    return replace(schedule, plans=plans)
