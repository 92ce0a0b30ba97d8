"""Kill storms on a real broker: the judge is the audit, which reads nothing but the topics.

How long and how hard is set from outside (`make storm MINUTES=20 SCHEDULES=500`); CI runs a short one. A long storm in
which less than half of the calm rate is created proves nothing, and fails for it.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import random
import threading
import time
from collections import Counter
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import orjson
import pytest
from confluent_kafka import Producer

from node.audit import audit
from node.audit.source import LogSource
from runtime.log import LogError
from runtime.logs.kafka.log import KafkaLog
from runtime.record import TopicPartition
from schemas import topics
from tests.storm.fleet import Fleet, Member

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from deploy.kafka.broker import Cluster
    from runtime.record import Record

MINUTES = float(os.environ.get("STORM_MINUTES", "0.75"))
SCHEDULES = int(os.environ.get("STORM_SCHEDULES", "40"))
SEED = int(os.environ.get("STORM_SEED", "1"))
# A short storm shares its machine with other tests: it looks at safety, and allows for a machine that is busy.
IS_SHORT = MINUTES < 2
RESULTS = os.environ.get("STORM_RESULTS")  # a file to which each storm adds a line
CALM_SECONDS = 15
BETWEEN_SECONDS = (2.0, 5.0)  # from one blow to the next
FROZEN_SECONDS = (1.0, 14.0)  # a session lasts six
SETTLE_SECONDS = 180 if IS_SHORT else 60
GIVE_UP_SECONDS = 900  # what is open then is told
PROGRESS = 0.1 if IS_SHORT else 0.5  # of the calm rate
NAMESPACE = "storm."
PARTITIONS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a storm found."""

    at: str
    seed: int
    minutes: float
    schedules: int
    blows: dict[str, int]
    due: int
    created: int
    missing: int
    duplicated: int
    double_outcomes: int
    open_runs: int
    calm_rate: float
    storm_rate: float
    settled_seconds: float


@pytest.fixture
def fleet(own_broker: Cluster, tmp_path: Path) -> Iterator[Fleet]:
    roles = {"scheduler": 2, "dispatcher": 2, "projector": 2}
    fleet = Fleet(tmp_path, own_broker.bootstrap, namespace=NAMESPACE, roles=roles, workers=4, slots=SCHEDULES)
    yield fleet
    fleet.stop()


@pytest.mark.timeout(0)
def test_kills_freezes_and_a_broker_that_dies_lose_and_double_nothing(own_broker: Cluster, fleet: Fleet) -> None:
    """Two schedulers, two dispatchers, two projectors, four workers: a random one is killed or frozen every few
    seconds, in a long storm the broker too. Nothing is missing, nothing is doubled, and soon every run has its outcome.
    """
    fleet.start()
    log = fleet.log()
    first = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=20)
    storm = first + timedelta(seconds=CALM_SECONDS)
    end = storm + timedelta(minutes=MINUTES)
    publish(own_broker.bootstrap, [event("schedule.put", number, definition(first)) for number in range(SCHEDULES)])
    blows = Blows(fleet, own_broker, random.Random(SEED))
    with Watch(log) as watch:
        wait_until(storm)
        blows.until(end)
        publish(own_broker.bootstrap, [event("schedule.pause", number) for number in range(SCHEDULES)])
        settled = watch.wait_for_outcomes(fleet)
    for member in fleet.owners:
        member.ask_to_stop()
    for member in fleet.owners:
        assert member.wait(60) == 0, member.name
    found = audit(LogSource(log)).as_json()
    created = watch.created_between
    result = Result(
        at=datetime.now(UTC).isoformat(timespec="seconds"), seed=SEED, minutes=MINUTES, schedules=SCHEDULES,
        blows=dict(blows.struck), due=found["due"], created=found["created"], missing=found["missing"],
        duplicated=found["duplicated"], double_outcomes=found["double_outcomes"], open_runs=found["open_runs"],
        calm_rate=created(first, storm), storm_rate=created(storm, end), settled_seconds=settled,
    )  # fmt: skip
    told = json.dumps(asdict(result))
    logging.getLogger(__name__).warning(told)  # shown with `--log-cli-level=WARNING`, as `make storm` does
    if RESULTS:
        with Path(RESULTS).open("a", encoding="utf-8") as results:
            results.write(told + "\n")
    assert (result.missing, result.duplicated, result.double_outcomes, result.open_runs) == (0, 0, 0, 0), told
    assert result.due == result.created + sum(found["skipped"].values()), told
    assert result.storm_rate >= result.calm_rate * PROGRESS, f"too little was created for a proof: {told}"
    assert result.settled_seconds <= SETTLE_SECONDS, told


def publish(bootstrap: str, events: Sequence[dict[str, Any]]) -> None:
    """As any upstream system does: records on `schedule-changes`, with the partitioner that Java has."""
    producer = Producer({"bootstrap.servers": bootstrap, "partitioner": "murmur2_random", "acks": "all"})
    for each in events:
        producer.produce(NAMESPACE + topics.SCHEDULE_CHANGES, orjson.dumps(each), f"storm/{each['data']['name']}")
    assert producer.flush(30) == 0


