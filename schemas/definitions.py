"""What a schedule and a job look like in a definition file or a command, with their defaults.

Three readers share these models. The door (HTTP, CLI) refuses unknown fields with the nearest known name; the
topic keeps them and lists them as warnings; both refuse what the contract names and this version cannot do.
A definition normalises to JSON that says every default, so that a later change of a default changes nothing.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal, TypeVar

import orjson
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidationError,
    WithJsonSchema,
    model_validator,
)

from schemas import durations, identity
from schemas.faults import Fault, Refused

LABELS_MAX = 32
PAYLOAD_BYTES_MAX = 64 * 1024
CRON_LENGTH_MAX = 256
DEPTH_MAX = 16
AT_INSTANTS_MAX = 1000  # a longer list is a calendar, which has its own kind


M = TypeVar("M", bound="Model")


def _name(text: str) -> str:
    if not identity.is_name(text):
        msg = "must be 1-128 of A-Z a-z 0-9 . _ - and start with a letter or digit"
        raise ValueError(msg)
    return text


def _duration(value: Any) -> Any:
    return durations.parse(value) if isinstance(value, str) else value


def _positive(value: timedelta) -> timedelta:
    if value <= timedelta(0):
        msg = "must be longer than zero"
        raise ValueError(msg)
    return value


def _instant(value: Any) -> Any:
    if isinstance(value, datetime):
        parsed = value
    elif isinstance(value, str):
        try:
            parsed = datetime.fromisoformat(value)
        except ValueError as error:
            msg = f"{value!r} is not an RFC 3339 instant: write 2026-03-08T05:15:53Z"
            raise ValueError(msg) from error
    else:
        msg = "must be an RFC 3339 instant such as 2026-03-08T05:15:53Z"
        raise ValueError(msg)
    if parsed.tzinfo is None:
        msg = f"{value!s} has no offset: add Z or an offset such as +02:00"
        raise ValueError(msg)
    if parsed.microsecond:
        msg = "must be a whole second"
        raise ValueError(msg)
    return parsed.astimezone(UTC)


Name = Annotated[
    str, AfterValidator(_name), WithJsonSchema({"type": "string", "pattern": identity.NAME.pattern[:-2] + "$"})
]
Duration = Annotated[
    timedelta,
    BeforeValidator(_duration),
    PlainSerializer(durations.render, return_type=str),
    WithJsonSchema({"type": "string", "description": "ISO 8601 (PT30S) or short (30s, 15m, 24h, 7d)"}),
]
PositiveDuration = Annotated[Duration, AfterValidator(_positive)]
Instant = Annotated[datetime, BeforeValidator(_instant), WithJsonSchema({"type": "string", "format": "date-time"})]


class Model(BaseModel):
    """Frozen; unknown fields are kept here and judged by the reader (`unknown_fields`)."""

    model_config = ConfigDict(frozen=True, extra="allow", populate_by_name=True)


class Retry(Model):
    """When a failed attempt is tried again."""

    max_attempts: int = Field(default=3, ge=1, le=1000)
    initial: PositiveDuration = timedelta(seconds=1)
    factor: float = Field(default=2.0, ge=1, le=100)
    max: PositiveDuration = timedelta(minutes=5)
    jitter: Literal["full", "none"] = "full"
    never_on: tuple[Annotated[str, Field(max_length=256)], ...] = Field(default=(), max_length=32)
    budget: str | None = None


class TaskTarget(Model):
    """A task registered by a worker."""

    type: Literal["task"]
    name: Annotated[str, Field(min_length=1, max_length=256)]


class HttpTarget(Model):
    """An HTTP callback."""

    type: Literal["http"]
    url: str = ""


class CommandTarget(Model):
    """A command named on the worker's allow-list."""

    type: Literal["command"]
    name: str = ""


Target = Annotated[TaskTarget | HttpTarget | CommandTarget, Field(discriminator="type")]


class Job(Model):
    """What to run."""

    queue: Name = "default"
    target: Target
    payload: dict[str, Any] = Field(default_factory=dict)
    priority: Literal["critical", "normal", "bulk"] = "normal"
    timeout: PositiveDuration = timedelta(hours=1)
    deadline: PositiveDuration = timedelta(days=7)
    lease: PositiveDuration = timedelta(seconds=30)
    retry: Retry = Retry()
    concurrency: dict[str, Any] | None = None
    log_retention: Duration | None = None


