"""`job.put`, `job.delete`: registered jobs. Their owner writes them to the catalog; every partition adopts them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from scheduler import checks
from scheduler.commands.verdict import Accepted, Rejected, Verdict, rejected
from scheduler.context import Context
from scheduler.state import JobState
from schemas import definitions
from schemas.commands import Command, JobDelete, JobPut
from schemas.facts import CatalogEntry
from schemas.faults import Refused

POINTER = "/data/definition"
CREATED, REPLACED = 201, 200


def put(state: JobState, command: Command, request: JobPut, context: Context) -> Verdict:
    """A version more, the same version again, or what is wrong with the definition."""
    try:
        model, warnings = checks.job(request.definition, pointer=POINTER)
    except Refused as refusal:
        return Rejected(reason="invalid", status=422, faults=refusal.faults)
    definition = definitions.normal_form(model)
    if definition == state.definition:
        return Accepted(body=_body(state, state.version, "active", changed=False, warnings=list(warnings)))
    fact = _entry(state, command, context, definition)
    return Accepted(
        facts=(fact,),
        status=CREATED if state.definition is None else REPLACED,
        body=_body(state, fact.version, "active", changed=True, warnings=list(warnings)),
    )


def delete(state: JobState, command: Command, _request: JobDelete, context: Context) -> Verdict:
    """The job is gone; schedules that name it skip their occurrences."""
    if state.definition is None:
        message = f"there is no job {state.tenant}/{state.name}"
        return rejected("not_found", 404, message, "nothing has to be deleted", pointer="/data/name")
    fact = _entry(state, command, context, None)
    return Accepted(facts=(fact,), body=_body(state, fact.version, "deleted", changed=True))


def _entry(state: JobState, command: Command, context: Context, definition: Mapping[str, Any] | None) -> CatalogEntry:
    return CatalogEntry(
        kind="job",
        tenant=state.tenant,
        name=state.name,
        version=state.version + 1,
        changed_at=context.now,
        definition=definition,
        command_id=command.id,
        source=command.source,
    )


def _body(state: JobState, version: int, status: str, *, changed: bool, **more: Any) -> Mapping[str, Any]:
    return {
        "tenant": state.tenant, "name": state.name, "version": version, "state": status, "changed": changed, **more
    }  # fmt: skip
