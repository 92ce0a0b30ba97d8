"""Simulated workers: they say less than real ones, and lose nothing by it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from simulation.cluster import options
from simulation.cluster.verdict import simulate
from simulation.cluster.worker import QuietHoldings
from tests.sdk.test_holdings import hand_out


@pytest.mark.parametrize(
    ("lease", "times", "seconds"),
    [
        ("PT10S", 1.0, 10 / 3),  # the SDK's own
        ("PT10S", 2.0, 5.0),  # twice as long would be at 6.7 s, when a worker stops for want of an acknowledgement
        ("PT20S", 2.0, 10.0),  # it stops at 13.3 s
        ("PT30S", 2.0, 13.5),
    ],
)
def test_a_quiet_worker_reports_before_it_would_lose_its_lease(lease: str, times: float, seconds: float) -> None:
    holdings = QuietHoldings(worker="w1", tasks=("it",), now=100.0, incarnation="me", times=times)
    holdings.take(0, [hand_out(1, lease_duration=lease)], 100.0)
    assert holdings.interval_seconds() == pytest.approx(seconds)
    assert 100.0 + holdings.interval_seconds() < holdings.fenced_at()


def test_a_quiet_worker_without_a_lease_is_as_quiet_as_its_owner_allows() -> None:
    holdings = QuietHoldings(worker="w1", tasks=("it",), now=100.0, incarnation="me", times=2.0)
    assert holdings.interval_seconds() == pytest.approx(13.5)


def test_a_quiet_worker_leaves_nothing_to_others_that_came_in_time() -> None:
    """It says little, and still knows what the SDK would: when its inbox held nothing that it had not read."""
    outcome = simulate(replace(options.calm(1, hours=0.05), situations={"overtime": 1.0}))
    assert outcome.failures == ()
    assert [line for line in outcome.story if "to others" in line] == []
