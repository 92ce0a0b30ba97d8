"""A storm over workers alone, on a real broker: they are killed and frozen at random while they work.

The judge compares what the topics say with what the tasks have noted of themselves, and with the database that they
write to. `make storm-workers RUNS=5000 SEED=3` is the whole; CI runs a short one.
"""

from __future__ import annotations

import logging
import os
import random
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from node.audit.source import LogSource
from tests.storm import executions
from tests.storm.blows import Blow, Blows
from tests.storm.chronicle import Chronicle
from tests.storm.fleet import TIDEWHEEL, Fleet, Member
from tests.storm.judge import Counts, Evidence, Freeze, Kill, counts, faults
from tests.storm.traffic import Watch, event, publish

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from deploy.kafka.broker import Cluster

RUNS = int(os.environ.get("STORM_RUNS", "150"))
SEED = int(os.environ.get("STORM_SEED", "1"))
IS_SHORT = RUNS < 1000
SECONDS_MAX = 3 if IS_SHORT else 30  # of a run
LEASE = "PT4S" if IS_SHORT else "PT10S"
WORKERS = 4 if IS_SHORT else 8
SLOTS = 20 if IS_SHORT else 60
SCHEDULES = 10 if IS_SHORT else 50  # half of them for each kind of task
EVERY_SECONDS = 1.2 if IS_SHORT else 3.5  # between two blows
FROZEN_SHARE = 0.4
FROZEN_SECONDS = (1.0, 8.0) if IS_SHORT else (1.0, 25.0)  # some end before the lease does, some behind it
# So many at least; and on a machine so busy that workers hardly come to work between them, no more than what a short
# storm is about.
BLOWS_MIN, BLOWS_MAX = 10, 25 if IS_SHORT else 10_000
UNTIL = 0.9  # of all runs; then it is calm, so that the rest can end
GIVE_UP_SECONDS = 90 if IS_SHORT else 1800
FAULTS_SHOWN = 50
NAMESPACE = "storm-workers."
PARTITIONS = 2
# One process for all owners: who they are and how they die is the other storm's affair.
ROLES = {"scheduler,dispatcher": 1}


@pytest.fixture
def fleet(own_broker: Cluster, tmp_path: Path) -> Iterator[Fleet]:
    (tmp_path / "ledger").mkdir()
    executions.create_database(tmp_path / "user.sqlite")
    fleet = Fleet(
        tmp_path, own_broker.bootstrap, namespace=NAMESPACE, roles=ROLES, workers=0, slots=SLOTS, partitions=PARTITIONS
    )  # fmt: skip
    fleet.workers = [worker(tmp_path, number, own_broker.bootstrap, fleet.url) for number in range(WORKERS)]
    yield fleet
    fleet.stop()


def worker(folder: Path, number: int, bootstrap: str, url: str) -> Member:
    """Every other one speaks HTTP, the others to Kafka."""
    name = f"worker-{number}"
    reaches = ["--bootstrap", bootstrap, "--namespace", NAMESPACE] if number % 2 else ["--url", url]
    command = [TIDEWHEEL, "worker", "tests.storm.worker_tasks:worker", "--slots", str(SLOTS), *reaches]
    environment = {
        "STORM_MEMBER": name, "STORM_LEDGER": str(folder / "ledger"), "STORM_DATABASE": str(folder / "user.sqlite"),
        "STORM_SECONDS_MAX": str(SECONDS_MAX),
    }  # fmt: skip
    return Member(name, command, folder / f"{name}.log", environment)


@pytest.mark.timeout(0)
def test_workers_that_die_or_stand_still_leave_no_run_and_no_execution_unexplained(
    own_broker: Cluster, fleet: Fleet, tmp_path: Path
) -> None:
    """Every run has one outcome; each call of a task is an attempt, a duplicate, or died with its worker; and nothing
    stale is written where a fencing token is looked at.
    """
    fleet.start()
    log = fleet.log()
    first = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=2)
    puts = [event("schedule.put", number, definition(number, first)) for number in range(SCHEDULES)]
    publish(own_broker.bootstrap, NAMESPACE, puts)
    blows = Blows(
        fleet, own_broker, random.Random(SEED), every=EVERY_SECONDS, spares_brokers=True, members=fleet.workers,
        frozen_share=FROZEN_SHARE, frozen_seconds=FROZEN_SECONDS,
    )  # fmt: skip
    with Watch(log, schedules=SCHEDULES, partitions=PARTITIONS) as watch:
        gives_up_at = datetime.now(UTC) + timedelta(seconds=GIVE_UP_SECONDS)
        while goes_on(watch.finished, len(blows.given)) and datetime.now(UTC) < gives_up_at:
            blows.once()
        blows.end()
        ended = watch.wait_for_count(RUNS, within=GIVE_UP_SECONDS)
    assert ended, fleet.said()
    fleet.stop()
    evidence = evidence_of(Chronicle(LogSource(log)), blows.given, tmp_path)
    found = counts(evidence)
    logging.getLogger(__name__).warning(told(found))  # shown with `--log-cli-level=WARNING`, as `make` does
    assert faults(evidence)[:FAULTS_SHOWN] == [], told(found)
    assert (found.runs, sum(found.outcomes.values())) == (RUNS, RUNS)
    assert min(found.kills, found.freezes) > 0, told(found)
    assert IS_SHORT or min(found.stale_refused, found.duplicates) > 0, f"it proves nothing: {told(found)}"


def goes_on(finished: int, given: int) -> bool:
    """Whether there is to be another blow."""
    return given < BLOWS_MIN or (finished < RUNS * UNTIL and given < BLOWS_MAX)


def definition(number: int, first: datetime) -> dict[str, Any]:
    """Due every second until it has had its share of the runs."""
    runs = RUNS // SCHEDULES + (number < RUNS % SCHEDULES)
    kind = "coroutine" if number % 2 else "thread"
    retry = {"max_attempts": 100, "initial": "PT1S", "max": "PT5S"}
    return {
        "trigger": {"every": "PT1S", "anchor": first.isoformat(), "max_runs": runs},
        "overlap": {"policy": "allow_all"},
        "catch_up": {"policy": "all", "limit": 10_000},
        "job": {"target": {"type": "task", "name": f"storm.{kind}"}, "lease": LEASE, "retry": retry},
    }


def evidence_of(chronicle: Chronicle, given: Sequence[Blow], folder: Path) -> Evidence:
    """What there is to judge by."""
    return Evidence(
        created=chronicle.created,
        finishes=chronicle.finishes,
        attempts=chronicle.attempts,
        duplicates=chronicle.duplicates,
        executions=executions.executions(folder / "ledger"),
        kills=[Kill(worker=each.member, pid=each.pid, at=each.until.timestamp()) for each in given if each.is_kill],
        freezes=[
            Freeze(worker=each.member, pid=each.pid, since=each.since.timestamp(), until=each.until.timestamp())
            for each in given
            if not each.is_kill
        ],
        writes=executions.writes(folder / "user.sqlite"),
    )


def told(found: Counts) -> str:
    """For people."""
    return f"seed {SEED}: " + ", ".join(f"{name} {value}" for name, value in found._asdict().items())
