"""What holds for every test: which are slow, and how properties are searched."""

import os
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Fixtures for the whole tree.
pytest_plugins = ["tests.support.kafka"]

TESTS = Path(__file__).parent
# Folders whose tests start processes, live through hours of simulated time or try many inputs: not in `make check`.
SLOW = {"acceptance", "fuzz", "kill", "simulation", "storm", "upgrade", "zones"}

# No deadline and no complaint about slowness: a busy machine refutes no property.
# CI searches the same examples every time, so that what lands does not depend on luck; people search new ones.
settings.register_profile(
    "tidewheel",
    deadline=None,
    derandomize="CI" in os.environ,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("tidewheel")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what lives in a slow folder, and begin with it: at the end a long test would keep one worker idle."""
    if shared := [id_ for id_, count in Counter(item.nodeid for item in items).items() if count > 1]:
        raise pytest.UsageError(f"workers tell tests by their ids, and would run one of those with the id {shared[0]}")
    for item in items:
        if SLOW & set(item.path.relative_to(TESTS).parts):
            item.add_marker(pytest.mark.slow)
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)
