"""Every adapter that keeps the promises of the log port; a test that takes `log` runs once for each."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.clock import SystemClock
from runtime.log import Log
from runtime.logs.embedded import EmbeddedLog
from runtime.logs.kafka.log import KafkaLog
from runtime.logs.kafka.settings import KafkaSettings
from runtime.logs.simulated import SimulatedLog
from tests.runtime.logs.words import IN_PROCESS, SPECS, HandClock


@pytest.fixture
def clock() -> HandClock:
    """The clock of a log in this process; the brokers have their own."""
    return HandClock()


@pytest.fixture(params=[*IN_PROCESS, pytest.param("kafka", marks=pytest.mark.slow)])
def empty_log(request: pytest.FixtureRequest, tmp_path: Path, clock: HandClock) -> Iterator[Log]:
    """A log without topics."""
    kind, _, seed = request.param.partition(" ")
    if kind == "kafka":
        prefix, bootstrap = request.getfixturevalue("topic_prefix"), request.getfixturevalue("broker")
        settings = KafkaSettings(bootstrap=bootstrap, namespace=prefix, replication_factor=1, min_insync_replicas=1)
        log: Log = KafkaLog(settings, SystemClock())
    else:
        log = EmbeddedLog(tmp_path / "log", clock) if kind == "embedded" else SimulatedLog(int(seed), clock)
    yield log
    log.close()


@pytest.fixture
def log(empty_log: Log) -> Log:
    """A log with the topics of these tests."""
    empty_log.create(SPECS)
    return empty_log
