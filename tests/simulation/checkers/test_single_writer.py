"""I3: a partition has one writer at a time."""

import pytest

from schemas import topics
from simulation.checkers import single_writer
from simulation.evidence import Transaction
from tests.simulation.checkers.given import Given, at, calm, created, run_created, told


def found(given) -> list[str]:
    return told(single_writer.check(given.evidence()))


def test_transactions_one_behind_another_have_one_writer():
    given = calm()
    given.transaction("scheduler", "12:00:15", epoch=2)
    assert found(given) == []
    assert single_writer.observed(given.evidence()) == 11


def test_a_footer_of_an_older_epoch_is_of_another_writer():
    given = calm()
    given.transaction("scheduler", "12:00:15", epoch=3)
    given.transaction("scheduler", "12:00:16", epoch=2)
    assert found(given) == ["I3 scheduler-changelog-0@11: owner epoch 2 after 3"]


def test_a_torn_decision_of_an_older_epoch_is_of_another_writer():
    given = calm()
    given.transaction("scheduler", "12:00:15", epoch=3)
    run_created(given, created("12:00:15"), "12:00:16", epoch=2, torn=True)
    assert found(given) == ["I3 scheduler-changelog-0@11: owner epoch 2 after 3"]


@pytest.mark.parametrize("sequence", [4, 6])
def test_a_sequence_that_is_not_the_next_one_is_of_another_writer_or_behind_one_that_is_lost(sequence):
    given = calm()
    given.transaction("scheduler", "12:00:15", sequence=sequence)
    assert found(given) == [f"I3 scheduler-changelog-0@10: transaction {sequence} after 4"]


def test_a_torn_transaction_that_was_rolled_forward_has_its_sequence_twice():
    given = calm()
    run_created(given, created("12:00:15"), "12:00:15", torn=True)
    run_created(given, created("12:00:15"), "12:00:15", epoch=2)
    assert found(given) == []


def test_an_output_behind_one_of_a_later_transaction_came_from_another_writer():
    given = calm()
    given.append(topics.RUNS, created(), headers={"tw-seq": "scheduler-0-2"})
    assert found(given) == ["I3 runs-0@2: a record of scheduler-0 transaction 2 after one of 3"]


def test_each_output_of_an_overtaken_transaction_is_told():
    given = calm()
    for _ in range(2):
        given.append(topics.RUNS, created(), headers={"tw-seq": "scheduler-0-2"})
    assert found(given) == [
        "I3 runs-0@2: a record of scheduler-0 transaction 2 after one of 3",
        "I3 runs-0@3: a record of scheduler-0 transaction 2 after one of 3",
    ]


def test_a_record_behind_one_of_a_later_producer_is_not_fenced():
    given = calm()
    for number, epoch in ((1, 7), (2, 6)):
        given.transactions[number] = Transaction(
            transactional_id="scheduler.0", epoch=epoch, began_at=at("12:00:14"), outcome="committed"
        )
        given.append(topics.LINKS, {}, transaction=number)
    assert found(given) == [
        "I3 links-0@1: a record of scheduler.0 by producer 0 epoch 6 after one by 0 epoch 7",
    ]


@pytest.mark.parametrize(("epoch", "said"), [(1, 1), (2, 0)])
def test_a_new_producer_that_signs_as_its_predecessor_did_is_found(epoch, said):
    given = Given()
    for number, producer, owner in ((1, 7, 1), (2, 8, epoch)):
        given.transactions[number] = Transaction(
            transactional_id="scheduler.0", epoch=producer, began_at=at("12:00:14"), outcome="committed"
        )
        given.transaction("scheduler", "12:00:15", epoch=owner, transaction=number)
    assert (
        found(given)
        == [
            "I3 scheduler-changelog-0@1: producer 0 epoch 8 after 0 epoch 7 signs with owner epoch 1 after 1",
        ][:said]
    )


@pytest.mark.parametrize(("owner", "said"), [(8, 0), (7, 1), (1, 1)])
def test_a_log_that_has_forgotten_its_writers_numbers_them_anew_and_owner_epochs_grow_all_the_same(owner, said):
    given = Given()
    for number, (producer, epoch), signed in ((1, (3, 7), 7), (2, (4, 0), owner)):
        given.transactions[number] = Transaction(
            transactional_id="scheduler.0", producer=producer, epoch=epoch, began_at=at("12:00:14"), outcome="committed"
        )
        given.transaction("scheduler", "12:00:15", epoch=signed, transaction=number)
    assert [line for line in found(given) if "signs" in line] == [
        f"I3 scheduler-changelog-0@1: producer 4 epoch 0 after 3 epoch 7 signs with owner epoch {owner} after 7",
    ][:said]


@pytest.mark.parametrize(("first", "second", "said"), [((3, 7), (4, 0), 0), ((4, 0), (3, 7), 1)])
def test_a_record_of_a_forgotten_producer_behind_one_of_the_new_one_is_not_fenced(first, second, said):
    given = calm()
    for number, (producer, epoch) in ((1, first), (2, second)):
        given.transactions[number] = Transaction(
            transactional_id="scheduler.0", producer=producer, epoch=epoch, began_at=at("12:00:14"), outcome="committed"
        )
        given.append(topics.LINKS, {}, transaction=number)
    assert found(given) == ["I3 links-0@1: a record of scheduler.0 by producer 3 epoch 7 after one by 4 epoch 0"][:said]
