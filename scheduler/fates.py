"""How the occurrences of a past range stand, seen by one version: whether they had a run, and how it ended.

The ledger says what was decided when they were due, `fills` what backfills did since. Neighbours that stand alike are
one stretch, and a stretch is counted by arithmetic: a month of minutes that all succeeded is looked at in one step.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from scheduler import calendars, fills, keys, ledger, occurrences, plan, versions
from scheduler.context import Context
from scheduler.plan import Plan
from scheduler.state import ScheduleState, Segment

NEVER, OPEN, WAITING, EXCLUDED, BEYOND = "never_due", "open", "waiting", "excluded", "beyond_history"
NOT_RUN = frozenset({NEVER, ledger.SKIPPED})
UNFINISHED = frozenset({OPEN, WAITING, EXCLUDED, BEYOND})
COUNTED_MAX = 1_000_000  # far more than a backfill may hold


class Stretch(NamedTuple):
    """Occurrences in (after, until] that stand alike: the fate is one of ours, or the outcome of their runs."""

    after: int
    until: int
    fate: str
    reason: str = ""

    def count(self, plan_: Plan) -> int:
        """How many."""
        return occurrences.count_between(plan_.trigger, self.after, self.until, COUNTED_MAX)


class _Piece(NamedTuple):
    """A part of a range with the segment of the ledger that it lies in."""

    after: int
    until: int
    segment: Segment | None


def plan_of(state: ScheduleState, version: int) -> Plan | None:
    """The plan of a version whose definition is kept."""
    known = state.plans.get(version)
    if known is not None:
        return known
    row = state.rows.get(versions.row(version))
    return None if row is None else plan.of_version(row, f"{state.tenant}/{state.name}")


def judging_plan(state: ScheduleState, version: int, context: Context) -> Plan | None:
    """The same to judge a range by: with what the calendars that it names say now."""
    known = plan_of(state, version)
    if known is None:
        return None
    return calendars.whole(calendars.bound(known, state.tenant, calendars.adopted_by(context.shared)))


def stretches(state: ScheduleState, plan_: Plan, version: int, first: int, last: int) -> Iterator[Stretch]:
    """All of [first, last] in order, read as far as it is asked for; a stretch may turn out to be empty."""
    filled = fills.between(state.rows, first, last)
    fill = next(filled, None)
    for piece in _pieces(state, first - 1, last):
        after = piece.after
        while fill is not None and fill[0] <= piece.until:
            nominal, outcome = fill
            if after < nominal - 1:
                yield from _of_piece(state, plan_, version, piece._replace(after=after, until=nominal - 1))
            yield from _excluded(plan_, Stretch(nominal - 1, nominal, outcome or OPEN))
            after, fill = nominal, next(filled, None)
        if after < piece.until:
            yield from _of_piece(state, plan_, version, piece._replace(after=after))


def wanted(fate: str, reprocess: str) -> bool:
    """Whether a backfill that reprocesses these has a run for it."""
    if fate in NOT_RUN or fate in UNFINISHED or reprocess == "none":
        return fate in NOT_RUN
    return reprocess == "completed" or fate != "succeeded"


def _pieces(state: ScheduleState, after: int, until: int) -> Iterator[_Piece]:
    for segment in ledger.between(state, after + 1, until):
        begins, ends = max(segment.from_ - 1, after), min(segment.to, until)
        if after < begins:
            yield _Piece(after, begins, None)
        yield _Piece(begins, ends, segment)
        after = ends
    if after < until:
        yield _Piece(after, until, None)


def _of_piece(state: ScheduleState, plan_: Plan, version: int, piece: _Piece) -> Iterator[Stretch]:
    segment = piece.segment
    if segment is None:
        yield from _excluded(plan_, Stretch(piece.after, piece.until, NEVER))
        return
    stretch = Stretch(piece.after, piece.until, _fate(segment), segment.reason)
    other = None if segment.version == version else plan_of(state, segment.version)
    # What cannot be told is believed: the definition is gone, or its instants followed the ends of runs.
    if other is None or other.after_finish is not None or other.trigger == plan_.trigger:
        yield from _excluded(plan_, stretch)
        return
    for nominal in occurrences.between(plan_.trigger, piece.after, piece.until):
        # The version of then had other occurrences: only those that it had as well have been decided.
        known = nominal in {segment.from_, segment.to} or other.trigger.next_after(nominal - 1) == nominal
        one = Stretch(nominal - 1, nominal, stretch.fate if known else NEVER, stretch.reason if known else "")
        yield from _excluded(plan_, one)


def _excluded(plan_: Plan, stretch: Stretch) -> Iterator[Stretch]:
    """The same, with what the version's own rules take out."""
    if plan_.out is None:
        yield stretch
        return
    for nominal in occurrences.between(plan_.trigger, stretch.after, stretch.until):
        is_out = plan_.out.naming(nominal) is not None
        fate, reason = (EXCLUDED, "") if is_out else (stretch.fate, stretch.reason)
        yield Stretch(nominal - 1, nominal, fate, reason)


def _fate(segment: Segment) -> str:
    if segment.decision == ledger.CREATED:
        return segment.outcome or OPEN
    return WAITING if segment.decision == ledger.WAITS else ledger.SKIPPED


def first_decided(state: ScheduleState) -> int | None:
    """The oldest occurrence of which a decision is known."""
    row = next(iter(state.rows.scan(keys.LEDGER, keys.end_of(keys.LEDGER))), None)
    if row is not None:
        return int.from_bytes(row[0][len(keys.LEDGER) :], "big")
    return state.segments[0].from_ if state.segments else None
