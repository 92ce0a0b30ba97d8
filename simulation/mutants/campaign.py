"""All mutants on trial, and what is said of them together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from simulation.mutants.patching import Mutant
from simulation.mutants.trials import Trial, Verdict, copied, tried

SHARE_MIN = 0.95  # of mutants that must be noticed: what is below it is not tested but run
SLOWER = 5  # times as long as the slowest unchanged run: then a mutant is said to hang
SECONDS_MIN = 60.0  # an unchanged run may be quick on a machine that is busy a moment later


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one mutant: the last of its trials says it."""

    mutant: Mutant
    trials: tuple[Trial, ...]

    @property
    def last(self) -> Trial:
        """The run that noticed it, or the last one that did not."""
        return self.trials[-1]

    @property
    def noticed(self) -> bool:
        """Whether anything was wrong on some seed."""
        return self.last.verdict is not Verdict.PASSED

    @property
    def seconds(self) -> float:
        """What it took."""
        return sum(trial.seconds for trial in self.trials)


def unchanged(mutants: Sequence[Mutant], seeds: Sequence[int], *, timeout: float) -> tuple[Trial, ...]:
    """The packages as they are, under all that the mutants will meet; the last one tells whether all passed."""
    under = dict.fromkeys(profile for mutant in mutants for profile in mutant.under)
    with copied(None) as root:
        return tried(root, runs(under, seeds), timeout=timeout)


def runs(under: Iterable[str], seeds: Sequence[int]) -> list[tuple[str, int]]:
    """Every seed once under each profile, before a seed comes again."""
    profiles = tuple(under)
    return [(profile, seed) for seed in seeds for profile in profiles]


def run(
    mutants: Sequence[Mutant], seeds: Sequence[int], *, jobs: int, timeout: float, told: Callable[[Outcome], None]
) -> list[Outcome]:
    """Try all mutants, a few at a time; each is told of when it is through."""

    def one(mutant: Mutant) -> Outcome:
        with copied(mutant) as root:
            trials = tried(root, runs(mutant.under, seeds), timeout=timeout)
            outcome = Outcome(mutant=mutant, trials=trials)
        told(outcome)
        return outcome

    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(one, mutants))


def patience(trials: Sequence[Trial]) -> float:
    """How long a changed run may take, given unchanged ones."""
    return max(SECONDS_MIN, SLOWER * max(trial.seconds for trial in trials))


def share(outcomes: Sequence[Outcome]) -> float:
    """Which part of the mutants was noticed."""
    return sum(outcome.noticed for outcome in outcomes) / len(outcomes)


def line(outcome: Outcome) -> str:
    """A mutant in one line."""
    last, name = outcome.last, f"{outcome.mutant.name:44}"
    if not outcome.noticed:
        return f"{name} SURVIVED  {len(outcome.trials)} runs, {outcome.seconds:.0f} s: {outcome.mutant.breaks}"
    what = f"{' '.join(last.invariants)} {last.said}".strip()
    return f"{name} {last.verdict:9} {last.profile} {last.seed}, {outcome.seconds:.0f} s: {what:.150}"


def table(outcomes: Sequence[Outcome]) -> list[str]:
    """Group by group, and all together."""
    of_group, noticed = Counter[str](), Counter[str]()
    for outcome in outcomes:
        of_group[outcome.mutant.group] += 1
        noticed[outcome.mutant.group] += outcome.noticed
    lines = [f"{group:20} {noticed[group]:3} of {count:3}" for group, count in of_group.items()]
    return [*lines, f"{'all':20} {noticed.total():3} of {of_group.total():3}, {share(outcomes):.1%} noticed"]


def result(outcomes: Sequence[Outcome], seeds: Sequence[int], **about: Any) -> dict[str, Any]:
    """The campaign as one line of a file."""
    return {
        "kind": "mutants",
        **about,
        "seeds": [seeds[0], seeds[-1]],
        "mutants": len(outcomes),
        "noticed": sum(outcome.noticed for outcome in outcomes),
        "survived": [outcome.mutant.name for outcome in outcomes if not outcome.noticed],
        "of": {outcome.mutant.name: _result(outcome) for outcome in outcomes},
    }


def _result(outcome: Outcome) -> dict[str, Any]:
    last = outcome.last
    said = {"group": outcome.mutant.group, "verdict": last.verdict.value, "seconds": round(outcome.seconds, 1)}
    return (
        said
        if not outcome.noticed
        else said | {"profile": last.profile, "seed": last.seed, "invariants": list(last.invariants)}
    )
