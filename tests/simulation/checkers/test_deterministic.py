"""I10: one fold, one decision, ids that are functions of content."""

from schemas import topics
from simulation.checkers import deterministic
from tests.simulation.checkers.given import calm, created, event, finished, run_created, told, z

STATE = b"\0\3s/as"


def found(given) -> list[str]:
    return told(deterministic.check(given.evidence()))


def test_a_calm_history_is_a_function_of_its_log():
    given = calm()
    assert found(given) == []
    assert deterministic.observed(given.evidence()) == 27


def test_rows_of_a_torn_transaction_that_outlive_it_are_found():
    given = calm()
    run_created(given, created("12:00:15"), "12:00:15", rows={STATE: b"3"}, torn=True)
    run_created(given, created("12:00:15"), "12:00:15")
    assert found(given) == [
        "I10 scheduler-changelog-0@13: 1 rows of torn transactions outlive them: b'r\\x00\\x03s/as'"
    ]


def test_what_was_rolled_forward_writes_the_same_rows_again():
    given = calm()
    for torn in (True, False):
        run_created(given, created("12:00:15"), "12:00:15", rows={STATE: b"3"}, torn=torn)
    assert found(given) == []


def test_a_decision_that_is_made_again_otherwise_is_found():
    given = calm()
    run_created(given, created("12:00:15"), "12:00:15", torn=True)
    run_created(given, created("12:00:15", created_at=z("12:00:16")), "12:00:16")
    assert found(given) == [
        "I10 scheduler-changelog-0@11: transaction 5 is decided again, and otherwise than at scheduler-changelog-0@10"
    ]


def test_half_a_decision_sent_nothing_and_may_be_made_otherwise():
    given = calm()
    given.transaction("scheduler", "12:00:15", [created("12:00:15")], whole=False, torn=True)
    run_created(given, created("12:00:15", created_at=z("12:00:16")), "12:00:16")
    assert found(given) == []


def test_a_decision_that_names_another_tz_version_than_was_adopted_is_found():
    given = calm()
    run_created(given, created("12:00:15", tz_version="2026b"), "12:00:15")
    assert found(given) == [
        "I10 scheduler-changelog-0@10: run.created of s names tz 2026b, and 2026a is adopted",
    ]


def test_a_partition_that_goes_back_to_an_older_tz_version_is_found():
    given = calm()
    given.transaction("scheduler", "12:00:15", [event("tz.adopted", version="2025c")])
    assert found(given) == ["I10 scheduler-changelog-0@10: adopts tz 2025c after 2026a"]


def test_an_id_that_is_none_of_its_content_is_found():
    given = calm()
    given.append(topics.RUN_OUTCOMES, finished(id_="0123"), headers={"tw-seq": "dispatcher-0-6"})
    assert found(given) == ["I10 run-outcomes-0@2: the id of run.finished of acme/s is none of its content"]


def test_an_outcome_that_is_repeated_goes_by_its_first_id():
    given = calm()
    given.append(topics.RUN_OUTCOMES, finished(id_="0123", repeat=True), headers={"tw-seq": "dispatcher-0-6"})
    assert found(given) == []
