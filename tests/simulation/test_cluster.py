"""Whole clusters under seeded faults: nothing is lost or doubled while they last, and all drains when they are over."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from simulation.cluster import options
from simulation.cluster.verdict import simulate
from simulation.cluster.world import World

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


def test_of_a_run_that_is_over_nothing_is_kept() -> None:
    """Thousands of seeds pass through one process of a campaign, and an hour of one holds some eighty megabytes."""
    before = _worlds()
    assert simulate(options.draw(8, hours=0.05)).turns > 0
    assert [world for world in _worlds() if world not in before] == []


def _worlds() -> list[World]:
    return [found for found in gc.get_objects() if type(found) is World]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_seeds_have_one_history_in_every_process() -> None:
    """Two processes that hash texts differently take the same turns and commit the same bytes, everywhere."""
    with _simulating("1") as one, _simulating("2") as other:
        first, second = _told(one), _told(other)
    assert len(first) == len(MANY_FAULTS)
    assert first == second


MANY_FAULTS = ("6", "7", "8")  # 19, 30 and 38 of them; two of these seeds had two histories while a set gave an order
SIMULATE = """
import sys
from simulation.cluster import options
from simulation.cluster.verdict import simulate
for seed in sys.argv[1:]:
    outcome = simulate(options.draw(int(seed), hours=0.05))
    print(seed, outcome.digest, outcome.turns, outcome.requests)
"""


@contextmanager
def _simulating(hash_seed: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", SIMULATE, *MANY_FAULTS]
    environment = os.environ | {"PYTHONHASHSEED": hash_seed}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def _told(process: subprocess.Popen[str]) -> list[str]:
    told, error = process.communicate()
    assert process.returncode == 0, error
    return told.splitlines()
