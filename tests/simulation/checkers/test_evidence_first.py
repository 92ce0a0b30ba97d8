"""I22: nothing is lost while its evidence is unread, no word of a worker is unheard, and no late one is silent."""

from typing import Any

import pytest

from runtime.record import TopicPartition
from schemas import topics
from simulation.checkers import evidence_first
from simulation.evidence import Evidence
from tests.simulation.checkers.given import (
    RUN,
    Given,
    calm,
    created,
    ended,
    event,
    finished,
    handed_out,
    of_schedule,
    told,
    z,
)  # fmt: skip

LEASE = "default.0.0.key"
DUPLICATE = of_schedule("attempt.duplicate", run_id=RUN, handout=0)


def found(given: Given, **fields: Any) -> list[str]:
    return told(evidence_first.check(given.evidence(**fields)))


def report(given: Given, now: str, number: int, **said: Any) -> None:
    told_: dict[str, Any] = {
        "incarnation": "incarnation-1",
        "number": number,
        "held": (),
        "started": (),
        "finished": (),
    } | said
    given.append(topics.ATTEMPTS, event("worker.report", **told_), now=now)


def held() -> Given:
    """The run of 12:00:05 was handed out then, for 30 s."""
    given = Given()
    handout = handed_out(created(), 0, handed_out_at=z("12:00:05"), lease_duration="PT30S")
    given.transaction("dispatcher", "12:00:05", [created(), handout])
    return given


def expired(given: Given, at: str, **other: Any) -> None:
    given.transaction("dispatcher", at, [lease_expired(at)], **other)


def lease_expired(at: str) -> dict[str, Any]:
    return ended(0, "lease_expired", incarnation="incarnation-1", finished_at=z(at))


def test_a_calm_history_loses_nothing():
    assert found(calm()) == []
    assert evidence_first.observed(calm().evidence()) == 3


def test_a_lease_that_no_report_listed_for_its_length_may_end():
    given = held()
    report(given, "12:00:15", 1, held=[LEASE])
    expired(given, "12:00:46")
    assert found(given) == []


def test_a_lease_that_ends_although_a_report_listed_it_in_time_is_found_read_or_not():
    given = held()
    report(given, "12:00:15", 1, held=[LEASE])
    expired(given, "12:00:36")
    assert found(given) == [
        (
            "I22 dispatcher-changelog-0@2: the lease default.0.0.key ended at 2026-03-01T12:00:36Z, "
            "and what its worker reported made it good until 12:00:45.000000"
        )
    ]

    unread = held()
    positions = unread.positions("dispatcher")
    report(unread, "12:00:15", 1, started=[LEASE])
    expired(unread, "12:00:36", positions=positions)
    assert len(found(unread)) == 1


def test_a_report_that_came_when_the_lease_was_over_saves_nothing():
    given = held()
    report(given, "12:00:36", 1, held=[LEASE])
    expired(given, "12:00:40")
    assert found(given) == []


def test_a_report_that_came_behind_the_end_of_the_lease_saves_nothing_though_the_owners_clock_was_ahead():
    given = held()
    given.transaction("dispatcher", "12:00:10", [lease_expired("12:00:36")])
    report(given, "12:00:20", 1, held=[LEASE])
    assert found(given) == []


def test_a_report_of_another_or_one_older_than_its_predecessor_renews_nothing():
    given = held()
    report(given, "12:00:06", 2, held=[LEASE])
    report(given, "12:00:20", 1, held=[LEASE])
    report(given, "12:00:20", 1, held=[LEASE], incarnation="incarnation-2")
    expired(given, "12:00:37")
    assert found(given) == []


def test_clocks_that_are_apart_are_given_their_difference():
    given = held()
    report(given, "12:00:15", 1, held=[LEASE])
    expired(given, "12:00:36")
    assert found(given, faults=frozenset({"G3"})) == []


def taken_back(*then: dict[str, Any], outcome: str = "lease_expired") -> Given:
    given = held()
    end = ended(0, outcome, incarnation="incarnation-1", finished_at=z("12:00:36"))
    given.transaction("dispatcher", "12:00:36", [end, *then])
    report(given, "12:00:50", 1, finished=[{"lease": LEASE, "outcome": "succeeded"}])
    return given


@pytest.mark.parametrize("outcome", ["lease_expired", "lost", "timed_out"])
def test_a_late_word_that_nobody_is_told_of_is_found(outcome):
    given = taken_back(outcome=outcome)
    given.transaction("dispatcher", "12:00:51")
    assert found(given) == [
        "I22 attempts-0@0: says that default.0.0.key succeeded, which was taken back, and nobody is told"
    ]


def test_a_late_word_may_be_a_duplicate_or_the_runs_success():
    told_of = taken_back(handed_out(created(), 1, attempt=2))
    told_of.transaction("dispatcher", "12:00:51", [DUPLICATE])
    believed = taken_back()
    believed.transaction("dispatcher", "12:00:51", [finished(reason="late_report")])
    assert found(told_of) == found(believed) == []


