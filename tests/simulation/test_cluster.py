"""Whole clusters under seeded faults: nothing is lost or doubled while they last, and all drains when they are over."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

from simulation.cluster import options
from simulation.cluster.verdict import simulate

HOURS = 0.1  # six virtual minutes of faults, and some to drain: a slice; `make sim` runs whole hours
SEEDS = range(1, 21)


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_every_invariant_holds_under_the_faults_of_a_seed(seed: int) -> None:
    outcome = simulate(options.draw(seed, hours=HOURS))
    assert outcome.failures == (), f"again: python -m simulation --options '{outcome.options.line()}'"


def test_a_calm_cluster_does_its_work() -> None:
    """Six minutes without a fault: each checker that can have seen something has, and nothing is wrong."""
    outcome = simulate(options.calm(1, hours=HOURS))
    assert outcome.failures == ()
    assert outcome.runs > 15
    seen = {id_ for id_, observed in outcome.observed.items() if observed}
    assert seen >= {"I1", "I2", "I3", "I4", "I5", "I6", "I7", "I8", "I9", "I10", "I12", "I13", "I15", "I18", "I19"}


@pytest.mark.slow
def test_a_seed_has_one_history_in_every_process() -> None:
    """Two processes that hash texts differently commit the same bytes, everywhere."""
    assert _digest("1") == _digest("2")


def _digest(hash_seed: str) -> str:
    command = [sys.executable, "-m", "simulation", "--seed", "8", "--hours", "0.05"]
    environment = os.environ | {"PYTHONHASHSEED": hash_seed}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300, check=False)
    found = re.search(r"^digest: (\w{32})$", done.stdout, flags=re.MULTILINE)
    assert found is not None, done.stdout[-2000:] + done.stderr
    return found[1]
