"""Requests on `schedule-changes`: what an upstream system, the API or the CLI may ask for.

The body names the thing (`tenant`, `name`); key and partition follow from it. A command is known by (tenant, name,
source, id): the same one again changes nothing and is answered as the first time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from schemas import definitions, identity
from schemas.codec import Envelope
from schemas.definitions import Model, Name
from schemas.facts import Position
from schemas.faults import Fault, Refused

PREFIX = "tidewheel."
EVERYONE = "_"  # the tenant of what belongs to no tenant: queues


class Request(Model):
    """What every command may carry."""

    tenant: Name | Literal["_"]
    name: Name | Literal["_"]
    expected_version: int | None = None
    source_version: int | None = None
    after_catalog: str | None = None
    by: Annotated[str, Field(max_length=256)] = ""
    note: Annotated[str, Field(max_length=4096)] = ""


class SchedulePut(Request):
    """Create or replace a schedule; `definition` is a definition file's body without kind, tenant and name."""

    definition: dict[str, Any]


class SchedulePause(Request):
    """Skip occurrences until resumed."""


class ScheduleResume(Request):
    """Occurrences have runs again."""

    backfill: bool = False


class ScheduleDelete(Request):
    """End a schedule; `runs: cancel` also asks its open runs to stop."""

    runs: Literal["keep", "cancel"] = "keep"


class ScheduleTrigger(Request):
    """Create one run now. `overlap` allow_all (default) or skip."""

    payload: dict[str, Any] | None = None
    overlap: Literal["allow_all", "skip"] = "allow_all"


class JobPut(Request):
    """Create or replace a registered job."""

    definition: dict[str, Any]


class JobDelete(Request):
    """Remove a registered job; schedules that name it skip their occurrences with `no_job`."""


class RunCancel(Request):
    """Ask a run to end. `name` is its schedule."""

    run_id: Annotated[str, Field(max_length=256)]


COMMANDS: Mapping[str, type[Request]] = {
    "tidewheel.schedule.put.v1": SchedulePut,
    "tidewheel.schedule.pause.v1": SchedulePause,
    "tidewheel.schedule.resume.v1": ScheduleResume,
    "tidewheel.schedule.delete.v1": ScheduleDelete,
    "tidewheel.schedule.trigger.v1": ScheduleTrigger,
    "tidewheel.job.put.v1": JobPut,
    "tidewheel.job.delete.v1": JobDelete,
    "tidewheel.run.cancel.v1": RunCancel,
}

# Named by the contract; this version refuses them `not_supported`.
LATER: frozenset[str] = frozenset(
    f"tidewheel.{name}.v1"
    for name in (
        "schedule.skip_occurrence", "calendar.put", "calendar.delete", "queue.put", "queue.delete", "tenant.put",
        "tenant.delete", "backfill.start", "backfill.pause", "backfill.resume", "backfill.cancel", "run.rerun",
        "run.redrive",
    )
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A request as it stood in the log. `reply_to` is the asking node's partition of `replies`."""

    id: str
    source: str
    type: str
    request: Request
    position: Position
    appended_at: datetime
    reply_to: int | None = None

    @property
    def tenant(self) -> str:
        """Owner of the thing the command is about."""
        return self.request.tenant

    @property
    def name(self) -> str:
        """Name of the thing the command is about."""
        return self.request.name


def read_request(envelope: Envelope) -> Request:
    """The request in an envelope, or `Refused` naming every field that does not fit."""
    model = COMMANDS.get(envelope.type)
    if model is None:
        raise Refused(_unknown_type(envelope.type))
    try:
        request = model.model_validate(envelope.data)
    except ValidationError as error:
        raise Refused(*(definitions.fault(detail, "/data") for detail in error.errors(include_url=False))) from error
    return _checked(request)


def _checked(request: Request) -> Request:
    if isinstance(request, RunCancel) and identity.schedule_of(request.run_id) != request.name:
        raise Refused(Fault(pointer="/data/run_id", code="wrong_schedule", message="is not a run of this schedule"))
    if isinstance(request, ScheduleTrigger) and request.payload is not None:
        faults = tuple(definitions.json_limits(request.payload, "/data/payload"))
        if faults:
            raise Refused(*faults)
    if isinstance(request, ScheduleResume) and request.backfill:
        raise Refused(Fault(pointer="/data/backfill", code="not_supported", message="this version cannot do that yet"))
    return request


def _unknown_type(type_: str) -> Fault:
    if type_ in LATER:
        return Fault(pointer="/type", code="not_supported", message=f"{type_} is not supported by this version yet")
    return Fault(pointer="/type", code="unknown_type", message=f"unknown command type {type_!r}")
