"""What a schedule waits for or follows: the entries of `after` in its definition."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer, WithJsonSchema, model_validator

from schemas import durations
from schemas.faults import Fault
from schemas.models import LongerDuration, Model, Name, PositiveDuration, at_most, whole_seconds
from schemas.refusals import Misfit

AFTER_MAX = 128  # upstreams of one schedule: each is a row, and each put says all that changed
OF_INTERVALS: Mapping[str, str | None] = {"span": None, "offset": "PT0S", "on_unmet": "wait", "deadline": "PT24H"}


def _signed(value: Any) -> timedelta:
    """A duration that may go back: `-P1D`."""
    if isinstance(value, timedelta):
        return value
    back = isinstance(value, str) and value.startswith("-")
    try:
        length = durations.parse(value[1:] if back else value)
    except (ValueError, TypeError) as error:
        raise Misfit("duration", f"{value!r} is no duration", "write PT1H, or -PT1H for an hour back") from error
    return -length if back else length


def _rendered(value: timedelta) -> str:
    return durations.render(value) if value >= timedelta(0) else f"-{durations.render(-value)}"


Offset = Annotated[
    timedelta,
    BeforeValidator(_signed),
    AfterValidator(whole_seconds),
    PlainSerializer(_rendered, return_type=str),
    WithJsonSchema({"type": "string", "description": "ISO 8601, with a minus in front to go back: -P1D"}),
]
Span = Annotated[LongerDuration, AfterValidator(whole_seconds)]


class After(Model):
    """One upstream. `run`: each of its finished runs makes one of ours. `interval`: our occurrences wait for its own.

    What is left out of an `interval` says its default, and nothing of it is said of a `run`.
    """

    schedule: Name
    mode: Literal["run", "interval"]
    condition: Literal["succeeded", "finished", "failed"] = "succeeded"
    span: Span | None = None
    offset: Offset | None = None
    on_unmet: Literal["wait", "skip", "run_anyway"] | None = None
    deadline: PositiveDuration | None = None

    @model_validator(mode="before")
    @classmethod
    def _with_defaults(cls, value: Any) -> Any:
        if not isinstance(value, Mapping) or value.get("mode") != "interval":
            return value
        unsaid = {name: default for name, default in OF_INTERVALS.items() if default and value.get(name) is None}
        return {**value, **unsaid}

    @model_validator(mode="after")
    def _of_one_mode(self) -> After:
        strange = [name for name in OF_INTERVALS if getattr(self, name) is not None]
        if self.mode == "run" and strange:
            raise Misfit("one_kind", f"{', '.join(strange)} goes with mode: interval", "leave it out")
        if self.mode == "interval" and self.condition == "failed":
            raise Misfit("one_kind", "an interval is succeeded or finished", "use mode: run to follow failures")
        return self


def _none_is_absent(value: Any) -> Any:
    return None if value in ([], ()) else value


Afters = Annotated[
    Annotated[tuple[After, ...], Field(max_length=AFTER_MAX)] | None,
    at_most(AFTER_MAX),
    BeforeValidator(_none_is_absent),
]


def faults(after: tuple[After, ...] | None, *, has_trigger: bool, pointer: str) -> Iterator[Fault]:
    """What is wrong with the entries together."""
    modes = {each.mode for each in after or ()}
    if not has_trigger and "interval" in modes:
        message = "is required: what waits for an interval has instants of its own"
        yield Fault(pointer=f"{pointer}/trigger", code="missing", message=message, remedy="add it")
    elif not has_trigger and not modes:
        remedy = "add it, or `after` with mode: run"
        yield Fault(pointer=f"{pointer}/trigger", code="missing", message="is required", remedy=remedy)
    names = [each.schedule for each in after or ()]
    for index, name in enumerate(names):
        if name in names[:index]:
            where = f"{pointer}/after/{index}/schedule"
            yield Fault(pointer=where, code="twice", message=f"{name} is named twice", remedy="one entry a schedule")
