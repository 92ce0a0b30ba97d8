"""`exclude`: what dates and expressions take out is due and has no run, and says by which rule."""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler import preview
from scheduler.occurrences import (
    AtTrigger,
    EveryTrigger,
    Exclusion,
    Exclusions,
    Trigger,
    UnionTrigger,
    WindowTrigger,
    between,
    parse,
    zone,
)
from schemas.facts import OccurrenceSkipped
from tests.scheduler.harness import Shell, at, definition
from tests.scheduler.occurrences import instants
from tests.scheduler.occurrences.instants import cron

DAY = 86_400


def excluding(expression: str = "* * * * *", zone: str = "UTC", **exclude: Any) -> dict[str, Any]:
    return definition(
        expression,
        trigger={"timezone": zone, "exclude": exclude},
        overlap={"policy": "allow_all"},
        catch_up={"policy": "all"},
    )


def test_a_date_takes_out_the_whole_local_day():
    shell = Shell("2024-12-24T00:00:00")
    shell.put(body=excluding("0 */8 * * *", "America/New_York", dates=["2024-12-25"]))
    shell.until("2024-12-26T18:00:00")
    # New York is five hours behind: its Christmas Day is from 05:00Z to 05:00Z.
    assert shell.created() == ["05:00", "13:00", "21:00", "05:00", "13:00"]
    assert shell.skipped() == ["05:00..21:00 x3 excluded"]
    assert shell.all(OccurrenceSkipped)[0].detail == "by dates"


def test_an_expression_without_seconds_takes_out_whole_minutes_and_says_so():
    shell = Shell("2024-01-01T11:59:30")
    shell.put(body=excluding("*/20 * * * * *", cron=["0 12 * * *"]))
    shell.until("2024-01-01T12:01:30")
    assert shell.created() == ["11:59:40", "12:01", "12:01:20"]
    assert shell.skipped() == ["12:00..12:00:40 x3 excluded"]
    assert shell.all(OccurrenceSkipped)[0].detail == "by cron 0 12 * * *"


def test_a_month_of_seconds_takes_a_record_a_day_and_not_one_a_second():
    shell = Shell("2024-11-30T23:59:58")
    shell.put(body=excluding("* * * * * *", cron=["* * * 12 *"]))
    shell.until("2025-01-01T00:00:01")
    assert shell.created() == ["23:59:59", "00:00", "00:00:01"]
    assert len(shell.all(OccurrenceSkipped)) == 31
    assert sum(fact.range.count for fact in shell.all(OccurrenceSkipped) if fact.range is not None) == 31 * DAY


def test_neighbours_that_several_rules_take_out_stand_in_one_record_that_names_the_rules():
    shell = Shell("2024-12-30T23:30:00")
    shell.put(body=excluding("0 * * * *", dates=["2024-12-31"], cron=["* 0-2 1 1 *", "* 12 * * *"]))
    shell.until("2025-01-01T03:00:00")
    assert shell.created() == ["03:00"]
    assert [fact.detail for fact in shell.all(OccurrenceSkipped)] == [
        "by dates, cron * 12 * * *",
        "by cron * 0-2 1 1 *",
    ]


def test_a_pause_in_the_middle_divides_what_is_excluded_from_what_is_paused():
    shell = Shell("2024-12-24T23:59:30")
    shell.put(body=excluding(dates=["2024-12-25"]))
    shell.until("2024-12-25T00:02:30")
    shell.send("SchedulePause")
    shell.until("2024-12-25T00:04:30")
    assert shell.skipped() == ["00:00..00:02 x3 excluded", "00:03 paused", "00:04 paused"]


def test_a_new_version_without_the_rule_takes_effect_at_once():
    shell = Shell("2024-12-24T23:59:30")
    shell.put(body=excluding(dates=["2024-12-25"]))
    shell.until("2024-12-25T00:02:30")
    shell.put(body=definition(overlap={"policy": "allow_all"}))
    shell.until("2024-12-25T00:04:30")
    assert shell.skipped() == ["00:00..00:02 x3 excluded"]
    assert shell.created() == ["00:03", "00:04"]


def test_of_missed_occurrences_the_latest_that_is_not_excluded_is_caught_up():
    shell = Shell("2024-12-24T09:30:00")
    body = excluding("0 * * * *", cron=["* 12-14 * * *"])
    shell.put(body=body | {"catch_up": {"policy": "latest"}})
    shell.sleep_until("2024-12-24T14:30:00")
    shell.until("2024-12-24T14:30:00")
    assert shell.created() == ["11:00@14:30"]
    assert shell.skipped() == ["10:00 catch_up", "12:00..14:00 x3 excluded"]


def test_another_process_goes_on_with_the_same_decision():
    shell = Shell("2024-12-24T23:59:30")
    shell.put(body=excluding("* * * * * *", dates=["2024-12-25"]))
    shell.until("2024-12-25T11:00:00")
    shell.reload()
    shell.until("2024-12-26T00:00:00")
    assert shell.skipped() == ["00:00..23:59:59 x86400 excluded"]


def test_answers_name_the_rules_and_the_next_occurrences_that_are_left():
    shell = Shell("2024-12-23T12:00:00")
    shell.put(body=excluding("0 9 * * *", dates=["2024-12-25"], cron=["* * * * 5"]))
    assert shell.answer().body["words"] == "At 09:00 every day, UTC, except dates and cron * * * * 5"
    assert shell.answer().body["next"] == ["2024-12-24T09:00:00Z", "2024-12-26T09:00:00Z", "2024-12-28T09:00:00Z"]


