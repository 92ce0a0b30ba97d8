"""Exclusions: rules that take occurrences out of what a trigger names.

A rule looks at what clocks in the trigger's zone show at an occurrence's instant: a date takes out a whole local day,
an expression the readings that it names. One of five fields names whole minutes, so that it also takes out what is due
at some second of them. No policy has a say: what is excluded is a reading as it is shown, in both passes of a fold.

Sets of seconds stand as integers, a bit for each, at most a day at a time: so a month of seconds is excluded in as many
steps as it has days.
"""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from functools import reduce
from operator import or_

from scheduler.occurrences.cron import FIELDS_WITH_SECONDS, CronExpression
from scheduler.occurrences.readings import DAY, EPOCH_ORDINAL, Readings, calendar_of, clock_of
from scheduler.occurrences.triggers import Trigger, between, bits, count_between
from scheduler.occurrences.windows import Windows
from scheduler.occurrences.zones import FIRST_INSTANT, LAST_INSTANT, Zone

STEPS_MAX = 2_000  # days or occurrences looked at for one that is left: five years of a daily schedule
QUOTED_CHARACTERS_MAX = 400  # a few expressions at their longest
SECONDS = tuple(range(60))


@dataclass(frozen=True, slots=True)
class Taken:
    """Neighbouring occurrences that are all excluded: up to which instant, how many, and by which rules."""

    last: int
    count: int
    rules: tuple[str, ...]

    @property
    def quoted(self) -> str:
        """Say by which rules, as every decision does."""
        said = f"by {', '.join(self.rules)}"
        return said if len(said) <= QUOTED_CHARACTERS_MAX else f"by {self.rules[0]} and {len(self.rules) - 1} more"


@dataclass(frozen=True, slots=True)
class Dates:
    """Local days, as numbers counted from 1970-01-01, in order."""

    days: tuple[int, ...]

    @classmethod
    def of(cls, dates: tuple[date, ...]) -> "Dates":
        """Return the days of the calendar, each once."""
        return cls(tuple(sorted({each.toordinal() - EPOCH_ORDINAL for each in dates})))

    def holds(self, reading: int) -> bool:
        """Say whether a reading lies on one of the days."""
        index = bisect_left(self.days, reading // DAY)
        return index < len(self.days) and self.days[index] == reading // DAY

    def bits(self, opens: int, closes: int) -> int:
        """Return the readings in [opens, closes) as a set: bit n is the reading `opens + n`."""
        found, whole = 0, (1 << DAY) - 1
        for day in self.days[bisect_left(self.days, opens // DAY) : bisect_left(self.days, -(-closes // DAY))]:
            begins = day * DAY - opens
            found |= whole << begins if begins >= 0 else whole >> -begins
        return found & ((1 << (closes - opens)) - 1)


@dataclass(frozen=True, slots=True)
class Exclusion:
    """One rule, and how decisions quote it."""

    rule: str
    readings: Dates | Readings | Windows = field(compare=False, repr=False)  # windows hold instants, and no readings

    @classmethod
    def of_dates(cls, dates: tuple[date, ...]) -> "Exclusion":
        """Return the rule that takes out local days."""
        return cls("dates", Dates.of(dates))

    @classmethod
    def of_cron(cls, expression: CronExpression) -> "Exclusion":
        """Return the rule that takes out what an expression names; without a field of seconds, whole minutes."""
        to_the_second = len(expression.text.split()) == FIELDS_WITH_SECONDS
        seconds = expression.seconds if to_the_second else SECONDS
        clock = clock_of(expression.hours, expression.minutes, seconds)
        return cls(f"cron {expression}", Readings(calendar_of(expression.days), clock))


@dataclass(frozen=True, slots=True)
class Exclusions:
    """All rules of a trigger."""

    zone: Zone
    rules: tuple[Exclusion, ...]

    def naming(self, instant: int) -> str | None:
        """Return the first rule that takes out an instant; None for one that is left."""
        reading = instant + self.zone.offset(instant)
        for each in self.rules:
            if each.readings.holds(instant if isinstance(each.readings, Windows) else reading):
                return each.rule
        return None

    def taken(self, trigger: Trigger, first: int, until: int) -> Taken:
        """Return the occurrences from `first` on, which is excluded, up to the first that is left, or to `until`."""
        until = min(until, first + DAY - 1)
        named = bits(trigger, first - 1, until)
        by_rule = [(each.rule, self._bits_of(each, first - 1, until)) for each in self.rules]
        left = named & ~reduce(or_, (taken for _, taken in by_rule))
        if left:
            named &= (left & -left) - 1
        rules = tuple(dict.fromkeys(rule for rule, taken in by_rule if taken & named))
        return Taken(first + named.bit_length() - 1, named.bit_count(), rules)

    def next_left(self, trigger: Trigger, after: int) -> int | None:
        """Return the first due instant after `after` that no rule takes out; None when none is found near enough."""
        due = trigger.next_after(after)
        for _ in range(STEPS_MAX):
            if due is None or self.naming(due) is None:
                return due
            due = trigger.next_after(self.taken(trigger, due, LAST_INSTANT).last)
        return None

    def count_left(self, trigger: Trigger, after: int, until: int, limit: int) -> int:
        """Count the due instants in (after, until] that no rule takes out, at most `limit`."""
        total, days = 0, (until - after) // DAY + 1
        if count_between(trigger, after, until, days) < days:
            return min(limit, sum(self.naming(due) is None for due in between(trigger, after, until)))
        for begins, ends in _days(after, until):
            named = bits(trigger, begins, ends)
            total += (named & ~self._bits(begins, ends)).bit_count() if named else 0
            if total >= limit:
                return limit
        return total

    def _bits(self, after: int, until: int) -> int:
        return reduce(or_, (self._bits_of(each, after, until) for each in self.rules))

    def _bits_of(self, exclusion: Exclusion, after: int, until: int) -> int:
        found, first = 0, after + 1
        if isinstance(exclusion.readings, Windows):
            return exclusion.readings.bits(first, until + 1)
        for segment in self.zone.segments(first, until):
            opens, closes = max(segment.start, first), min(segment.end, until + 1)
            if opens < closes:
                named = exclusion.readings.bits(opens + segment.offset, closes + segment.offset)
                found |= named << (opens - first)
        return found


def _days(after: int, until: int) -> Iterator[tuple[int, int]]:
    after, until = max(after, FIRST_INSTANT), min(until, LAST_INSTANT)
    return ((begins, min(begins + DAY, until)) for begins in range(after, until, DAY))
