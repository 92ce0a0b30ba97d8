"""What a schedule and a job look like in a definition file or a command, with their defaults.

Three readers share these models. The door (HTTP, CLI) refuses unknown fields with the nearest known name; the
topic keeps them and lists them as warnings; both refuse what the contract names and this version cannot do.
A definition normalises to JSON that says every default, so that a later change of a default changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from itertools import islice
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    Discriminator,
    Field,
    Tag,
    ValidationError,
    WithJsonSchema,
    model_validator,
)

from schemas import after, callbacks, fields, limits, refusals, values
from schemas.after import After, Afters
from schemas.faults import Fault, Refused
from schemas.limits import json_limits
from schemas.models import (
    Day,
    Duration,
    Instant,
    LongerDuration,
    Model,
    Name,
    Percent,
    PositiveDuration,
    Text,
    at_most,
    whole_seconds,
)
from schemas.refusals import Misfit, fault

__all__ = [
    "After",
    "Job",
    "Model",
    "Schedule",
    "fault",
    "json_limits",
    "normal_form",
    "read_as",
    "read_job",
    "read_schedule",
    "unknown_fields",
]

M = TypeVar("M", bound="Model")

BUFFER = 10  # occurrences that may wait under buffer_all, where a definition does not say how many
CONCURRENCY_MAX = 10_000  # runs of one key at once: as many as one worker may hold
CALENDARS_MAX = 32  # of one schedule: each is asked at every decision
LOG_RETENTION_MAX = timedelta(days=30)  # as long as anything of a run is kept
NEVER_ON_MAX = 32  # error types and rules of a job
BREAKER_FAILURES_MAX = 10_000
BREAKER_PROBES_MAX = 100
BREAKER_MAX = timedelta(hours=1)  # of a breaker's window and wait: what is counted for longer tells of another day
UNKNOWN_FIELDS_MAX = 1_000  # that are told: for each the nearest known name is looked for


def _at_most_an_hour(value: timedelta) -> timedelta:
    if value > BREAKER_MAX:
        raise Misfit("range", "must be at most an hour", "write PT1H or less")
    return value


class Retry(Model):
    """When a failed attempt is tried again."""

    max_attempts: int = Field(default=3, strict=True, ge=1, le=1000)
    initial: PositiveDuration = timedelta(seconds=1)
    factor: float = Field(default=2.0, strict=True, ge=1, le=100)
    max: PositiveDuration = timedelta(minutes=5)
    jitter: Literal["full", "none"] = "full"
    never_on: Annotated[tuple[Text, ...], Field(max_length=NEVER_ON_MAX), at_most(NEVER_ON_MAX)] = ()
    budget: Annotated[Percent | None, Field(description="of first attempts; 20% if not given")] = None


class Concurrency(Model):
    """How many runs that name the key may be with workers at once, per tenant and queue."""

    key: Annotated[str, Field(min_length=1, max_length=256)]
    limit: int = Field(strict=True, ge=1, le=CONCURRENCY_MAX)


class Breaker(Model):
    """When runs are held because too many fail: at `failures` within `window` that are `share` of what ended there.

    It holds them for `wait`, then lets `probes` at once go: one that succeeds closes it, one that fails holds the
    others for twice as long, up to ten minutes (or `wait`). `failures: 0` never holds.
    """

    failures: int = Field(default=20, strict=True, ge=0, le=BREAKER_FAILURES_MAX)
    share: Percent = "50%"
    window: Annotated[LongerDuration, AfterValidator(_at_most_an_hour)] = timedelta(minutes=1)
    wait: Annotated[LongerDuration, AfterValidator(_at_most_an_hour)] = timedelta(seconds=30)
    probes: int = Field(default=1, strict=True, ge=1, le=BREAKER_PROBES_MAX)


class TaskTarget(Model):
    """A task registered by a worker."""

    type: Literal["task"]
    name: Annotated[str, Field(min_length=1, max_length=256)]


class HttpTarget(Model):
    """An HTTP callback. `secret` names one that the worker has, to sign with: no definition holds one."""

    type: Literal["http"]
    url: Annotated[str, AfterValidator(callbacks.url)]
    method: Literal["POST", "PUT", "PATCH", "GET", "DELETE"] = "POST"
    headers: Annotated[dict[str, str], AfterValidator(callbacks.headers)] = Field(default_factory=dict)
    secret: Name | None = None


class CommandTarget(Model):
    """A command named on the worker's allow-list."""

    type: Literal["command"]
    name: Name


