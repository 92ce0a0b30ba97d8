"""The edges of a schedule that follows: announced when they change, asked after until they are linked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from scheduler import keys, sweeps
from scheduler.context import Context
from scheduler.instants import from_millis, millis
from scheduler.links.state import Edge, Links
from schemas import codec
from schemas.facts import Fact
from schemas.linking import EdgeAnnounced, EdgeInquired, EdgeLinked, EdgeListed, EdgeWithdrawn

if TYPE_CHECKING:
    from runtime.machine import Rows
    from scheduler.state import ScheduleState


# --- what changes -------------------------------------------------------------------------------------------------


def changes(
    state: ScheduleState, wanted: Mapping[str, Any] | None, version: int, at_ms: int, context: Context
) -> tuple[Fact, ...]:
    """What has to be said so that the edges are those of a definition; of None, so that there are none.

    `at_ms` is when the change takes effect: from then on nobody waits for an upstream that is no longer named. One that
    is named for another purpose is another edge.
    """
    known = dict(edges(state.rows)) if state.links.edges else {}
    entries = {} if wanted is None else {each["schedule"]: each for each in wanted.get("after") or ()}
    facts: list[Fact] = []
    sequence = state.links.sequence
    for upstream in sorted(known):
        if upstream in entries and entries[upstream]["mode"] == known[upstream].mode:
            continue
        sequence += 1
        facts.append(
            EdgeWithdrawn(
                tenant=state.tenant, schedule=state.name, upstream=upstream, version=version, sequence=sequence,
                withdrawn_at=from_millis(at_ms),
            )
        )  # fmt: skip
    for upstream in sorted(entries):
        entry, edge = entries[upstream], known.get(upstream)
        if edge is not None and (edge.mode, edge.condition) == (entry["mode"], entry["condition"]):
            continue
        sequence += 1
        facts.append(
            EdgeAnnounced(
                tenant=state.tenant, schedule=state.name, upstream=upstream, mode=entry["mode"],
                condition=entry["condition"], version=version, sequence=sequence, announced_at=context.now,
            )
        )  # fmt: skip
    return tuple(facts)


def inquire(state: ScheduleState, context: Context) -> tuple[Fact, ...]:
    """Ask again after each edge that has not been linked for so long."""
    return tuple(
        EdgeInquired(
            tenant=state.tenant, schedule=state.name, upstream=upstream, mode=edge.mode, condition=edge.condition,
            version=edge.version, sequence=edge.sequence, inquired_at=context.now,
        )
        for upstream, edge in edges(state.rows)
        if not edge.linked and _ask_ms(edge) <= context.horizon_ms
    )  # fmt: skip


def listed(state: ScheduleState, answer: EdgeListed, context: Context) -> tuple[Fact, ...]:
    """The upstream's owner has answered; what it says of an older edge is no answer."""
    edge = find(state, answer.schedule)
    if edge is None or edge.sequence != answer.sequence or (edge.linked and edge.refused == answer.refused):
        return ()
    return (
        EdgeLinked(
            tenant=state.tenant, schedule=state.name, upstream=answer.schedule, sequence=answer.sequence,
            linked_at=context.now, refused=answer.refused,
        ),
    )  # fmt: skip


# --- rows ---------------------------------------------------------------------------------------------------------


def find(state: ScheduleState, upstream: str) -> Edge | None:
    """The edge from an upstream, if there is one."""
    row = state.rows.get(keys.EDGE + upstream.encode()) if state.links.edges else None
    return None if row is None else codec.load(Edge, codec.parse(row))


def waits(state: ScheduleState, upstream: str) -> bool:
    """Whether occurrences wait for an upstream: it may have been asked for by a version that is over."""
    edge = find(state, upstream)
    return edge is not None and edge.mode == "interval"


def edges(rows: Rows) -> Iterator[tuple[str, Edge]]:
    """Upstreams and their edges, by name."""
    for row, value in rows.scan(keys.EDGE, keys.end_of(keys.EDGE)):
        yield row[len(keys.EDGE) :].decode(), codec.load(Edge, codec.parse(value))


def write(rows: Rows, upstream: str, edge: Edge) -> None:
    """Keep an edge as it now is."""
    rows.put(keys.EDGE + upstream.encode(), codec.dump(edge))


# --- what facts make of it ----------------------------------------------------------------------------------------


def announced(state: ScheduleState, fact: EdgeAnnounced) -> Links:
    """One more edge, or one that goes on under other terms: what was reported before is known then."""
    before, at_ms = find(state, fact.upstream), millis(fact.announced_at)
    edge = Edge(
        mode=fact.mode, condition=fact.condition, version=fact.version, sequence=fact.sequence, announced_ms=at_ms,
        asked_ms=at_ms, since=fact.sequence if before is None else before.since,
        seen_sequence=0 if before is None else before.seen_sequence,
        seen_number=0 if before is None else before.seen_number,
    )  # fmt: skip
    write(state.rows, fact.upstream, edge)
    count = state.links.edges + (before is None)
    return replace(state.links, edges=count, sequence=fact.sequence, ask_ms=_soonest(state.rows))


def withdrawn(state: ScheduleState, fact: EdgeWithdrawn) -> Links:
    """One edge less."""
    state.rows.delete(keys.EDGE + fact.upstream.encode())
    return replace(
        state.links, edges=state.links.edges - 1, sequence=fact.sequence, ask_ms=_soonest(state.rows)
    )  # fmt: skip


def inquired(state: ScheduleState, fact: EdgeInquired) -> Links:
    """The next question comes later than this one did."""
    edge = find(state, fact.upstream)
    assert edge is not None, "only what is there is asked after"
    write(state.rows, fact.upstream, replace(edge, asked_ms=millis(fact.inquired_at)))
    return replace(state.links, ask_ms=_soonest(state.rows))


def linked(state: ScheduleState, fact: EdgeLinked) -> Links:
    """Nothing has to be asked any more, unless the answer was no: that may change."""
    edge = find(state, fact.upstream)
    assert edge is not None, "only what is there is linked"
    write(state.rows, fact.upstream, replace(edge, linked=not fact.refused, refused=fact.refused))
    return replace(state.links, ask_ms=_soonest(state.rows))


def _soonest(rows: Rows) -> int | None:
    return min((_ask_ms(edge) for _, edge in edges(rows) if not edge.linked), default=None)


def _ask_ms(edge: Edge) -> int:
    """Ten minutes after the announcement, then twice as long each time, at last every six hours."""
    return sweeps.next_inquiry_ms(edge.announced_ms, edge.asked_ms)
