"""Every adapter that keeps the promises of the log port; a test that takes `log` runs once for each."""

from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest

from runtime.clock import SystemClock
from runtime.log import Log
from runtime.logs.embedded import EmbeddedLog
from runtime.logs.kafka.log import KafkaLog
from runtime.logs.kafka.settings import KafkaSettings
from runtime.logs.lending import Lender
from runtime.logs.lent import LentLog
from runtime.logs.line import Line, pair
from runtime.logs.simulated import SimulatedLog
from tests.runtime.logs.words import DEADLINE, IN_PROCESS, SPECS, HandClock

LINES = 8  # more than there are threads in a test


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
    elif kind == "lent":
        yield from lent(EmbeddedLog(tmp_path / "log", clock))
        return
    else:
        log = EmbeddedLog(tmp_path / "log", clock) if kind == "embedded" else SimulatedLog(int(seed), clock)
    yield log
    log.close()


@pytest.fixture
def log(empty_log: Log) -> Log:
    """A log with the topics of these tests."""
    empty_log.create(SPECS)
    return empty_log


def lent(held: EmbeddedLog) -> Iterator[LentLog]:
    """A log of this process, lent to itself."""
    ours, theirs = zip(*(pair() for _ in range(LINES)), strict=True)
    lender = Thread(target=Lender(held, lambda _word: None).serve, args=(ours,), daemon=True)
    lender.start()
    log = LentLog([*map(Line, theirs)])
    yield log
    log.close()
    lender.join(DEADLINE)
    assert not lender.is_alive(), "who lends goes on after the borrower has ended"
    held.close()
