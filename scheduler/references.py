"""Jobs, calendars, queues and tenants at their owners: what facts make of them.

Their definitions are accepted like those of schedules (`commands.references`) and written to the catalog. What a
partition decides with is what it has adopted from there (`partition`), which may be later.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from scheduler import delays, memory
from scheduler.instants import millis
from scheduler.state import ReferenceState
from schemas.facts import CatalogEntry, Fact
from schemas.scheduling import CatalogAwaited, CommandDelayed, CommandRemembered, CommandTaken, HistoryForgotten


def evolve(state: ReferenceState, fact: Fact) -> ReferenceState:
    """The state after a fact; a fact that is not in the table is an error of ours."""
    return _EVOLUTIONS[type(fact)](state, fact)


def wakeup_ms(state: ReferenceState) -> int | None:
    """When there is something to be forgotten, or a command that waits is to be looked at."""
    instants = (memory.forget_at_ms(state.memory), delays.look_at_ms(state.delays))
    return min((at for at in instants if at is not None), default=None)


def _entry(state: ReferenceState, fact: CatalogEntry) -> ReferenceState:
    return replace(state, version=fact.version, definition=fact.definition)


def _remembered(state: ReferenceState, fact: CommandRemembered) -> ReferenceState:
    source_version = state.source_version if fact.source_version is None else fact.source_version
    return replace(state, memory=memory.remember(state.memory, state.rows, fact), source_version=source_version)


def _forgotten(state: ReferenceState, fact: HistoryForgotten) -> ReferenceState:
    assert fact.commands_until is not None, "a reference definition keeps no other history"
    return replace(state, memory=memory.forget(state.memory, state.rows, fact.commands_until))


def _delayed(state: ReferenceState, fact: CommandDelayed) -> ReferenceState:
    return replace(state, delays=delays.append(state.delays, state.rows, fact))


def _awaits(state: ReferenceState, fact: CatalogAwaited) -> ReferenceState:
    return replace(state, delays=replace(state.delays, look_ms=millis(fact.look_at)))


def _taken(state: ReferenceState, _fact: CommandTaken) -> ReferenceState:
    return replace(state, delays=delays.without_first(state.delays, state.rows))


_EVOLUTIONS: Mapping[type[Fact], Callable[[ReferenceState, Any], ReferenceState]] = {
    CatalogEntry: _entry,
    CommandRemembered: _remembered,
    CommandDelayed: _delayed,
    CatalogAwaited: _awaits,
    CommandTaken: _taken,
    HistoryForgotten: _forgotten,
}