def test_a_preview_shows_what_is_left():
    told = preview.preview(
        excluding("0 9 * * *", dates=["2024-12-25"]),
        from_=at("2024-12-24T00:00:00"),
        to=at("2024-12-27T00:00:00"),
        limit=10,
        now=at("2024-12-01T00:00:00"),
    )
    assert [each["nominal_time"] for each in told["occurrences"]] == ["2024-12-24T09:00:00Z", "2024-12-26T09:00:00Z"]


def test_rules_that_leave_nothing_are_accepted_with_a_warning():
    shell = Shell()
    shell.put(body=excluding("* * * * * *", cron=["* * * * *"]))
    assert shell.answer().body["warnings"] == [
        "/trigger/exclude: takes out everything that is due in the years to come"
    ]
    assert shell.answer().body["next"] == []


@pytest.mark.parametrize(
    ("exclude", "pointer", "code"),
    [
        ({"dates": ["2024-02-30"]}, "/dates/0", "date"),
        ({"dates": ["2024-12-25T00:00:00Z"]}, "/dates/0", "date"),
        ({"dates": [20241225]}, "/dates/0", "date"),
        ({"cron": ["* * * * *", "0 0 30 2 *"]}, "/cron/1", "cron"),
        ({"cron": ["61 * * * *"]}, "/cron/0", "cron"),
        ({"calendars": ["uk holidays"]}, "/calendars/0", "name"),
    ],
)
def test_a_rule_that_cannot_be_meant_is_refused_with_its_place(exclude, pointer, code):
    shell = Shell()
    shell.put(body=excluding(**exclude))
    assert [(fault.pointer, fault.code) for fault in shell.answer().faults] == [
        (f"/data/definition/trigger/exclude{pointer}", code)
    ]


def test_rules_that_are_quoted_alike_are_still_two():
    rules = (Exclusion.of_dates((date(2026, 11, 1),)), Exclusion.of_dates((date(2026, 11, 2),)))
    taken = Exclusions(zone("UTC"), rules).taken(cron("0 * * * *"), instants.at("2026-11-01T23:00Z"), START + 10 * DAY)
    assert (taken.last, taken.count, taken.rules) == (instants.at("2026-11-02T22:00Z"), 24, ("dates",))


# ------------------------------------------------------------------------------------------------------------- laws

NEW_YORK = zone("America/New_York")
START = instants.at("2026-10-31T12:00Z")  # the clocks go back in the night that follows
TRIGGERS: dict[str, Trigger] = {
    "every seven minutes": cron("*/7 * * * *", "America/New_York"),
    "every eleven seconds": cron("*/11 * * * * *", "America/New_York"),
    "two": UnionTrigger((cron("30 1 * * *", "America/New_York"), cron("0 */3 * * *", "America/New_York"))),
    "interval": EveryTrigger(420, START + 5),
    "bounded": WindowTrigger(cron("*/13 * * * *", "America/New_York"), START + 9_000, START + 40_000),
    "listed": AtTrigger(tuple(START + step for step in (0, 60, 86_000, 86_400, 100_000))),
}


def of_cron(text: str) -> Exclusion:
    return Exclusion.of_cron(parse(text))


# Each rule twice: as it is given, and as a predicate over local times that knows no rule.
RULES: dict[str, tuple[Exclusion, Callable[[datetime], bool]]] = {
    "one day": (Exclusion.of_dates((date(2026, 11, 1),)), lambda local: local.day == 1),
    "two days": (Exclusion.of_dates((date(2026, 10, 31), date(2026, 11, 2))), lambda local: local.day != 1),
    "an hour": (of_cron("* 1 * * *"), lambda local: local.hour == 1),
    "minutes": (of_cron("*/10 * * * *"), lambda local: local.minute % 10 == 0),
    "seconds": (of_cron("0-29 */2 * * * *"), lambda local: local.second < 30 and local.minute % 2 == 0),
    "a date": (of_cron("* * 1 11 *"), lambda local: (local.month, local.day) == (11, 1)),
}


@settings(max_examples=60)
@given(
    st.sampled_from(sorted(TRIGGERS)),
    st.lists(st.sampled_from(sorted(RULES)), min_size=1, max_size=3),
    st.integers(0, DAY),
    st.integers(0, DAY),
)
def test_what_is_left_and_what_is_taken_out_are_all_that_is_due(name, rules, skip, length):
    trigger, after, until = TRIGGERS[name], START + skip, START + skip + length
    exclusions = Exclusions(NEW_YORK, tuple(RULES[rule][0] for rule in rules))

    def is_out(instant: int) -> bool:
        local = datetime.fromtimestamp(instant, UTC) + timedelta(seconds=NEW_YORK.offset(instant))
        return any(RULES[rule][1](local) for rule in rules)

    due = list(between(trigger, after, until))
    left = [instant for instant in due if not is_out(instant)]
    assert [instant for instant in due if exclusions.naming(instant) is None] == left
    assert exclusions.count_left(trigger, after, until, 10**6) == len(left)
    following = exclusions.next_left(trigger, after)
    assert (following == left[0]) if left else following is None or following > until
    out = [instant for instant in due if is_out(instant)]
    if out:
        taken = exclusions.taken(trigger, out[0], until)
        behind = [instant for instant in due if instant >= out[0]]
        run = next((behind[:n] for n, instant in enumerate(behind) if not is_out(instant)), behind)
        run = [instant for instant in run if instant < out[0] + DAY]
        assert (taken.last, taken.count) == (run[-1], len(run))
