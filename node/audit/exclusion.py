"""What a definition takes out again, asked of one instant at a time: the audit's own reading of `exclude`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from typing import Any

from node.audit import expression, localtime

FIELDS_TO_THE_MINUTE = 5
MINUTE = 60


def excluded(definition: Mapping[str, Any], hash_key: str) -> Callable[[int], bool]:
    """Whether an occurrence of a normalised definition is taken out."""
    trigger = definition.get("trigger") or {}
    given = trigger.get("exclude") or {}
    days = {date.fromisoformat(day) for day in given.get("dates", ())}
    tests = [_named_by(text, trigger, hash_key) for text in given.get("cron", ())]
    if not days and not tests:
        return lambda _instant: False

    def is_out(instant: int) -> bool:
        reading = instant + localtime.offset(trigger["timezone"], instant)
        return datetime.fromtimestamp(reading, UTC).date() in days or any(test(reading) for test in tests)

    return is_out


def _named_by(text: str, trigger: Mapping[str, Any], hash_key: str) -> Callable[[int], bool]:
    """An expression without seconds names the whole minute."""
    day_rule = trigger.get("day_rule", "vixie")
    read = expression.read(text, dialect=trigger.get("dialect"), day_rule=day_rule, hash_key=hash_key)
    fields = expression.MACROS.get(text.strip().lower(), text).split()
    if len(fields) > FIELDS_TO_THE_MINUTE:
        return lambda reading: any(True for _ in read.readings(reading, reading + 1))
    return lambda reading: any(True for _ in read.readings(reading - reading % MINUTE, reading - reading % MINUTE + 1))