class Trigger(Model):
    """When. Exactly one of cron, every, at, rrule."""

    cron: str | list[str] | None = None
    every: PositiveDuration | None = None
    at: tuple[Instant, ...] | None = Field(default=None, min_length=1, max_length=AT_INSTANTS_MAX)
    rrule: str | None = None
    dialect: Literal["unix", "quartz"] | None = None
    day_rule: Literal["vixie", "literal"] = "vixie"
    timezone: str = "UTC"
    gap_policy: Literal["shift", "skip"] = "shift"
    fold_policy: Literal["first", "second", "both"] = "first"
    anchor: Instant | None = None
    from_: str | None = Field(default=None, alias="from")
    jitter: Duration | None = None
    start_at: Instant | None = None
    end_at: Instant | None = None
    max_runs: int | None = None
    exclude: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Trigger:
        given = [kind for kind in ("cron", "every", "at", "rrule") if getattr(self, kind) is not None]
        if len(given) != 1:
            msg = f"give exactly one of cron, every, at, rrule (given: {', '.join(given) or 'none'})"
            raise ValueError(msg)
        return self


class CatchUp(Model):
    """What happens to occurrences older than `grace`."""

    policy: Literal["skip", "latest", "all"] = "latest"
    window: PositiveDuration = timedelta(hours=24)
    limit: int = Field(default=100, ge=1, le=10_000)
    rate: str | None = None


_KUBERNETES_OVERLAP = {"Allow": "allow_all", "Forbid": "skip", "Replace": "terminate_other"}


class Overlap(Model):
    """What happens when an occurrence comes while runs are active."""

    policy: Annotated[
        Literal["skip", "buffer_one", "buffer_all", "cancel_other", "terminate_other", "allow_all"],
        BeforeValidator(lambda value: _KUBERNETES_OVERLAP.get(value, value) if isinstance(value, str) else value),
    ] = "skip"
    limit: int = Field(default=1, ge=1, le=1000)
    buffer: int | None = None


class Schedule(Model):
    """When to run what. `job` is a registered job's name or the job itself."""

    labels: dict[Annotated[str, Field(max_length=128)], Annotated[str, Field(max_length=256)]] = Field(
        default_factory=dict, max_length=LABELS_MAX
    )
    note: Annotated[str, Field(max_length=4096)] = ""
    trigger: Trigger | None = None
    after: list[Any] | None = None
    grace: Duration = timedelta(minutes=1)
    catch_up: CatchUp = CatchUp()
    overlap: Overlap = Overlap()
    on_update: Literal["keep", "cancel"] = "keep"
    pause_on_failure: int | None = None
    job: Job | Name


def read_schedule(data: Any, *, strict: bool, pointer: str = "") -> tuple[Schedule, tuple[str, ...]]:
    """A schedule and its warnings, or `Refused` with every fault.

    `strict` is the door: an unknown field is a fault. Otherwise it is a warning.
    """
    return _read(Schedule, data, strict=strict, pointer=pointer)


def read_job(data: Any, *, strict: bool, pointer: str = "") -> tuple[Job, tuple[str, ...]]:
    """A job and its warnings, or `Refused` with every fault."""
    return _read(Job, data, strict=strict, pointer=pointer)


def normal_form(model: Model) -> dict[str, Any]:
    """JSON with every default said and what was not given left out."""
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


def _read(cls: type[M], data: Any, *, strict: bool, pointer: str) -> tuple[M, tuple[str, ...]]:
    try:
        model = cls.model_validate(data)
    except ValidationError as error:
        raise Refused(*(fault(detail, pointer) for detail in error.errors(include_url=False))) from error
    unknown = tuple(unknown_fields(model, pointer))
    faults = [*(unknown if strict else ()), *unsupported(model, pointer), *_oversize(model, pointer)]
    if faults:
        raise Refused(*faults)
    return model, tuple(f"{fault.pointer}: {fault.message}" for fault in unknown)


def fault(detail: Any, pointer: str) -> Fault:
    """A pydantic error detail as a fault of ours."""
    where = "".join(f"/{part}" for part in detail["loc"] if not _is_branch(part))
    return Fault(pointer=pointer + where, code=detail["type"], message=detail["msg"].removeprefix("Value error, "))


def _is_branch(part: Any) -> bool:
    """Whether pydantic added this part to name a branch of a union rather than a field."""
    return isinstance(part, str) and (part in {"task", "http", "command", "Job"} or "[" in part or part == "str")


