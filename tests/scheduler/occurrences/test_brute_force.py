"""The walk against a walk that knows nothing: every second of a window, read off a clock and compared field by field.

The slow walk shares no code and no idea with ours. It is given sets of numbers, not text; it asks the standard library
what each second looks like on the wall; and it finds gaps by seeing the clock jump.
"""

import calendar
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from importlib import resources
from itertools import pairwise, product
from typing import Any, Literal
from zoneinfo import ZoneInfo

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from scheduler.occurrences import CronTrigger, Dropped, between, count_between, dropped, last_between, parse, zone
from scheduler.occurrences.triggers import FoldPolicy, GapPolicy
from tests.scheduler.occurrences.instants import at

# Moments at which clocks were or will be moved, chosen for their shapes.
MOVES = [
    ("America/New_York", "2024-03-10T07:00Z"),  # an hour's gap
    ("America/New_York", "2024-11-03T06:00Z"),  # an hour's fold
    ("Europe/Dublin", "2024-03-31T01:00Z"),  # winter is the "daylight" side
    ("Australia/Lord_Howe", "2024-10-05T15:30Z"),  # half an hour's gap
    ("Australia/Lord_Howe", "2024-04-06T15:00Z"),  # half an hour's fold
    ("Pacific/Chatham", "2025-09-27T14:00Z"),  # a gap from :45 to :45
    ("Pacific/Chatham", "2025-04-05T14:00Z"),  # a fold from :45 to :45
    ("Antarctica/Troll", "2024-03-31T01:00Z"),  # two hours at once
    ("America/Sao_Paulo", "2018-11-04T03:00Z"),  # a day without a midnight
    ("America/Scoresbysund", "2025-03-30T01:00Z"),  # a gap that ends at midnight
    ("America/St_Johns", "2010-11-07T02:31Z"),  # back at one minute past midnight
    ("Africa/Casablanca", "2025-02-23T02:00Z"),  # Ramadan begins
    ("Asia/Almaty", "2024-02-29T18:00Z"),  # a permanent change on a leap day
    ("Asia/Kathmandu", "1985-12-31T18:30Z"),  # a quarter of an hour, for good
    ("Europe/Berlin", "2050-10-30T01:00Z"),  # by rule, after the table has ended
    ("UTC", "2024-02-29T00:00Z"),  # never
]
DAYS_MISSING_OR_TWICE = [
    ("Pacific/Apia", "2011-12-30T10:00Z"),  # a whole day missing
    ("Pacific/Kwajalein", "1969-09-30T13:00Z"),  # 23 hours twice
    ("Pacific/Kwajalein", "1993-08-21T12:00Z"),  # a whole day missing
]
ODD_SECONDS = [("Africa/Monrovia", "1972-01-07T00:44:30Z")]  # an offset of -00:44:30 ends
GAPS: tuple[GapPolicy, ...] = ("shift", "skip")
FOLDS: tuple[FoldPolicy, ...] = ("first", "second", "both")
POLICIES = list(product(GAPS, FOLDS))


# ----------------------------------------------------------------------------------------------- what is drawn


@dataclass(frozen=True)
class Field:
    """The text of one field, and the numbers that it names by construction."""

    text: str
    numbers: frozenset[int]

    @property
    def starred(self) -> bool:
        return self.text.startswith("*")


@dataclass(frozen=True)
class Drawn:
    """A drawn expression; fields are second, minute, hour, day, month, weekday."""

    fields: tuple[Field, ...]
    day_rule: Literal["vixie", "literal"]
    with_seconds: bool

    @property
    def text(self) -> str:
        return " ".join(field.text for field in (self.fields if self.with_seconds else self.fields[1:]))

    @property
    def fixed(self) -> bool:
        return not (self.fields[1].starred or self.fields[2].starred)

    def names(self, shown: datetime) -> bool:
        """Whether the fields name what a clock shows."""
        second, minute, hour, _, month, _ = (field.numbers for field in self.fields)
        time = shown.second in second and shown.minute in minute and shown.hour in hour
        return time and shown.month in month and self._names_day(shown)

    def _names_day(self, shown: datetime) -> bool:
        day, weekday = self.fields[3], self.fields[5]
        in_month, in_week = shown.day in day.numbers, shown.isoweekday() % 7 in weekday.numbers
        starred = [f.starred if self.day_rule == "vixie" else f.text == "*" for f in (day, weekday)]
        return (in_month and in_week) if any(starred) else (in_month or in_week)


