"""Which occurrences of an upstream an occurrence waits for, and what it may do once they are known. Pure arithmetic.

    window of an occurrence:  (nominal - span, nominal], moved by `offset`
    something in it is open   -> wait, until the deadline
    nothing is open:          what failed or was skipped in it is judged -> met, or unmet by the first of them

An upstream without occurrences in the window meets it. Several upstreams have all to be met.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import NamedTuple


class Fate(StrEnum):
    """How an upstream stands to a window."""

    MET = "met"
    UNMET = "unmet"  # known to be wrong; waits on, for it to be mended, or does as `on_unmet` says
    OPEN = "open"  # something in it has no outcome yet
    UNKNOWN = "unknown"  # there never was such a schedule


class Window(NamedTuple):
    """Instants (after, until] in seconds: the first one is none of it, the last one is."""

    after: int
    until: int


class Way(NamedTuple):
    """Where one upstream leads at an instant: on to the run, or to a skip."""

    at_ms: int
    goes: bool
    upstream: str
    is_late: bool = False  # it is the deadline that leads there


def of(nominal: int, span: int, offset: int) -> Window:
    """The window of an occurrence."""
    return Window(max(0, nominal - span + offset), max(0, nominal + offset))


def way(upstream: str, fate: str, at_ms: int, *, on_unmet: str, deadline_ms: int) -> Way:
    """Where an upstream leads, as far as it has been heard: what is not certain by the deadline is given up then."""
    if at_ms <= deadline_ms:
        if fate == Fate.MET:
            return Way(at_ms, goes=True, upstream=upstream)
        if fate == Fate.UNMET and on_unmet != "wait":
            return Way(at_ms, on_unmet == "run_anyway", upstream)
    return Way(deadline_ms, on_unmet == "run_anyway", upstream, is_late=True)


def together(ways: Iterable[Way]) -> Way:
    """Of several the first one that leads to a skip; else all have to be gone."""
    found = list(ways)
    skips = [each for each in found if not each.goes]
    return min(skips, key=lambda each: each.at_ms) if skips else max(found, key=lambda each: each.at_ms)
