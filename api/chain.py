"""What the next occurrence counts from, of a schedule whose interval counts from the end of the run before."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

from projections.occurrences import SKIPPED
from projections.store.reader import Scope, Span

if TYPE_CHECKING:
    from api import views
    from api.services import ApiServices

SECOND = timedelta(seconds=1)
RULE = " from finish"  # what the rule of each of its decisions ends in


class Standing(NamedTuple):
    """`is_open`: a run goes on, or an occurrence waits, so nobody knows what is next."""

    is_open: bool = False
    since: datetime | None = None


def standing(services: ApiServices, row: views.Row) -> Standing:
    """What the last decision leads to; nothing for a schedule that follows the clock, or has not begun."""
    if ((row["definition"] or {}).get("trigger") or {}).get("from") != "finish":
        return Standing()
    scope, now = Scope(tenant=row["tenant"]), services.now()
    newest = Span(from_=now - services.settings.history, to=now + SECOND, limit=1, newest=True)
    runs = [run for run in services.reader.created(scope, row["name"], newest) if run["rule"].endswith(RULE)]
    others = services.reader.undone(scope, row["name"], newest)
    run, other = (runs[0] if runs else None), (others[0] if others else None)
    if run is not None and (other is None or other["nominal_from"] <= run["nominal_time"]):
        finished_at = run["finished_at"]
        return Standing(finished_at is None, finished_at and finished_at.replace(microsecond=0))
    if other is None:
        return Standing()
    if other["decision"] != SKIPPED:
        return Standing(is_open=True)
    last = other["nominal_from"] if other["nominal_to"] is None else other["nominal_to"] - SECOND
    return Standing(since=last if other["rule"].endswith(RULE) else None)