def field(low: int, high: int, likely: list[int], *, starred: bool) -> st.SearchStrategy[Field]:
    number = st.one_of(st.sampled_from(likely), st.sampled_from(likely), st.integers(low, high))
    if starred:
        return st.integers(1, high - low + 1).map(lambda step: every(low, high, step))
    one = number.map(lambda n: Field(str(n), frozenset({n})))
    several = st.sets(number, min_size=2, max_size=5).map(lambda ns: Field(",".join(map(str, ns)), frozenset(ns)))
    spans = st.tuples(number, number, st.integers(1, 5)).map(lambda drawn: arc(low, high, *drawn))
    return st.one_of(one, several, spans)


def every(low: int, high: int, step: int) -> Field:
    return Field(f"*/{step}" if step > 1 else "*", frozenset(range(low, high + 1, step)))


def arc(low: int, high: int, first: int, last: int, step: int) -> Field:
    """A range that may wrap, walked one number at a time."""
    walked, here = [first], first
    while here != last:
        here = low if here == high else here + 1
        walked.append(here)
    return Field(f"{first}-{last}/{step}" if step > 1 else f"{first}-{last}", frozenset(walked[::step]))


@st.composite
def expressions(draw: Any, name: str, moment: int, *, with_seconds: bool) -> Drawn:
    """Expressions that often fire around a moment: most have a fixed time within hours of it, on nearly every day."""
    before, after = (datetime.fromtimestamp(instant, UTC).astimezone(pinned(name)) for instant in (moment - 1, moment))
    hours = sorted({(shown.hour + shift) % 24 for shown in (before, after) for shift in (-1, 0, 1)})
    days, months = sorted({before.day, after.day}), sorted({before.month, after.month})
    style = draw(st.sampled_from(["fixed", "fixed", "fixed", "minutes", "hours"]))
    dates = draw(st.sampled_from(["every day", "every day", "some days"]))
    parts = [
        draw(field(0, 59, [0, 15, 30], starred=draw(st.booleans()))) if with_seconds else Field("0", frozenset({0})),
        draw(field(0, 59, [0, 15, 30, 45, 59], starred=style == "minutes")),
        draw(field(0, 23, hours, starred=style == "hours")),
        every(1, 31, 1),
        every(1, 12, 1),
        every(0, 6, 1),
    ]
    if dates == "some days":
        parts[3] = draw(field(1, 31, days, starred=draw(st.booleans())))
        parts[4] = draw(st.one_of(st.just(parts[4]), field(1, 12, months, starred=False)))
        parts[5] = draw(field(0, 6, [0, 6], starred=draw(st.booleans())))
    drawn = Drawn(tuple(parts), draw(st.sampled_from(["vixie", "literal"])), with_seconds)
    assume(can_fire(drawn))
    return drawn


def can_fire(drawn: Drawn) -> bool:
    """Whether some day of a whole cycle of the calendar's shapes is named: 28 years have them all but none of 2100."""
    second, minute, hour = (min(field.numbers) for field in drawn.fields[:3])
    clock = datetime(2000, 1, 1, hour, minute, second, tzinfo=UTC)
    return any(drawn.names(clock + timedelta(days=day)) for day in range(28 * 366))


@dataclass(frozen=True)
class Scene:
    """An expression in a zone, and a window (after, until] with a move of the clock in it."""

    drawn: Drawn
    name: str
    after: int
    until: int

    def trigger(self, gap: GapPolicy, fold: FoldPolicy) -> CronTrigger:
        return CronTrigger(parse(self.drawn.text, day_rule=self.drawn.day_rule), zone(self.name), gap, fold)


@st.composite
def scenes(draw: Any, moves: list[tuple[str, str]], hours: int, step: int, *, with_seconds: bool = False) -> Scene:
    name, moment = draw(st.sampled_from(moves))
    drawn = draw(expressions(name, at(moment), with_seconds=with_seconds))
    after = at(moment) - draw(st.integers(0, hours * 3_600))
    until = at(moment) + draw(st.integers(0, hours * 3_600))
    return Scene(drawn, name, after // step * step, until // step * step)


# ------------------------------------------------------------------------------------------------ the slow walk


@lru_cache(maxsize=32)
def pinned(name: str) -> ZoneInfo:
    with resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, name)


def shown_twice(shown: datetime) -> bool:
    return shown.replace(fold=0).utcoffset() != shown.replace(fold=1).utcoffset()


@dataclass(frozen=True)
class Tick:
    """What the clock shows at an instant, and the readings it jumped over to get there; only what is named."""

    instant: int
    shown: datetime | None
    skipped: list[datetime]


