"""I9: when faults stop, everything heals."""

from runtime.record import TopicPartition
from schemas import topics
from simulation.checkers import heals
from simulation.evidence import Transaction
from tests.simulation.checkers.given import at, calm, created, of_schedule, rested, run_created, run_taken, told, z


def found(given, **fields) -> list[str]:
    return told(heals.check(rested(given, **fields)))


def test_at_rest_all_is_done():
    assert found(calm()) == []
    assert heals.observed(rested(calm())) == 2


def test_a_run_without_a_phase_that_has_no_faults_proves_nothing():
    given = calm()
    run_created(given, created("12:00:15"), "12:00:15")
    assert found(given, faults_off_at=None) == []
    assert heals.observed(rested(given, faults_off_at=None)) == 0


def test_a_cluster_that_does_not_come_to_rest_is_found():
    assert found(calm(), rested_at=None) == [
        (
            "I9 the cluster: has not come to rest by 2026-03-01 12:00:13+00:00, without faults since "
            "2026-03-01 12:00:09+00:00"
        )
    ]


def test_a_partition_without_an_owner_is_found():
    assert found(calm(), owners={("scheduler", 0): None, ("dispatcher", 0): "node-2"}) == [
        "I9 scheduler-0: has no owner"
    ]


def test_a_partition_that_has_stopped_to_decide_is_found():
    assert found(calm(), rested_at=at("12:01:12")) == []
    assert found(calm(), rested_at=at("12:01:13")) == [
        "I9 scheduler-0: has decided until 2026-03-01T12:00:12Z, 0:01:01 ago",
        "I9 dispatcher-0: has decided until 2026-03-01T12:00:12Z, 0:01:01 ago",
    ]


def test_a_partition_that_never_committed_is_found():
    given = calm()
    given.records[TopicPartition(topics.changelog_topic("scheduler"), 1)] = []
    assert found(given) == ["I9 scheduler-1: has never committed anything"]


def test_an_input_that_was_not_read_is_found():
    given = calm()
    given.append(topics.ATTEMPTS, b"{}", now="12:00:12")
    assert found(given) == ["I9 attempts-0@1: has not been read by dispatcher-0, which is at 1"]


def test_what_came_after_the_rest_need_not_be_read():
    given = calm()
    given.append(topics.ATTEMPTS, b"{}", now="12:00:13")
    assert found(given) == []


def test_a_run_without_an_outcome_is_found():
    given = calm()
    run = created("12:00:15")
    run_created(given, run, "12:00:15")
    run_taken(given, run, 2, "12:00:15")
    assert found(given, rested_at=at("12:00:16")) == [
        "I9 run-events-0@10: acme: run s.20260301T120015Z of 12:00:15 has no outcome"
    ]


def test_an_occurrence_that_waits_when_nothing_holds_it_up_is_found():
    given = calm()
    waits = of_schedule("occurrence.deferred", version=1, reason="buffered", nominal_time=z("12:00:15"))
    given.transaction("scheduler", "12:00:15", [waits], [(topics.RUN_EVENTS, waits)])
    assert found(given) == ["I9 the cluster: 1 due occurrences are still buffered"]


def test_a_transaction_that_is_open_is_found():
    given = calm()
    given.transactions[1] = Transaction(
        transactional_id="scheduler.0", epoch=4, began_at=at("12:00:10"), outcome="open"
    )
    assert found(given) == ["I9 scheduler.0: a transaction of epoch 4 is open since 12:00:10"]
