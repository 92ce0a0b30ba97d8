"""When a version of a schedule is due, counted by walking clocks: the audit's own arithmetic."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from heapq import merge
from typing import Any, Protocol

from node.audit import expression, localtime, recurrence

Definition = Mapping[str, Any]


class _Names(Protocol):
    """Names local readings."""

    def readings(self, start: int, end: int) -> Iterator[int]: ...


_ISO = re.compile(r"P(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?")
_UNIT_SECONDS = (604_800, 86_400, 3600, 60, 1)


def due(definition: Definition, hash_key: str, after: int, until: int) -> Iterator[int]:
    """The instants in (after, until] at which a normalised definition is due, in order, each once."""
    if after >= until or (definition.get("trigger") is None and definition.get("after")):
        return iter(())  # what only follows others is never due
    trigger = definition["trigger"]
    after, until = within(trigger, after, until)
    return _named(trigger, hash_key, after, until) if after < until else iter(())


def within(trigger: Mapping[str, Any], after: int, until: int) -> tuple[int, int]:
    """The part of (after, until] that lies within a trigger's bounds."""
    if trigger.get("start_at") is not None:
        after = max(after, instant(trigger["start_at"]) - 1)  # the first instant counts, the last does not
    if trigger.get("end_at") is not None:
        until = min(until, instant(trigger["end_at"]) - 1)
    return after, until


def _named(trigger: Mapping[str, Any], hash_key: str, after: int, until: int) -> Iterator[int]:
    """What the trigger names, whatever its bounds."""
    if trigger.get("at") is not None:
        return iter(sorted({at for at in map(instant, trigger["at"]) if after < at <= until}))
    if trigger.get("every") is not None:
        return _every(duration_seconds(trigger["every"]), instant(trigger["anchor"]), after, until)
    if trigger.get("rrule") is not None:
        return _rule(trigger, after, until)
    if isinstance(trigger["cron"], str):
        return _cron(trigger["cron"], trigger, hash_key, after, until)
    return _in_order(_cron(text, trigger, hash_key, after, until) for text in trigger["cron"])


def _cron(text: str, trigger: Mapping[str, Any], hash_key: str, after: int, until: int) -> Iterator[int]:
    day_rule = trigger.get("day_rule", "vixie")
    read = expression.read(text, dialect=trigger.get("dialect"), day_rule=day_rule, hash_key=hash_key)
    walk = _real_clock(read, trigger["timezone"], after + 1, until + 1)
    return _fixed(read, trigger, after + 1, until + 1) if read.fixed_time else walk


@dataclass(frozen=True, slots=True)
class _Rule:
    """A recurrence rule, and the reading that it begins with."""

    text: str
    dtstart: int

    def readings(self, start: int, end: int) -> Iterator[int]:
        return recurrence.readings(self.text, self.dtstart, start, end)


def _rule(trigger: Mapping[str, Any], after: int, until: int) -> Iterator[int]:
    text, zone, anchor = trigger["rrule"], trigger["timezone"], instant(trigger["anchor"])
    read = _Rule(text, anchor + localtime.offset(zone, anchor))
    last = recurrence.until(text)
    start, end = max(after + 1, anchor), min(until, until if last is None else last) + 1
    if start >= end:
        return iter(())
    walk = _real_clock(read, zone, start, end)
    return _fixed(read, trigger, start, end) if recurrence.is_fixed(text) else walk


def _in_order(walks: Iterable[Iterator[int]]) -> Iterator[int]:
    """Of several walks each instant once."""
    last = None
    for instant in merge(*walks):
        if instant != last:
            yield instant
        last = instant


def _every(interval: int, anchor: int, after: int, until: int) -> Iterator[int]:
    """Counted from the anchor, which is due itself."""
    first = max(0, -((anchor - after - 1) // interval)) if after >= anchor else 0
    instant = anchor + first * interval
    while instant <= until:
        if instant > after:
            yield instant
        instant += interval


def _real_clock(read: _Names, zone: str, start: int, end: int) -> Iterator[int]:
    """Each time that a clock shows a named reading."""
    for stretch in localtime.stretches(zone, start, end):
        for reading in read.readings(stretch.start + stretch.offset, stretch.end + stretch.offset):
            yield reading - stretch.offset


def _fixed(read: _Names, trigger: Mapping[str, Any], start: int, end: int) -> Iterator[int]:
    """The same under the policies for readings that clocks leave out or show twice."""
    zone, gap, fold = trigger["timezone"], trigger["gap_policy"], trigger["fold_policy"]
    for stretch in localtime.stretches(zone, start, end):
        made_up = gap == "shift" and _swallowed(read, zone, stretch.start)
        if made_up:
            yield stretch.start
        for reading in read.readings(stretch.start + stretch.offset, stretch.end + stretch.offset):
            instant = reading - stretch.offset
            if made_up and instant == stretch.start:
                continue  # both together are one occurrence
            if _counts(zone, fold, instant):
                yield instant


def _swallowed(read: _Names, zone: str, instant: int) -> bool:
    """Whether clocks jump over a named reading at this instant."""
    before, after = localtime.offset(zone, instant - 1), localtime.offset(zone, instant)
    return after > before and any(read.readings(instant + before, instant + after))


def _counts(zone: str, fold_policy: str, instant: int) -> bool:
    if fold_policy == "first":
        return not localtime.is_second_pass(zone, instant)
    if fold_policy == "second":
        return not localtime.is_shown_again(zone, instant)
    return True


def instant(text: str) -> int:
    """In seconds since 1970."""
    return int(datetime.fromisoformat(text).timestamp())


def duration_seconds(duration: str) -> int:
    """A duration as a normalised definition writes it."""
    found = _ISO.fullmatch(duration)
    if found is None:
        raise expression.NotUnderstood(f"the interval {duration!r}")
    return sum(int(count) * unit for count, unit in zip(found.groups(), _UNIT_SECONDS, strict=True) if count)
