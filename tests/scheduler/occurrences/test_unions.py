"""Several expressions in one trigger: whenever one of them is due, and once where several are."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduler.occurrences import (
    CronTrigger,
    Dropped,
    UnionTrigger,
    between,
    count_between,
    describe,
    dropped,
    last_between,
    parse,
    zone,
)
from scheduler.occurrences.triggers import FoldPolicy, GapPolicy
from tests.scheduler.occurrences.instants import at, written

DAY = 86_400


def union(*texts: str, timezone: str = "UTC", gap: GapPolicy = "shift", fold: FoldPolicy = "first") -> UnionTrigger:
    return UnionTrigger(tuple(CronTrigger(parse(text), zone(timezone), gap, fold) for text in texts))


def due(trigger: UnionTrigger, start: str, end: str) -> list[str]:
    return written(between(trigger, at(start) - 1, at(end) - 1))


def test_an_instant_that_two_expressions_name_is_one_occurrence():
    trigger = union("0 9 * * 1-5", "0 9,12 * * MON")
    assert due(trigger, "2026-03-01T00:00Z", "2026-03-04T00:00Z") == [
        "2026-03-02T09:00Z",
        "2026-03-02T12:00Z",
        "2026-03-03T09:00Z",
    ]
    assert count_between(trigger, at("2026-03-01T00:00Z"), at("2026-03-04T00:00Z"), limit=10) == 3
    assert last_between(trigger, at("2026-03-01T00:00Z"), at("2026-03-03T08:59Z")) == at("2026-03-02T12:00Z")


def test_readings_of_both_that_fall_into_a_gap_are_made_up_once():
    """New York has no 02:00 to 02:59 on 10 March 2024."""
    trigger = union("30 2 * * *", "15 2 * * *", "0 3 * * *", timezone="America/New_York")
    assert due(trigger, "2024-03-10T00:00Z", "2024-03-11T00:00Z") == ["2024-03-10T07:00Z"]
    assert count_between(trigger, at("2024-03-10T00:00Z"), at("2024-03-11T00:00Z"), limit=10) == 1


def test_a_reading_that_both_leave_out_is_told_once_and_one_that_is_due_by_another_is_not_told():
    gap = union("30 2 * * *", "0,30 2 * * *", timezone="America/New_York", gap="skip")
    assert list(dropped(gap, at("2024-03-10T00:00Z"), at("2024-03-11T00:00Z"))) == [
        Dropped(at("2024-03-10T02:00"), "gap", at("2024-03-10T07:00Z")),
        Dropped(at("2024-03-10T02:30"), "gap", at("2024-03-10T07:00Z")),
    ]
    # London shows 01:30 twice on 27 October 2024; the second expression follows the real clock and has both.
    fold = union("30 1 * * *", "*/30 * * * *", timezone="Europe/London")
    assert list(dropped(fold, at("2024-10-27T00:00Z"), at("2024-10-28T00:00Z"))) == []
    assert list(dropped(union("30 1 * * *", "0 2 * * *", timezone="Europe/London"), at("2024-10-27T00:00Z"),
                        at("2024-10-28T00:00Z"))) == [
        Dropped(at("2024-10-27T01:30"), "fold", at("2024-10-27T01:30Z")),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (("0 2 * * *", "30 14 * * 5"), "At 02:00 every day; also at 14:30 on Friday, Europe/London"),
        (("0 9 * * 1-5", "0 9 * * MON-FRI"), "At 09:00 on Monday to Friday, Europe/London"),
    ],
)
def test_all_of_them_are_said_in_one_sentence(texts, words):
    assert describe(union(*texts, timezone="Europe/London")) == words


def test_what_is_due_every_second_is_counted_without_a_walk():
    trigger = union("*/2 * * * * *", "1-59/2 * * * * *")
    assert count_between(trigger, at("2026-01-01T00:00Z"), at("2026-01-02T00:00Z"), limit=10**6) == DAY
    assert count_between(trigger, at("2026-01-01T00:00Z"), at("2027-01-01T00:00Z"), limit=10**9) == 365 * DAY


EXPRESSIONS = st.sampled_from(
    ["30 2 * * *", "0 */6 * * *", "15,45 1 * * *", "0 9 * * 1-5", "*/20 * * * *", "0 3 * * 0", "10 30 1,2 * * *"]
)
ZONES = st.sampled_from(["UTC", "Europe/London", "America/New_York", "Australia/Lord_Howe"])
CHANGES = ["2026-03-07T20:00Z", "2026-03-28T20:00Z", "2026-10-24T20:00Z", "2026-10-31T20:00Z", "2026-04-04T08:00Z"]


@settings(max_examples=60)
@given(
    texts=st.lists(EXPRESSIONS, min_size=2, max_size=3),
    timezone=ZONES,
    gap=st.sampled_from(["shift", "skip"]),
    fold=st.sampled_from(["first", "second", "both"]),
    start=st.sampled_from(CHANGES),
    cuts=st.lists(st.integers(0, 2 * DAY), max_size=4),
)
def test_a_union_is_the_set_of_its_parts_wherever_the_window_is_cut(texts, timezone, gap, fold, start, cuts):
    trigger = union(*texts, timezone=timezone, gap=gap, fold=fold)
    after, until = at(start), at(start) + 2 * DAY
    expected = sorted({instant for part in trigger.parts for instant in between(part, after, until)})
    edges = sorted({after, until, *(after + cut for cut in cuts)})
    pieces = list(pairwise(edges))
    assert [instant for piece in pieces for instant in between(trigger, *piece)] == expected
    assert sum(count_between(trigger, *piece, limit=10_000) for piece in pieces) == len(expected)
    assert last_between(trigger, after, until) == (expected[-1] if expected else None)
    assert [trigger.next_after(instant) for instant in [after, *expected][: len(expected)]] == expected
