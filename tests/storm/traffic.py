"""What a storm rages over: schedules due every second, published as any upstream system does, and a watch over them."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Self

import orjson
from confluent_kafka import Producer

from runtime.log import LogError
from runtime.logs.kafka.log import KafkaLog
from runtime.record import TopicPartition
from schemas import topics

if TYPE_CHECKING:
    from runtime.record import Record

TENANT = "storm"
READ_AGAIN_SECONDS = 1  # a broker that is away is waited for
LOOK_SECONDS = 0.5


def publish(bootstrap: str, namespace: str, events: Iterable[Mapping[str, Any]]) -> None:
    """Records on `schedule-changes`, with the partitioner that Java has."""
    producer = Producer({"bootstrap.servers": bootstrap, "partitioner": "murmur2_random", "acks": "all"})
    for each in events:
        subject = f"{TENANT}/{each['data']['name']}"
        producer.produce(namespace + topics.SCHEDULE_CHANGES, orjson.dumps(each), subject)
        producer.poll(0)
    assert producer.flush(60) == 0


def event(kind: str, number: int, definition: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A command for one of the schedules."""
    data = {"tenant": TENANT, "name": f"s{number}"} | ({"definition": definition} if definition else {})
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


class Watch:
    """Counts what is created and what has its outcome, from the topics, in a thread beside the storm."""

    def __init__(self, log: KafkaLog, *, schedules: int, partitions: int) -> None:
        self._log, self._schedules = log, schedules
        self._places = [
            TopicPartition(topic, partition)
            for topic in (topics.RUNS, topics.RUN_OUTCOMES, topics.SCHEDULES)
            for partition in range(partitions)
        ]
        self._created: dict[str, datetime] = {}
        self._finished: set[str] = set()
        self._nominal: dict[str, datetime] = {}
        self._due: dict[str, datetime] = {}  # of each schedule the latest instant of which there is a run
        self._done: dict[str, datetime] = {}  # and of which a run has its outcome
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

    def wait_for_outcomes(self, meanwhile: Callable[[], object], *, within: float) -> float:
        """Seconds until all schedules were paused and every run had its outcome, or until the time was up.

        `meanwhile` is done again and again until then: as who ended is started again by a supervisor.
        """
        began = time.monotonic()
        ends: Mapping[TopicPartition, int] | None = None  # asked for when all were paused: every run stood before them
        with self._changed:
            while not (ends and self._has_read(ends) and self._created.keys() <= self._finished):
                if ends is None and len(self._paused) == self._schedules:
                    ends = self._log.end_offsets(self._places)
                meanwhile()
                if time.monotonic() - began > within:
                    break
                self._changed.wait(LOOK_SECONDS)
        return round(time.monotonic() - began, 1)

    @property
    def finished(self) -> int:
        """How many runs have their outcome."""
        with self._changed:
            return len(self._finished)

    def wait_for_count(self, runs: int, *, within: float) -> bool:
        """Whether in time so many runs have their outcome."""
        with self._changed:
            return self._changed.wait_for(lambda: len(self._finished) >= runs, within)

    def goes_on_after(self, instant: datetime, *, within: float) -> bool:
        """Whether in time a run due at `instant` or later has its outcome, of each schedule."""
        with self._changed:
            return self._changed.wait_for(lambda: self._all_since(self._done, instant), within)

    def creates_after(self, instant: datetime, *, within: float) -> bool:
        """Whether in time a run due at `instant` or later is created, of each schedule."""
        with self._changed:
            return self._changed.wait_for(lambda: self._all_since(self._due, instant), within)

    def created_between(self, start: datetime, end: datetime) -> float:
        """Runs created a second, by when the log took them."""
        count = sum(start <= at < end for at in self._created.values())
        return round(count / (end - start).total_seconds(), 1)

    def _all_since(self, newest: Mapping[str, datetime], instant: datetime) -> bool:
        return len(newest) == self._schedules and all(at >= instant for at in newest.values())

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
            self._over.wait(READ_AGAIN_SECONDS)

    def _note(self, records: Sequence[Record]) -> None:
        for record in records:
            fact: dict[str, Any] = orjson.loads(record.value or b"{}")
            if fact.get("type") == "tidewheel.run.created.v1":
                self._note_created(fact["data"], record.appended_at)
            elif fact.get("type") == "tidewheel.run.finished.v1":
                self._note_finished(fact["data"]["run_id"])
            elif fact.get("data", {}).get("state") == "paused":
                self._paused.add(fact["data"]["schedule"])

    def _note_created(self, data: Mapping[str, Any], at: datetime) -> None:
        run_id = data["run_id"]
        self._created.setdefault(run_id, at)
        self._nominal[run_id] = datetime.fromisoformat(data["nominal_time"])
        self._note_newest(self._due, run_id)
        if run_id in self._finished:
            self._note_newest(self._done, run_id)

    def _note_finished(self, run_id: str) -> None:
        """Outcomes and runs are read from different topics, in any order."""
        self._finished.add(run_id)
        if run_id in self._nominal:
            self._note_newest(self._done, run_id)

    def _note_newest(self, newest: dict[str, datetime], run_id: str) -> None:
        schedule, nominal = run_id.rpartition(".")[0], self._nominal[run_id]
        newest[schedule] = max(nominal, newest.get(schedule, nominal))
