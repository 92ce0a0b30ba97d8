"""What a schedule names and the catalog has not: accepted, as it may come later, and warned of."""

from __future__ import annotations

from collections.abc import Iterator

from scheduler.calendars import KIND as CALENDAR
from scheduler.calendars import Lookup
from scheduler.plan import Plan

JOB = "job"


def warnings(plan: Plan, tenant: str, look: Lookup) -> Iterator[str]:
    """One for its job and for each of its calendars, as far as they are not there."""
    if plan.job_name is not None and look(JOB, tenant, plan.job_name) is None:
        yield f"/job: there is no job {plan.job_name!r} yet; until there is, occurrences are skipped"
    for name in plan.calendars:
        if look(CALENDAR, tenant, name) is None:
            yield f"/trigger/exclude/calendars: there is no calendar {name!r} yet; until there is, it excludes nothing"
