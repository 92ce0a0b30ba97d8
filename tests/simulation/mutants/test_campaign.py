"""What is said of mutants: which were noticed, by what, and whether that is enough."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from simulation.mutants import campaign
from simulation.mutants.__main__ import Kept
from simulation.mutants.campaign import Campaign, Known, Outcome
from simulation.mutants.patching import DoesNotFit, Mutant
from simulation.mutants.trials import Run, Trial, Verdict, copied, judged, mutants


def outcome(name: str, *verdicts: Verdict) -> Outcome:
    trials = [
        Trial(verdict=verdict, profile="calm", seed=seed, seconds=10.0) for seed, verdict in enumerate(verdicts, 1)
    ]
    return Outcome(mutant=mutant(name), trials=tuple(trials))


RUNS = [("calm", 1), ("disks", 1), ("calm", 2)]


def test_a_run_without_failures_has_passed():
    assert judged(RUNS, b"[2.0,[]]\n[3.0,[]]\n[4.0,[]]\n", "", otherwise=Verdict.CRASHED) == (
        Trial(verdict=Verdict.PASSED, profile="calm", seed=1, seconds=2.0, invariants=(), said=""),
        Trial(verdict=Verdict.PASSED, profile="disks", seed=1, seconds=3.0, invariants=(), said=""),
        Trial(verdict=Verdict.PASSED, profile="calm", seed=2, seconds=4.0, invariants=(), said=""),
    )


def test_a_run_with_failures_is_the_last_and_is_told_with_its_invariants():
    out = (
        b'[2.0,[]]\n[2.0,["scheduler-0#1: partition.failed: AssertionError: impossible", "I9: not drained", '
        b'"checker: I2 runs-0@17: one is missing", "checker: I2 runs-0@18: another"]]\n'
    )

    trials = judged(RUNS, out, "", otherwise=Verdict.CRASHED)

    assert [trial.verdict for trial in trials] == [Verdict.PASSED, Verdict.CAUGHT]
    assert (trials[-1].profile, trials[-1].seed, trials[-1].invariants) == ("disks", 1, ("I9", "I2"))
    assert trials[-1].said == "scheduler-0#1: partition.failed: AssertionError: impossible"


def test_a_run_of_which_nothing_is_told_ended_the_process_or_did_not_end():
    err = "Traceback\n  ...\nAssertionError: impossible\n"

    trials = judged(RUNS, b"[2.0,[]]\n", err, otherwise=Verdict.CRASHED)

    assert [(trial.verdict, trial.profile) for trial in trials] == [
        (Verdict.PASSED, "calm"),
        (Verdict.CRASHED, "disks"),
    ]
    assert trials[-1].said == "AssertionError: impossible"


def tries(*verdicts: dict[Run, Verdict], unsound: frozenset[Run] = frozenset()) -> tuple[Campaign, list[list[Run]]]:
    """A campaign whose runs end as it is said here, and what was run on changed packages."""
    asked: list[list[Run]] = []

    @contextmanager
    def copied_(mutant: Mutant | None) -> Iterator[Path]:
        yield Path("plain" if mutant is None else "changed")

    def tried(root: Path, runs: Sequence[Run], timeout: float) -> list[Trial]:
        plain = root == Path("plain")
        ends = dict.fromkeys(unsound, Verdict.CAUGHT) if plain else {k: v for one in verdicts for k, v in one.items()}
        if not plain:
            asked.append([*runs])
            assert timeout == 50.0
        trials = []
        for profile, seed in runs:
            verdict = ends.get((profile, seed), Verdict.PASSED)
            trials.append(Trial(verdict=verdict, profile=profile, seed=seed, seconds=10.0))
            if verdict is not Verdict.PASSED:
                break
        return trials

    return Campaign(copied_, tried), asked


def ran(campaign_: Campaign, mutant: Mutant, known: Known) -> Outcome:
    told: list[Outcome] = []
    campaign_.run([mutant], range(1, 3), known, jobs=1, told=told.append)
    return told[0]


def mutant(name: str = "a", *, under: tuple[str, ...] = ("calm", "disks"), digest: str = "1") -> Mutant:
    return Mutant(
        name=name, group="restore", breaks="something", caught_by=("I1",), needs="", under=under, changes=(),
        digest=digest,
    )  # fmt: skip


def test_a_mutant_meets_each_of_its_profiles_before_a_seed_comes_again_and_no_more_once_it_is_noticed():
    trying, asked = tries({("disks", 2): Verdict.CAUGHT})

    outcome = ran(trying, mutant(), {})

    assert asked == [[("calm", 1), ("disks", 1)], [("calm", 2), ("disks", 2)]]
    assert outcome.noticed
    assert len(outcome.trials) == 4


def test_what_noticed_a_mutant_the_last_time_comes_first():
    trying, asked = tries({("clocks", 7): Verdict.CAUGHT})

    ran(trying, mutant(), {"a": {"profile": "clocks", "seed": 7}})

    assert asked == [[("clocks", 7)]]


def test_runs_that_the_unchanged_packages_do_not_pass_say_nothing_of_a_mutant():
    trying, asked = tries({("calm", 2): Verdict.CAUGHT}, unsound=frozenset({("calm", 1), ("disks", 1)}))

    outcome = ran(trying, mutant(), {})

    assert asked == [[("calm", 2), ("disks", 2)]]
    assert outcome.noticed
    assert {*trying.unsound} == {("calm", 1), ("disks", 1)}


def test_a_mutant_that_does_not_fit_is_not_tried_and_the_others_are():
    trying, asked = tries({("calm", 1): Verdict.CAUGHT})
    fits = trying.copied

    def copied_(mutant: Mutant | None) -> AbstractContextManager[Path]:
        if mutant is not None and mutant.name == "torn":
            raise DoesNotFit("its lines are gone")
        return fits(mutant)

    trying.copied = copied_
    told: list[Outcome] = []
    trying.run([mutant("torn"), mutant("a")], range(1, 2), {}, jobs=1, told=told.append)

    assert [(one.mutant.name, len(one.trials)) for one in told] == [("torn", 0), ("a", 1)]
    assert len(asked) == 1


def test_a_campaign_goes_on_with_who_was_never_tried_and_then_with_survivors():
    known: Known = {
        "caught": {"verdict": "caught", "patch": "1"},
        "changed": {"verdict": "caught", "patch": "2"},
        "hung": {"verdict": "hung", "patch": "1"},
        "survivor": {"verdict": "passed", "patch": "1"},
    }
    everybody = [mutant(name) for name in ("survivor", "caught", "changed", "hung", "new")]

    assert [one.name for one in campaign.left(everybody, known)] == ["changed", "new", "survivor"]


KNOWN: Known = {
    "a": {"group": "restore", "verdict": "caught", "seed": 2},
    "b": {"group": "restore", "verdict": "passed"},
    "c": {"group": "restore", "verdict": "crashed", "seed": 1},
    "gone": {"group": "restore", "verdict": "caught", "seed": 9},
}


def test_the_summary_counts_whatever_was_noticed_of_the_mutants_there_are_and_names_the_others():
    everybody = [mutant(name) for name in "abcd"]

    said = campaign.summary(everybody, KNOWN, commit="abc")

    assert {name: value for name, value in said.items() if name != "of"} == {
        "kind": "mutants",
        "commit": "abc",
        "seeds": [1, 2],
        "mutants": 4,
        "noticed": 2,
        "survived": ["b"],
        "untried": ["d"],
    }
    assert said["of"] == {name: KNOWN[name] for name in "abc"}
    assert campaign.share(said) == 0.5
    assert campaign.table(everybody, said) == [
        "restore                2 of   4",
        "all                    2 of   4, 50.0% noticed",
    ]


def test_the_result_of_a_mutant_says_which_seed_noticed_it_and_which_patch_it_was():
    assert campaign.result(outcome("a", Verdict.PASSED, Verdict.CAUGHT), commit="abc") == {
        "group": "restore",
        "patch": "1",
        "commit": "abc",
        "verdict": "caught",
        "seconds": 20.0,
        "runs": 2,
        "profile": "calm",
        "seed": 2,
        "invariants": [],
    }
    assert campaign.result(outcome("b", Verdict.PASSED)) == {
        "group": "restore",
        "patch": "1",
        "verdict": "passed",
        "seconds": 10.0,
        "runs": 1,
    }


def test_results_are_kept_in_a_file_from_which_a_later_campaign_goes_on(tmp_path):
    path = tmp_path / "mutants.jsonl"
    kept = Kept(path, [mutant("a"), mutant("b")])
    kept.read()
    kept.add(outcome("a", Verdict.CAUGHT))
    kept.add(Outcome(mutant=mutant("b"), trials=()))

    later = Kept(path, [mutant("a"), mutant("b")])
    later.read()

    assert later.known.keys() == {"a"}
    assert later.known["a"]["verdict"] == "caught"
    assert len(path.read_text().splitlines()) == 1


def test_a_copy_has_the_mutants_change_and_is_gone_afterwards():
    footer = next(each for each in mutants() if each.name == "footer-before-the-outputs")

    with copied(footer) as changed, copied(None) as plain:
        path = "runtime/transactions.py"
        assert (changed / path).read_text() != (plain / path).read_text()
        assert (changed / "runtime/restore.py").read_text() == (plain / "runtime/restore.py").read_text()
        assert (plain / "simulation/loop.py").exists()

    assert not changed.exists()
