"""What facts of dependencies make of a schedule's links. Nothing of it changes what is due by the clock."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from scheduler.links import awaiting, edges, judging, listeners, triggers
from scheduler.links.state import Links
from scheduler.state import updated
from schemas.facts import Fact
from schemas.linking import (
    EdgeAnnounced,
    EdgeInquired,
    EdgeLinked,
    EdgeListed,
    EdgeUnlisted,
    EdgeWithdrawn,
    TriggerDeferred,
    TriggerNoted,
    UpstreamFinished,
    WindowAsked,
    WindowHeard,
    WindowJudged,
    WindowNoted,
)

if TYPE_CHECKING:
    from scheduler.state import ScheduleState


def _linked(links_after: Callable[[ScheduleState, Any], Links]) -> Callable[[ScheduleState, Any], ScheduleState]:
    def evolved(state: ScheduleState, fact: Fact) -> ScheduleState:
        return updated(state, links=links_after(state, fact))

    return evolved


def _withdrawn(state: ScheduleState, fact: EdgeWithdrawn) -> Links:
    return edges.withdrawn(updated(state, links=awaiting.withdrawn(state, fact)), fact)


def _unlisted(state: ScheduleState, fact: EdgeUnlisted) -> Links:
    return judging.unlisted(updated(state, links=listeners.unlisted(state, fact)), fact)


EVOLUTIONS: Mapping[type[Fact], Callable[[ScheduleState, Any], ScheduleState]] = {
    EdgeAnnounced: _linked(edges.announced),
    EdgeWithdrawn: _linked(_withdrawn),
    EdgeInquired: _linked(edges.inquired),
    EdgeLinked: _linked(edges.linked),
    EdgeListed: _linked(listeners.listed),
    EdgeUnlisted: _linked(_unlisted),
    UpstreamFinished: _linked(listeners.reported),
    TriggerNoted: _linked(triggers.noted),
    TriggerDeferred: _linked(triggers.deferred),
    WindowAsked: _linked(awaiting.asked),
    WindowHeard: _linked(awaiting.answered),
    WindowNoted: _linked(judging.entered),
    WindowJudged: _linked(judging.judged),
}
