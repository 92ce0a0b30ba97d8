"""The schedules that follow one: listed as their owners announce them, told of each finished run that matters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from scheduler import keys, sweeps
from scheduler.context import Context
from scheduler.instants import from_millis
from scheduler.links.state import Links, Listener, meets
from schemas import codec
from schemas.facts import Fact, Outcome
from schemas.linking import EdgeAnnounced, EdgeInquired, EdgeListed, EdgeUnlisted, EdgeWithdrawn, UpstreamFinished

if TYPE_CHECKING:
    from scheduler.state import ScheduleState

LISTENERS_MAX = 1_000  # of one schedule: each of its outcomes is a record for every one of them, in one step
TOO_MANY = f"{LISTENERS_MAX} schedules follow it already"


def announced(state: ScheduleState, word: EdgeAnnounced | EdgeInquired, context: Context) -> tuple[Fact, ...]:
    """List whoever follows, and say so, again if need be; an older word changes nothing."""
    known = find(state, word.schedule)
    if known is not None and known.sequence > word.sequence:
        return ()
    crowded = known is None and state.links.listeners >= LISTENERS_MAX
    return (
        EdgeListed(
            tenant=state.tenant, schedule=state.name, downstream=word.schedule, mode=word.mode,
            condition=word.condition, sequence=word.sequence, listed_at=context.now, refused=TOO_MANY * crowded,
        ),
    )  # fmt: skip


def withdrawn(state: ScheduleState, word: EdgeWithdrawn) -> tuple[Fact, ...]:
    """It follows no longer."""
    known = find(state, word.schedule)
    if known is None or known.sequence >= word.sequence:
        return ()
    return (
        EdgeUnlisted(
            tenant=state.tenant, schedule=state.name, downstream=word.schedule, sequence=word.sequence
        ),
    )  # fmt: skip


def reports(state: ScheduleState, run_id: str, outcome: Outcome, at_ms: int) -> tuple[Fact, ...]:
    """What those are told who wait for a run that ends like this one. Costs what there are listeners."""
    if not state.links.listeners:
        return ()
    run = sweeps.run_row(state, run_id)
    assert run is not None, "what is settled was open"
    return tuple(
        UpstreamFinished(
            tenant=state.tenant, schedule=state.name, downstream=downstream, sequence=listener.sequence,
            number=state.links.reported + 1, run_id=run_id, outcome=outcome, finished_at=from_millis(at_ms),
            nominal_time=run.nominal_time, chain=(*run.chain, state.name),
        )
        for downstream, listener in _listeners(state)
        if listener.mode == "run" and meets(listener.condition, outcome)
    )  # fmt: skip


def find(state: ScheduleState, downstream: str) -> Listener | None:
    """What is known of one that follows."""
    row = state.rows.get(keys.LISTENER + downstream.encode()) if state.links.listeners else None
    return None if row is None else codec.load(Listener, codec.parse(row))


def _listeners(state: ScheduleState) -> Iterator[tuple[str, Listener]]:
    for row, value in state.rows.scan(keys.LISTENER, keys.end_of(keys.LISTENER)):
        yield row[len(keys.LISTENER) :].decode(), codec.load(Listener, codec.parse(value))


# --- what facts make of it ----------------------------------------------------------------------------------------


def listed(state: ScheduleState, fact: EdgeListed) -> Links:
    """One listener more, or one that listens for something else."""
    if fact.refused:
        return state.links
    known = find(state, fact.downstream)
    count = state.links.listeners + (known is None)
    intervals = state.links.intervals - _waits(known) + (fact.mode == "interval")
    listener = Listener(mode=fact.mode, condition=fact.condition, sequence=fact.sequence)
    state.rows.put(keys.LISTENER + fact.downstream.encode(), codec.dump(listener))
    return replace(state.links, listeners=count, intervals=intervals)


def unlisted(state: ScheduleState, fact: EdgeUnlisted) -> Links:
    """One listener less."""
    intervals = state.links.intervals - _waits(find(state, fact.downstream))
    state.rows.delete(keys.LISTENER + fact.downstream.encode())
    return replace(state.links, listeners=state.links.listeners - 1, intervals=intervals)


def _waits(listener: Listener | None) -> bool:
    return listener is not None and listener.mode == "interval"


def reported(state: ScheduleState, fact: UpstreamFinished) -> Links:
    """All reports of one outcome have its number."""
    return replace(state.links, reported=fact.number)
