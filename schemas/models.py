"""What the models of definitions are made of: their base, and the fields that several of them have."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, WithJsonSchema

from schemas import durations, fields, identity, values
from schemas.refusals import Misfit


def _name(text: str) -> str:
    if not identity.is_name(text):
        raise Misfit("name", "must be 1-128 of A-Z a-z 0-9 . _ - and start with a letter or digit")
    return text


def _duration(value: Any) -> timedelta:
    if isinstance(value, timedelta):
        return value
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        raise Misfit("duration", f"{value!r} has no unit", f"write {value!r}s for seconds, {value!r}m for minutes")
    if not isinstance(value, str):
        raise Misfit("duration", f"must be a duration, not {values.word_for(value)}", "write PT30S, or 30s")
    try:
        return durations.parse(value)
    except ValueError as error:
        raise Misfit("duration", str(error)) from error


def at_most(count: int) -> BeforeValidator:
    """A list of so many entries. It is counted before its entries are read: a fault for each of many is no help."""

    def counted(value: Any) -> Any:
        if isinstance(value, (list, tuple)) and len(value) > count:
            raise Misfit("too_long", f"has over {count} entries")
        return value

    return BeforeValidator(counted)


def _percent(value: Any) -> str:
    if not isinstance(value, str) or re.fullmatch(r"(100|[0-9]{1,2})%", value, re.ASCII) is None:
        raise Misfit("percent", f"must be a whole percentage from 0% to 100%, not {value!r}", "write 20%")
    return value


def _owner(text: str) -> str:
    if not identity.is_owner(text):
        raise Misfit("name", "must be the name of a schedule, or _ and the name of a job")
    return text


def _positive(value: timedelta) -> timedelta:
    if value <= timedelta(0):
        raise Misfit("range", "must be longer than zero")
    return value


def _at_least_a_second(value: timedelta) -> timedelta:
    if value < timedelta(seconds=1):
        raise Misfit("range", "must be at least one second", "write PT1S or more")
    return value


def whole_seconds(value: timedelta) -> timedelta:
    if value.microseconds:
        raise Misfit("range", "must be whole seconds: occurrences are")
    return value


Name = Annotated[
    str, AfterValidator(_name), WithJsonSchema({"type": "string", "pattern": f"^{identity.NAME.pattern[:-2]}$"})
]
Owner = Annotated[
    str, AfterValidator(_owner), WithJsonSchema({"type": "string", "pattern": f"^_?{identity.NAME.pattern[:-2]}$"})
]
Duration = Annotated[
    timedelta,
    BeforeValidator(_duration),
    PlainSerializer(durations.render, return_type=str),
    WithJsonSchema({"type": "string", "description": "ISO 8601 (PT30S) or short (30s, 15m, 24h, 7d)"}),
]
PositiveDuration = Annotated[Duration, AfterValidator(_positive)]
LongerDuration = Annotated[Duration, AfterValidator(_at_least_a_second)]
Instant = Annotated[
    datetime, BeforeValidator(fields.instant), WithJsonSchema({"type": "string", "format": "date-time"})
]
Day = Annotated[date, BeforeValidator(fields.day), WithJsonSchema({"type": "string", "format": "date"})]
# Not over 2^53: beyond it JSON readers of other languages round, and a database's integer ends soon after.
Whole = Annotated[int, Field(strict=True, ge=0, le=2**53)]
Text = Annotated[str, Field(max_length=256)]
Percent = Annotated[
    str,
    BeforeValidator(_percent),
    WithJsonSchema({"type": "string", "pattern": "^(100|[0-9]{1,2})%$", "description": "such as 20%"}),
]


class Model(BaseModel):
    """Frozen; unknown fields are kept here and judged by the reader (`unknown_fields`).

    `BELOW` names the models of its fields; that of a list or of an object of named things is the model of each.
    """

    model_config = ConfigDict(frozen=True, extra="allow")
    BELOW: ClassVar[Mapping[str, type[Model]]] = {}
    NAMED: ClassVar[frozenset[str]] = frozenset()  # fields of `BELOW` that are objects of named things
