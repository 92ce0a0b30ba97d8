"""Every adapter that keeps the promises of the log port; a test that takes `log` runs once for each."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.log import Log
from runtime.logs.embedded import EmbeddedLog
from runtime.logs.simulated import SimulatedLog
from tests.runtime.logs.words import SPECS, HandClock


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture(params=["embedded", "simulated 1", "simulated 2"])
def empty_log(request: pytest.FixtureRequest, tmp_path: Path, clock: HandClock) -> Iterator[Log]:
    """A log without topics."""
    kind, _, seed = request.param.partition(" ")
    log: Log = EmbeddedLog(tmp_path / "log", clock) if kind == "embedded" else SimulatedLog(int(seed), clock)
    yield log
    log.close()


@pytest.fixture
def log(empty_log: Log) -> Log:
    """A log with the topics of these tests."""
    empty_log.create(SPECS)
    return empty_log
