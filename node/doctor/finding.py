"""What a doctor says."""

from __future__ import annotations

from enum import StrEnum

from schemas.frozen import frozen


class Verdict(StrEnum):
    """How a finding should be taken."""

    OK = "ok"
    NOTE = "note"
    WRONG = "wrong"


@frozen
class Finding:
    """One thing looked at."""

    verdict: Verdict
    what: str
    remedy: str = ""


def ok(what: str) -> Finding:
    """All is well."""
    return Finding(verdict=Verdict.OK, what=what)


def note(what: str, remedy: str) -> Finding:
    """It works, and could surprise."""
    return Finding(verdict=Verdict.NOTE, what=what, remedy=remedy)


def wrong(what: str, remedy: str) -> Finding:
    """It does not work, or will lose or double something."""
    return Finding(verdict=Verdict.WRONG, what=what, remedy=remedy)