def _kind_of_target(value: Any) -> str | None:
    kind = value.get("type") if isinstance(value, Mapping) else getattr(value, "type", None)
    return None if kind is None else f"<{kind}>"


Target = Annotated[
    Annotated[TaskTarget, Tag("<task>")]
    | Annotated[HttpTarget, Tag("<http>")]
    | Annotated[CommandTarget, Tag("<command>")],
    Discriminator(_kind_of_target),
]


def _at_most_thirty_days(value: timedelta) -> timedelta:
    if value > LOG_RETENTION_MAX:
        raise Misfit("range", "must be at most 30 days", "write P30D or less")
    return value


class Job(Model):
    """What to run."""

    queue: Name = "default"
    target: Target
    payload: dict[str, Any] = Field(default_factory=dict)
    priority: Literal["critical", "normal", "bulk"] = "normal"
    timeout: PositiveDuration = timedelta(hours=1)
    deadline: PositiveDuration = timedelta(days=7)
    start_within: Annotated[
        PositiveDuration | None,
        Field(description="until an attempt must have begun, from when the run was due or made; any time if not given"),
    ] = None
    lease: LongerDuration = timedelta(seconds=30)
    retry: Retry = Retry()
    concurrency: Concurrency | None = None
    breaker: Breaker | None = None
    log_retention: Annotated[LongerDuration, AfterValidator(_at_most_thirty_days)] | None = None


Cron = Annotated[str, Field(min_length=1, max_length=limits.CRON_CHARACTERS_MAX)]
Crons = Annotated[
    tuple[Cron, ...],
    Field(min_length=1, max_length=limits.CRON_EXPRESSIONS_MAX),
    at_most(limits.CRON_EXPRESSIONS_MAX),
]


class Exclude(Model):
    """What is taken out again: whole local days, also those of calendars, and what expressions name, in its zone."""

    calendars: Annotated[tuple[Name, ...], Field(max_length=CALENDARS_MAX), at_most(CALENDARS_MAX)] | None = None
    cron: Annotated[
        tuple[Cron, ...], Field(max_length=limits.CRON_EXPRESSIONS_MAX), at_most(limits.CRON_EXPRESSIONS_MAX)
    ] = ()
    dates: Annotated[tuple[Day, ...], Field(max_length=limits.AT_INSTANTS_MAX), at_most(limits.AT_INSTANTS_MAX)] = ()


class Trigger(Model):
    """When. Exactly one of cron, every, at, rrule."""

    cron: (
        Annotated[
            Annotated[Cron, Tag("<text>")] | Annotated[Crons, Tag("<list>")],
            Discriminator(lambda value: "<list>" if isinstance(value, (list, tuple)) else "<text>"),
        ]
        | None
    ) = None
    every: Annotated[LongerDuration, AfterValidator(whole_seconds)] | None = None
    at: (
        Annotated[
            tuple[Instant, ...],
            Field(min_length=1, max_length=limits.AT_INSTANTS_MAX),
            at_most(limits.AT_INSTANTS_MAX),
        ]
        | None
    ) = None
    rrule: Cron | None = None
    dialect: Literal["unix", "quartz"] | None = None
    day_rule: Literal["vixie", "literal"] = "vixie"
    timezone: Annotated[str, Field(min_length=1, max_length=64)] = "UTC"
    gap_policy: Literal["shift", "skip"] = "shift"
    fold_policy: Literal["first", "second", "both"] = "first"
    anchor: Instant | None = None
    from_: Annotated[
        Literal["finish"] | None,
        Field(alias="from", description="of every: finish counts from the end of the run before, not from the clock"),
    ] = None
    jitter: Annotated[LongerDuration, AfterValidator(whole_seconds)] | None = None
    start_at: Instant | None = None
    end_at: Instant | None = None
    max_runs: Annotated[int, Field(strict=True, ge=1, le=2**53)] | None = None
    exclude: Exclude | None = None

    @model_validator(mode="after")
    def _one_kind(self) -> Trigger:
        given = [kind for kind in ("cron", "every", "at", "rrule") if getattr(self, kind) is not None]
        if len(given) != 1:
            message = f"give exactly one of cron, every, at, rrule (given: {', '.join(given) or 'none'})"
            raise Misfit("one_kind", message)
        if self.anchor is not None and self.every is None and self.rrule is None:
            raise Misfit("one_kind", "anchor goes with every and rrule", "leave anchor out")
        if self.dialect is not None and self.cron is None:
            raise Misfit("one_kind", "dialect goes with cron", "leave dialect out")
        if self.from_ is not None and self.every is None:
            raise Misfit("one_kind", "from: finish goes with every", "leave from out")
        if self.from_ is not None and self.jitter is not None:
            raise Misfit("one_kind", "jitter does not go with from: finish", "runs end at odd times; leave jitter out")
        return self


