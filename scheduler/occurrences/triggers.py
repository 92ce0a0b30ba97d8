"""Triggers: values that say when something is due, as instants in whole seconds since 1970.

A cron trigger walks the local readings of its expression, one offset segment after another, so it can neither stand
still nor go back. What happens at the seams is its policies' business, and theirs only for fixed-time expressions; an
expression whose minute or hour begins with `*` follows the real clock: nothing is made up in a gap, both passes count.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import reduce
from heapq import merge
from itertools import groupby, islice
from operator import or_
from typing import Literal, NamedTuple, Protocol, TypeVar

from scheduler.occurrences.cron import CronExpression
from scheduler.occurrences.readings import DAY, BoundedReadings, Readings
from scheduler.occurrences.rrule import Recurrence
from scheduler.occurrences.zones import FIRST_INSTANT, LAST_INSTANT, NEAR_END, Segment, Timeline, Zone

T = TypeVar("T")
GapPolicy = Literal["shift", "skip"]
FoldPolicy = Literal["first", "second", "both"]

# 40 years and a day or two: the rarest days there are, such as a 29 February that is a Monday, come within 40 years.
HORIZON_SECONDS = 14_612 * DAY


class Trigger(Protocol):
    """Says when something is due."""

    def next_after(self, after: int) -> int | None:
        """Return the first due instant strictly after `after`; None when there is none within 40 years."""
        ...


@dataclass(frozen=True, slots=True)
class Dropped:
    """A local reading that a policy left out: `at` is when the clock jumped over it, or showed it the other time."""

    local_reading: int
    reason: Literal["gap", "fold"]
    at: int


@dataclass(frozen=True, slots=True)
class EveryTrigger:
    """Every so many seconds, counted from an anchor, which is due itself."""

    interval_seconds: int
    anchor: int

    def __post_init__(self) -> None:
        """Refuse what would stand still; the caller has checked the user's input before."""
        if self.interval_seconds < 1:
            raise ValueError("an interval is at least one second")

    def next_after(self, after: int) -> int:
        """Return the first due instant strictly after `after`."""
        if after < self.anchor:
            return self.anchor
        return after + self.interval_seconds - (after - self.anchor) % self.interval_seconds


@dataclass(frozen=True, slots=True)
class AtTrigger:
    """At these instants, kept in order and each once."""

    instants: tuple[int, ...]

    def __post_init__(self) -> None:
        """Put the instants in order."""
        object.__setattr__(self, "instants", tuple(sorted(set(self.instants))))

    def next_after(self, after: int) -> int | None:
        """Return the first due instant strictly after `after`."""
        index = bisect_right(self.instants, after)
        return self.instants[index] if index < len(self.instants) else None


