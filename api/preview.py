"""What would be, what will be, what was: previews of a definition, and the explanation of a schedule's occurrences."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from api import requests, views
from api.changes import meant_by
from api.difference import change_of, of_occurrences
from api.document import takes
from api.explain import expected, explained, forecast_of, left_under, only
from api.load import Loads, effect
from api.problems import not_found
from api.reading import read_instant
from api.references import kind_of, normal_form
from api.schedules import FILE_FIELDS
from projections.store.reader import Scope, Span
from schemas import definitions, identity, references
from schemas.faults import Fault, Refused

if TYPE_CHECKING:
    from api.reading import Reads
    from api.services import ApiServices, Definitions, Outlook

PREVIEW_DAYS = 31
CLOCK_CHANGES = timedelta(days=731)  # 24 months: every kind of change that a zone's rules make, twice
EXPLAIN = timedelta(days=1)
LIMIT = 100
LIMIT_MAX = 1_000
RANGE_MAX = timedelta(days=366 * 10)
NEXT_SHOWN = 3
BESIDE_MAX = 100  # 32 calendars, a job and its queue, a tenant, and some more
KINDS = tuple(kind.title() for kind in references.KINDS)
BESIDE: dict[str, Any] = {
    "type": "array",
    "maxItems": BESIDE_MAX,
    "items": {
        "type": "object",
        "properties": {"kind": {"enum": list(KINDS)}, "name": {"type": "string"}},
        "required": ["kind", "name"],
    },
    "description": "documents that would be applied with it: its calendars, its job, freezes of its queue and tenant",
}
UNNAMED = "preview"  # hashes (`H`) of a definition without a name fall as they would for this one


class PreviewRoutes:
    """`/v1/…/preview` and `/v1/…/occurrences`."""

    def __init__(self, services: ApiServices, reads: Reads) -> None:
        self._services = services
        self._reads = reads
        self._loads = Loads(services)

    def router(self) -> APIRouter:
        """What is where."""
        router = APIRouter(tags=["occurrences"])
        add = router.add_api_route
        takes_schedule = takes(definitions.Schedule, beside=BESIDE)
        what = "Occurrences of a definition"
        add("/v1/tenants/{tenant}/preview", self.preview, methods=["POST"], summary=what, openapi_extra=takes_schedule)
        where = "/v1/tenants/{tenant}/schedules/{name}/occurrences"
        add(where, self.explain, methods=["GET"], summary="Past decisions and coming occurrences, each with its reason")
        return router

    async def preview(
        self, request: Request, tenant: str, from_: Annotated[str | None, Query(alias="from")] = None,
        to: str | None = None, limit: int | None = None,
        load: Annotated[bool, Query()] = False,  # noqa: FBT002 -- a query parameter
    ) -> Response:  # fmt: skip
        requests.name(tenant, "tenant")
        document = await requests.json_object(request)
        now = self._services.now()
        begin = read_instant(from_, "/from") or now
        end = read_instant(to, "/to") or begin + timedelta(days=PREVIEW_DAYS)
        check_range(begin, end)
        ask = partial(self._previewed, load=load)
        answered = await self._reads.ask(request, ask, tenant, document, begin, end, bounded(limit))
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
        self, tenant: str, document: dict[str, Any], begin: datetime, end: datetime, limit: int, *, load: bool
    ) -> views.Json:
        beside = _beside(tenant, document.pop("beside", []))
        name = document.get("name", UNNAMED)
        if not (isinstance(name, str) and identity.is_name(name)):
            raise Refused(Fault(pointer="/name", code="name", message=f"must be {requests.NAMES}"))
        definition = {field: value for field, value in document.items() if field not in FILE_FIELDS}
        if (kind := kind_of(document)) is not None:
            return self._reference(kind, tenant, name, definition)
        current = self._current(tenant, name) if "name" in document else None
        ask = partial(self._services.forecast, f"{tenant}/{name}", _anchored(definition, current), beside=beside)
        outlook = self._no_more(current, ask(from_=begin, to=end, limit=limit))
        before = forecast_of(self._services, current, begin, end, limit) if current else None
        now = self._services.now()
        dst_until = max(end, begin + CLOCK_CHANGES)
        return {
            "words": outlook.words,
            "warnings": outlook.warnings,
            "next": nominal_times(self._no_more(current, ask(from_=now, to=now + RANGE_MAX, limit=NEXT_SHOWN))),
            "occurrences": [expected(each) for each in outlook.occurrences],
            "skipped": [{"reason": each.reason, **each.said} for each in outlook.skipped],
            "dst": list(ask(from_=begin, to=dst_until, limit=1).dst),
            "dst_until": dst_until,
            **change_of(_definition(current, before), outlook.definition),
            "difference": of_occurrences(before, outlook, begin, end, limit) if before else {},
            **self._dependants(tenant, name),
            **({"load": self._load(tenant, name, outlook.definition, current, beside)} if load else {}),
        }

    def _dependants(self, tenant: str, name: str) -> views.Json:
        """Whose runs or waiting a change of this one touches."""
        found = views.dependants(self._services.reader.schedules(Scope(tenant=tenant), after=name).rows, name)
        return {"dependants": found} if found else {}

    def _load(
        self, tenant: str, name: str, definition: Mapping[str, Any], current: views.Row | None, beside: Definitions
    ) -> views.Json:
        """What it does to the load of its queue. What is paused asks for nothing."""
        in_force = current["definition"] if current and current["state"] == "active" else None
        wanted = self._loads.planned(tenant, name, definition, beside)
        return effect(self._loads, self._services.now(), wanted, in_force, beside)

    def _reference(self, kind: str, tenant: str, name: str, definition: dict[str, Any]) -> views.Json:
        meant = meant_by(kind, tenant, name)
        row = self._services.reader.entry(Scope(tenant=meant.tenant), kind, meant.name)
        return change_of(row["definition"] if row else None, normal_form(kind, definition))

    def _no_more(self, current: views.Row | None, outlook: Outlook) -> Outlook:
        """Runs that the version in force has had count for the next one too."""
        left = None if current is None else left_under(self._services, current, outlook.definition)
        return outlook if left is None else only(outlook, left)

    def _current(self, tenant: str, name: str) -> views.Row | None:
        row = self._services.reader.schedule(Scope(tenant=tenant), name)
        return None if row is None or row["state"] == "deleted" else row


def _beside(tenant: str, documents: Any) -> Definitions:
    """What would stand in the catalog with it. What an apply would refuse stands there no more than before."""
    if not isinstance(documents, list) or len(documents) > BESIDE_MAX:
        message = f"must be a list of at most {BESIDE_MAX} documents"
        raise Refused(Fault(pointer="/beside", code="type", message=message))
    found = {}
    for number, document in enumerate(documents):
        kind = kind_of(document) if isinstance(document, dict) else None
        if kind is None or not isinstance(document.get("name"), str):
            message = f"must be a document with a name and of a kind of the catalog: {', '.join(KINDS)}"
            raise Refused(Fault(pointer=f"/beside/{number}", code="document", message=message))
        meant = meant_by(kind, tenant, document["name"])
        with suppress(Refused):
            definition = {field: value for field, value in document.items() if field not in FILE_FIELDS}
            found[meant.kind, meant.tenant, meant.name] = normal_form(kind, definition)
    return found


def _definition(row: views.Row | None, understood: Outlook | None) -> Mapping[str, Any] | None:
    """What is in force, as this version says it."""
    if row is None:
        return None
    return understood.definition if understood else row["definition"]


def _anchored(definition: dict[str, Any], current: views.Row | None) -> dict[str, Any]:
    """An interval keeps the anchor that its first acceptance gave it, as it would when it is applied."""
    anchor = (current["definition"].get("trigger") or {}).get("anchor") if current else None
    trigger = definition.get("trigger")
    if anchor is None or not isinstance(trigger, dict) or "every" not in trigger or "anchor" in trigger:
        return definition
    return {**definition, "trigger": {**trigger, "anchor": anchor}}


def nominal_times(outlook: Outlook) -> list[datetime]:
    """Those that are due."""
    return [each.nominal_time for each in outlook.occurrences]


def bounded(limit: int | None) -> int:
    """How many occurrences are answered at most."""
    return LIMIT if limit is None else max(1, min(limit, LIMIT_MAX))


def check_range(begin: datetime, end: datetime) -> None:
    """[begin, end) must not be empty, nor longer than anybody can use."""
    if end <= begin:
        raise Refused(Fault(pointer="/to", code="range", message="must be later than from"))
    if end - begin > RANGE_MAX:
        raise Refused(Fault(pointer="/to", code="range", message="is more than ten years after from"))
