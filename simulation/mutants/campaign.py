"""All mutants on trial, in slices: what is known of each stays in one file, and a later slice goes on from there.

A mutant is tried seed by seed, each seed under all its profiles, until something is noticed. What noticed it the last
time comes first. A run counts only if the unchanged packages pass it; they are asked once for each run there is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from simulation.mutants.patching import DoesNotFit, Mutant
from simulation.mutants.trials import Run, Trial, Verdict

SHARE_MIN = 0.95  # of mutants that must be noticed: what is below it is not tested but run
SLOWER = 5  # times as long as the slowest unchanged run: then a mutant is said to hang
SECONDS_MIN = 30.0  # of computing: a mutant may do much more than the packages without hanging
SECONDS_MAX = 300.0  # of an unchanged run: what is slower is no test that anybody runs

Known = dict[str, dict[str, Any]]  # the newest result of each mutant, by its name
Copied = Callable[[Mutant | None], AbstractContextManager[Path]]
Tried = Callable[[Path, Sequence[Run], float], Sequence[Trial]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one mutant: the last of its trials says it. None: it does not fit, or no run passes without it."""

    mutant: Mutant
    trials: tuple[Trial, ...]

    @property
    def last(self) -> Trial:
        """The run that noticed it, or the last one that did not."""
        return self.trials[-1]

    @property
    def noticed(self) -> bool:
        """Whether anything was wrong on some seed."""
        return bool(self.trials) and self.last.verdict is not Verdict.PASSED

    @property
    def seconds(self) -> float:
        """What they computed."""
        return sum(trial.seconds for trial in self.trials)


@dataclass(slots=True)
class Campaign:
    """Tries mutants. `copied` and `tried` are how (see `trials`); `told` hears each outcome at once."""

    copied: Copied
    tried: Tried
    unsound: dict[Run, Trial] = field(default_factory=dict)  # runs that the unchanged packages do not pass
    _plain: dict[Run, Trial] = field(default_factory=dict)

    def run(
        self, mutants: Sequence[Mutant], seeds: Sequence[int], known: Known, *, jobs: int,
        told: Callable[[Outcome], None],
    ) -> None:  # fmt: skip
        """Try all mutants, a few at a time."""

        def one(mutant: Mutant) -> None:
            try:
                told(self._outcome(mutant, [*waves(mutant, seeds, known.get(mutant.name, {}))]))
            except DoesNotFit:  # The others can be tried all the same; a test says where it does not.
                told(Outcome(mutant=mutant, trials=()))

        with ThreadPoolExecutor(jobs) as pool:
            for _ in pool.map(one, mutants):
                pass  # An error of one comes out here.

    def _outcome(self, mutant: Mutant, all_waves: Sequence[Sequence[Run]]) -> Outcome:
        trials: list[Trial] = []
        with self.copied(mutant) as root:
            for wave in all_waves:
                sound = self._sound(wave)
                trials += self.tried(root, sound, self._patience(sound)) if sound else ()
                if trials and trials[-1].verdict is not Verdict.PASSED:
                    break
        return Outcome(mutant=mutant, trials=tuple(trials))

    def _sound(self, wave: Sequence[Run]) -> list[Run]:
        """Those that the unchanged packages pass. Two that ask at once may both look: the answer is the same."""
        left = [run for run in wave if run not in self._plain]
        while left:  # A process ends with its first failure; the others of the wave are asked in another one.
            with self.copied(None) as root:
                trials = self.tried(root, left, SECONDS_MAX)
            for trial in trials:
                self._plain[trial.profile, trial.seed] = trial
            left = left[len(trials) :]
        self.unsound |= {run: self._plain[run] for run in wave if self._plain[run].verdict is not Verdict.PASSED}
        return [run for run in wave if run not in self.unsound]

    def _patience(self, wave: Sequence[Run]) -> float:
        """How long a changed run may take, given unchanged ones."""
        return max(SECONDS_MIN, SLOWER * max(self._plain[run].seconds for run in wave))


def waves(mutant: Mutant, seeds: Sequence[int], known: Mapping[str, Any]) -> Iterator[list[Run]]:
    """What noticed the mutant before, then each seed under each of its profiles, the likeliest first."""
    first: Run | None = (known["profile"], known["seed"]) if "profile" in known else None
    if first is not None:
        yield [first]
    for seed in seeds:
        if rest := [(profile, seed) for profile in mutant.under if (profile, seed) != first]:
            yield rest


def left(mutants: Sequence[Mutant], known: Known) -> list[Mutant]:
    """Those to be tried: who was never tried, then survivors; not who was noticed, unless its patch is another now."""
    same = {mutant.name for mutant in mutants if known.get(mutant.name, {}).get("patch") == mutant.digest}
    noticed = {name for name in same if known[name]["verdict"] != Verdict.PASSED}
    return sorted((mutant for mutant in mutants if mutant.name not in noticed), key=lambda mutant: mutant.name in same)


def line(outcome: Outcome) -> str:
    """A mutant in one line."""
    name = f"{outcome.mutant.name:44}"
    if not outcome.trials:
        return f"{name} UNTRIED   it does not fit, or the packages pass none of its runs as they are"
    last = outcome.last
    if not outcome.noticed:
        return f"{name} SURVIVED  {len(outcome.trials)} runs, {outcome.seconds:.0f} s: {outcome.mutant.breaks}"
    what = f"{' '.join(last.invariants)} {last.said}".strip()
    return f"{name} {last.verdict:9} {last.profile} {last.seed}, {outcome.seconds:.0f} s: {what:.150}"


def result(outcome: Outcome, **about: Any) -> dict[str, Any]:
    """What is kept of a mutant. `about`: when it was tried, and on which commit."""
    last = outcome.last
    said = {
        "group": outcome.mutant.group, "patch": outcome.mutant.digest, **about, "verdict": last.verdict.value,
        "seconds": round(outcome.seconds, 1), "runs": len(outcome.trials),
    }  # fmt: skip
    if not outcome.noticed:
        return said
    return said | {"profile": last.profile, "seed": last.seed, "invariants": list(last.invariants)}


def summary(mutants: Sequence[Mutant], known: Known, **about: Any) -> dict[str, Any]:
    """The campaign as it stands, as one line of a file. What was not tried yet counts as not noticed."""
    of = {mutant.name: known[mutant.name] for mutant in mutants if mutant.name in known}
    noticed = {name for name, said in of.items() if said["verdict"] != Verdict.PASSED}
    seeds = [said["seed"] for said in of.values() if "seed" in said]
    return {
        "kind": "mutants",
        **about,
        "seeds": [min(seeds, default=0), max(seeds, default=0)],
        "mutants": len(mutants),
        "noticed": len(noticed),
        "survived": sorted(of.keys() - noticed),
        "untried": sorted({mutant.name for mutant in mutants} - of.keys()),
        "of": of,
    }


def share(said: Mapping[str, Any]) -> float:
    """Which part of the mutants was noticed, given a summary."""
    return float(said["noticed"] / said["mutants"])


def table(mutants: Sequence[Mutant], said: Mapping[str, Any]) -> list[str]:
    """Group by group, and all together."""
    of_group = Counter(mutant.group for mutant in mutants)
    noticed = Counter(one["group"] for one in said["of"].values() if one["verdict"] != Verdict.PASSED)
    lines = [f"{group:20} {noticed[group]:3} of {count:3}" for group, count in of_group.items()]
    return [*lines, f"{'all':20} {said['noticed']:3} of {said['mutants']:3}, {share(said):.1%} noticed"]
