"""How long nobody decides for a partition whose owner was killed: from SIGKILL to the first run that is on time again.

Two schedulers, schedules due every second in each partition. In turn one of them is killed and the other takes over;
then it comes back and takes its share again. A run is on time when it is created within a second of its instant.

planned restart     the same after SIGTERM, started again at once: a static member has its partitions back

KILLS, SESSIONS (seconds, by commas) and RESTARTS in the environment say how often.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
from confluent_kafka import Producer

from bench.line import percentile
from deploy.kafka.broker import Cluster
from runtime.logs.kafka.log import KafkaLog
from runtime.record import TopicPartition
from schemas import identity, topics
from tests.storm.fleet import Fleet, Member

PARTITIONS = 4
SCHEDULES = 40
ON_TIME = timedelta(seconds=1)
STEADY_SECONDS = 3  # all partitions on time for so long: the next blow may come
GIVE_UP_SECONDS = 120
NAMESPACE = "failover."


@dataclass(frozen=True, slots=True)
class Seen:
    """A run that was created."""

    nominal: datetime
    at: datetime


def main() -> None:
    """Print the table."""
    kills, restarts = int(os.environ.get("KILLS", "30")), int(os.environ.get("RESTARTS", "10"))
    for session in os.environ.get("SESSIONS", "6,2").split(","):
        with tempfile.TemporaryDirectory(prefix="tidewheel-bench-") as folder:
            cluster = Cluster(Path(folder) / "kafka", settings={"group.min.session.timeout.ms": "1000"})
            with cluster:
                fleet = Fleet(
                    Path(folder), cluster.bootstrap, namespace=NAMESPACE, roles={"scheduler": 2}, workers=0, slots=1,
                    partitions=PARTITIONS, session_timeout=f"{session}s",
                )  # fmt: skip
                try:
                    measure(fleet, cluster.bootstrap, session, kills, restarts)
                finally:
                    fleet.stop()


def measure(fleet: Fleet, bootstrap: str, session: str, kills: int, restarts: int) -> None:
    """One line for kills, one for planned restarts."""
    fleet.start()
    publish(bootstrap)
    watch = Watch(fleet.log())
    for name, count, blow in (("killed", kills, kill), ("planned restart", restarts, restart)):
        if not count:
            continue
        gaps = [watch.gap_after(fleet.owners[turn % 2], blow) for turn in range(count)]
        print(
            f"{name:<16} session {session:>2} s   p50 {percentile(gaps, 50):5.2f} s   p99 {percentile(gaps, 99):5.2f} s"
            f"   max {max(gaps):5.2f} s   ({count} times)",
            flush=True,
        )


def kill(member: Member) -> None:
    """No word, no clean-up; it stays away until another has taken over."""
    member.kill()


def restart(member: Member) -> None:
    """As an upgrade does it."""
    member.ask_to_stop()
    member.wait(30)
    member.start()


def publish(bootstrap: str) -> None:
    """Schedules due every second, in every partition."""
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all"})
    for number in range(SCHEDULES):
        job = {"target": {"type": "task", "name": "bench.nothing"}}
        definition = {"trigger": {"every": "PT1S"}, "overlap": {"policy": "allow_all"}, "job": job}
        data = {"tenant": "bench", "name": f"s{number}", "definition": definition}
        event = {"specversion": "1.0", "id": str(number), "source": "bench", "type": "tidewheel.schedule.put.v1"}
        subject = f"bench/s{number}"
        producer.produce(
            NAMESPACE + topics.SCHEDULE_CHANGES, orjson.dumps(event | {"data": data}), subject,
            partition=identity.partition_of(subject, PARTITIONS),
        )  # fmt: skip
    assert producer.flush(30) == 0


class Watch:
    """Reads what is created, and remembers the newest runs of each scheduler partition."""

    def __init__(self, log: KafkaLog) -> None:
        self._reader = log.open_reader({TopicPartition(topics.RUNS, number): 0 for number in range(PARTITIONS)})
        self._seen: dict[int, list[Seen]] = {number: [] for number in range(PARTITIONS)}

    def gap_after(self, member: Member, blow: Callable[[Member], None]) -> float:
        """Seconds from the blow until runs of every partition are on time again; then all is as it was before."""
        self._wait(lambda: self._steady(datetime.now(UTC)), "every partition is on time")
        struck = datetime.now(UTC)
        blow(member)
        self._wait(lambda: self._back_at(struck) is not None, "every partition is on time again")
        back = self._back_at(struck)
        assert back is not None
        if not member.is_running:
            before = member.said("partitions_assigned")
            member.start()
            self._wait(lambda: member.said("partitions_assigned") > before, f"{member.name} has its share again")
        return (back - struck).total_seconds()

    def _steady(self, now: datetime) -> bool:
        """Whether each partition had runs on time in each of the last seconds."""
        seconds = {int((now - timedelta(seconds=back + 1)).timestamp()) for back in range(STEADY_SECONDS)}
        return all(
            seconds <= {int(run.nominal.timestamp()) for run in runs if run.at - run.nominal <= ON_TIME}
            for runs in self._seen.values()
        )

    def _back_at(self, struck: datetime) -> datetime | None:
        """When the last of the partitions was on time again."""
        first = [
            min((run.at for run in runs if run.nominal > struck and run.at - run.nominal <= ON_TIME), default=None)
            for runs in self._seen.values()
        ]
        known = [at for at in first if at is not None]
        return max(known) if len(known) == len(first) else None

    def _wait(self, holds: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + GIVE_UP_SECONDS
        while not holds():
            assert time.monotonic() < deadline, f"not within {GIVE_UP_SECONDS} s: {what}"
            for record in self._reader.poll(records_max=5000, bytes_max=1 << 24, timeout=0.1):
                fact: dict[str, Any] = orjson.loads(record.value or b"{}")
                if fact.get("type") != "tidewheel.run.created.v1":
                    continue
                runs = self._seen[identity.partition_of(fact["subject"], PARTITIONS)]
                runs.append(Seen(datetime.fromisoformat(fact["data"]["nominal_time"]), record.appended_at))
                del runs[: -SCHEDULES * 60]  # a minute is more than is ever looked at
