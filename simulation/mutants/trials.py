"""A mutant on trial: a copy of the packages with its change, and the simulation run on that copy."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
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
    """One run. `said` is the first thing that was noticed."""

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

    `timeout` is of one run; those that were quick leave theirs to the others.
    """
    began = time.monotonic()
    asked = "".join(profiles.options(profile, seed).line() + "\n" for profile, seed in runs)
    try:
        ended = subprocess.run(
            [sys.executable, "-m", "simulation.mutants.inside"], cwd=root, env=os.environ | {"PYTHONPATH": str(root)},
            input=asked.encode(), capture_output=True, timeout=timeout * len(runs), check=False,
        )  # fmt: skip
        out, err, how = ended.stdout, ended.stderr, Verdict.CRASHED
    except subprocess.TimeoutExpired as expired:
        out, err, how = expired.stdout or b"", b"it did not end", Verdict.HUNG
    return judged(runs, out, err.decode("utf-8", "replace"), otherwise=how, seconds=time.monotonic() - began)


def judged(runs: Sequence[Run], out: bytes, err: str, *, otherwise: Verdict, seconds: float) -> tuple[Trial, ...]:
    """What a process tells of its runs; `otherwise` is what became of one that has no line. They share the seconds."""
    told = [tuple(orjson.loads(line)) for line in out.splitlines()]
    share = seconds / max(1, len(told))
    trials = [_judged(failures, *run, seconds=share) for failures, run in zip(told, runs, strict=False)]
    if len(told) < len(runs) and not (trials and trials[-1].verdict is Verdict.CAUGHT):
        profile, seed = runs[len(told)]
        last = "".join(err.strip().splitlines()[-1:])
        trials.append(Trial(verdict=otherwise, profile=profile, seed=seed, seconds=share, said=last[:SAID_MAX]))
    return tuple(trials)


def _judged(failures: Sequence[str], profile: str, seed: int, *, seconds: float) -> Trial:
    if not failures:
        return Trial(verdict=Verdict.PASSED, profile=profile, seed=seed, seconds=seconds)
    by = dict.fromkeys(match[1] for failure in failures if (match := _INVARIANT.match(failure)))
    return Trial(
        verdict=Verdict.CAUGHT, profile=profile, seed=seed, seconds=seconds, invariants=tuple(by),
        said=failures[0][:SAID_MAX],
    )  # fmt: skip