@dataclass(frozen=True, slots=True)
class CronTrigger:
    """An expression, or a recurrence rule, on the clocks of a zone."""

    expression: CronExpression | Recurrence
    zone: Zone
    gap_policy: GapPolicy = "shift"
    fold_policy: FoldPolicy = "first"
    readings: Readings | BoundedReadings = field(init=False, compare=False, repr=False)
    seams: "SeamRule" = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Look up tables and rules once, not at every question."""
        object.__setattr__(self, "readings", self.expression.readings())
        object.__setattr__(self, "seams", SeamRule.of(self))

    def next_after(self, after: int) -> int | None:
        """Return the first due instant strictly after `after`; None when there is none within 40 years."""
        if FIRST_INSTANT <= after < NEAR_END - HORIZON_SECONDS:
            return self._within_segment(after) or self._search(self.zone.near, after, after + HORIZON_SECONDS)
        if after >= LAST_INSTANT:
            return None
        after = max(after, FIRST_INSTANT)
        horizon = min(after + HORIZON_SECONDS, LAST_INSTANT)
        return self._search(self.zone.timeline(horizon), after, horizon)

    def _within_segment(self, after: int) -> int | None:
        """The answer where no seam has a say in it, which is nearly always; None also when there might be none.

        From the later of both readings that a segment's start shows, to the earlier of those that its end shows.
        """
        near = self.zone.near
        start, end, offset, before, then = near.segments[bisect_right(near.starts, after) - 1]
        opens = after + 1 + offset
        if before > offset and opens < start + before:
            return None
        reading = self.readings.at_or_after(opens)
        if reading is None or reading >= end + min(offset, then):
            return None
        due = reading - offset
        return due if due - after <= HORIZON_SECONDS else None

    def _search(self, timeline: Timeline, after: int, horizon: int) -> int | None:
        index = timeline.holding(after)
        wanted = after + 1
        while wanted <= horizon:
            segment = timeline.segments[index]
            opens, closes = self.seams.window(segment, wanted)
            reading = self.readings.at_or_after(opens)
            if reading is None:
                return None
            if reading < closes:
                due = reading - segment.offset
                return due if due <= horizon else None
            if self.seams.shift and reading < segment.end + segment.then:
                return segment.end if segment.end <= horizon else None
            index, wanted = index + 1, segment.end
        return None


@dataclass(frozen=True, slots=True)
class UnionTrigger:
    """Whenever one of its parts is due; an instant that several of them name is one occurrence."""

    parts: tuple[CronTrigger, ...]

    def next_after(self, after: int) -> int | None:
        """Return the first due instant strictly after `after`; None when there is none within 40 years."""
        return min((due for part in self.parts if (due := part.next_after(after)) is not None), default=None)


@dataclass(frozen=True, slots=True)
class WindowTrigger:
    """What another trigger names in [start, end); a side that is None is open."""

    trigger: "CronTrigger | UnionTrigger | EveryTrigger | AtTrigger"
    start: int | None = None
    end: int | None = None

    def next_after(self, after: int) -> int | None:
        """Return the first due instant strictly after `after`; None when none is left, or none within 40 years."""
        due = self.trigger.next_after(after if self.start is None else max(after, self.start - 1))
        return due if due is not None and (self.end is None or due < self.end) else None

    def clip(self, after: int, until: int) -> tuple[int, int]:
        """Return what of (after, until] lies inside."""
        opens = after if self.start is None else max(after, self.start - 1)
        closes = until if self.end is None else min(until, self.end - 1)
        return opens, max(opens, closes)


class SeamRule(NamedTuple):
    """What a trigger does where two offset segments meet; all False means: follow the real clock."""

    shift: bool
    skip: bool
    first: bool
    second: bool

    @classmethod
    def of(cls, trigger: CronTrigger) -> "SeamRule":
        """Return the rule that follows from a trigger's policies, which bind fixed-time expressions only."""
        if not trigger.expression.fixed_time:
            return cls(shift=False, skip=False, first=False, second=False)
        gap, fold = trigger.gap_policy, trigger.fold_policy
        return cls(shift=gap == "shift", skip=gap == "skip", first=fold == "first", second=fold == "second")

    def window(self, segment: Segment, wanted: int) -> tuple[int, int]:
        """Return the readings [opens, closes) that count in a segment, none before the instant `wanted`."""
        start, end, offset, before, then = segment
        opens = wanted + offset
        if self.first and before > offset:
            opens = max(opens, start + before)  # what lies before has been shown already
        return opens, end + (then if self.second and then < offset else offset)


def clocks(trigger: Trigger) -> tuple[CronTrigger, ...]:
    """Return the expressions on the clocks of a zone that a trigger consists of; none when it looks at no clock."""
    match trigger:
        case CronTrigger():
            return (trigger,)
        case UnionTrigger(parts=parts):
            return parts
        case WindowTrigger():
            return clocks(trigger.trigger)
        case _:
            return ()


