"""Which occurrences of an upstream an occurrence waits for, and what it may do once they are known. Pure arithmetic.

An upstream says two things of itself: its **settled mark**, the nominal instant of its first occurrence, past or next,
that has neither outcome nor skip (`ENDED` when there is none to come); and **exceptions**, the nominal instants below
it that did not succeed. What is below the mark and no exception succeeded. So a mark and a few exceptions tell the
fate of a million occurrences, and nobody looks at any of them.

    window of an occurrence:  (nominal - span, nominal], moved by `offset`
    mark within or before it: something in it is still open       -> wait, until the deadline
    mark behind it:           exceptions inside it are judged     -> met, or unmet by the first of them

An upstream without occurrences in the window meets it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

from schemas.frozen import frozen

ENDED = 1 << 62  # a mark behind every instant: nothing of the upstream is open or to come


class Fate(StrEnum):
    """What an occurrence may do as far as one upstream is concerned."""

    MET = "met"
    WAITS = "waits"
    UNMET = "unmet"  # known to be wrong; waits on, for a rerun, or does as `on_unmet` says
    OVERDUE = "overdue"  # neither known to be right nor wrong when the deadline came


class Window(NamedTuple):
    """Instants (after, until] in seconds: the first one is none of it, the last one is."""

    after: int
    until: int

    def holds(self, instant: int) -> bool:
        """Whether an instant lies in it."""
        return self.after < instant <= self.until


@frozen
class Exceptions:
    """Nominal instants below the mark that did not succeed: sorted, `failed` and `skipped` ones apart."""

    failed: tuple[int, ...] = ()
    skipped: tuple[int, ...] = ()


@frozen
class Known:
    """What is known of an upstream: None for the mark, nothing at all."""

    settled_until: int | None = None
    exceptions: Exceptions = Exceptions()


def of(nominal: int, span: int, offset: int) -> Window:
    """The window of an occurrence."""
    return Window(nominal - span + offset, nominal + offset)


def fate(known: Known, window: Window, *, condition: str, overdue: bool) -> Fate:
    """How one upstream stands to a window. `finished` does not mind failures; both mind what was skipped.

    Exceptions are judged once everything in the window has its fate: until then a rerun may mend them, and whoever
    skips what is unmet does not skip too early. The mark's own instant is open.
    """
    if known.settled_until is None or known.settled_until <= window.until:
        return Fate.OVERDUE if overdue else Fate.WAITS
    wrong = any(_within(instants, window) for instants in _wrong(known.exceptions, condition))
    return Fate.UNMET if wrong else Fate.MET


def named(known: Known, window: Window, *, condition: str) -> int | None:
    """The first occurrence that is in the way: an exception, else the one that is open."""
    found = [instants[at] for instants in _wrong(known.exceptions, condition) for at in _first(instants, window)]
    if found:
        return min(found)
    mark = known.settled_until
    return mark if mark is not None and window.holds(mark) else None


def together(fates: Iterable[Fate]) -> Fate:
    """Of several upstreams all have to be met; the worst that is certain counts before what may still come right."""
    found = set(fates)
    return next((each for each in (Fate.UNMET, Fate.OVERDUE, Fate.WAITS) if each in found), Fate.MET)


# --- the upstream's own bookkeeping -------------------------------------------------------------------------------


def settled(known: Known, nominal: int, following: int | None, *, outcome: str) -> Known:
    """After the first open occurrence got its fate: the mark moves to the one that is open next, `ENDED` without one.

    `outcome` is succeeded, failed or skipped. Costs what the exceptions cost, however long the upstream has run.
    """
    return replaced(known, nominal, outcome=outcome, mark=ENDED if following is None else following)


def mended(known: Known, nominal: int, *, outcome: str) -> Known:
    """After a late success, a rerun or a backfill gave an occurrence below the mark another fate."""
    return replaced(known, nominal, outcome=outcome, mark=known.settled_until)


def replaced(known: Known, nominal: int, *, outcome: str, mark: int | None) -> Known:
    """With another fate of one occurrence."""
    exceptions = Exceptions(
        failed=_with(known.exceptions.failed, nominal, wanted=outcome == "failed"),
        skipped=_with(known.exceptions.skipped, nominal, wanted=outcome == "skipped"),
    )
    return Known(settled_until=mark, exceptions=exceptions)


def forgotten(known: Known, before: int) -> Known:
    """Without exceptions that no listener's window reaches back to any more."""
    exceptions = Exceptions(
        failed=known.exceptions.failed[bisect_left(known.exceptions.failed, before) :],
        skipped=known.exceptions.skipped[bisect_left(known.exceptions.skipped, before) :],
    )
    return Known(settled_until=known.settled_until, exceptions=exceptions)


def _wrong(exceptions: Exceptions, condition: str) -> tuple[tuple[int, ...], ...]:
    """What stands in the way of a condition: a skipped occurrence has neither succeeded nor finished."""
    return (exceptions.skipped,) if condition == "finished" else (exceptions.failed, exceptions.skipped)


def _within(instants: Sequence[int], window: Window) -> bool:
    return bool(_first(instants, window))


def _first(instants: Sequence[int], window: Window) -> tuple[int, ...]:
    """The place of the first instant in a window; none when there is none."""
    at = bisect_right(instants, window.after)
    return (at,) if at < len(instants) and instants[at] <= window.until else ()


def _with(instants: tuple[int, ...], instant: int, *, wanted: bool) -> tuple[int, ...]:
    at = bisect_left(instants, instant)
    is_there = at < len(instants) and instants[at] == instant
    if is_there == wanted:
        return instants
    return (*instants[:at], instant, *instants[at:]) if wanted else (*instants[:at], *instants[at + 1 :])
