"""What a seed draws, and how what it drew is made smaller."""

from __future__ import annotations

from simulation.cluster import options
from simulation.cluster.options import FAULTS, TRIED_APART, Options
from simulation.cluster.shrinking import shrink


def test_a_seed_draws_the_same_options_every_time() -> None:
    assert options.draw(7) == options.draw(7)


def test_seeds_differ_in_their_faults() -> None:
    """A hundred seeds know every fault that seeds draw, and none of them has all."""
    drawn = [set(options.draw(seed).faults) for seed in range(100)]
    assert set.union(*drawn) == set(FAULTS) - TRIED_APART
    assert max(map(len, drawn)) < len(FAULTS)


def test_options_are_read_back_from_the_line_they_are_printed_as() -> None:
    drawn = options.draw(3, hours=0.5)
    assert options.read(drawn.line()) == drawn


def test_every_fault_can_be_switched_off_alone() -> None:
    drawn = options.draw(5)
    for fault in drawn.faults:
        assert set(drawn.without(fault).faults) == set(drawn.faults) - {fault}


def test_a_failure_shrinks_to_what_it_needs() -> None:
    """Planted: a cluster fails when a bit flips while processes are killed, in the first six minutes."""
    large = Options(
        seed=1, schedulers=3, dispatchers=2, projectors=2, workers=4, schedule_partitions=4, shard_partitions=3,
        faults=dict.fromkeys(FAULTS, 2.0),
    )  # fmt: skip

    def fails(tried: Options) -> bool:
        return tried.has("D2") and tried.has("K1") and tried.hours >= 0.1

    smallest = shrink(large, fails, lambda _line: None)
    assert set(smallest.faults) == {"D2", "K1"}
    assert smallest.hours == 0.1
    assert (smallest.schedulers, smallest.dispatchers, smallest.workers) == (1, 1, 1)
