"""What is said of mutants: which were noticed, by what, and whether that is enough."""

from simulation.mutants import campaign
from simulation.mutants.campaign import Outcome
from simulation.mutants.patching import Mutant
from simulation.mutants.trials import Trial, Verdict, copied, judged, mutants


def outcome(name: str, *verdicts: Verdict, group: str = "restore") -> Outcome:
    mutant = Mutant(name=name, group=group, breaks="something", caught_by=("I1",), needs="", changes=())
    trials = [Trial(verdict=verdict, seed=seed, seconds=10.0) for seed, verdict in enumerate(verdicts, 1)]
    return Outcome(mutant=mutant, trials=tuple(trials))


def test_a_run_that_passes_has_noticed_nothing():
    assert judged(0, "seed 7: fine\n", "", seed=7, seconds=1.5) == Trial(
        verdict=Verdict.PASSED, seed=7, seconds=1.5, invariants=(), said=""
    )


def test_a_violation_is_told_with_its_invariant_and_the_first_one_in_its_words():
    out = "seed 7\n  I2 runs-0@17: one is missing\n  I2 runs-0@18: another\n  I13 rows: differ\n"

    trial = judged(1, out, "", seed=7, seconds=1.5)

    assert trial.verdict is Verdict.CAUGHT
    assert trial.invariants == ("I2", "I13")
    assert trial.said == "I2 runs-0@17: one is missing"


def test_an_error_that_no_checker_spoke_of_is_told_by_its_last_line():
    trial = judged(1, "seed 7\n", "Traceback\n  ...\nAssertionError: impossible\n", seed=7, seconds=1.5)

    assert (trial.verdict, trial.said) == (Verdict.CRASHED, "AssertionError: impossible")


def test_the_share_counts_whatever_was_noticed():
    outcomes = [
        outcome("a", Verdict.PASSED, Verdict.CAUGHT),
        outcome("b", Verdict.PASSED, Verdict.PASSED),
        outcome("c", Verdict.CRASHED),
        outcome("d", Verdict.HUNG),
    ]

    assert campaign.share(outcomes) == 0.75
    assert campaign.table(outcomes) == [
        "restore                3 of   4",
        "all                    3 of   4, 75.0% noticed",
    ]


def test_the_result_names_the_survivors_and_the_seed_that_noticed_each_other_one():
    outcomes = [outcome("a", Verdict.PASSED, Verdict.CAUGHT), outcome("b", Verdict.PASSED, Verdict.PASSED)]

    assert campaign.result(outcomes, range(1, 3), commit="abc") == {
        "kind": "mutants",
        "commit": "abc",
        "seeds": [1, 2],
        "mutants": 2,
        "noticed": 1,
        "survived": ["b"],
        "of": {
            "a": {"group": "restore", "verdict": "caught", "seconds": 20.0, "seed": 2, "invariants": []},
            "b": {"group": "restore", "verdict": "passed", "seconds": 20.0},
        },
    }


def test_a_changed_run_may_take_five_times_as_long_as_the_slowest_unchanged_one_and_never_less_than_a_minute():
    assert campaign.patience([Trial(verdict=Verdict.PASSED, seed=1, seconds=3.0)]) == 60.0
    assert campaign.patience([Trial(verdict=Verdict.PASSED, seed=1, seconds=40.0)]) == 200.0


def test_a_copy_has_the_mutants_change_and_is_gone_afterwards():
    mutant = next(mutant for mutant in mutants() if mutant.name == "footer-before-the-outputs")

    with copied(mutant) as changed, copied(None) as plain:
        path = "runtime/processor.py"
        assert (changed / path).read_text() != (plain / path).read_text()
        assert (changed / "runtime/restore.py").read_text() == (plain / "runtime/restore.py").read_text()
        assert (plain / "simulation/loop.py").exists()

    assert not changed.exists()
