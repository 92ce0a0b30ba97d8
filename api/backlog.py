"""What a schedule still has to run: what an outage left to be caught up, as its plan says, and what a freeze holds."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from projections.occurrences import DEFERRED
from projections.store.reader import Scope, Span
from schemas.facts import DeferReason

if TYPE_CHECKING:
    from api import views
    from api.services import ApiServices

RATE = "10/s"  # where a definition says nothing
LOOKED_AT_MAX = 1_000  # of the newest: a longer backlog is said to have at least so many


def backlog(services: ApiServices, row: views.Row) -> views.Json | None:
    """The occurrences whose turn is still to come; None where there are none.

    `until` is when the last one's turn is: it may be later where runs wait for each other.
    """
    turns = [each["until"] for each in _deferred(services, row, DeferReason.PACED) if each["until"] > services.now()]
    if not turns:
        return None
    rate = ((row["definition"] or {}).get("catch_up") or {}).get("rate") or RATE
    return {"pending": len(turns), "rate": rate, "next_at": min(turns), "until": max(turns)}


def held(services: ApiServices, row: views.Row) -> views.Json | None:
    """The occurrences that a freeze holds: how many, until when, by which; None where there are none.

    `until` is what was known last of any of them: the others wait behind the first.
    """
    found = _deferred(services, row, DeferReason.FROZEN)
    if not found:
        return None
    last = max(found, key=lambda each: each["decided_at"])
    nominal = [each["nominal_from"] for each in found]
    return {"pending": len(found), "since": min(nominal), "until": last["until"], "detail": last["detail"]}


def _deferred(services: ApiServices, row: views.Row, reason: DeferReason) -> list[views.Row]:
    """The newest that wait for a reason, and have neither a run nor been skipped since."""
    now, scope = services.now(), Scope(tenant=row["tenant"])
    span = Span(from_=now - services.settings.history, to=now + timedelta(seconds=1), limit=LOOKED_AT_MAX, newest=True)
    found = services.reader.undone(scope, row["name"], span)
    waiting = [each for each in found if each["decision"] == DEFERRED and each["reason"] == reason]
    if not waiting:
        return []
    over = {each["nominal_from"] for each in found if each["decision"] != DEFERRED}
    over |= {run["nominal_time"] for run in services.reader.created(scope, row["name"], span)}
    return [each for each in waiting if each["nominal_from"] not in over]
