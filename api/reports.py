"""A worker's report as it comes over HTTP: its shape, its limits, and the record it becomes."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from schemas import refusals
from schemas.facts import ErrorInfo
from schemas.faults import Fault, Refused
from schemas.internal import FinishedLease

RESULT_BYTES_MAX = 16 * 1024
ERROR_TYPE_MAX = 256
ERROR_MESSAGE_MAX = 4096
WAIT_SECONDS_MAX = 30.0
LEASES_MAX = 10_000  # as many as slots
REPORT_BYTES_MAX = 512 * 1024

Text = Annotated[str, Field(min_length=1, max_length=256)]
Lease = Annotated[str, Field(min_length=1, max_length=512)]
Outcome = Literal["succeeded", "failed", "cancelled", "interrupted"]
Wait = Annotated[float, Field(ge=0, le=WAIT_SECONDS_MAX, description="seconds to wait for leases")]
Slots = Annotated[int, Field(ge=0, le=10_000, description="free slots at this moment")]
Tasks = Annotated[tuple[Text, ...], Field(max_length=1_000)]
Leases = Annotated[tuple[Lease, ...], Field(max_length=LEASES_MAX)]


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ErrorBody(_Model):
    """What went wrong; long texts are cut."""

    type: str = Field(min_length=1)
    message: str = ""


class Finished(_Model):
    """A lease that the worker is done with."""

    lease: Lease
    outcome: Outcome
    result: Any = None
    error: ErrorBody | None = None


class Report(_Model):
    """A whole report of one worker incarnation, for all its leases."""

    worker: Text
    incarnation: Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9._-]+$")]
    number: Annotated[int, Field(ge=0, lt=2**52, description="grows with each report of an incarnation")] | None = None
    read_up_to: Annotated[int, Field(ge=-1)] = -1
    held: Leases = ()
    started: Leases = ()
    finished: Annotated[tuple[Finished, ...], Field(max_length=LEASES_MAX)] = ()
    slots: Slots
    tasks: Tasks
    draining: bool = False
    wait: Wait = 0
    claim_id: Annotated[str, Field(max_length=128)] = ""


class Claim(_Model):
    """Ask for work, the simple form."""

    worker: Text
    slots: Annotated[int, Field(ge=1, le=1_000)] = 1
    tasks: Annotated[Tasks, Field(min_length=1)]
    wait: Wait = 0
    claim_id: Annotated[str, Field(max_length=128)] = ""


class Heartbeat(_Model):
    """Keep leases, the simple form."""

    worker: Text
    leases: Leases


class Completion(_Model):
    """Be done with a lease, the simple form. `worker` is needed only at another node than the one that gave it."""

    worker: Text | None = None
    outcome: Outcome
    result: Any = None
    error: ErrorBody | None = None
    logs: str = ""


T = TypeVar("T", bound=BaseModel)


def read(model: type[T], raw: bytes) -> T:
    """A body of this shape, or `Refused` with every fault."""
    try:
        return model.model_validate_json(raw or b"{}")
    except ValidationError as error:
        raise Refused(*(_fault(detail, model) for detail in error.errors(include_url=False))) from error


def _fault(detail: Any, model: type[BaseModel]) -> Fault:
    if detail["type"] == "json_invalid":
        return Fault(pointer="", code="not_json", message=detail["msg"])
    if detail["type"] == "extra_forbidden":
        *outer, name = detail["loc"]
        known = Finished if outer[:1] == ["finished"] else model
        return refusals.unknown_field(str(name), known.model_fields, "".join(f"/{part}" for part in outer))
    return refusals.fault(detail, "")


def finished_lease(body: Finished | Completion, lease: str, pointer: str) -> FinishedLease:
    """What a report says of a finished lease; `Refused` for a result that is too large."""
    if body.result is not None and len(orjson.dumps(body.result)) > RESULT_BYTES_MAX:
        message = "is over 16 KiB of JSON"
        where = f"{pointer}/result"
        raise Refused(Fault(pointer=where, code="too_large", message=message, remedy="return a reference"))
    return FinishedLease(lease=lease, outcome=body.outcome, result=body.result, error=_cut(body.error))


def _cut(error: ErrorBody | None) -> ErrorInfo | None:
    if error is None:
        return None
    return ErrorInfo(type=error.type[:ERROR_TYPE_MAX], message=error.message[:ERROR_MESSAGE_MAX])
