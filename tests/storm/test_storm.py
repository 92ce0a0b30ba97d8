"""Kill storms on a real broker, or on three: the judge is the audit, which reads nothing but the topics.

How long and how hard is set from outside (`make storm MINUTES=20 SCHEDULES=500 KILL_EVERY=2 BROKERS=3`); CI runs a
short one. A long storm in which less than half of the calm rate is created proves nothing, and fails for it.
"""

from __future__ import annotations

import logging
import os
import random
import signal
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from node.audit import audit
from node.audit.source import LogSource
from tests.storm.blows import Blows
from tests.storm.fleet import Fleet
from tests.storm.results import PROGRESS, Result, broken, idle, line_of
from tests.storm.traffic import Watch, definition, event, publish

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deploy.kafka.broker import Cluster

MINUTES = float(os.environ.get("STORM_MINUTES", "0.5"))
SCHEDULES = int(os.environ.get("STORM_SCHEDULES", "40"))
# By this one a short storm kills one of each role, and freezes owners of each for longer than their session lasts.
SEED = int(os.environ.get("STORM_SEED", "2529"))
KILL_EVERY = float(os.environ.get("STORM_KILL_EVERY", "2.8"))
BROKERS = int(os.environ.get("STORM_BROKERS", "1"))
# A short storm shares its machine with other tests: it looks at safety, and allows for a machine that is busy.
IS_SHORT = MINUTES < 2
RESULTS = os.environ.get("STORM_RESULTS")  # a file to which each storm adds a line
# Of a long storm the calm rate is what its own is measured by, so it is let come to its full height.
LEAD_SECONDS, CALM_SECONDS = (8, 6) if IS_SHORT else (20, 15)
SETTLE_SECONDS = 180 if IS_SHORT else 60
GIVE_UP_SECONDS = 900  # what is open then is told
NAMESPACE = "storm."
PARTITIONS = 4
STOPPED = {0, -signal.SIGTERM}  # who was only just started again may end before it can listen
ROLES = {"scheduler": 2, "dispatcher": 2, "projector": 2}


@pytest.fixture
def cluster(request: pytest.FixtureRequest) -> Cluster:
    """One broker or three."""
    cluster: Cluster = request.getfixturevalue("own_broker" if BROKERS == 1 else "three_brokers")
    return cluster


@pytest.fixture
def fleet(cluster: Cluster, tmp_path: Path) -> Iterator[Fleet]:
    fleet = Fleet(
        tmp_path, cluster.bootstrap, namespace=NAMESPACE, roles=ROLES, workers=4, slots=SCHEDULES,
        partitions=PARTITIONS,
    )  # fmt: skip
    yield fleet
    fleet.stop()


@pytest.mark.timeout(0)
def test_kills_freezes_and_brokers_that_die_lose_and_double_nothing(cluster: Cluster, fleet: Fleet) -> None:
    """Two schedulers, two dispatchers, two projectors, four workers, an API: a random one is killed or frozen every few
    seconds, in a long storm brokers too. Nothing is missing, nothing is doubled, and soon every run has its outcome.
    """
    fleet.start()
    log = fleet.log()
    first = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=LEAD_SECONDS)
    storm = first + timedelta(seconds=CALM_SECONDS)
    end = storm + timedelta(minutes=MINUTES)
    publish(cluster.bootstrap, NAMESPACE, [event("schedule.put", n, definition(first)) for n in range(SCHEDULES)])
    blows = Blows(fleet, cluster, random.Random(SEED), every=KILL_EVERY, spares_brokers=IS_SHORT)
    with Watch(log, schedules=SCHEDULES, partitions=PARTITIONS) as watch:
        wait_until(storm)
        blows.until(end)
        publish(cluster.bootstrap, NAMESPACE, [event("schedule.pause", number) for number in range(SCHEDULES)])
        settled = watch.wait_for_outcomes(fleet.revive, within=GIVE_UP_SECONDS)
    for member in fleet.owners:
        member.ask_to_stop()
    for member in fleet.owners:
        assert member.wait(60) in STOPPED, member.name
    found = audit(LogSource(log)).as_json()
    created = watch.created_between
    result = Result(
        at=datetime.now(UTC).isoformat(timespec="seconds"), seed=SEED, minutes=MINUTES, schedules=SCHEDULES,
        brokers=BROKERS, kill_every=KILL_EVERY, blows=dict(blows.struck), due=found["due"], created=found["created"],
        skipped=sum(found["skipped"].values()), missing=found["missing"], duplicated=found["duplicated"],
        double_outcomes=found["double_outcomes"], open_runs=found["open_runs"], calm_rate=created(first, storm),
        storm_rate=created(storm, end), settled_seconds=settled,
    )  # fmt: skip
    told = line_of(result)
    logging.getLogger(__name__).warning(told.strip())  # shown with `--log-cli-level=WARNING`, as `make storm` does
    if RESULTS:
        with Path(RESULTS).open("a", encoding="utf-8") as results:
            results.write(told)
    assert broken(result) == "", told
    assert idle(result, progress=0.1 if IS_SHORT else PROGRESS) == "", told
    assert result.settled_seconds <= SETTLE_SECONDS, told


def wait_until(instant: datetime) -> None:
    threading.Event().wait(max(0.0, (instant - datetime.now(UTC)).total_seconds()))
