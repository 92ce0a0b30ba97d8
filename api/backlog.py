"""What an outage left to be caught up of a schedule, as its plan says: how many, at which rate, and until when."""

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
    now, scope = services.now(), Scope(tenant=row["tenant"])
    span = Span(from_=now - services.settings.history, to=now + timedelta(seconds=1), limit=LOOKED_AT_MAX, newest=True)
    found = services.reader.undone(scope, row["name"], span)
    over = {each["nominal_from"] for each in found if each["decision"] != DEFERRED}
    turns = [
        each["until"]
        for each in found
        if each["decision"] == DEFERRED and each["reason"] == DeferReason.PACED and each["until"] > now
        if each["nominal_from"] not in over
    ]
    if not turns:
        return None
    rate = ((row["definition"] or {}).get("catch_up") or {}).get("rate") or RATE
    return {"pending": len(turns), "rate": rate, "next_at": min(turns), "until": max(turns)}
