"""No occurrence is decided while a change of the catalog is unread that was there before it was due: a part of I22."""

from datetime import timedelta
from typing import Any

from runtime.record import TopicPartition
from schemas import topics
from simulation.checkers import catalog_first, evidence_first
from simulation.evidence import Transaction
from tests.simulation.checkers.given import Given, at, calm, created, event, of_schedule, told, z


def found(given: Given) -> list[str]:
    return told(catalog_first.check(given.evidence(), timedelta(seconds=1)))


def catalogued(*instants: str, transaction: int | None = None) -> Given:
    given = Given()
    for instant in instants:
        given.append(topics.CATALOG, event("catalog.changed"), now=instant, transaction=transaction)
    return given


def adopted(offset: int) -> dict[str, Any]:
    return event("catalog.adopted", offset=offset)


def test_a_calm_history_decides_with_what_is_there():
    assert found(calm()) == []


def test_what_was_adopted_before_and_what_came_later_may_be_unread():
    given = catalogued("12:00:01", "12:00:06")
    given.transaction("scheduler", "12:00:05", [adopted(0), created("12:00:05"), adopted(1)])
    assert found(given) == []


def test_a_change_that_was_there_when_an_occurrence_was_due_and_is_adopted_behind_it_is_found():
    given = catalogued("12:00:01", "12:00:03")
    given.transaction("scheduler", "12:00:05", [adopted(0), created("12:00:05")])
    given.transaction("scheduler", "12:00:06", [adopted(1)])
    said = "I22 scheduler-changelog-0@2: the catalog up to 1 came at 12:00:03.000000, unread when 12:00:05 was decided"
    assert found(given) == [said]
    assert said in told(evidence_first.check(given.evidence()))


def test_a_skip_is_a_decision_too():
    given = catalogued("12:00:03")
    skip = of_schedule("occurrence.skipped", nominal_time=z("12:00:05"), reason="paused")
    given.transaction("scheduler", "12:00:05", [skip, adopted(0)])
    assert len(found(given)) == 1


def test_a_change_is_there_when_its_transaction_has_ended():
    given = catalogued("12:00:03", transaction=7)
    given.transactions[7] = Transaction(
        transactional_id="scheduler-1", epoch=1, began_at=at("12:00:03"), outcome="committed", ended_at=at("12:00:05")
    )
    given.transaction("scheduler", "12:00:05", [created("12:00:05"), adopted(0)])
    assert found(given) == []


def test_what_was_given_up_is_no_change_that_anybody_could_read():
    given = catalogued("12:00:03", "12:00:06")
    place = TopicPartition(topics.CATALOG, 0)
    first, second = given.records[place]
    given.records[place] = [second]
    given.transaction("scheduler", "12:00:05", [created("12:00:05"), adopted(1)])
    found_ = catalog_first.check(given.evidence(aborted={place: (first,)}), timedelta(seconds=1))
    assert told(found_) == []