def unknown_fields(model: BaseModel, pointer: str = "") -> Iterator[Fault]:
    """A fault for each field no model knows, with the nearest known name."""
    known = [field.alias or name for name, field in type(model).model_fields.items()]
    for extra in model.model_extra or {}:
        near = difflib.get_close_matches(extra, known, n=1)
        remedy = f"did you mean {near[0]!r}?" if near else "known here: " + ", ".join(sorted(known))
        yield Fault(
            pointer=f"{pointer}/{extra}", code="unknown_field", message=f"unknown field {extra!r}", remedy=remedy
        )
    for name, field in type(model).model_fields.items():
        value = getattr(model, name)
        if isinstance(value, BaseModel):
            yield from unknown_fields(value, f"{pointer}/{field.alias or name}")


# What the contract names and this version cannot do: (model, field, is it asked for, what to do instead).
_LATER: tuple[tuple[type[Model], str, Any, str], ...] = (
    (Retry, "budget", lambda value: value is not None, "leave it out"),
    (Job, "target", lambda value: value.type != "task", "use {type: task, name: …}"),
    (Job, "priority", lambda value: value != "normal", "use normal"),
    (Job, "concurrency", lambda value: value is not None, "leave it out"),
    (Job, "log_retention", lambda value: value is not None, "leave it out"),
    (Trigger, "cron", lambda value: isinstance(value, list), "write one schedule for each expression"),
    (Trigger, "rrule", lambda value: value is not None, "use cron, every or at"),
    (Trigger, "from_", lambda value: value is not None, "leave it out"),
    (Trigger, "jitter", lambda value: value is not None, "leave it out"),
    (Trigger, "start_at", lambda value: value is not None, "leave it out"),
    (Trigger, "end_at", lambda value: value is not None, "leave it out"),
    (Trigger, "max_runs", lambda value: value is not None, "leave it out"),
    (Trigger, "exclude", lambda value: value is not None, "leave it out"),
    (CatchUp, "rate", lambda value: value is not None, "leave it out"),
    (
        Overlap,
        "policy",
        lambda value: value not in {"skip", "buffer_one", "allow_all"},
        "use skip, buffer_one or allow_all",
    ),
    (Overlap, "buffer", lambda value: value is not None, "leave it out"),
    (Schedule, "after", lambda value: value is not None, "leave it out"),
    (Schedule, "on_update", lambda value: value != "keep", "use keep"),
    (Schedule, "pause_on_failure", lambda value: value is not None, "leave it out"),
    (Schedule, "trigger", lambda value: value is None, "give a trigger"),
)


def unsupported(model: BaseModel, pointer: str = "") -> Iterator[Fault]:
    """A `not_supported` fault for each thing the contract names and this version cannot do."""
    for kind, name, asked_for, remedy in _LATER:
        if isinstance(model, kind) and asked_for(getattr(model, name)):
            where = f"{pointer}/{kind.model_fields[name].alias or name}"
            yield Fault(pointer=where, code="not_supported", message="this version cannot do that yet", remedy=remedy)
    for name, field in type(model).model_fields.items():
        value = getattr(model, name)
        if isinstance(value, BaseModel):
            yield from unsupported(value, f"{pointer}/{field.alias or name}")


def _oversize(model: BaseModel, pointer: str) -> Iterator[Fault]:
    job = model if isinstance(model, Job) else getattr(model, "job", None)
    where = pointer if isinstance(model, Job) else f"{pointer}/job"
    if isinstance(job, Job):
        yield from json_limits(job.payload, f"{where}/payload")


def json_limits(value: Mapping[str, Any], pointer: str) -> Iterator[Fault]:
    """Faults of a payload that is too large or too deep."""
    if depth(value) > DEPTH_MAX:
        yield Fault(
            pointer=pointer, code="too_deep", message=f"JSON is nested deeper than {DEPTH_MAX}", remedy="flatten it"
        )
    elif len(orjson.dumps(value)) > PAYLOAD_BYTES_MAX:
        yield Fault(
            pointer=pointer, code="too_large", message="is over 64 KiB of JSON", remedy="pass a reference instead"
        )


def depth(value: Any) -> int:
    """How deep lists and objects are nested; stops counting one past the limit."""
    level, layer = 0, [value]
    while layer and level <= DEPTH_MAX:
        layer = [
            item
            for container in layer
            if isinstance(container, (dict, list))
            for item in (container.values() if isinstance(container, dict) else container)
        ]
        level += 1
    return level - 1
