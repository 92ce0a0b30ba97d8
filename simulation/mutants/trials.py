"""A mutant on trial: a copy of the packages with its change, and the simulation run on that copy, seed by seed."""

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

from simulation.mutants.patching import Mutant, apply, read

ROOT = Path(__file__).parents[2]
PATCHES = Path(__file__).parent / "patches"
PACKAGES = ("api", "dispatcher", "node", "projections", "runtime", "scheduler", "schemas", "simulation")
PASSED, VIOLATED = 0, 1  # how `python -m simulation` ends; anything else is an error

SAID_MAX = 300  # characters of what was noticed first

_VIOLATION = re.compile(r"^\W*(I\d+) \S.*$", re.MULTILINE)


class Verdict(StrEnum):
    """How one run ended."""

    PASSED = "passed"  # nobody noticed anything
    CAUGHT = "caught"  # a checker objected
    CRASHED = "crashed"  # it ended by an error that no checker spoke of
    HUNG = "hung"  # it did not end in several times what an unchanged one takes


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """One run. `said` is the first thing that was noticed."""

    verdict: Verdict
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


def tried(root: Path, seeds: Iterable[int], *, timeout: float) -> Iterator[Trial]:
    """The simulation on the packages in a folder, one process a seed, up to the first one that does not pass."""
    for seed in seeds:
        trial = _run(root, seed, timeout)
        yield trial
        if trial.verdict is not Verdict.PASSED:
            return


def _run(root: Path, seed: int, timeout: float) -> Trial:
    began = time.monotonic()
    command = [sys.executable, "-m", "simulation", "--first", str(seed), "--seeds", "1"]
    environment = os.environ | {"PYTHONPATH": str(root)}
    try:
        ended = subprocess.run(  # noqa: S603 -- our own program, from a copy of it
            command, cwd=root, env=environment, capture_output=True, text=True, timeout=timeout, check=False
        )
    except subprocess.TimeoutExpired:
        return Trial(verdict=Verdict.HUNG, seed=seed, seconds=time.monotonic() - began)
    return judged(ended.returncode, ended.stdout, ended.stderr, seed=seed, seconds=time.monotonic() - began)


def judged(code: int, out: str, err: str, *, seed: int, seconds: float) -> Trial:
    """What a run that has ended tells."""
    if code == PASSED:
        return Trial(verdict=Verdict.PASSED, seed=seed, seconds=seconds)
    found = list(_VIOLATION.finditer(out))
    if code == VIOLATED and found:
        return Trial(
            verdict=Verdict.CAUGHT, seed=seed, seconds=seconds, said=found[0].group().strip()[:SAID_MAX],
            invariants=tuple(dict.fromkeys(match[1] for match in found)),
        )  # fmt: skip
    last = (err or out).strip().splitlines()[-1:]
    return Trial(verdict=Verdict.CRASHED, seed=seed, seconds=seconds, said="".join(last)[:SAID_MAX])
