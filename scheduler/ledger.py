"""What became of each occurrence, run-length coded.

Neighbours that fared alike share a segment; a run without an outcome has one of its own, so that its outcome finds it
without counting. The latest segments stand in the state, older ones in chunks of rows named by their first nominal.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING

from scheduler import keys
from scheduler.instants import DAY_SECONDS
from scheduler.state import ScheduleState, Segment
from schemas import codec
from schemas.frozen import frozen

if TYPE_CHECKING:
    from runtime.machine import Rows

CREATED, SKIPPED, WAITS = "created", "skipped", "waiting"
INLINE_MAX = 16  # a kilobyte: each decision writes them again
CHUNK_SEGMENTS = 8  # written once, when they leave the state
FORGOTTEN_CHUNKS_MAX = 64  # in one step
SLACK_SECONDS = DAY_SECONDS  # one step of forgetting a day, not one a segment

Segments = tuple[Segment, ...]


@frozen
class Chunk:
    """Neighbouring segments that left the state together."""

    segments: Segments


def append(segments: Segments, segment: Segment) -> Segments:
    """The ledger with a newer segment."""
    if segments:
        joined = _joined(segments[-1], segment)
        if joined is not None:
            return (*segments[:-1], joined)
    return (*segments, segment)


def resolve(segments: Segments, rows: Rows, nominal: int, **fate: str) -> Segments:
    """The ledger after an open entry, a run without outcome or a waiting occurrence, got its fate."""
    for index in range(len(segments) - 1, -1, -1):
        if segments[index].from_ == nominal:
            return _resolved(segments, index, fate)
        if segments[index].from_ < nominal:
            break
    _resolve_in_rows(rows, nominal, fate)
    return segments


def spill(state: ScheduleState, segments: Segments) -> tuple[Segments, int | None]:
    """The segments that stay in the state, and up to where the oldest chunk reaches."""
    if len(segments) <= INLINE_MAX:
        return segments, state.spilled_to
    old, kept = segments[:CHUNK_SEGMENTS], segments[CHUNK_SEGMENTS:]
    state.rows.put(keys.number(keys.LEDGER, old[0].from_), codec.dump(Chunk(segments=old)))
    return kept, old[-1].to if state.spilled_to is None else state.spilled_to


def look_up(state: ScheduleState, nominal: int) -> Segment | None:
    """What became of an occurrence, as far back as the ledger goes."""
    chunk = _chunk_at(state.rows, nominal)
    older = () if chunk is None else chunk[1].segments
    return next((s for s in (*older, *state.segments) if s.from_ <= nominal <= s.to), None)


def between(state: ScheduleState, first: int, last: int) -> Iterator[Segment]:
    """The segments that touch [first, last], in order; one chunk is read at a time."""
    chunk = _chunk_at(state.rows, first)
    begins = first if chunk is None else chunk[1].segments[0].from_
    older = state.rows.scan(keys.number(keys.LEDGER, begins), keys.number(keys.LEDGER, last + 1))
    spilled = (segment for _, value in older for segment in _chunk(value).segments)
    return (segment for segment in chain(spilled, state.segments) if segment.to >= first and segment.from_ <= last)


def names(state: ScheduleState, segment: Segment, nominal: int) -> bool:
    """Whether an instant within a stretch of the ledger is one of its occurrences, and not one between two of them.

    Of a version that decides nothing any more the trigger is not at hand: what cannot be told is believed.
    """
    if nominal in {segment.from_, segment.to}:
        return True
    plan = state.plans.get(segment.version)
    if plan is None or plan.after_finish is not None:
        return segment.count > 1
    return segment.count > 1 and plan.trigger.next_after(nominal - 1) == nominal


def forget_at(state: ScheduleState, kept_seconds: int) -> int | None:
    """When the next step of forgetting is due: what stands in the state is small and goes when something else does."""
    if state.spilled_to is not None:
        return state.spilled_to + kept_seconds + SLACK_SECONDS
    if state.segments and not state.exists:
        return state.segments[-1].to + kept_seconds + SLACK_SECONDS
    return None


def forget_until(state: ScheduleState, until: int) -> int:
    """Up to where one step forgets: chunks that end before it."""
    page = list(islice(state.rows.scan(keys.LEDGER, keys.end_of(keys.LEDGER)), FORGOTTEN_CHUNKS_MAX))
    return min(until, _chunk(page[-1][1]).segments[-1].to + 1) if len(page) == FORGOTTEN_CHUNKS_MAX else until


def oldest_version(state: ScheduleState, until: int) -> int | None:
    """The version of the oldest entry that is left when all before an instant is forgotten."""
    for _, value in state.rows.scan(keys.LEDGER, keys.end_of(keys.LEDGER)):
        segments = _chunk(value).segments
        if segments[-1].to >= until:
            return segments[0].version
    return next((segment.version for segment in state.segments if segment.to >= until), None)


def forget(state: ScheduleState, until: int) -> tuple[Segments, int | None]:
    """Remove chunks that end before an instant, and what stands in the state and does."""
    rows, spilled_to = state.rows, None
    for row, value in list(rows.scan(keys.LEDGER, keys.number(keys.LEDGER, until))):
        last = _chunk(value).segments[-1]
        if last.to >= until:
            spilled_to = last.to
            break
        rows.delete(row)
    else:
        left = next(iter(rows.scan(keys.number(keys.LEDGER, until), keys.end_of(keys.LEDGER))), None)
        spilled_to = None if left is None else _chunk(left[1]).segments[-1].to
    return tuple(segment for segment in state.segments if segment.to >= until), spilled_to


def _resolved(segments: Segments, index: int, fate: dict[str, str]) -> Segments:
    """The segments with a fate at `index`, joined with what now is alike on either side."""
    before, after = segments[:index], segments[index + 1 :]
    result = append(before, _with_fate(segments[index], **fate))
    return append(result, after[0]) + after[1:] if after else result


def _joined(older: Segment, newer: Segment) -> Segment | None:
    alike = (
        (newer.outcome or newer.decision == SKIPPED)
        and older.decision == newer.decision
        and older.outcome == newer.outcome
        and older.version == newer.version
        and older.reason == newer.reason
    )
    if not alike:
        return None
    return Segment(
        from_=older.from_, to=newer.to, count=older.count + newer.count, version=older.version,
        decision=older.decision, reason=older.reason, outcome=older.outcome,
    )  # fmt: skip


def _with_fate(
    segment: Segment, *, decision: str | None = None, reason: str | None = None, outcome: str | None = None
) -> Segment:
    return Segment(
        from_=segment.from_, to=segment.to, count=segment.count, version=segment.version,
        decision=segment.decision if decision is None else decision,
        reason=segment.reason if reason is None else reason,
        outcome=segment.outcome if outcome is None else outcome,
    )  # fmt: skip


def _resolve_in_rows(rows: Rows, nominal: int, fate: dict[str, str]) -> None:
    found = _chunk_at(rows, nominal)
    if found is None:
        return  # older than the ledger
    row, chunk = found
    for index, segment in enumerate(chunk.segments):
        if segment.from_ == nominal:
            rows.put(row, codec.dump(Chunk(segments=_resolved(chunk.segments, index, fate))))


def _chunk_at(rows: Rows, nominal: int) -> tuple[bytes, Chunk] | None:
    """The chunk that an occurrence would stand in."""
    found = next(iter(rows.scan(keys.LEDGER, keys.number(keys.LEDGER, nominal + 1), reverse=True)), None)
    return None if found is None else (found[0], _chunk(found[1]))


def _chunk(value: bytes) -> Chunk:
    return codec.load(Chunk, codec.parse(value))
