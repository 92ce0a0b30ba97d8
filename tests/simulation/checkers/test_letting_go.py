"""Whoever loses a partition, or its name, lets go of it: a part of I3."""

from collections.abc import Mapping
from datetime import datetime

from simulation.checkers import letting_go
from simulation.evidence import Evidence, Owning
from tests.simulation.checkers.given import at, told

NOBODY: Mapping[str, datetime] = {}


def found(
    *words: tuple[str, str, str], unquoted: tuple[str, ...] = (), fenced: Mapping[str, datetime] = NOBODY
) -> list[str]:
    """Each word: at which second, which process, what."""
    owning = tuple(
        Owning(at=at(f"12:00:{second}"), machine=machine, role="scheduler", partition=1, what=what)
        for second, machine, what in words
    )
    return told(letting_go.check(Evidence(owning=owning, unquoted=unquoted, fenced=fenced)))


def test_who_gives_back_and_is_given_again_begins_anew():
    words = [("00", "a#1", "assigned"), ("00", "a#1", "begun"), ("05", "a#1", "revoked"), ("06", "a#1", "begun")]
    assert found(*words) == []  # what it was building up when it was told
    assert found(*words, ("07", "a#1", "assigned"), ("07", "a#1", "begun"), ("09", "a#1", "begun")) == []


def test_who_begins_again_and_again_with_what_was_taken_from_it_is_found():
    words = [("05", "a#1", "lost"), ("06", "a#1", "begun"), ("09", "a#1", "begun"), ("13", "a#1", "begun")]
    assert found(*words) == ["I3 scheduler-1: a#1 begins once more with what it was told to give back"]


def test_who_is_fenced_and_waits_for_its_group_is_right():
    words = [("00", "a#1", "begun"), ("01", "b#1", "begun"), ("05", "a#1", "begun"), ("09", "b#1", "begun")]
    assert found(*words) == []


def test_two_who_take_a_partition_from_each_other_at_once_are_found():
    words = [("00", "a#1", "begun"), ("01", "b#1", "begun"), ("01.2", "a#1", "begun"), ("01.5", "b#1", "begun")]
    assert found(*words) == ["I3 scheduler-1: b#1 and a#1 take it from each other at once, again and again"]
    assert found(*words[:2], ("01.1", "a#1", "assigned"), *words[2:]) == []


def test_who_heard_that_another_has_its_name_and_takes_part_again_is_found():
    words = [("00", "a#1", "assigned"), ("05", "a#1001", "assigned"), ("10", "a#1", "assigned")]
    assert found(*words[:2], fenced={"a#1": at("12:00:06")}) == []
    assert found(*words, fenced={"a#1": at("12:00:06")}) == [
        "I3 scheduler-1: a#1 takes part again, and heard at 12:00:06 that another has its name"
    ]


def test_who_cannot_hear_that_another_has_its_name_may_have_it_again():
    words = [(f"{second:02}", machine, "assigned") for second, machine in enumerate(("a#1", "a#1001") * 3)]
    assert found(*words) == []
    assert found(*words, fenced={"a#1": at("12:00:05")}) == []


def test_positions_without_a_word_on_who_commits_them_are_found():
    assert found(unquoted=("scheduler.1", "scheduler.1")) == [
        "I3 scheduler.1: 2 commits of positions say nothing of who makes them"
    ]
