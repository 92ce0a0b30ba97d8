"""I15: everything has a hard cap, and keeps it."""

from schemas import topics
from simulation.checkers import bounded
from simulation.evidence import Transaction
from tests.simulation.checkers.given import Given, at, calm, created, ended, event, told

LARGE = "x" * (1024 * 1024)


def found(given, **fields) -> list[str]:
    return told(bounded.check(given.evidence(**fields)))


def transaction(outcome="committed", ended_at=None) -> Transaction:
    return Transaction(
        transactional_id="scheduler.0", epoch=1, began_at=at("12:00:00"), outcome=outcome, ended_at=ended_at
    )


def test_a_calm_history_is_small():
    given = calm()
    assert found(given) == []
    assert bounded.observed(given.evidence()) == 41


def test_a_record_of_an_owner_that_is_too_large_is_found():
    given = calm()
    given.append(topics.RUNS, LARGE.encode(), headers={"tw-seq": "scheduler-0-4"})
    given.append(topics.SCHEDULE_CHANGES, LARGE.encode() + b"x")
    assert found(given) == []
    given.append(topics.RUNS, LARGE.encode() + b"x", headers={"tw-seq": "scheduler-0-4"})
    assert found(given) == ["I15 runs-0@3: a record of 1048577 bytes, of at most 1048576"]


def test_a_part_of_a_decision_that_is_too_large_is_found_unless_it_is_one_fact():
    given = Given()
    given.transaction("scheduler", "12:00:00", [event("x", said=LARGE[:600_000])])
    assert found(given) == []
    given.transaction("scheduler", "12:00:01", [event("x", said=LARGE[:300_000])] * 2)
    assert found(given)[0].startswith("I15 scheduler-changelog-0@2: part 0 of a decision has 600")


def test_a_decision_that_is_too_large_is_found():
    given = Given()
    given.transaction("scheduler", "12:00:00", [event("x", said=LARGE * 17)])
    assert found(given)[0].startswith("I15 scheduler-changelog-0@0: a decision of 1782")


def test_a_transaction_that_was_open_for_too_long_is_found():
    given = Given()
    given.transactions = {1: transaction(ended_at=at("12:00:05")), 2: transaction("aborted", at("12:00:09"))}
    given.transactions[3] = transaction("open")
    assert found(given, transaction_seconds_max=5.5, ended_at=at("12:00:20")) == [
        "I15 scheduler.0: a transaction (aborted) was open for 9.0 s, of at most 5.5 s",
        "I15 scheduler.0: a transaction (open) was open for 20.0 s, of at most 5.5 s",
    ]
    assert found(given) == []


def test_more_attempts_than_the_job_allows_are_found_what_burns_none_left_out():
    given = Given()
    given.transaction("dispatcher", "12:00:00", [created(), *[ended(0, "failed")] * 3, ended(0, "lost", counted=False)])
    assert found(given) == []
    given.transaction("dispatcher", "12:00:01", [ended(0, "failed")])
    assert found(given) == ["I15 dispatcher-changelog-0@2: acme: attempt 4 of run s.20260301T120005Z, of at most 3"]
