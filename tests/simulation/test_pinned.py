"""Clusters that once failed, each as it was found and made smaller; the row says what it brought to light."""

from __future__ import annotations

import pytest

from simulation.cluster.options import Options
from simulation.cluster.verdict import simulate

PINNED = [
    pytest.param(
        Options(
            seed=2006, hours=0.1, schedulers=3, dispatchers=2, workers=3, shard_partitions=3, batch_records=1,
            batch_facts=10, woken_keys=1, linger_seconds=0.5, session_seconds=20.0, quiet_workers=1.0,
            latency_seconds=0.0005, faults=dict.fromkeys(("H1", "H3", "H8", "H10", "A15", "A16"), 40.0),
        ),
        id="a silent worker with one lease left ended its partition when another took its name",
    ),
    pytest.param(
        Options(seed=3, hours=0.05, faults={"C1": 200.0, "C6": 100.0}),  # a small one of what seed 5003 had found
        id="the network delivered a commit twice without the client's asking, which nobody can doubt and no TCP does",
    ),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("options", PINNED)
def test_what_once_failed_holds(options: Options) -> None:
    assert simulate(options).failures == ()
