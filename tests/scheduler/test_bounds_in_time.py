"""`start_at` and `end_at`: what lies outside of [start_at, end_at) is not due, and nothing is said about it."""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler import preview
from scheduler.occurrences import (
    AtTrigger,
    EveryTrigger,
    WindowTrigger,
    between,
    count_between,
    describe,
    dropped,
    last_between,
)
from tests.scheduler.harness import Shell, at, definition
from tests.scheduler.occurrences import instants
from tests.scheduler.occurrences.instants import cron

HOURLY = {"start_at": "2024-01-01T02:00:00Z", "end_at": "2024-01-01T05:00:00Z"}


ALL = {"overlap": {"policy": "allow_all"}}


def test_the_first_instant_counts_and_the_last_does_not():
    shell = Shell("2024-01-01T00:00:30")
    shell.put(body=definition("0 * * * *", trigger=HOURLY, **ALL))
    shell.until("2024-01-02T00:00:00")
    assert shell.created() == ["02:00", "03:00", "04:00"]
    assert shell.skipped() == []


def test_an_interval_is_counted_from_its_anchor_whatever_its_bounds():
    shell = Shell("2024-01-01T00:10:00")
    body = {"trigger": {"every": "PT1H", **HOURLY}, "job": {"target": {"type": "task", "name": "t"}}, **ALL}
    shell.put(body=body)
    shell.until("2024-01-02T00:00:00")
    assert shell.created() == ["02:10", "03:10", "04:10"]


def test_an_end_that_is_moved_back_lets_it_go_on_and_nothing_is_made_up():
    shell = Shell("2024-01-01T00:00:30")
    shell.put(body=definition("0 * * * *", trigger={"end_at": "2024-01-01T02:00:00Z"}, **ALL))
    shell.until("2024-01-01T03:30:00")
    shell.put(body=definition("0 * * * *", trigger={"end_at": "2024-01-01T06:00:00Z"}, **ALL))
    shell.until("2024-01-02T00:00:00")
    assert shell.created() == ["01:00", "04:00", "05:00"]
    assert shell.skipped() == []


def test_a_definition_whose_end_is_past_is_taken_with_a_warning_so_that_a_file_can_be_applied_again():
    shell = Shell("2024-01-02T00:00:00")
    shell.put(body=definition("0 * * * *", trigger=HOURLY, **ALL))
    assert shell.answer().status == 201
    assert shell.answer().body["warnings"] == ["/trigger/end_at: is past, so nothing is due any more"]
    assert shell.answer().body["next"] == []


def test_a_preview_ends_with_the_schedule_and_tells_no_clock_change_outside_of_it():
    told = preview.preview(
        definition("30 1 * * *", trigger={"timezone": "Europe/London", "end_at": "2024-03-30T12:00:00Z"}),
        from_=at("2024-03-29T00:00:00"),
        to=at("2024-11-01T00:00:00"),
        limit=10,
        now=at("2024-03-01T00:00:00"),
    )
    assert [each["nominal_time"] for each in told["occurrences"]] == ["2024-03-29T01:30:00Z", "2024-03-30T01:30:00Z"]
    assert told["dst"] == []
    assert told["words"] == "At 01:30 every day, Europe/London, ending before 2024-03-30T12:00:00Z"


@pytest.mark.parametrize(
    ("start", "end", "words"),
    [
        (0, None, "At 02:00 every day, UTC, from 1970-01-01T00:00:00Z on"),
        (None, 60, "At 02:00 every day, UTC, ending before 1970-01-01T00:01:00Z"),
        (0, 60, "At 02:00 every day, UTC, from 1970-01-01T00:00:00Z on, ending before 1970-01-01T00:01:00Z"),
    ],
)
def test_the_bounds_are_said(start, end, words):
    assert describe(WindowTrigger(cron("0 2 * * *"), start, end)) == words


def test_what_a_policy_leaves_out_outside_of_the_bounds_is_not_told():
    trigger = cron("30 2 * * *", "America/New_York", gap="skip")
    window = (instants.at("2024-03-01T00:00Z"), instants.at("2024-03-20T00:00Z"))
    assert len(list(dropped(WindowTrigger(trigger), *window))) == 1
    assert list(dropped(WindowTrigger(trigger, end=instants.at("2024-03-10T07:00Z")), *window)) == []


TRIGGERS: st.SearchStrategy[Any] = st.sampled_from(
    [cron("*/7 * * * *"), EveryTrigger(420, 60), AtTrigger((0, 60, 3600, 7200))]
)
SECONDS = st.integers(-100, 10_000)


@given(TRIGGERS, st.none() | SECONDS, st.none() | SECONDS, st.lists(SECONDS, min_size=2, max_size=5))
def test_bounds_cut_off_what_lies_outside_and_nothing_else(inner, start, end, edges):
    trigger, edges = WindowTrigger(inner, start, end), sorted(edges)
    expected = [
        instant
        for instant in between(inner, edges[0], edges[-1])
        if (start is None or start <= instant) and (end is None or instant < end)
    ]
    assert [instant for piece in pairwise(edges) for instant in between(trigger, *piece)] == expected
    assert sum(count_between(trigger, *piece, limit=10_000) for piece in pairwise(edges)) == len(expected)
    assert last_between(trigger, edges[0], edges[-1]) == (expected[-1] if expected else None)
    following = trigger.next_after(edges[0])
    assert following == expected[0] if expected else following is None or following > edges[-1]
