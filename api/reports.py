"""A worker's report as it comes over HTTP: its shape, its limits, and the record it becomes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypeVar, get_args

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from schemas import codec, models, refusals, topics
from schemas.facts import ErrorInfo
from schemas.faults import Fault, Refused
from schemas.internal import FinishedLease
from schemas.limits import PAYLOAD_DEPTH_MAX, deeper

RESULT_BYTES_MAX = 16 * 1024
RESULT_DEPTH_MAX = PAYLOAD_DEPTH_MAX  # deeper ones would make the record too deep, and its owner read none of it
LEASE_LENGTH_MAX = 256  # a queue's name, two numbers and a key: the owner reads no longer ones
ERROR_TYPE_MAX = 256
ERROR_MESSAGE_MAX = 4096
WAIT_SECONDS_MAX = 30.0
LEASES_MAX = 10_000  # as many as slots
REPORT_BYTES_MAX = 512 * 1024

Text = Annotated[str, Field(min_length=1, max_length=256)]
Lease = Annotated[str, Field(min_length=1, max_length=LEASE_LENGTH_MAX)]
Outcome = Literal["succeeded", "failed", "cancelled", "interrupted"]
SlotsTotal = Annotated[int, Field(strict=True, ge=0, le=10_000, description="free and taken ones; for people")]
Stuck = Annotated[
    int, Field(strict=True, ge=0, le=10_000, description="tasks that were asked to stop and have not; for people")
]
Wait = Annotated[float, Field(strict=True, ge=0, le=WAIT_SECONDS_MAX, description="seconds to wait for leases")]
Slots = Annotated[int, Field(strict=True, ge=0, le=10_000, description="free slots at this moment")]
RetryAfter = Annotated[
    models.Duration | None, Field(description="of a failed attempt: it is not tried again before, PT30S or 30s")
]
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
    retry_after: RetryAfter = None


class Report(_Model):
    """A whole report of one worker incarnation, for all its leases. An incarnation belongs to one shard of a queue."""

    worker: Text
    incarnation: Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9._-]+$")]
    shard: Annotated[int, Field(strict=True, ge=0, lt=topics.SHARDS_MAX, description="of the queue: most have one")] = 0
    number: (
        Annotated[int, Field(strict=True, ge=0, lt=2**52, description="grows with each report of an incarnation")]
        | None
    ) = None
    read_up_to: Annotated[int, Field(strict=True, ge=-1, le=2**53)] = -1
    held: Leases = ()
    started: Leases = ()
    finished: Annotated[tuple[Finished, ...], Field(max_length=LEASES_MAX)] = ()
    slots: Slots
    tasks: Tasks
    draining: Annotated[bool, Field(strict=True)] = False
    slots_total: SlotsTotal | None = None
    stuck: Stuck = 0
    client: Annotated[str, Field(max_length=128, description="software and version; for people")] = ""
    wait: Wait = 0
    claim_id: Annotated[str, Field(max_length=128)] = ""


class Claim(_Model):
    """Ask for work, the simple form."""

    worker: Text
    slots: Annotated[int, Field(strict=True, ge=1, le=1_000)] = 1
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
    retry_after: RetryAfter = None
    logs: Annotated[str, Field(description="what the attempt wrote, its last 999 lines")] = ""


T = TypeVar("T", bound=BaseModel)


def read(model: type[T], raw: bytes) -> T:
    """A body of this shape, or `Refused` with every fault."""
    document = codec.parse(raw or b"{}")  # pydantic's own parser takes NaN for JSON, and integers of any length
    try:
        return model.model_validate(document)
    except ValidationError as error:
        raise Refused(*(_fault(detail, model) for detail in error.errors(include_url=False))) from error


def _fault(detail: Any, model: type[BaseModel]) -> Fault:
    if detail["type"] == "extra_forbidden":
        *outer, name = detail["loc"]
        known = _model_at(model, outer).model_fields
        return refusals.unknown_field(str(name), known, "".join(f"/{part}" for part in outer))
    return refusals.fault(detail, "")


def _model_at(model: type[BaseModel], place: Sequence[str | int]) -> type[BaseModel]:
    """The model of what stands at a place: of a field, or of each in its list."""
    for name in place:
        if isinstance(name, str):
            model = next(part for part in get_args(model.model_fields[name].annotation) if part is not ...)
    return model


def finished_lease(body: Finished | Completion, lease: str, pointer: str) -> FinishedLease:
    """What a report says of a finished lease; `Refused` for a result that is too large or too deep."""
    if body.result is not None:
        _check(body.result, f"{pointer}/result")
    return FinishedLease(
        lease=lease, outcome=body.outcome, result=body.result, error=_cut(body.error),
        retry_after=body.retry_after,
    )  # fmt: skip


def _check(result: Any, where: str) -> None:
    text = orjson.dumps(result)
    if len(text) > RESULT_BYTES_MAX:
        message = "is over 16 KiB of JSON"
        raise Refused(Fault(pointer=where, code="too_large", message=message, remedy="return a reference"))
    # Counting brackets is quick.
    if text.count(b"[") + text.count(b"{") > RESULT_DEPTH_MAX and deeper(result, RESULT_DEPTH_MAX):
        message = f"is nested deeper than {RESULT_DEPTH_MAX}"
        raise Refused(Fault(pointer=where, code="too_deep", message=message, remedy="return it flatter"))


def _cut(error: ErrorBody | None) -> ErrorInfo | None:
    if error is None:
        return None
    return ErrorInfo(type=error.type[:ERROR_TYPE_MAX], message=error.message[:ERROR_MESSAGE_MAX])
