"""The bookkeeping behind reports: what counts as read, held, told; and when silence becomes dangerous."""

import json
from typing import Any, cast

import pytest

from tests.sdk.fake_server import run
from tidewheel import wire
from tidewheel._wire import RunCreated
from tidewheel.holdings import Holdings, Report
from tidewheel.wire import HandOut


def hand_out(offset: int, *, lease_duration: str = "PT30S", incarnation: str = "me") -> HandOut:
    about = run("it")
    about.pop("handout")
    return HandOut.read(
        {
            "incarnation": incarnation,
            "inbox": 0,
            "shard": 0,
            "offset": offset,
            "lease": f"q.0.{offset}.key",
            "lease_key": "key",
            "lease_duration": lease_duration,
            "timeout": "PT1H",
            "start_by": "PT10S",
            "attempt": 1,
            "may_have_run": False,
            "handed_out_at": "2026-03-01T12:00:00Z",
            "run": cast("RunCreated", about),
        }
    )


def said(report: Report) -> Any:
    return json.loads(report.body)


@pytest.fixture
def holdings():
    return Holdings(worker="w1", tasks=("it",), now=100.0, incarnation="me")


def news(holdings: Holdings, now: float = 100.0) -> Report:
    return holdings.news(slots=5, draining=False, now=now)


def claim(holdings: Holdings, now: float = 100.0) -> Report:
    return holdings.claim(slots=5, wait_seconds=20, claim_id="c1", now=now)


def test_a_report_says_of_the_worker_what_people_want_to_know():
    holdings = Holdings(worker="w1", tasks=("it",), now=100.0, slots_total=8, client="tidewheel/0.1.0")
    holdings.stuck = 2
    report = said(news(holdings))
    assert (report["slots_total"], report["client"], report["stuck"]) == (8, "tidewheel/0.1.0", 2)


def test_reports_are_numbered_across_both_calls(holdings):
    assert [said(news(holdings))["number"], said(claim(holdings))["number"], said(news(holdings))["number"]] == [
        1,
        2,
        3,
    ]


def test_what_an_answer_brought_is_read_and_held(holdings):
    holdings.take(1, [hand_out(7), hand_out(9)], 100.0)
    report = said(news(holdings))
    assert (report["read_up_to"], report["held"]) == (9, ["q.0.7.key", "q.0.9.key"])


def test_hand_outs_of_another_incarnation_are_not_ours(holdings):
    assert holdings.take(1, [hand_out(7, incarnation="other")], 100.0) == []
    assert said(news(holdings))["read_up_to"] == -1


def test_a_hand_out_counts_as_read_only_when_none_before_it_can_still_arrive(holdings):
    """The long poll is under way and may bring offset 8, when an answer to a prompt report brings 9."""
    poll, prompt = claim(holdings), news(holdings)
    holdings.take(prompt.number, [hand_out(9)], 100.0)
    holdings.end(prompt)
    between = said(news(holdings))
    assert (between["read_up_to"], between["held"]) == (-1, ["q.0.9.key"])
    holdings.end(holdings.news(slots=5, draining=False, now=100.0))
    assert [each.offset for each in holdings.take(poll.number, [hand_out(8)], 100.0)] == [8]
    holdings.end(poll)
    assert said(news(holdings))["read_up_to"] == 9


def test_a_call_that_failed_brings_nothing_more(holdings):
    poll, prompt = claim(holdings), news(holdings)
    holdings.take(prompt.number, [hand_out(9)], 100.0)
    holdings.end(prompt)
    holdings.end(poll)
    assert holdings.read_up_to == 9
    assert holdings.take(5, [hand_out(8)], 100.0) == []


def test_a_finished_lease_is_told_once_and_not_held_in_that_report(holdings):
    holdings.take(1, [hand_out(1)], 100.0)
    holdings.finish("q.0.1.key", wire.stopped("q.0.1.key", "cancelled"))
    report = news(holdings)
    assert (said(report)["held"], said(report)["finished"]) == ([], [{"lease": "q.0.1.key", "outcome": "cancelled"}])
    holdings.acknowledge(report)
    assert said(news(holdings))["finished"] == []


