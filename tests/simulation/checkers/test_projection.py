"""I13: the read model converges."""

from datetime import UTC, datetime
from typing import Any

from simulation.checkers import projection
from simulation.evidence import Evidence, Glimpse
from tests.simulation.checkers.given import told

ROWS = ({"run": "a", "state": "succeeded"}, {"run": "b", "state": "queued"})


def found(**fields) -> list[str]:
    return told(projection.check(Evidence(**fields)))


def test_rows_in_any_order_are_the_same_rows():
    evidence: dict[str, Any] = {"read_model": {"occurrences": ROWS}, "rebuilt": {"occurrences": ROWS[::-1]}}
    assert found(**evidence) == []
    assert projection.observed(Evidence(**evidence)) == 2


def test_without_a_read_model_made_anew_nothing_is_compared():
    assert found(read_model={"occurrences": ROWS}) == []
    assert projection.observed(Evidence(read_model={"occurrences": ROWS})) == 0


def test_a_row_that_differs_is_found_on_both_sides():
    other = ({"run": "a", "state": "succeeded"}, {"run": "b", "state": "running"})
    assert found(read_model={"occurrences": ROWS}, rebuilt={"occurrences": other}) == [
        'I13 read model, occurrences: a row is not there when made anew (one of 1): {"run":"b","state":"queued"}',
        'I13 read model, occurrences: a row is there only when made anew (one of 1): {"run":"b","state":"running"}',
    ]


def test_a_row_that_is_there_twice_is_found():
    assert found(read_model={"occurrences": (*ROWS, ROWS[0])}, rebuilt={"occurrences": ROWS}) == [
        'I13 read model, occurrences: a row is not there when made anew (one of 1): {"run":"a","state":"succeeded"}'
    ]


def test_a_version_that_goes_back_is_found():
    seen = [("occurrences", "a", 3), ("occurrences", "b", 1), ("occurrences", "a", 3), ("occurrences", "a", 2)]
    glimpses = tuple(Glimpse(table=table, key=key, version=version) for table, key, version in seen)
    assert found(glimpses=glimpses[:3]) == []
    assert found(glimpses=glimpses) == ["I13 read model, occurrences: a goes from version 3 back to 2"]


def test_a_worker_that_was_heard_of_an_hour_ago_may_be_in_one_and_not_in_the_other():
    """What is said of workers is kept for an hour, and the tombstone of one that ends alone brings no row back."""
    now = datetime(2026, 3, 2, 14, 0, tzinfo=UTC)
    old, young = ({"worker": name, "heard_at": 1_772_460_000_000 - ago} for name, ago in (("a", 3_600_000), ("b", 0)))
    assert found(ended_at=now, read_model={"workers": (old, young)}, rebuilt={"workers": (young,)}) == []
    assert found(ended_at=now, read_model={"workers": (old, young)}, rebuilt={"workers": (old,)}) == [
        'I13 read model, workers: a row is not there when made anew (one of 1): {"heard_at":1772460000000,"worker":"b"}'
    ]
