"""No attempt ends by a word that nobody said of it: a part of I6."""

from typing import Any

from schemas import topics
from simulation.checkers import said
from tests.simulation.checkers.given import Given, calm, created, ended, run_taken, told, word

NOBODY = "I6 dispatcher-changelog-0@2: acme: attempt 1 of s.20260301T120005Z ends succeeded, and nobody said so"


def found(*words: dict[str, Any], late: bool = False, outcome: str = "succeeded") -> list[str]:
    given = Given()
    run_taken(given, created(), 0, "12:00:05")
    for each in () if late else words:
        given.append(topics.ATTEMPTS, each)
    given.transaction("dispatcher", "12:00:06", [ended(0, outcome)])
    for each in words if late else ():
        given.append(topics.ATTEMPTS, each)
    return told(said.check(given.evidence()))


def test_a_calm_history_has_the_words_of_its_workers():
    assert told(said.check(calm().evidence())) == []


def test_an_attempt_ends_as_its_worker_said():
    assert found(word(0)) == []
    assert found(word(0, outcome="failed"), outcome="failed") == []


def test_an_end_without_a_word_or_by_a_word_on_another_lease_is_found():
    assert found() == [NOBODY]
    assert found(word(1)) == [NOBODY]
    assert found(word(0, outcome="failed")) == [NOBODY]


def test_the_word_of_another_incarnation_is_none_unless_the_holder_passed_its_right_on():
    assert found(word(0, incarnation="incarnation-2")) == [NOBODY]
    assert found(word(0, incarnation="completion", number=-1)) == []


def test_a_word_that_was_not_read_yet_is_none():
    assert found(word(0), late=True) == [NOBODY]


def test_what_an_owner_decides_by_itself_needs_no_word():
    assert found(outcome="lost") == []
    assert found(outcome="timed_out") == []