class CatchUp(Model):
    """What happens to occurrences older than `grace`."""

    policy: Literal["skip", "latest", "all"] = "latest"
    window: PositiveDuration = timedelta(hours=24)
    limit: int = Field(default=100, strict=True, ge=1, le=10_000)
    rate: Annotated[
        str | None,
        BeforeValidator(fields.rate),
        WithJsonSchema(
            {"type": "string", "description": "how many are caught up in a time, such as 10/s, which is the default"}
        ),
    ] = None


_KUBERNETES_OVERLAP = {"Allow": "allow_all", "Forbid": "skip", "Replace": "terminate_other"}


class Overlap(Model):
    """What happens when an occurrence comes while runs are active."""

    policy: Annotated[
        Literal["skip", "buffer_one", "buffer_all", "cancel_other", "terminate_other", "allow_all"],
        BeforeValidator(lambda value: _KUBERNETES_OVERLAP.get(value, value) if isinstance(value, str) else value),
    ] = "skip"
    limit: int = Field(default=1, strict=True, ge=1, le=1000)
    buffer: Annotated[
        int | None, Field(strict=True, ge=1, le=1000, description="of buffer_all: how many may wait; 10 if not given")
    ] = None

    @model_validator(mode="before")
    @classmethod
    def _with_buffer(cls, value: Any) -> Any:
        """The default is said where it means something; other definitions stay as they were accepted."""
        if isinstance(value, Mapping) and value.get("policy") == "buffer_all" and value.get("buffer") is None:
            return {**value, "buffer": BUFFER}
        return value


Label = Annotated[str, Field(min_length=1, max_length=128)]


class Schedule(Model):
    """When to run what. `job` is a registered job's name or the job itself."""

    labels: dict[Label, Text] = Field(default_factory=dict, max_length=limits.LABELS_MAX)
    note: Annotated[str, Field(max_length=4096)] = ""
    trigger: Trigger | None = None
    after: Afters = None
    grace: Duration = timedelta(minutes=1)
    catch_up: CatchUp = CatchUp()
    overlap: Overlap = Overlap()
    on_update: Literal["keep", "cancel"] = "keep"
    pause_on_failure: Annotated[
        int | None,
        Field(strict=True, ge=1, le=limits.PAUSE_ON_FAILURE_MAX, description="failed runs in a row that pause it"),
    ] = None
    job: Annotated[
        Annotated[Job, Tag("<job>")] | Annotated[Name, Tag("<name>")],
        Discriminator(lambda value: "<job>" if isinstance(value, (Mapping, Job)) else "<name>"),
    ]


def read_schedule(data: Any, *, strict: bool, pointer: str = "") -> tuple[Schedule, tuple[str, ...]]:
    """A schedule and its warnings, or `Refused` with every fault.

    `strict` is the door: an unknown field is a fault. Otherwise it is a warning.
    """
    return read_as(Schedule, data, strict=strict, pointer=pointer)


def read_job(data: Any, *, strict: bool, pointer: str = "") -> tuple[Job, tuple[str, ...]]:
    """A job and its warnings, or `Refused` with every fault."""
    return read_as(Job, data, strict=strict, pointer=pointer)


def normal_form(model: Model) -> dict[str, Any]:
    """JSON with every default said and what was not given left out."""
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


