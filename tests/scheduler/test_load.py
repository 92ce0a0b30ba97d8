"""How many runs come when: counted by the minute, as they are due, and no further than is good for anybody."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler import load
from scheduler.load import Planned, counted
from scheduler.preview import adopted

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
MINUTE_OF_NOON = int(NOON.timestamp()) // 60
HOUR = timedelta(hours=1)


def planned(
    name: str, cron: str = "*/15 * * * *", *, queue: str = "default", tenant: str = "acme", **more: Any
) -> Planned:
    definition = {"trigger": {"cron": cron, **more}, "job": {"target": {"type": "task", "name": "t"}}}
    return Planned(tenant=tenant, name=name, queue=queue, definition=definition)


def by_minute(found: load.Load) -> dict[int, int]:
    """Minutes after noon, and how many runs are due in each."""
    return {minute - MINUTE_OF_NOON: count for minute, count in sorted(found.together().items())}


def test_runs_are_counted_in_the_minute_in_which_they_are_due():
    """The first instant of the span counts, the last does not."""
    found = counted([planned("a"), planned("b"), planned("c", "30 * * * *")], NOON, NOON + HOUR)
    assert by_minute(found) == {0: 2, 15: 2, 30: 3, 45: 2}
    assert found.occurrences == 9


def test_queues_and_tenants_are_told_apart():
    found = counted(
        [planned("a", queue="etl"), planned("b", queue="etl", tenant="zoo"), planned("c", "0 * * * *")],
        NOON,
        NOON + HOUR,
    )
    assert {place: minutes.total() for place, minutes in found.minutes.items()} == {
        ("etl", "acme"): 4,
        ("etl", "zoo"): 4,
        ("default", "acme"): 1,
    }


def test_jitter_spreads_the_load_as_it_spreads_the_runs():
    """Each of forty at its own instant within ten minutes; none is lost at either end."""
    spread = counted([planned(f"s{n}", "0 * * * *", jitter="PT10M") for n in range(40)], NOON, NOON + HOUR)
    assert spread.occurrences == 40
    assert set(by_minute(spread)) <= set(range(10))
    assert max(by_minute(spread).values()) < 12


def test_what_was_due_before_and_comes_later_by_its_jitter_counts():
    late = planned("late", "55 11 * * *", jitter="PT10M")
    alone = counted([late], NOON - HOUR, NOON + HOUR).together()
    (minute,) = alone
    inside = counted([late], NOON, NOON + HOUR).occurrences
    assert inside == (1 if minute >= MINUTE_OF_NOON else 0)


def test_hashes_of_names_fall_where_they_will():
    """`H` is another minute for each name: schedules in the same words do not share it."""
    found = counted([planned(f"s{n}", "H * * * *") for n in range(60)], NOON, NOON + HOUR)
    assert found.occurrences == 60
    assert len(by_minute(found)) > 20


def test_of_a_schedule_with_max_runs_no_more_than_those_count():
    assert counted([planned("a", max_runs=2)], NOON, NOON + HOUR).occurrences == 2


def test_a_schedule_of_every_second_is_cut_and_named_and_takes_no_room_from_others():
    """Two days of seconds are 172,800: 100,000 of them count."""
    found = counted([planned("seconds", "* * * * * *"), planned("a")], NOON, NOON + 48 * HOUR)
    assert found.cut == ["acme/seconds"]
    assert found.occurrences == 100_000 + 192


@given(
    cut=st.integers(1, 239), crons=st.lists(st.sampled_from(["*/7 * * * *", "3 */2 * * *", "H * * * *"]), max_size=4)
)
@settings(max_examples=30)
def test_two_spans_one_behind_the_other_hold_what_one_holds(cut: int, crons: list[str]) -> None:
    every = [planned(f"s{n}", cron) for n, cron in enumerate(crons)]
    middle = NOON + timedelta(minutes=cut)
    whole = counted(every, NOON, NOON + 4 * HOUR).together()
    halves = counted(every, NOON, middle).together() + counted(every, middle, NOON + 4 * HOUR).together()
    assert halves == whole


def by_catalog(**freeze: Any) -> Any:
    """A catalog in which one freeze stands, of the tenant `acme`."""
    row = adopted(1, {"freezes": [{"from": "2026-03-01T12:10:00Z", "to": "2026-03-01T12:40:00Z", **freeze}]})
    return lambda kind, tenant, _: row if (kind, tenant) == ("tenant", "acme") else None


def test_what_a_freeze_holds_makes_a_crowd_at_its_end():
    """Each five minutes; 12:10 to 12:35 are in the window, six of each schedule."""
    five = planned("a", "*/5 * * * *"), planned("b", "*/5 * * * *"), planned("c", "*/5 * * * *", tenant="zoo")
    found = counted(five, NOON, NOON + HOUR, by_catalog())
    assert by_minute(found) == {
        0: 3, 5: 3, 10: 1, 15: 1, 20: 1, 25: 1, 30: 1, 35: 1, 40: 5, 45: 3, 50: 3, 55: 3
    }  # fmt: skip
    every = [replace(five[0], definition={**five[0].definition, "catch_up": {"policy": "all", "rate": "2/m"}})]
    assert by_minute(counted(every, NOON, NOON + HOUR, by_catalog())) == {
        0: 1, 5: 1, 40: 3, 41: 2, 42: 2, 45: 1, 50: 1, 55: 1
    }  # fmt: skip
    late = counted(five[:1], NOON + timedelta(minutes=30), NOON + HOUR, by_catalog())
    assert by_minute(late) == {40: 2, 45: 1, 50: 1, 55: 1}


def test_what_a_freeze_or_a_calendar_takes_out_is_not_counted():
    assert by_minute(counted([planned("a")], NOON, NOON + HOUR, by_catalog(action="skip"))) == {0: 1, 45: 1}
    days = adopted(1, {"dates": ["2026-03-01"]})
    closed = planned("a", exclude={"calendars": ["x"]}), planned("b")
    found = counted(closed, NOON, NOON + HOUR, lambda kind, *_: days if kind == "calendar" else None)
    assert by_minute(found) == {0: 1, 15: 1, 30: 1, 45: 1}


def test_what_an_open_window_holds_already_comes_at_its_end():
    """From half past on nothing is due in the window any more; what was due at ten past is held."""
    once = planned("a", "10 12 * * *")
    found = counted([once], NOON + timedelta(minutes=30), NOON + HOUR, by_catalog())
    assert by_minute(found) == {40: 1}
