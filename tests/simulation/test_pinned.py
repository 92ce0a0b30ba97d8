"""Clusters that once failed, each as it was found and made smaller; the row says what it brought to light."""

from __future__ import annotations

import pytest

from simulation.cluster.options import Options
from simulation.cluster.verdict import simulate

# Transactions are left without an end all the time, and whoever sees to it is disturbed.
ENDS = {
    "A7": 30.0, "A10": 120.0, "A12": 30.0, "C1": 30.0, "C4": 60.0, "C5": 60.0, "C6": 30.0, "C7": 120.0, "D1": 20.0,
    "K1": 60.0,
}  # fmt: skip
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
    pytest.param(
        Options(
            seed=338, hours=0.25, schedulers=1, dispatchers=2, workers=3, schedule_partitions=2, shard_partitions=3,
            batch_records=20, batch_facts=1, woken_keys=4, linger_seconds=0.0, session_seconds=20.0,
            latency_seconds=0.01, situations={"kept": 141.51, "rests": 1.0, "paced": 19.01},
            faults={
                "A2": 13.37, "A3": 18.31, "A5": 14.7, "A6": 12.08, "A7": 7.66, "A12": 19.98, "A15": 31.29, "A16": 22.81,
                "B2": 5.13, "C2": 19.64, "C4": 37.02, "C5": 31.86, "C7": 24.0, "C9": 5.53, "D1": 15.23, "D4": 10.27,
                "D8": 3.59, "F1": 20.24, "F2": 11.29, "F3": 79.16, "F4": 45.27, "F5": 33.37, "F8": 36.06, "G2": 33.28,
                "G9": 3.11, "H7": 1.0, "H10": 59.28, "K1": 35.84, "K4": 19.16, "J3": 24.17,
            },
        ),
        id="an owner lost the brokers while it ended what hung, and its successor aborted what had been promised",
    ),
    pytest.param(
        Options(
            seed=357, hours=0.25, schedulers=3, dispatchers=3, projectors=2, schedule_partitions=4, batch_records=1,
            ahead_records=5, ahead_bytes=10_000, woken_keys=4, steps_per_key=4, linger_seconds=0.0,
            session_seconds=20.0, latency_seconds=0.0005,
            situations={"cadence": 1.0, "strays": 48.85, "rests": 1.0, "shards": 18.41, "moments": 172.57},
            faults={
                "A2": 10.1, "A8": 8.9, "A9": 22.35, "A10": 15.89, "A12": 5.89, "A14": 8.72, "A16": 19.33, "B1": 7.7,
                "B7": 1.92, "C7": 24.0, "C8": 29.94, "D1": 9.94, "D2": 21.79, "E4": 13.99, "F1": 66.56, "F3": 53.36,
                "F4": 75.03, "F8": 32.56, "G1": 15.35, "G3": 1.0, "G9": 3.96, "H3": 45.8, "J2": 8.37, "B9": 23.68,
                "F9": 78.61,
            },
        ),
        id="a worker that one shard had lost was blamed for the run that another one handed it",
    ),
    pytest.param(
        Options(
            seed=4, hours=0.1, schedulers=3, projectors=2, workers=3, shard_partitions=4, batch_records=20,
            ahead_records=1, ahead_bytes=10_000, woken_keys=4, linger_seconds=0.5, latency_seconds=0.01, faults=ENDS,
        ),
        id="an owner that doubted its commit went on, and its abort took what had hung without its knowing",
    ),
    pytest.param(
        Options(
            seed=9, hours=0.1, schedulers=3, projectors=2, workers=5, shard_partitions=4, batch_facts=1,
            ahead_records=1, ahead_bytes=10_000, woken_keys=4, steps_per_key=1, linger_seconds=0.0,
            session_seconds=20.0, latency_seconds=0.0005, faults=ENDS,
        ),
        id="only positions of the group were left without an end, and whoever asked for them waited for ever",
    ),
    pytest.param(
        Options(
            seed=102, hours=0.1, schedulers=2, dispatchers=2, projectors=2, workers=4, batch_records=1, batch_facts=1,
            ahead_records=1, woken_keys=4, steps_per_key=1, linger_seconds=0.0, session_seconds=20.0,
            latency_seconds=0.0005, faults=ENDS,
        ),
        id="what had hung was ended by the next commit, and its outputs never, in a partition written to no more",
    ),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("options", PINNED)
def test_what_once_failed_holds(options: Options) -> None:
    assert simulate(options).failures == ()
