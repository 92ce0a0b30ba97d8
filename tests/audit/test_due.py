"""The audit's own arithmetic gives the exact instants of the measure, and agrees with the scheduler's everywhere."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from node.audit.due import due
from node.audit.exclusion import excluded
from node.audit.expression import NotUnderstood
from scheduler import occurrences
from tests.audit.world import at

CASES = json.loads((Path(__file__).parents[1] / "cases" / "cron-occurrences.json").read_text("utf-8"))
ANSWERED = [case for case in CASES if not case.get("error")]
HASH_KEY = "acme/tick"


def definition(cron: str, timezone: str = "UTC", **fields: Any) -> dict[str, Any]:
    return {"trigger": {"cron": cron, "timezone": timezone, "gap_policy": "shift", "fold_policy": "first", **fields}}


def seconds(text: str) -> int:
    return int(at(text.removesuffix("Z")).timestamp())


@pytest.mark.parametrize("case", ANSWERED, ids=lambda case: f"{case['id']} {case['expression']!a}")
def test_the_exact_instants_are_given(case):
    policies = {"gap_policy": case["gap_policy"], "fold_policy": case["fold_policy"]}
    subject = definition(case["expression"], case["timezone"], day_rule=case.get("day_rule", "vixie"), **policies)
    found = list(due(subject, HASH_KEY, seconds(case["start_utc"]) - 1, seconds(case["end_utc"]) - 1))
    assert found == [seconds(text) for text in case["expected_utc"]]


def field(low: int, high: int, *words: str) -> st.SearchStrategy[str]:
    """A field of an expression, with lists, wrapping ranges, steps and H."""
    number = st.integers(low, high).map(str)
    value = number | st.sampled_from(words) if words else number
    step = st.integers(1, high - low).map(lambda by: f"/{by}")
    base = st.just("*") | value | st.builds("{}-{}".format, value, value) | st.just("H")
    item = base | st.builds(str.__add__, base, step)
    return st.just("*") | st.lists(item, min_size=1, max_size=3).map(",".join)


WEEKDAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
MONTH_DAYS = field(1, 31) | st.sampled_from(["?", "L", "L-3", "LW", "1W", "15W", "31W", "L,15"])
UNIX_DAYS = field(0, 7, *WEEKDAYS) | st.sampled_from(["?", "5L", "FRIL", "2#1", "MON#5", "7L", "0-7", "7-0", "1,5L"])
QUARTZ_DAYS = field(1, 7, *WEEKDAYS) | st.sampled_from(["?", "L", "6L", "2#1", "MON#5", "H(2-6)"])
EXPRESSIONS = st.tuples(field(0, 59), field(0, 23), MONTH_DAYS, field(1, 12, "JAN", "JUN", "DEC")).map(" ".join)
ZONES = ["UTC", "America/New_York", "Europe/London", "Australia/Lord_Howe", "Africa/Casablanca", "Antarctica/Troll"]
# Around clock changes of these zones, and a day that Samoa left out.
STARTS = [
    "2026-03-07T12:00",
    "2026-03-28T12:00",
    "2026-10-24T12:00",
    "2026-10-31T12:00",
    "2026-10-03T00:00",
    "2026-02-14T00:00",
]


@settings(max_examples=60)
@given(
    st.tuples(EXPRESSIONS, st.just("unix"), UNIX_DAYS) | st.tuples(EXPRESSIONS, st.just("quartz"), QUARTZ_DAYS),
    st.sampled_from(ZONES),
    st.sampled_from(["shift", "skip"]),
    st.sampled_from(["first", "second", "both"]),
    st.sampled_from(["vixie", "literal"]),
    st.sampled_from(STARTS),
)
def test_two_readings_of_the_contract_agree(expression, zone, gap_policy, fold_policy, day_rule, start):
    fields, dialect, weekday = expression
    text = f"{fields} {weekday}"
    try:
        parsed = occurrences.parse(text, dialect=dialect, day_rule=day_rule, hash_key=HASH_KEY)
    except occurrences.CronError:
        assume(False)
    trigger = occurrences.CronTrigger(parsed, occurrences.zone(zone), gap_policy, fold_policy)
    after = seconds(start) + 17
    until = after + 86_400 * 3
    policies = {"gap_policy": gap_policy, "fold_policy": fold_policy, "day_rule": day_rule, "dialect": dialect}
    assert list(due(definition(text, zone, **policies), HASH_KEY, after, until)) == list(
        occurrences.between(trigger, after, until)
    )


def test_an_instant_that_two_expressions_name_is_due_once():
    subject = definition("x")
    subject["trigger"]["cron"] = ["0 12 * * *", "*/30 12 * * *"]
    noon = seconds("12:00")
    assert list(due(subject, HASH_KEY, noon - 1, noon + 7200)) == [noon, noon + 1800]


def test_nothing_is_due_before_the_start_or_from_the_end_on():
    noon = seconds("12:00")
    bounded = definition("*/10 * * * *", start_at="2026-03-02T12:10:00Z", end_at="2026-03-02T12:30:00Z")
    assert list(due(bounded, HASH_KEY, noon - 3600, noon + 3600)) == [noon + 600, noon + 1200]
    assert list(due(bounded, HASH_KEY, noon + 600, noon + 1199)) == []


def test_a_day_that_a_country_left_out_has_no_occurrences_but_what_is_shifted_out_of_it():
    """Samoa went from the 29th to the 31st of December 2011."""
    window = (seconds("2011-12-29T00:00"), seconds("2011-12-31T12:00"))
    shifted = due(definition("0 12 * * *", "Pacific/Apia"), HASH_KEY, *window)
    skipped = due(definition("0 12 * * *", "Pacific/Apia", gap_policy="skip"), HASH_KEY, *window)
    assert list(shifted) == [seconds("2011-12-29T22:00"), seconds("2011-12-30T10:00"), seconds("2011-12-30T22:00")]
    assert list(skipped) == [seconds("2011-12-29T22:00"), seconds("2011-12-30T22:00")]


def test_an_interval_is_counted_from_its_anchor_which_is_due_itself():
    noon = seconds("12:00")
    every = {"trigger": {"every": "PT1H30M", "anchor": "2026-03-02T12:00:00Z"}}
    assert list(due(every, HASH_KEY, noon - 100_000, noon + 6000)) == [noon, noon + 5400]
    assert list(due(every, HASH_KEY, noon, noon + 10_800)) == [noon + 5400, noon + 10_800]
    assert list(due(every, HASH_KEY, noon + 5399, noon + 5400)) == [noon + 5400]
    assert list(due(every, HASH_KEY, noon + 10_000_000_001, noon + 10_000_000_001)) == []


def test_instants_of_a_list_are_due_once_each():
    listed = {"trigger": {"at": ["2026-03-02T12:05:00Z", "2026-03-02T12:00:00Z", "2026-03-02T12:05:00Z"]}}
    noon = seconds("12:00")
    assert list(due(listed, HASH_KEY, noon - 1, noon + 300)) == [noon, noon + 300]
    assert list(due(listed, HASH_KEY, noon, noon + 299)) == []


@pytest.mark.parametrize("text", ["* * *", "x * * * *", "* * * * FUNDAY"])
def test_what_is_not_understood_is_said(text):
    with pytest.raises((NotUnderstood, ValueError)):
        list(due(definition(text), HASH_KEY, 0, 86_400))


def test_dates_are_taken_out_by_the_local_day_and_expressions_without_seconds_by_the_minute():
    subject = definition("* * * * * *", "America/New_York", exclude={"dates": ["2026-03-02"], "cron": ["30 9 * * *"]})
    is_out = excluded(subject, HASH_KEY)
    assert [is_out(seconds(f"2026-03-{text}")) for text in ("02T04:59", "02T05:00", "03T04:59", "03T05:00")] == [
        False, True, True, False,
    ]  # fmt: skip
    half_past = seconds("2026-03-03T14:30")
    assert [is_out(half_past + late) for late in (-1, 0, 59, 60)] == [False, True, True, False]
    assert not excluded(definition("* * * * *"), HASH_KEY)(half_past)
