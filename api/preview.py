"""What would be, what will be, what was: previews of a definition, and the explanation of a schedule's occurrences."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from api import requests, views
from api.document import takes
from api.problems import not_found
from api.reading import read_instant
from api.schedules import FILE_FIELDS
from projections.occurrences import DEFERRED
from projections.store.reader import Scope, Span
from schemas import definitions
from schemas.faults import Fault, Refused

if TYPE_CHECKING:
    from api.reading import Reads
    from api.services import ApiServices, Expected, Outlook

PREVIEW_DAYS = 31
EXPLAIN = timedelta(days=1)
LIMIT = 100
LIMIT_MAX = 1_000
RANGE_MAX = timedelta(days=366 * 10)
NEXT_SHOWN = 3
UNNAMED = "preview"  # hashes (`H`) of a definition without a name fall as they would for this one


class PreviewRoutes:
    """`/v1/…/preview` and `/v1/…/occurrences`."""

    def __init__(self, services: ApiServices, reads: Reads) -> None:
        self._services = services
        self._reads = reads

    def router(self) -> APIRouter:
        """What is where."""
        router = APIRouter(tags=["occurrences"])
        add = router.add_api_route
        takes_schedule = takes(definitions.Schedule)
        what = "Occurrences of a definition"
        add("/v1/tenants/{tenant}/preview", self.preview, methods=["POST"], summary=what, openapi_extra=takes_schedule)
        where = "/v1/tenants/{tenant}/schedules/{name}/occurrences"
        add(where, self.explain, methods=["GET"], summary="Past decisions and coming occurrences, each with its reason")
        return router

    async def preview(
        self, request: Request, tenant: str, from_: Annotated[str | None, Query(alias="from")] = None,
        to: str | None = None, limit: int | None = None,
    ) -> Response:  # fmt: skip
        requests.name(tenant, "tenant")
        document = await requests.json_object(request)
        now = self._services.now()
        begin = read_instant(from_, "/from") or now
        end = read_instant(to, "/to") or begin + timedelta(days=PREVIEW_DAYS)
        check_range(begin, end)
        answered = await self._reads.ask(request, self._previewed, tenant, document, begin, end, bounded(limit))
        return answered.json(answered.value)

    async def explain(
        self, request: Request, tenant: str, name: str, from_: Annotated[str | None, Query(alias="from")] = None,
        to: str | None = None, limit: int | None = None,
    ) -> Response:  # fmt: skip
        scope = Scope(tenant=requests.name(tenant, "tenant"))
        now = self._services.now()
        end = read_instant(to, "/to")
        begin = read_instant(from_, "/from") or min(now, end or now) - EXPLAIN
        end = end or max(now, begin) + EXPLAIN
        check_range(begin, end)
        span = Span(from_=begin, to=end, limit=bounded(limit))
        answered = await self._reads.ask(request, explained, self._services, scope, name, span)
        if answered.value is None:
            raise not_found(f"schedule {tenant}/{name}")
        return answered.json(answered.value)

    def _previewed(
        self, tenant: str, document: dict[str, Any], begin: datetime, end: datetime, limit: int
    ) -> views.Json:
        name = document.get("name", UNNAMED)
        if not isinstance(name, str):
            raise Refused(Fault(pointer="/name", code="type", message="must be a string"))
        definition = {field: value for field, value in document.items() if field not in FILE_FIELDS}
        forecast = self._services.forecast
        outlook = forecast(f"{tenant}/{name}", definition, from_=begin, to=end, limit=limit)
        now = self._services.now()
        soon = forecast(f"{tenant}/{name}", definition, from_=now, to=now + RANGE_MAX, limit=NEXT_SHOWN)
        current = self._current(tenant, name, begin, end, limit) if "name" in document else None
        return {
            "words": outlook.words,
            "next": nominal_times(soon),
            "occurrences": [_expected(each) for each in outlook.occurrences],
            "dst": list(outlook.dst),
            "difference": _difference(current, outlook),
        }

    def _current(self, tenant: str, name: str, begin: datetime, end: datetime, limit: int) -> Outlook | None:
        row = self._services.reader.schedule(Scope(tenant=tenant), name)
        if row is None or row["state"] == "deleted":
            return None
        return self._services.forecast(
            f"{tenant}/{name}", row["definition"], from_=begin, to=end, limit=limit, accepted=True
        )


def explained(services: ApiServices, scope: Scope, name: str, span: Span) -> views.Json | None:
    """What was decided in a span, and what will be, in order of nominal time."""
    row = services.reader.schedule(scope, name)
    if row is None:
        return None
    past = decided(services, scope, name, span)
    begin = max(span.from_, services.now())
    found = past + coming(services, row, begin, span.to, span.limit - len(past))
    return {
        "tenant": row["tenant"],
        "schedule": name,
        "state": row["state"],
        "from": span.from_,
        "to": span.to,
        "occurrences": found,
        "truncated": len(found) >= span.limit,
    }


def decided(services: ApiServices, scope: Scope, name: str, span: Span) -> list[views.Json]:
    """Occurrences of a span that have a run, a reason for none, or a reason to wait. A run ends the waiting."""
    runs = services.reader.created(scope, name, span)
    have_runs = {run["nominal_time"] for run in runs}
    found = [(run["nominal_time"], views.created(run)) for run in runs]
    found += [
        (each["nominal_from"], views.undone(each))
        for each in services.reader.undone(scope, name, span)
        if each["decision"] != DEFERRED or each["nominal_from"] not in have_runs
    ]
    found.sort(key=lambda pair: pair[0], reverse=span.newest)
    return [view for _, view in found[: span.limit]]


def coming(services: ApiServices, row: views.Row, begin: datetime, end: datetime, limit: int) -> list[views.Json]:
    """Occurrences that will be due in [begin, end), if nothing changes."""
    if row["state"] == "deleted" or begin >= end or limit <= 0:
        return []
    subject = f"{row['tenant']}/{row['name']}"
    try:
        outlook = services.forecast(subject, row["definition"], from_=begin, to=end, limit=limit, accepted=True)
    except Refused:
        return []
    said = {"decision": "planned", "version": row["version"]}
    if row["state"] == "paused":
        said |= {"decision": "will_skip", "reason": "paused"}
    return [{**said, **_expected(each)} for each in outlook.occurrences]


def nominal_times(outlook: Outlook) -> list[datetime]:
    """Those that are due."""
    return [each.nominal_time for each in outlook.occurrences if each.nominal_time is not None]


def bounded(limit: int | None) -> int:
    """How many occurrences are answered at most."""
    return LIMIT if limit is None else max(1, min(limit, LIMIT_MAX))


def check_range(begin: datetime, end: datetime) -> None:
    """[begin, end) must not be empty, nor longer than anybody can use."""
    if end <= begin:
        raise Refused(Fault(pointer="/to", code="range", message="must be later than from"))
    if end - begin > RANGE_MAX:
        raise Refused(Fault(pointer="/to", code="range", message="is more than ten years after from"))


def _expected(each: Expected) -> views.Json:
    view: views.Json = {"local_time": each.local_time}
    if each.nominal_time is not None:
        view["nominal_time"] = each.nominal_time
    if each.note:
        view["note"] = each.note
    return view


def _difference(current: Outlook | None, wanted: Outlook) -> views.Json:
    """Against what the schedule of that name does now, within the same range and limit."""
    if current is None:
        return {}
    before, after = set(nominal_times(current)), set(nominal_times(wanted))
    return {"added": sorted(after - before), "removed": sorted(before - after), "unchanged": len(before & after)}
