"""What is said of mutants: which were noticed, by what, and whether that is enough."""

from simulation.mutants import campaign
from simulation.mutants.campaign import Outcome
from simulation.mutants.patching import Mutant
from simulation.mutants.trials import Trial, Verdict, copied, judged, mutants


def outcome(name: str, *verdicts: Verdict, group: str = "restore") -> Outcome:
    mutant = Mutant(
        name=name, group=group, breaks="something", caught_by=("I1",), needs="", under=("calm",), changes=()
    )
    trials = [
        Trial(verdict=verdict, profile="calm", seed=seed, seconds=10.0) for seed, verdict in enumerate(verdicts, 1)
    ]
    return Outcome(mutant=mutant, trials=tuple(trials))


RUNS = [("calm", 1), ("disks", 1), ("calm", 2)]


def test_a_run_without_failures_has_passed_and_runs_share_the_time_of_their_process():
    assert judged(RUNS, b"[]\n[]\n[]\n", "", otherwise=Verdict.CRASHED, seconds=6.0) == (
        Trial(verdict=Verdict.PASSED, profile="calm", seed=1, seconds=2.0, invariants=(), said=""),
        Trial(verdict=Verdict.PASSED, profile="disks", seed=1, seconds=2.0, invariants=(), said=""),
        Trial(verdict=Verdict.PASSED, profile="calm", seed=2, seconds=2.0, invariants=(), said=""),
    )


def test_a_run_with_failures_is_the_last_and_is_told_with_its_invariants():
    out = (
        b'[]\n["scheduler-0#1: partition.failed: AssertionError: impossible", "I9: not drained", '
        b'"checker: I2 runs-0@17: one is missing", "checker: I2 runs-0@18: another"]\n'
    )

    trials = judged(RUNS, out, "", otherwise=Verdict.CRASHED, seconds=6.0)

    assert [trial.verdict for trial in trials] == [Verdict.PASSED, Verdict.CAUGHT]
    assert (trials[-1].profile, trials[-1].seed, trials[-1].invariants) == ("disks", 1, ("I9", "I2"))
    assert trials[-1].said == "scheduler-0#1: partition.failed: AssertionError: impossible"


def test_a_run_of_which_nothing_is_told_ended_the_process_or_did_not_end():
    err = "Traceback\n  ...\nAssertionError: impossible\n"

    trials = judged(RUNS, b"[]\n", err, otherwise=Verdict.CRASHED, seconds=6.0)

    assert [(trial.verdict, trial.profile) for trial in trials] == [
        (Verdict.PASSED, "calm"),
        (Verdict.CRASHED, "disks"),
    ]
    assert trials[-1].said == "AssertionError: impossible"


def test_a_mutant_meets_each_of_its_profiles_before_a_seed_comes_again():
    assert campaign.runs(("calm", "disks"), (1, 2)) == [("calm", 1), ("disks", 1), ("calm", 2), ("disks", 2)]


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
            "a": {
                "group": "restore",
                "verdict": "caught",
                "seconds": 20.0,
                "profile": "calm",
                "seed": 2,
                "invariants": [],
            },
            "b": {"group": "restore", "verdict": "passed", "seconds": 20.0},
        },
    }


def test_a_changed_run_may_take_five_times_as_long_as_the_slowest_unchanged_one_and_never_less_than_a_minute():
    assert campaign.patience([Trial(verdict=Verdict.PASSED, profile="calm", seed=1, seconds=3.0)]) == 60.0
    assert campaign.patience([Trial(verdict=Verdict.PASSED, profile="calm", seed=1, seconds=40.0)]) == 200.0


def test_a_copy_has_the_mutants_change_and_is_gone_afterwards():
    mutant = next(mutant for mutant in mutants() if mutant.name == "footer-before-the-outputs")

    with copied(mutant) as changed, copied(None) as plain:
        path = "runtime/processor.py"
        assert (changed / path).read_text() != (plain / path).read_text()
        assert (changed / "runtime/restore.py").read_text() == (plain / "runtime/restore.py").read_text()
        assert (plain / "simulation/loop.py").exists()

    assert not changed.exists()
