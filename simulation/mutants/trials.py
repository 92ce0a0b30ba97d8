"""A mutant on trial: a copy of the packages with its change, and the simulation run on that copy."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory

import orjson

from simulation.mutants import profiles
from simulation.mutants.patching import Mutant, apply, read

ROOT = Path(__file__).parents[2]
PATCHES = Path(__file__).parent / "patches"
PACKAGES = ("api", "dispatcher", "node", "projections", "runtime", "scheduler", "schemas", "simulation")
SAID_MAX = 300  # characters of what was noticed first
BUSY = 20  # times as long as it computes a run may take on a machine that has much else to do

Run = tuple[str, int]  # a profile and a seed

_INVARIANT = re.compile(r"^(?:checker: )?(I\d+)\b")


class Verdict(StrEnum):
    """How one run ended."""

    PASSED = "passed"  # nobody noticed anything
    CAUGHT = "caught"  # a checker objected, or a part of the cluster ended by an error that no fault excuses
    CRASHED = "crashed"  # the simulation itself ended by an error
    HUNG = "hung"  # it did not end in several times what an unchanged one takes


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One run. `said` is the first thing that was noticed, `seconds` what it computed."""

    verdict: Verdict
    profile: str
    seed: int
    seconds: float
    invariants: tuple[str, ...] = ()
    said: str = ""


def mutants() -> list[Mutant]:
    """All there are, by name."""
    return [read(path) for path in sorted(PATCHES.glob("*.patch"))]


@contextmanager
def copied(mutant: Mutant | None) -> Iterator[Path]:
    """A folder with the packages, changed by the mutant; it is gone afterwards."""
    with TemporaryDirectory(prefix="tidewheel-mutant-") as folder:
        root = Path(folder)
        for package in PACKAGES:
            shutil.copytree(ROOT / package, root / package, ignore=shutil.ignore_patterns("patches"))
        if mutant is not None:
            apply(mutant, root)
        yield root


def tried(root: Path, runs: Sequence[Run], timeout: float) -> tuple[Trial, ...]:
    """The simulation on the packages in a folder, for each profile and seed up to the first that fails.

    A run that computes for longer than `timeout` is said to hang, and so is one that waits for ever.
    """
    asked = "".join(profiles.options(profile, seed).line() + "\n" for profile, seed in runs)
    try:
        ended = subprocess.run(  # noqa: S603 -- our own module, and a number
            [sys.executable, "-m", "simulation.mutants.inside", str(timeout)], cwd=root,
            env=os.environ | {"PYTHONPATH": str(root)}, input=asked.encode(), capture_output=True,
            timeout=BUSY * timeout * len(runs), check=False,
        )  # fmt: skip
        out, err, hung = ended.stdout, ended.stderr.decode("utf-8", "replace"), ended.returncode == -signal.SIGXCPU
    except subprocess.TimeoutExpired as expired:
        out, err, hung = expired.stdout or b"", "", True
    return judged(runs, out, "it did not end" if hung else err, otherwise=Verdict.HUNG if hung else Verdict.CRASHED)


def judged(runs: Sequence[Run], out: bytes, err: str, *, otherwise: Verdict) -> tuple[Trial, ...]:
    """What a process tells of its runs; `otherwise` is what became of one that has no line."""
    told = [tuple(orjson.loads(line)) for line in out.splitlines()]
    trials = [_judged(failures, *run, seconds=seconds) for (seconds, failures), run in zip(told, runs, strict=False)]
    if len(told) < len(runs) and not (trials and trials[-1].verdict is Verdict.CAUGHT):
        profile, seed = runs[len(told)]
        last = "".join(err.strip().splitlines()[-1:])
        trials.append(Trial(verdict=otherwise, profile=profile, seed=seed, seconds=0.0, said=last[:SAID_MAX]))
    return tuple(trials)


def _judged(failures: Sequence[str], profile: str, seed: int, *, seconds: float) -> Trial:
    if not failures:
        return Trial(verdict=Verdict.PASSED, profile=profile, seed=seed, seconds=seconds)
    by = dict.fromkeys(match[1] for failure in failures if (match := _INVARIANT.match(failure)))
    return Trial(
        verdict=Verdict.CAUGHT, profile=profile, seed=seed, seconds=seconds, invariants=tuple(by),
        said=failures[0][:SAID_MAX],
    )  # fmt: skip