def read_as(cls: type[M], data: Any, *, strict: bool, pointer: str = "") -> tuple[M, tuple[str, ...]]:
    """A definition of a kind and its warnings, or `Refused` with every fault."""
    if faults := tuple(limits.definition_limits(data, pointer)):
        raise Refused(*faults)
    unknown = tuple(islice(_unknown(cls, data, pointer), UNKNOWN_FIELDS_MAX))
    try:
        model = cls.model_validate(data)
    except ValidationError as error:
        found = refusals.faults(error, pointer)
        raise Refused(*(unknown if strict else ()), *found) from error
    own = (*_together(model, pointer), *_payload_faults(model, pointer))
    faults = (*(unknown if strict else ()), *own)
    if faults:
        raise Refused(*faults)
    return model, tuple(f"{fault.pointer}: {fault.message}; {fault.remedy}" for fault in unknown)


def unknown_fields(model: BaseModel, pointer: str = "") -> Iterator[Fault]:
    """A fault for each field no model knows, with the nearest known name."""
    for name in model.model_extra or {}:
        yield refusals.unknown_field(name, _keys(type(model)), pointer)
    for key, value in _children(model):
        yield from unknown_fields(value, f"{pointer}/{key}")


def _unknown(cls: type[Model], data: Any, pointer: str) -> Iterator[Fault]:
    """The same from JSON that may not fit the model: a typo often is what makes it not fit."""
    if not isinstance(data, Mapping):
        return
    known = _keys(cls)
    for key, value in data.items():
        if key not in known:
            yield refusals.unknown_field(str(key), known, pointer)
        elif (below := _below(cls, key, value)) is not None:
            for where, part in _parts(value, f"{pointer}/{key}", named=key in cls.NAMED):
                yield from _unknown(below, part, where)


def _below(cls: type[Model], key: str, value: Any) -> type[Model] | None:
    """The model that reads a field, where the field has one."""
    if key != "target" or not isinstance(value, Mapping):
        return _BELOW.get((cls, key)) or cls.BELOW.get(key)
    kind = value.get("type")
    return _TARGETS.get(kind) if isinstance(kind, str) else None  # a list cannot be looked up: it has no hash


def _parts(value: Any, pointer: str, *, named: bool) -> Iterator[tuple[str, Any]]:
    """What a field holds: itself, the entries of a list, or things by their names."""
    if isinstance(value, (list, tuple)):
        yield from ((f"{pointer}/{index}", part) for index, part in enumerate(value))
    elif named and isinstance(value, Mapping):
        yield from ((f"{pointer}/{values.escaped(str(name))}", part) for name, part in value.items())
    else:
        yield pointer, value


_BELOW: Mapping[tuple[type[Model], str], type[Model]] = {
    (Schedule, "trigger"): Trigger,
    (Schedule, "after"): After,
    (Trigger, "exclude"): Exclude,
    (Schedule, "catch_up"): CatchUp,
    (Schedule, "overlap"): Overlap,
    (Schedule, "job"): Job,
    (Job, "retry"): Retry,
    (Job, "concurrency"): Concurrency,
    (Job, "breaker"): Breaker,
}
_TARGETS: Mapping[Any, type[Model]] = {"task": TaskTarget, "http": HttpTarget, "command": CommandTarget}


def _keys(cls: type[BaseModel]) -> list[str]:
    return [field.alias or name for name, field in cls.model_fields.items()]


def _children(model: BaseModel) -> Iterator[tuple[str, BaseModel]]:
    for name, field in type(model).model_fields.items():
        value = getattr(model, name)
        for where, part in _parts(value, field.alias or name, named=isinstance(value, dict)):
            if isinstance(part, BaseModel):
                yield where, part


def _together(model: BaseModel, pointer: str) -> Iterator[Fault]:
    if isinstance(model, Schedule):
        yield from after.faults(model.after, has_trigger=model.trigger is not None, pointer=pointer)


def _payload_faults(model: BaseModel, pointer: str) -> Iterator[Fault]:
    job = model if isinstance(model, Job) else getattr(model, "job", None)
    where = pointer if isinstance(model, Job) else f"{pointer}/job"
    if isinstance(job, Job):
        yield from json_limits(job.payload, f"{where}/payload")
        if isinstance(job.target, HttpTarget):
            yield from callbacks.payload_faults(job.target.method, job.payload, f"{where}/payload")
