"""Which commands were answered, and what is older than anybody asks for."""

from __future__ import annotations

from scheduler import fills, ledger, memory, versions
from scheduler.instants import seconds
from scheduler.state import ScheduleState, updated
from schemas.scheduling import CommandRemembered, HistoryForgotten


def remembered(state: ScheduleState, fact: CommandRemembered) -> ScheduleState:
    """A command was answered."""
    source_version = state.source_version if fact.source_version is None else fact.source_version
    return updated(state, memory=memory.remember(state.memory, state.rows, fact), source_version=source_version)


def forgotten(state: ScheduleState, fact: HistoryForgotten) -> ScheduleState:
    """What is that old is gone."""
    if fact.commands_until is not None:
        state = updated(state, memory=memory.forget(state.memory, state.rows, fact.commands_until))
    if fact.ledger_until is not None:
        segments, spilled_to = ledger.forget(state, seconds(fact.ledger_until))
        filled_from = fills.forget(state.rows, seconds(fact.ledger_until))
        state = updated(state, segments=segments, spilled_to=spilled_to, filled_from=filled_from)
    if fact.versions_up_to is not None:
        state = updated(state, ended=versions.forget(state, fact.versions_up_to))
    return state
