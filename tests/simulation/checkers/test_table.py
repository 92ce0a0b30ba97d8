"""The checkers as a whole: nothing is wrong with a calm history, and each of them has looked at it."""

from simulation.checkers import CHECKERS, Checker, judge
from simulation.evidence import Evidence, Place, Violation
from tests.simulation.checkers.given import calm, rested


def test_nothing_is_wrong_with_a_calm_history():
    assert judge(rested(calm())).violations == ()


def test_a_checker_that_sees_nothing_says_so():
    assert set(judge(Evidence()).observed.values()) == {0}


def test_a_violation_is_one_line_that_names_topic_partition_and_offset():
    violation = Violation(invariant="I1", what="is created twice", where=Place("tidewheel.runs", 3, 17))
    assert str(violation) == "I1 tidewheel.runs-3@17: is created twice"


def test_evidence_that_a_checker_cannot_read_is_a_violation_and_does_not_keep_the_others_from_judging():
    def trips(_evidence: Evidence) -> list[Violation]:
        raise KeyError("run_id")

    lame = Checker(id="I0", title="lame", check=trips, observed=lambda _: 1)
    found = judge(rested(calm()), [lame, *CHECKERS])
    assert [violation.what.partition(" in line")[0] for violation in found.violations] == [
        "cannot be judged: KeyError('run_id')"
    ]
    assert found.observed["I0"] == 0
    assert found.observed["I1"] == 4
