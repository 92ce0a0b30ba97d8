"""A mutant on trial: a copy of the packages with its change, and the simulation run on that copy."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from simulation.mutants import profiles
from simulation.mutants.patching import Mutant, apply, read

ROOT = Path(__file__).parents[2]
PATCHES = Path(__file__).parent / "patches"
PACKAGES = ("api", "dispatcher", "node", "projections", "runtime", "scheduler", "schemas", "simulation")
PASSED, VIOLATED = 0, 1  # how `python -m simulation` ends; anything else is an error

SAID_MAX = 300  # characters of what was noticed first

_FAILURES = re.compile(r"^seed \d+ failed: .*\n((?:  .*\n)+)", re.MULTILINE)
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
            shutil.copytree(ROOT / package, root / package, ignore=shutil.ignore_patterns("mutants"))
        if mutant is not None:
            apply(mutant, root)
        yield root


def tried(root: Path, runs: Iterable[tuple[str, int]], *, timeout: float) -> Iterator[Trial]:
    """The simulation on the packages in a folder, one process for a profile and a seed, up to the first that fails."""
    for profile, seed in runs:
        trial = _run(root, profile, seed, timeout)
        yield trial
        if trial.verdict is not Verdict.PASSED:
            return


def _run(root: Path, profile: str, seed: int, timeout: float) -> Trial:
    began = time.monotonic()
    command = [sys.executable, "-m", "simulation", "--options", profiles.options(profile, seed).line()]
    environment = os.environ | {"PYTHONPATH": str(root)}
    about: dict[str, Any] = {"profile": profile, "seed": seed}
    try:
        ended = subprocess.run(  # noqa: S603 -- our own program, from a copy of it
            command, cwd=root, env=environment, capture_output=True, text=True, timeout=timeout, check=False
        )
    except subprocess.TimeoutExpired:
        return Trial(verdict=Verdict.HUNG, seconds=time.monotonic() - began, **about)
    return judged(ended.returncode, ended.stdout, ended.stderr, seconds=time.monotonic() - began, **about)


def judged(code: int, out: str, err: str, *, profile: str, seed: int, seconds: float) -> Trial:
    """What a run that has ended tells."""
    about: dict[str, Any] = {"profile": profile, "seed": seed, "seconds": seconds}
    if code == PASSED:
        return Trial(verdict=Verdict.PASSED, **about)
    found = _FAILURES.search(out)
    if code == VIOLATED and found is not None:
        failures = [line.strip() for line in found[1].splitlines()]
        by = [match[1] for failure in failures if (match := _INVARIANT.match(failure))]
        return Trial(
            verdict=Verdict.CAUGHT, said=failures[0][:SAID_MAX], invariants=tuple(dict.fromkeys(by)), **about
        )  # fmt: skip
    last = (err or out).strip().splitlines()[-1:]
    return Trial(verdict=Verdict.CRASHED, said="".join(last)[:SAID_MAX], **about)