def slow_walk(scene: Scene, step: int) -> list[Tick]:
    """Look at the clock at every step after the first."""
    instants = range(scene.after, scene.until + 1, step)
    clock = [(instant, datetime.fromtimestamp(instant, UTC).astimezone(pinned(scene.name))) for instant in instants]
    return [
        Tick(
            instant,
            shown if scene.drawn.names(shown) else None,
            [reading for reading in skipped_readings(previous, shown, step) if scene.drawn.names(reading)],
        )
        for (_, previous), (instant, shown) in pairwise(clock)
    ]


def judged(ticks: list[Tick], gap: GapPolicy, fold: FoldPolicy, *, fixed: bool) -> tuple[list[int], list[Dropped]]:
    """Write down what is due, and what a policy drops."""
    due: list[int] = []
    lost: list[Dropped] = []
    for tick in ticks:
        made_up = bool(tick.skipped) and fixed and gap == "shift"
        if fixed and gap == "skip":
            lost += [Dropped(reading_of(reading), "gap", tick.instant) for reading in tick.skipped]
        wrong_pass = tick.shown and shown_twice(tick.shown) and tick.shown.fold != (fold == "second")
        if tick.shown and fixed and fold != "both" and wrong_pass:
            lost.append(Dropped(reading_of(tick.shown), "fold", tick.instant))
        elif tick.shown or made_up:
            due.append(tick.instant)
    return due, lost


def skipped_readings(previous: datetime, shown: datetime, step: int) -> Iterator[datetime]:
    reading = previous.replace(tzinfo=None) + timedelta(seconds=step)
    while reading < shown.replace(tzinfo=None):
        yield reading
        reading += timedelta(seconds=step)


def reading_of(shown: datetime) -> int:
    return calendar.timegm(shown.timetuple())


# --------------------------------------------------------------------------------------------------------- laws


def agree(scene: Scene, step: int) -> None:
    ticks, after, until = slow_walk(scene, step), scene.after, scene.until
    for gap, fold in POLICIES:
        trigger = scene.trigger(gap, fold)
        due, lost = judged(ticks, gap, fold, fixed=scene.drawn.fixed)
        assert list(between(trigger, after, until)) == due
        assert asked_afresh(trigger, after, until) == due
        assert all(trigger.next_after(instant - 1) == instant for instant in due)
        assert list(dropped(trigger, after, until)) == lost
        assert count_between(trigger, after, until, limit=10**6) == len(due)
        assert last_between(trigger, after, until) == (due[-1] if due else None)


def asked_afresh(trigger: CronTrigger, after: int, until: int) -> list[int]:
    answers = [after]
    while (following := trigger.next_after(answers[-1])) is not None and following <= until:
        answers.append(following)
    return answers[1:]


@given(scene=scenes(MOVES, hours=30, step=60))
@settings(max_examples=100)
def test_every_minute_around_a_move_of_the_clock_agrees(scene):
    agree(scene, step=60)


@given(scene=scenes(MOVES + ODD_SECONDS, hours=1, step=1, with_seconds=True))
@settings(max_examples=30)
def test_every_second_around_a_move_of_the_clock_agrees(scene):
    agree(scene, step=1)


@given(scene=scenes(ODD_SECONDS, hours=1, step=1))
@settings(max_examples=15)
def test_every_second_agrees_where_minutes_do_not_begin_with_the_minute(scene):
    agree(scene, step=1)


@given(scene=scenes(DAYS_MISSING_OR_TWICE, hours=40, step=60))
@settings(max_examples=25)
def test_every_minute_around_a_day_missing_or_twice_agrees(scene):
    agree(scene, step=60)


@given(
    scene=scenes(MOVES + DAYS_MISSING_OR_TWICE + ODD_SECONDS, hours=500, step=1),
    policies=st.sampled_from(POLICIES),
    share=st.floats(0, 1),
    data=st.data(),
)
@settings(max_examples=60)
def test_cutting_a_window_anywhere_loses_and_doubles_nothing(scene, policies, share, data):
    trigger = scene.trigger(*policies)
    whole = list(between(trigger, scene.after, scene.until))
    anywhere = scene.after + int(share * (scene.until - scene.after))
    cut = data.draw(st.sampled_from([anywhere, *whole[:50]]))
    assert [*between(trigger, scene.after, cut), *between(trigger, cut, scene.until)] == whole
    assert all(earlier < later for earlier, later in pairwise(whole))
