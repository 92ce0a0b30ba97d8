"""I4: state is the fold of the log."""

from typing import Any

from runtime.record import TopicPartition
from schemas import topics
from simulation.checkers import state_is_fold
from tests.simulation.checkers.given import calm, rested, store, told

STATE, OTHER = b"\0\3s/as", b"\0\3s/bs"


def found(given, *stores, **fields) -> list[str]:
    return told(state_is_fold.check(rested(given, stores=stores, **fields)))


def test_a_store_that_is_the_fold_of_its_changelog_is_right():
    assert [*state_is_fold.check(rested(calm()))] == []
    assert state_is_fold.observed(rested(calm())) == 2


def test_a_store_that_is_behind_is_right_as_of_its_offset():
    given = calm()
    behind = store(given, "scheduler", {STATE: b"2"})
    given.transaction("scheduler", "12:00:15", (), (), {STATE: b"3"})
    assert found(given, behind) == []


def test_a_row_that_differs_is_missing_or_too_much_is_found():
    given = calm()
    for rows, key in (({STATE: b"1"}, "s/a"), ({}, "s/a"), ({STATE: b"2", OTHER: b"1"}, "s/b")):
        assert found(given, store(given, "scheduler", rows)) == [
            (
                "I4 store of scheduler-0 on node-1: 1 rows are not what the changelog up to 10 folds to: "
                f"b'r\\x00\\x03{key}s'"
            )
        ]


def test_a_row_that_was_deleted_is_gone():
    given = calm()
    given.transaction("scheduler", "12:00:15", (), (), {STATE: None})
    assert found(given, store(given, "scheduler", {})) == []


def test_rows_of_a_torn_transaction_are_no_state():
    given = calm()
    given.transaction("scheduler", "12:00:15", (), (), {STATE: b"3"}, torn=True)
    given.transaction("scheduler", "12:00:16", [{"type": "x", "id": "1", "data": {}}])
    assert found(given, store(given, "scheduler", {STATE: b"2"})) == []
    assert len(found(given, store(given, "scheduler", {STATE: b"3"}))) == 1


def test_a_store_that_was_left_on_its_way_may_have_later_rows_but_no_others():
    given = calm()
    left = store(given, "scheduler", {STATE: b"3"}, owned=False)
    other = store(given, "scheduler", {STATE: b"4"}, owned=False)
    given.transaction("scheduler", "12:00:15", (), (), {STATE: b"3"})
    assert found(given, left) == []
    assert len(found(given, other)) == 1


def test_a_store_that_was_left_is_not_judged_where_disks_are_tampered_with():
    given = calm()
    rows = {STATE: b"4"}
    left, owned = store(given, "scheduler", rows, owned=False), store(given, "scheduler", rows)
    assert found(given, left, faults=frozenset({"D4"})) == []
    assert len(found(given, owned, faults=frozenset({"D4"}))) == 1


def test_a_footer_that_is_not_the_last_one_is_found():
    given = calm()
    before = store(given, "scheduler", {STATE: b"2"})
    given.transaction("scheduler", "12:00:15")
    after = store(given, "scheduler", {STATE: b"2"})
    mixed = [
        (key, value.replace(b'"sequence":5', b'"sequence":4') if key == b"m" else value) for key, value in after.entries
    ]
    assert found(given, before) == []
    assert found(given, store(given, "scheduler", {STATE: b"2"}, entries=tuple(mixed))) == [
        "I4 store of scheduler-0 on node-1: its footer is that of transaction 4, where 5 is the last before 11"
    ]


def test_a_digest_of_other_rows_is_found_where_it_is_first_said():
    given = calm()
    # of one row, b"r\0\3s/as" with the value b"2"
    right, wrong = "5fcd8b150a4e9263fa5d3df11c905cbd", "00000000000000000000000000000000"
    given.transaction("scheduler", "12:00:15", digest=right)
    assert found(given) == []
    assert state_is_fold.observed(rested(given)) == 3
    given.transaction("scheduler", "12:00:16", (), (), {STATE: None}, digest=wrong)
    assert found(given) == []
    for now in ("12:00:17", "12:00:18"):
        given.transaction("scheduler", now, (), (), {STATE: b"3"}, digest=right)
    assert found(given) == [
        "I4 scheduler-changelog-0@14: transaction 7 says that it leaves other rows than the log folds to"
    ]


def test_a_wakeup_that_stands_in_no_index_is_found():
    given = calm()
    whole = store(given, "scheduler", {STATE: b"2"})
    noon, never = b"\0\0\1\x9c\xa9E\n\0", b"\xff" * 8
    indexed = (*whole.entries, (b"ks/a", noon + never), (b"w" + noon + b"s/a", b""))
    forgotten = (*whole.entries, (b"ks/a", never + noon), (b"w" + noon + b"s/a", b""))
    assert found(given, store(given, "scheduler", {}, entries=indexed)) == []
    assert found(given, store(given, "scheduler", {}, entries=forgotten)) == [
        "I4 store of scheduler-0 on node-1: the key b's/a' wants to be asked, and stands in no index"
    ]


def test_a_position_that_goes_back_is_found():
    given = calm()
    first = [{"topic": topics.RUNS, "partition": 0, "offset": 1, "topic_id": "1"}]
    given.transaction("dispatcher", "12:00:15", positions=first)
    assert found(given, positions={}) == [
        "I4 dispatcher-changelog-0@12: the position goes from 2 back to 1 in tidewheel.runs-0".replace("tidewheel.", "")
    ]


def test_a_strand_that_goes_back_is_found_and_one_that_its_position_has_passed_is_not():
    given = calm()

    def at(offset: int, strands: dict[str, int]) -> list[dict[str, Any]]:
        return [{"topic": topics.RUNS, "partition": 0, "offset": offset, "topic_id": "1", "strands": strands}]

    given.transaction("dispatcher", "12:00:15", positions=at(2, {"574": 9, "762": 5}))
    given.transaction("dispatcher", "12:00:16", positions=at(5, {"574": 9}))
    assert found(given, positions={}) == []
    given.transaction("dispatcher", "12:00:17", positions=at(6, {}))
    assert found(given, positions={}) == [
        "I4 dispatcher-changelog-0@14: strand 574 goes from 9 back to 6 in tidewheel.runs-0".replace("tidewheel.", "")
    ]


def test_a_group_that_is_elsewhere_than_the_last_footer_is_found_when_all_is_at_rest():
    given = calm()
    positions = rested(given).positions
    moved = {**positions["dispatcher"], TopicPartition(topics.RUNS, 0): 1}
    evidence = rested(given, positions={"dispatcher": moved})
    assert told(state_is_fold.check(evidence)) == ["I4 runs-0: group dispatcher is at 1; its last footer says [2]"]
    assert told(state_is_fold.check(rested(given, positions={"dispatcher": moved}, rested_at=None))) == []
