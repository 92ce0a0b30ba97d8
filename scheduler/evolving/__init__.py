"""What facts make of a schedule's state: one table, from the kind of fact to what it does.

Nothing here looks at a trigger or at the time. A fact says all that matters, so the same facts make the same state
under any version of the code, of the tz database and of the moment.

    phases     which version decides, from when on, and the mark up to which all is decided
    decisions  what became of occurrences, and the lines of those that wait
    outcomes   how runs ended
    memories   which commands were answered, and what is forgotten
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from scheduler import backfills, delays, sweeps
from scheduler.evolving import decisions, memories, outcomes, phases
from scheduler.links import folding
from scheduler.state import ScheduleState
from schemas.facts import (
    BackfillFinished,
    BackfillProgressed,
    BackfillStarted,
    Fact,
    OccurrenceDeferred,
    OccurrenceSkipped,
    RunCancelRequested,
    RunCreated,
    ScheduleAccepted,
    ScheduleDeleted,
    SchedulePaused,
    ScheduleResumed,
)
from schemas.internal import RunInquired
from schemas.linking import TriggerTaken
from schemas.scheduling import (
    BackfillStepped,
    CatalogAwaited,
    CommandDelayed,
    CommandRemembered,
    CommandTaken,
    HistoryForgotten,
    HoldQuestioned,
    MarkMoved,
    OccurrencePaced,
    OutcomeHeld,
    RunSettled,
    RunsSwept,
    SkipRequested,
)


def evolve(state: ScheduleState, fact: Fact) -> ScheduleState:
    """The state after a fact; a fact that is not in the table is an error of ours."""
    return EVOLUTIONS[type(fact)](state, fact)


def _unchanged(state: ScheduleState, _fact: RunInquired | RunCancelRequested) -> ScheduleState:
    return state


EVOLUTIONS: Mapping[type[Fact], Callable[[ScheduleState, Any], ScheduleState]] = {
    ScheduleAccepted: phases.accepted,
    SchedulePaused: phases.paused,
    ScheduleResumed: phases.resumed,
    ScheduleDeleted: phases.deleted,
    MarkMoved: phases.moved,
    RunCreated: decisions.created,
    OccurrenceSkipped: decisions.skipped,
    OccurrenceDeferred: decisions.deferred,
    SkipRequested: decisions.skip_requested,
    OccurrencePaced: decisions.paced,
    HoldQuestioned: decisions.hold_questioned,
    BackfillStarted: backfills.evolve_started,
    BackfillStepped: backfills.evolve_stepped,
    BackfillProgressed: backfills.evolve_progressed,
    BackfillFinished: outcomes.backfill_over,
    OutcomeHeld: outcomes.held,
    RunSettled: outcomes.settled,
    RunsSwept: sweeps.evolve_swept,
    RunInquired: _unchanged,
    RunCancelRequested: _unchanged,
    CommandRemembered: memories.remembered,
    CommandDelayed: delays.evolve_delayed,
    CatalogAwaited: delays.evolve_awaited,
    CommandTaken: delays.evolve_taken,
    HistoryForgotten: memories.forgotten,
    TriggerTaken: decisions.trigger_taken,
    **folding.EVOLUTIONS,
}