def test_a_late_success_of_a_run_that_nobody_else_has_and_that_goes_on_is_found():
    waits, ends = taken_back(), taken_back(finished("expired"))
    waits.transaction("dispatcher", "12:00:51", [DUPLICATE])
    assert found(waits) == [
        "I22 attempts-0@0: says that default.0.0.key succeeded, nobody else has the run, and it goes on"
    ]
    ends.transaction("dispatcher", "12:00:51", [DUPLICATE])
    handed_out_meanwhile = taken_back()
    again = handed_out(created(), 1, attempt=2)
    handed_out_meanwhile.transaction("dispatcher", "12:00:51", [again, DUPLICATE])
    assert found(ends) == found(handed_out_meanwhile) == []


def test_what_is_said_of_a_lease_as_a_whole_speaks_for_its_holder():
    """By whoever was told the lease, and is no worker: a 202 that is kept."""
    given, heard = held(), held()
    for each in (given, heard):
        report(each, "12:00:10", -1, incarnation="completion", finished=[{"lease": LEASE, "outcome": "succeeded"}])
    given.transaction("dispatcher", "12:00:11")
    heard.transaction("dispatcher", "12:00:11", [ended(0, incarnation="incarnation-1")])
    assert found(given) == [
        "I22 attempts-0@0: says that default.0.0.key succeeded, is read, and changes nothing",
    ]
    assert found(heard) == []


def test_a_late_word_that_is_not_read_yet_and_one_of_a_worker_that_ended_it_itself_are_no_late_words():
    unread = taken_back()
    own = taken_back(outcome="failed")
    own.transaction("dispatcher", "12:00:51")
    assert found(unread) == found(own) == []


def test_a_word_on_a_live_lease_that_is_read_and_ends_nothing_is_found():
    given = held()
    report(given, "12:00:10", 1, finished=[{"lease": LEASE, "outcome": "succeeded"}])
    given.transaction("dispatcher", "12:00:11")
    assert found(given) == [
        "I22 attempts-0@0: says that default.0.0.key succeeded, is read, and changes nothing",
    ]


def test_a_word_on_a_live_lease_ends_it_once_however_often_it_comes():
    given = held()
    for number in (1, 2):
        report(given, "12:00:10", number, finished=[{"lease": LEASE, "outcome": "succeeded"}])
    given.transaction("dispatcher", "12:00:11", [ended(0, incarnation="incarnation-1")])
    report(given, "12:00:12", 3, finished=[{"lease": LEASE, "outcome": "succeeded"}])
    given.transaction("dispatcher", "12:00:13")
    assert found(given) == []


def test_a_word_that_is_said_to_another_shard_of_the_partition_is_not_answered():
    live, over = held(), held()
    expired(over, "12:00:36")
    for each in (live, over):
        report(each, "12:00:50", 0, shard=1, finished=[{"lease": LEASE, "outcome": "succeeded"}])
        each.transaction("dispatcher", "12:00:51")
        assert found(each) == []


def test_an_end_of_another_shards_hand_out_of_the_same_number_is_no_answer():
    given = held()
    report(given, "12:00:10", 1, finished=[{"lease": LEASE, "outcome": "succeeded"}])
    given.transaction("dispatcher", "12:00:11", [ended(0, run="t.20260301T120005Z", shard=1)])
    assert found(given) == [
        "I22 attempts-0@0: says that default.0.0.key succeeded, is read, and changes nothing",
    ]


def test_a_word_of_somebody_else_about_a_lease_is_not_answered():
    given = held()
    expired(given, "12:00:36")
    report(given, "12:00:50", 1, finished=[{"lease": LEASE, "outcome": "succeeded"}], incarnation="incarnation-2")
    given.transaction("dispatcher", "12:00:51")
    assert found(given) == []


def test_without_reports_there_is_nothing_to_look_at():
    assert evidence_first.observed(Evidence(records={TopicPartition(topics.ATTEMPTS, 0): ()})) == 0


def changed(arrived: str, read: str, *, after_catalog: bool = False) -> Given:
    """A pause that stood in the log at one instant and was read at another one; 12:00:05 was decided before."""
    given = Given()
    given.transaction("scheduler", "12:00:05", [created("12:00:05")])
    waits = {"after_catalog": "scheduler-1-7"} if after_catalog else {}
    pause = event("schedule.pause", id_="c", tenant="acme", name="s", **waits)
    given.append(topics.SCHEDULE_CHANGES, pause | {"source": "api"}, now=arrived)
    given.transaction("scheduler", read, [of_schedule("schedule.paused", source="api", command_id="c")])
    return given


def test_an_occurrence_that_is_decided_while_an_earlier_change_is_unread_is_found():
    assert found(changed("12:00:03", "12:00:06")) == [
        (
            "I22 scheduler-changelog-0@2: schedule.paused of acme/s came at 12:00:03.000000, "
            "unread when 12:00:05 was decided"
        )
    ]


def test_a_change_that_came_behind_the_occurrence_or_waits_for_the_catalog_may_be_read_later():
    assert found(changed("12:00:05", "12:00:09")) == []
    assert found(changed("12:00:03", "12:00:06", after_catalog=True)) == []
