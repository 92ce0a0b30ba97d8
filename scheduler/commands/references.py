"""`put` and `delete` of what stands in the catalog: jobs, calendars, queues, tenants.

Their owner accepts them and writes them to the catalog; every partition adopts them from there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scheduler import checks, shards
from scheduler.commands.verdict import Accepted, Rejected, Verdict, rejected
from scheduler.context import Context
from scheduler.state import ReferenceState
from schemas import definitions
from schemas.commands import CalendarPut, Command, JobPut, QueuePut, Request, TenantPut
from schemas.facts import CatalogEntry
from schemas.faults import Refused

POINTER = "/data/definition"
CREATED, REPLACED = 201, 200

Put = JobPut | CalendarPut | QueuePut | TenantPut


def put(state: ReferenceState, command: Command, request: Put, context: Context) -> Verdict:
    """A version more, the same version again, or what is wrong with the definition."""
    try:
        model, warnings = checks.reference(state.kind, request.definition, pointer=POINTER)
    except Refused as refusal:
        return Rejected(reason="invalid", status=422, faults=refusal.faults)
    definition = definitions.normal_form(model)
    warnings = (*warnings, *shards.resized(state.kind, state.definition, definition))
    if definition == state.definition:
        return Accepted(body=_body(state, state.version, "active", changed=False, warnings=list(warnings)))
    fact = _entry(state, command, request, context, definition)
    return Accepted(
        facts=(fact,),
        status=CREATED if state.definition is None else REPLACED,
        body=_body(state, fact.version, "active", changed=True, warnings=list(warnings)),
    )


def delete(state: ReferenceState, command: Command, request: Request, context: Context) -> Verdict:
    """It is gone; what refers to it does without: see the command's own words."""
    if state.definition is None:
        message = f"there is no {state.kind} {name_of(state)}"
        return rejected("not_found", 404, message, "nothing has to be deleted", pointer="/data/name")
    fact = _entry(state, command, request, context, None)
    return Accepted(facts=(fact,), body=_body(state, fact.version, "deleted", changed=True))


def name_of(state: ReferenceState) -> str:
    """What people call it."""
    match state.kind:
        case "queue":
            return state.name
        case "tenant":
            return state.tenant
        case _:
            return f"{state.tenant}/{state.name}"


def _entry(
    state: ReferenceState, command: Command, request: Request, context: Context,
    definition: Mapping[str, Any] | None,
) -> CatalogEntry:  # fmt: skip
    return CatalogEntry(
        kind=state.kind,
        tenant=state.tenant,
        name=state.name,
        version=state.version + 1,
        changed_at=context.now,
        definition=definition,
        command_id=command.id,
        source=command.source,
        by=request.by,
        note=request.note,
    )


def _body(state: ReferenceState, version: int, status: str, *, changed: bool, **more: Any) -> Mapping[str, Any]:
    return {
        "tenant": state.tenant, "name": state.name, "version": version, "state": status, "changed": changed, **more
    }  # fmt: skip
