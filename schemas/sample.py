"""`python -m schemas.sample TYPE`: print a first golden sample of a new type, every field given.

Whoever adds a type, or a field worth a sample of its own, saves the output as `schemas/golden/<type>/<n>.json`, makes
its values plausible where they are not, and never changes it again: it is what a record of that time looks like.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from schemas import codec, shapes

_MOMENT = datetime(2026, 3, 8, 7, 0, 0, 250000, tzinfo=UTC)
_BY_NAME: Mapping[str, Any] = {
    "tenant": "acme",
    "schedule": "nightly-report",
    "name": "nightly-report",
    "run_id": "nightly-report.20260308T070000Z",
    "command_id": "0f6f1c52-7a40-4d5e-9d2c-9f6a4a3d2b10",
    "source": "tidewheel/api",
    "queue": "reports",
    "priority": "normal",
    "jitter": "full",
    "role": "scheduler",
    "worker": "reports-1",
    "incarnation": "5b0c3a9d8e7f4a21",
    "tz_version": "2026a",
    "by": "ada",
    "note": "month end",
    "labels": {"team": "finance"},
    "target": {"type": "task", "name": "reports.nightly"},
    "payload": {"day": "2026-03-07"},
    "definition": {"trigger": {"cron": "0 2 * * *", "timezone": "America/New_York"}, "job": "send-report"},
    "rule": "live",
    "used": {"calendar/acme/uk-holidays": 3},
    "shard": 1,
    "attempt": 1,
    "lease": "reports.1.41.9c1185a5c5e9fc54612808977ee8f548",
    "lease_key": "9c1185a5c5e9fc54612808977ee8f548",
    "type": "ValueError",
    "message": "the report has no rows",
    "local_time": "2026-03-08T02:00:00",
    "words": "at 02:00 every day",
    "nominal_time": datetime(2026, 3, 8, 7, tzinfo=UTC),
}


def main(arguments: list[str]) -> int:
    """Print the sample of the named type."""
    if len(arguments) != 1 or arguments[0] not in codec.TYPES:
        sys.stderr.write("usage: python -m schemas.sample TYPE, one of:\n  " + "\n  ".join(codec.TYPES) + "\n")
        return 2
    _, record = codec.encode(full(codec.TYPES[arguments[0]]), source="tidewheel/scheduler/0", time=_MOMENT)
    sys.stdout.write(orjson.dumps(orjson.loads(record), option=orjson.OPT_INDENT_2).decode() + "\n")
    return 0


def full(cls: type) -> Any:
    """An object of a dataclass with every field given."""
    wired = [shape for shape in shapes.shapes(cls) if shape.wired]
    flags = {shape.name: not shape.absent for shape in wired if shape.hint is bool and not shape.required}
    return cls(**{shape.name: _value(shape.name, shape.hint) for shape in wired} | flags)


def _value(name: str, hint: Any) -> Any:
    if name in _BY_NAME and hint is not timedelta:
        return _BY_NAME[name]
    if (scalar := _scalar(name, hint)) is not None:
        return scalar
    if shapes.is_enum(hint):
        return list(hint)[-1]  # a default, which would not be written, stands first
    if shapes.is_dataclass(hint):
        return full(hint)
    if (item := shapes.item_of_tuple(hint)) is not None:
        return (_value(name, item),)
    item = shapes.item_of_mapping(hint)
    return {"key": "value" if item in (None, Any) else _value(name, item)}


def _scalar(name: str, hint: Any) -> Any:
    """Another value for each name, so that two fields that change places are noticed."""
    number = zlib.crc32(name.encode()) % 100
    values = {
        str: name,
        int: number,
        float: number / 2,
        bool: True,
        Any: {name: number},
        datetime: _MOMENT + timedelta(minutes=number, milliseconds=number),
        timedelta: timedelta(minutes=number, seconds=1),
    }
    return values.get(hint)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