def test_a_long_poll_lists_a_finished_lease_as_held_until_that_is_acknowledged(holdings):
    """Listed neither as held nor as finished it would count as lost."""
    holdings.take(1, [hand_out(1)], 100.0)
    holdings.finish("q.0.1.key", wire.stopped("q.0.1.key", "cancelled"))
    assert said(claim(holdings))["held"] == ["q.0.1.key"]
    holdings.acknowledge(news(holdings))
    assert said(claim(holdings))["held"] == []


def test_a_report_carries_a_bounded_number_of_outcomes_and_holds_the_rest(holdings):
    names = [f"q.0.{offset}.key" for offset in range(300)]
    holdings.take(1, [hand_out(offset) for offset in range(300)], 100.0)
    for lease in names:
        holdings.finish(lease, wire.succeeded(lease, None))
    report = news(holdings)
    assert (len(report.finished), said(report)["held"]) == (256, names[256:])
    holdings.acknowledge(report)
    assert news(holdings).finished == tuple(names[256:])


def test_a_report_carries_a_bounded_size_of_outcomes(holdings):
    for offset in range(20):
        holdings.finish(f"q.0.{offset}.key", wire.succeeded(f"q.0.{offset}.key", "x" * 16_000))
    assert len(news(holdings).finished) == 16


def test_refused_outcomes_are_told_one_by_one_and_the_refused_one_is_replaced_then_dropped(holdings):
    for lease in ("a", "b"):
        holdings.finish(lease, wire.succeeded(lease, lease))
    assert holdings.refuse(news(holdings), "no") is None
    assert holdings.refuse(news(holdings), "no") == "a"
    assert said(news(holdings))["finished"] == [
        {"lease": "a", "outcome": "failed", "error": {"type": "ReportRefused", "message": "no"}}
    ]
    assert holdings.refuse(news(holdings), "no again") == "a"
    report = news(holdings)
    assert said(report)["finished"] == [{"lease": "b", "outcome": "succeeded", "result": "b"}]


@pytest.mark.parametrize(("lease", "expected"), [("PT30S", 5.0), ("PT9S", 3.0), ("PT0.3S", 0.1)])
def test_reports_come_three_times_a_lease_and_never_later_than_the_idle_period(holdings, lease, expected):
    holdings.take(1, [hand_out(1), hand_out(2, lease_duration=lease)], 100.0)
    assert holdings.interval_seconds() == pytest.approx(expected)


def test_work_is_fenced_two_thirds_of_a_lease_after_the_last_acknowledged_report_was_sent(holdings):
    assert holdings.fenced_at() == float("inf")
    holdings.take(1, [hand_out(1)], 100.0)
    assert holdings.fenced_at() == 120.0
    early, late = news(holdings, now=104.0), news(holdings, now=108.0)
    holdings.acknowledge(late)
    assert holdings.fenced_at() == 128.0
    holdings.acknowledge(early)
    assert holdings.fenced_at() == 128.0


def test_a_long_poll_keeps_no_lease_as_it_may_be_answered_on_the_way(holdings):
    holdings.take(1, [hand_out(1)], 100.0)
    holdings.acknowledge(claim(holdings, now=110.0))
    assert (holdings.fenced_at(), holdings.sent_at) == (120.0, 100.0)


def test_a_draining_worker_has_no_free_slots(holdings):
    report = said(holdings.news(slots=5, draining=True, now=100.0))
    assert (report["slots"], report["draining"]) == (0, True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("PT30S", 30), ("PT0.25S", 0.25), ("PT1H2M3S", 3723), ("P7D", 604_800), ("P1DT1M", 86_460), ("PT0S", 0)],
)
def test_durations_are_read_as_the_server_writes_them(text, expected):
    assert wire.seconds(text) == expected


@pytest.mark.parametrize("text", ["", "P", "PT", "30s", "P1W", "-PT1S", "PT1,5S"])
def test_what_the_server_does_not_write_is_no_duration(text):
    with pytest.raises(ValueError, match="is not a duration"):
        wire.seconds(text)
