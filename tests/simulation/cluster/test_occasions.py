"""What situations bring about over time, in a few minutes of a whole cluster."""

from __future__ import annotations

import pytest

from simulation.cluster.options import Options
from simulation.cluster.verdict import simulate

OFTEN = 240.0  # an hour: every 15 s


@pytest.mark.slow
def test_situations_come_about_and_every_invariant_holds_in_them() -> None:
    """Six minutes; the judges of secrets and of what was looked at have something to look at."""
    situations = dict.fromkeys(("cancels", "jobs", "kept", "namesakes", "strays"), OFTEN) | {"owed": 20.0}
    outcome = simulate(Options(seed=3, hours=0.1, schedulers=2, situations=situations))
    assert outcome.failures == ()
    assert outcome.faults.keys() == situations.keys()
    assert outcome.observed["I17"] > 0


@pytest.mark.slow
def test_a_role_that_grows_and_shrinks_leaves_nobody_behind() -> None:
    outcome = simulate(Options(seed=4, hours=0.1, faults={"B10": 60.0, "B5": 20.0}))
    assert outcome.failures == ()
    assert outcome.faults.keys() == {"B5", "B10"}


@pytest.mark.slow
def test_a_flood_of_one_tenant_is_answered_once_whoever_dies_in_the_middle_of_it() -> None:
    """Three records a batch, slow owners: most die with something answered behind the position."""
    faults = {"K1": 120.0, "K4": 120.0}
    outcome = simulate(Options(seed=2, hours=0.1, batch_records=3, faults=faults, situations={"floods": OFTEN / 2}))
    assert outcome.failures == ()
    assert outcome.faults.keys() == {"K1", "K4", "floods"}