def between(trigger: Trigger, after: int, until: int) -> Iterator[int]:
    """Yield the due instants in (after, until], strictly increasing: what repeated `next_after` would give."""
    match trigger:
        case CronTrigger():
            return _cron_between(trigger, after, until)
        case UnionTrigger(parts=parts):
            return _each_once(merge(*(_cron_between(part, after, until) for part in parts)))
        case WindowTrigger():
            return between(trigger.trigger, *trigger.clip(after, until))
        case EveryTrigger(interval_seconds=interval):
            return iter(range(trigger.next_after(after), until + 1, interval))
        case AtTrigger(instants=instants):
            return iter(instants[bisect_right(instants, after) : bisect_right(instants, until)])
        case _:
            return _step_by_step(trigger, after, until)


def count_between(trigger: Trigger, after: int, until: int, limit: int) -> int:
    """Count the due instants in (after, until], at most `limit`, without visiting them where the trigger is ours."""
    match trigger:
        case CronTrigger():
            return _cron_count(trigger, after, until, limit)
        case UnionTrigger(parts=parts):
            return _union_count(parts, after, until, limit)
        case WindowTrigger():
            return count_between(trigger.trigger, *trigger.clip(after, until), limit)
        case EveryTrigger(interval_seconds=interval):
            return min(limit, len(range(trigger.next_after(after), until + 1, interval)))
        case AtTrigger(instants=instants):
            return min(limit, max(0, bisect_right(instants, until) - bisect_right(instants, after)))
        case _:
            return sum(1 for _ in islice(_step_by_step(trigger, after, until), limit))


def bits(trigger: Trigger, after: int, until: int) -> int:
    """Return the due instants in (after, until] as a set: bit n is the instant `after + 1 + n`. At most a day or so."""
    match trigger:
        case CronTrigger():
            return _cron_bits(trigger, after, until)
        case UnionTrigger(parts=parts):
            return reduce(or_, (_cron_bits(part, after, until) for part in parts))
        case WindowTrigger():
            opens, closes = trigger.clip(after, until)
            return bits(trigger.trigger, opens, closes) << (opens - after)
        case _:
            flags = bytearray(b"0") * max(1, until - after)
            for due in between(trigger, after, until):
                flags[after - due] = ord("1")  # from the end: the first instant is the lowest bit
            return int(flags, 2)


def last_between(trigger: Trigger, after: int, until: int) -> int | None:
    """Return the latest due instant in (after, until]: strides back from the end, then halves what is left."""
    latest, high, stride = None, until, 1  # nothing is due in (high, until]
    while latest is None and high > after:
        low = max(after, until - stride)
        latest = _due_until(trigger, low, until)
        high, stride = (high, stride) if latest is not None else (low, 2 * stride)
    while latest is not None and latest < high:
        middle = (latest + high) // 2
        later = _due_until(trigger, middle, until)
        latest, high = (latest, middle) if later is None else (later, high)
    return latest


def dropped(trigger: Trigger, after: int, until: int) -> Iterator[Dropped]:
    """Yield the local readings that the trigger's policies left out in (after, until], in order of `at`."""
    match trigger:
        case CronTrigger():
            return _cron_dropped(trigger, after, until)
        case UnionTrigger(parts=parts):
            found = merge(*(_cron_dropped(part, after, until) for part in parts), key=_order)
            return (reading for reading in _each_once(found) if not _named(trigger, reading))
        case WindowTrigger():
            return dropped(trigger.trigger, *trigger.clip(after, until))
        case _:
            return iter(())


def _cron_dropped(trigger: CronTrigger, after: int, until: int) -> Iterator[Dropped]:
    after, until = max(after, FIRST_INSTANT), min(until, LAST_INSTANT)
    for segment in trigger.zone.segments(after, until) if after < until else ():
        start, end, offset, before, then = segment
        opens, closes = max(start, after + 1) + offset, min(end, until + 1) + offset
        if trigger.seams.first and before > offset:
            yield from _dropped_in_fold(trigger, opens, min(closes, start + before), offset)
        if trigger.seams.second and then < offset:
            yield from _dropped_in_fold(trigger, max(opens, end + then), closes, offset)
        if trigger.seams.skip and then > offset and end <= until:
            for reading in trigger.readings.instants(end + offset, end + then, 0):
                yield Dropped(reading, "gap", end)


