"""I5: of a transaction everything is visible, or nothing, or what was torn has been made whole."""

from runtime.record import TopicPartition
from schemas import topics
from simulation.checkers import atomic
from simulation.evidence import Transaction
from tests.simulation.checkers.given import at, calm, created, rested, run_created, told

CHANGELOG = topics.changelog_topic("scheduler")
THREE = created("12:00:15")


def found(given) -> list[str]:
    return told(atomic.check(rested(given)))


def test_all_that_is_announced_is_there():
    given = calm()
    assert found(given) == []
    assert atomic.observed(given.evidence()) == 10


def test_an_output_that_is_missing_is_missed():
    given = calm()
    run_created(given, THREE, "12:00:15", outputs_=3)
    assert found(given) == [
        "I5 scheduler-changelog-0@11: scheduler-0 transaction 5 announces 3 outputs, of which 2 are visible"
    ]


def test_an_output_too_many_is_found():
    given = calm()
    given.append(topics.RUNS, THREE, headers={"tw-seq": "scheduler-0-4"})
    assert found(given) == [
        "I5 scheduler-changelog-0@9: scheduler-0 transaction 4 announces 0 outputs, of which 1 are visible"
    ]


def test_rows_facts_and_parts_that_are_not_as_announced_are_found():
    given = calm()
    given.transaction("scheduler", "12:00:15", [THREE], (), {b"\0\1as": b"1"}, rows_=0)
    given.transaction("scheduler", "12:00:16", [THREE], facts_=2, decision_parts=2)
    assert found(given) == [
        "I5 scheduler-changelog-0@12: scheduler-0 transaction 5 announces 0 rows, of which 1 are there",
        "I5 scheduler-changelog-0@14: scheduler-0 transaction 6 announces 2 decision_parts, of which 1 are there",
        "I5 scheduler-changelog-0@14: scheduler-0 transaction 6 announces 2 facts, of which 1 are there",
    ]


def test_half_a_decision_with_a_footer_is_found():
    given = calm()
    run_created(given, THREE, "12:00:15", whole=False)
    assert found(given) == [
        "I5 scheduler-changelog-0@11: scheduler-0 transaction 5 closes another decision, or half of one"
    ]


def test_a_torn_transaction_that_was_rolled_forward_may_be_there_twice():
    given = calm()
    run_created(given, THREE, "12:00:15", torn=True)
    run_created(given, THREE, "12:00:15", epoch=2)
    assert found(given) == []


def test_a_torn_transaction_that_nobody_has_made_whole_is_found_when_all_is_at_rest():
    given = calm()
    run_created(given, THREE, "12:00:15", torn=True)
    assert found(given) == [
        "I5 scheduler-changelog-0@10: a torn transaction that nobody has made whole",
        "I5 run-events-0@10: belongs to scheduler-0 transaction 5, which has no footer",
    ]
    assert [*atomic.check(given.evidence())] == []


def test_outputs_of_a_transaction_that_nobody_knows_are_found_once_its_partition_has_written_since():
    given = calm()
    given.append(topics.RUNS, THREE, headers={"tw-seq": "scheduler-0-0"})
    assert told(atomic.check(given.evidence())) == [
        "I5 runs-0@2: belongs to scheduler-0 transaction 0, which has no footer"
    ]


def test_where_the_model_knows_who_wrote_a_record_what_another_transaction_wrote_does_not_count():
    given = calm()
    given.transactions |= {
        number: Transaction(transactional_id="scheduler.0", epoch=1, began_at=at("12:00:14"), outcome="committed")
        for number in (1, 2)
    }
    run_created(given, THREE, "12:00:15", transaction=1, outputs_=3)
    given.append(topics.RUNS, THREE, headers={"tw-seq": "scheduler-0-5"}, transaction=2)
    assert found(given) == [
        "I5 scheduler-changelog-0@11: scheduler-0 transaction 5 announces 3 outputs, of which 2 are visible",
        "I5 runs-0@3: says it is of scheduler-0 transaction 5, and another transaction wrote it",
    ]


def test_a_record_that_is_no_part_of_a_transaction_is_found():
    given = calm()
    given.append(topics.changelog_topic("scheduler"), b"what", key=b"stranger")
    assert found(given)[0] == "I5 scheduler-changelog-0@10: fits neither decision, row nor footer"


def test_a_torn_transaction_is_found_where_owners_give_up_what_they_doubt():
    given = calm()
    run_created(given, THREE, "12:00:15", torn=True)
    run_created(given, THREE, "12:00:16")
    assert told(atomic.check(given.evidence())) == []
    assert told(atomic.check(given.evidence(doubting=True))) == [
        "I5 scheduler-changelog-0@10: a torn transaction, though its owner gives up what it doubts"
    ]


# --- what hung (C7) ---------------------------------------------------------------------------------------------------


def hung_one(given, *, again: int | None) -> None:
    """A transaction whose outputs are gone, ended by an owner that carries it out again with so many outputs."""
    decided = given.transaction("scheduler", "12:00:15", [THREE], outputs_=1)
    given.append(CHANGELOG, None, key=b"r\0\0\0", headers={"tw-hung-at": str(decided.offset)})
    if again is not None:
        given.transaction("scheduler", "12:00:16", (), [(topics.RUNS, THREE)] * again, epoch=2)


def test_what_hung_may_have_lost_its_outputs_where_the_next_transaction_has_them():
    given = calm()
    hung_one(given, again=1)
    assert found(given) == []


def test_what_hung_and_was_not_carried_out_again_is_found():
    for again in (None, 0):
        given = calm()
        hung_one(given, again=again)
        assert found(given) == [
            "I5 scheduler-changelog-0@11: scheduler-0 transaction 5 announces 1 outputs, of which 0 are visible"
        ]


def test_a_copy_of_a_decision_decides_nothing_and_excuses_what_is_there_twice():
    given = calm()
    value = given.records[TopicPartition(CHANGELOG, 0)][-3].value
    given.append(CHANGELOG, value, key=b"\0decision-copy-0000")
    assert found(given) == []
    assert atomic.observed(given.evidence()) == 10