def event(kind: str, number: int, definition: dict[str, Any] | None = None) -> dict[str, Any]:
    """A command for one of the schedules."""
    data = {"tenant": "storm", "name": f"s{number}"} | ({"definition": definition} if definition else {})
    type_ = f"tidewheel.{kind}.v1"
    return {"specversion": "1.0", "id": f"{kind}-{number}", "source": "storm", "type": type_, "data": data}


def definition(first: datetime) -> dict[str, Any]:
    """Due every second from `first` on; nothing that an outage delays is given up."""
    retry = {"max_attempts": 100, "initial": "PT1S", "max": "PT5S"}
    return {
        "trigger": {"every": "PT1S", "anchor": first.isoformat()},
        "overlap": {"policy": "allow_all"},
        "catch_up": {"policy": "all", "limit": 10_000},
        "job": {"target": {"type": "task", "name": "storm.work"}, "lease": "PT10S", "retry": retry},
    }


class Blows:
    """Strikes one after another until the time is up; who was struck comes back."""

    def __init__(self, fleet: Fleet, broker: Cluster, chance: random.Random) -> None:
        self._fleet, self._broker, self._chance = fleet, broker, chance
        self._pause = threading.Event()
        self.struck: Counter[str] = Counter()

    def until(self, end: datetime) -> None:
        """Blows at random moments; in the middle of the time one for the broker."""
        half = datetime.now(UTC) + (end - datetime.now(UTC)) / 2
        while (now := datetime.now(UTC)) < end:
            if now > half and not IS_SHORT and not self.struck["broker killed"]:
                self._strike_broker()
            else:
                self._strike(self._chance.choice([*self._fleet.owners, *self._fleet.workers]))
            self._pause.wait(self._chance.uniform(*BETWEEN_SECONDS))

    def _strike(self, member: Member) -> None:
        if self._chance.random() < 0.7:
            member.kill()
            member.start()
            self.struck[f"{_role(member)} killed"] += 1
        else:
            member.freeze()
            self._pause.wait(self._chance.uniform(*FROZEN_SECONDS))
            member.thaw()
            self.struck[f"{_role(member)} frozen"] += 1
        for each in self._fleet.revive():  # its place in the group had become another's
            self.struck[f"{_role(each)} ended by itself"] += 1

    def _strike_broker(self) -> None:
        self._broker.nodes[0].kill()
        self._broker.start()
        self.struck["broker killed"] += 1


class Watch:
    """Counts what is created and what has its outcome, from the topics, in a thread beside the storm."""

    def __init__(self, log: KafkaLog) -> None:
        self._log = log
        self._places = [
            TopicPartition(topic, partition)
            for topic in (topics.RUNS, topics.RUN_OUTCOMES, topics.SCHEDULES)
            for partition in range(PARTITIONS)
        ]
        self._created: dict[str, datetime] = {}
        self._finished: set[str] = set()
        self._paused: set[str] = set()
        self._reached: dict[TopicPartition, int] = dict.fromkeys(self._places, 0)
        self._changed = threading.Condition()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="watch", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def wait_for_outcomes(self, fleet: Fleet) -> float:
        """Seconds until all schedules were paused and every run had its outcome; at most GIVE_UP_SECONDS."""
        began = time.monotonic()
        ends: Mapping[TopicPartition, int] | None = None  # asked for when all were paused: every run stood before them
        with self._changed:
            while not (ends and self._has_read(ends) and self._created.keys() <= self._finished):
                if ends is None and len(self._paused) == SCHEDULES:
                    ends = self._log.end_offsets(self._places)
                fleet.revive()
                if time.monotonic() - began > GIVE_UP_SECONDS:
                    break
                self._changed.wait(0.5)
        return round(time.monotonic() - began, 1)

    def created_between(self, start: datetime, end: datetime) -> float:
        """Runs created a second, by when the log took them."""
        count = sum(start <= at < end for at in self._created.values())
        return round(count / (end - start).total_seconds(), 1)

    def _has_read(self, ends: Mapping[TopicPartition, int]) -> bool:
        return all(self._reached[place] >= end for place, end in ends.items())

    def _follow(self) -> None:
        """A broker that is away is waited for."""
        while not self._over.is_set():
            with contextlib.suppress(LogError):
                reader = self._log.open_reader(self._reached)
                while not self._over.is_set():
                    records = reader.poll(records_max=5000, bytes_max=1 << 24, timeout=0.5)
                    with self._changed:
                        self._note(records)
                        self._reached = {place: reader.position(place) for place in self._places}
                        self._changed.notify_all()
            self._over.wait(1)

    def _note(self, records: Sequence[Record]) -> None:
        for record in records:
            fact: dict[str, Any] = orjson.loads(record.value or b"{}")
            if fact.get("type") == "tidewheel.run.created.v1":
                self._created.setdefault(fact["data"]["run_id"], record.appended_at)
            elif fact.get("type") == "tidewheel.run.finished.v1":
                self._finished.add(fact["data"]["run_id"])
            elif fact.get("data", {}).get("state") == "paused":
                self._paused.add(fact["data"]["schedule"])


def wait_until(instant: datetime) -> None:
    threading.Event().wait(max(0.0, (instant - datetime.now(UTC)).total_seconds()))


def _role(member: Member) -> str:
    return member.name.rpartition("-")[0]