def _order(reading: Dropped) -> tuple[int, int]:
    return reading.at, reading.local_reading


def _named(union: UnionTrigger, reading: Dropped) -> bool:
    """Whether another part is due at the very pass of a fold that one's policy left out."""
    return reading.reason == "fold" and union.next_after(reading.at - 1) == reading.at


def _dropped_in_fold(trigger: CronTrigger, opens: int, closes: int, offset: int) -> Iterator[Dropped]:
    for reading in trigger.readings.instants(opens, closes, 0):
        yield Dropped(reading, "fold", reading - offset)


class _Stretch(NamedTuple):
    """Readings [opens, closes) of one offset, and the instant behind them at which skipped readings are made up."""

    opens: int
    closes: int
    offset: int
    shifted_to: int | None


def _stretches(trigger: CronTrigger, after: int, until: int) -> Iterator[_Stretch]:
    after, until = max(after, FIRST_INSTANT), min(until, LAST_INSTANT)
    if after >= until:
        return
    wanted = after + 1
    for segment in trigger.zone.segments(after, until):
        opens, closes = trigger.seams.window(segment, wanted)
        shifted_to = _shifted_to(trigger, segment) if segment.end <= until else None
        yield _Stretch(opens, min(closes, until + 1 + segment.offset), segment.offset, shifted_to)
        wanted = segment.end if shifted_to is None else segment.end + 1  # both together are one occurrence


def _shifted_to(trigger: CronTrigger, segment: Segment) -> int | None:
    """Return the end of a segment when a gap follows that swallows at least one reading to be made up."""
    if not trigger.seams.shift or segment.then <= segment.offset:
        return None
    reading = trigger.readings.at_or_after(segment.end + segment.offset)
    return segment.end if reading is not None and reading < segment.end + segment.then else None


def _cron_between(trigger: CronTrigger, after: int, until: int) -> Iterator[int]:
    for stretch in _stretches(trigger, after, until):
        yield from trigger.readings.instants(stretch.opens, stretch.closes, stretch.offset)
        if stretch.shifted_to is not None:
            yield stretch.shifted_to


def _cron_count(trigger: CronTrigger, after: int, until: int, limit: int) -> int:
    total = 0
    for stretch in _stretches(trigger, after, until):
        total += trigger.readings.count(stretch.opens, stretch.closes) + (stretch.shifted_to is not None)
        if total >= limit:
            return limit
    return total


def _union_count(parts: tuple[CronTrigger, ...], after: int, until: int, limit: int) -> int:
    """Count a day at a time in sets of bits: an instant that several parts name counts once."""
    if max(_cron_count(part, after, until, limit) for part in parts) >= limit:
        return limit
    total, after, until = 0, max(after, FIRST_INSTANT), min(until, LAST_INSTANT)
    for begins in range(after, until, DAY):
        ends = min(begins + DAY, until)
        total += bits(UnionTrigger(parts), begins, ends).bit_count()
        if total >= limit:
            return limit
    return total


def _cron_bits(trigger: CronTrigger, after: int, until: int) -> int:
    """The due instants in (after, until] as a set: bit n is the instant `after + 1 + n`."""
    bits, first = 0, after + 1
    for stretch in _stretches(trigger, after, until):
        if stretch.opens < stretch.closes:
            named = trigger.readings.bits(stretch.opens, stretch.closes)
            bits |= named << (stretch.opens - stretch.offset - first)
        if stretch.shifted_to is not None:
            bits |= 1 << (stretch.shifted_to - first)
    return bits


def _each_once(ordered: Iterable[T]) -> Iterator[T]:
    return (value for value, _ in groupby(ordered))


def _step_by_step(trigger: Trigger, after: int, until: int) -> Iterator[int]:
    due = trigger.next_after(after)
    while due is not None and due <= until:
        yield due
        due = trigger.next_after(due)


def _due_until(trigger: Trigger, after: int, until: int) -> int | None:
    due = trigger.next_after(after)
    return due if due is not None and due <= until else None
