"""How long nobody decides for a partition whose owner was killed: from SIGKILL to the first run that is on time again.

Two schedulers, forty schedules due every second over all partitions, and beside them so many that are due in a year. In
turn one of the two is killed and the other takes over; then it comes back and takes its share again. A run is on time
when it is created within a second of its instant.

killed, warm         the other one has owned the partitions before: its stores are a little behind
killed, disk lost    the other one's stores are deleted before: it builds them from the changelog
planned restart      SIGTERM, started again at once: a static member has its partitions back

KILLS and RESTARTS say how often, SESSIONS (seconds) and SCHEDULES (idle ones, as 0,10000,100000) with which, by commas.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable
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
BUSY = 40
ON_TIME = timedelta(seconds=1)
STEADY_SECONDS = 3  # all partitions on time for so long: the next blow may come
GIVE_UP_SECONDS = 300
NAMESPACE = "failover."
UNSENT_MAX = 50_000  # records that the producer may hold: half of what it would


@dataclass(frozen=True, slots=True)
class Seen:
    """A run that was created."""

    nominal: datetime
    at: datetime


def main() -> None:
    """Print the table."""
    for session in os.environ.get("SESSIONS", "2").split(","):
        for idle in map(int, os.environ.get("SCHEDULES", "0,10000").split(",")):
            with tempfile.TemporaryDirectory(prefix="tidewheel-bench-") as folder:
                settings = {"group.min.session.timeout.ms": "1000"}
                with Cluster(Path(folder) / "kafka", settings=settings) as cluster:
                    fleet = Fleet(
                        Path(folder), cluster.bootstrap, namespace=NAMESPACE, roles={"scheduler": 2}, workers=0,
                        slots=1, partitions=PARTITIONS, session_timeout=f"{session}s",
                    )  # fmt: skip
                    try:
                        measure(fleet, Path(folder), cluster.bootstrap, session, idle)
                    finally:
                        fleet.stop()


def measure(fleet: Fleet, folder: Path, bootstrap: str, session: str, idle: int) -> None:
    """One line for each kind of blow."""
    kills, restarts = int(os.environ.get("KILLS", "30")), int(os.environ.get("RESTARTS", "10"))
    fleet.start()
    publish(bootstrap, ((f"idle{number}", once_a_year(number)) for number in range(idle)))
    publish(bootstrap, ((f"s{number}", {"every": "PT1S"}) for number in range(BUSY)))
    watch = Watch(fleet)
    watch.wait_for(idle + BUSY)
    one, other = fleet.owners
    for member in fleet.owners:
        watch.gap_after(member, kill)  # so that each has owned every partition once
    for name, count, blow in (
        ("killed, warm", kills, kill),
        ("killed, disk lost", kills, lambda member: lose(folder, other if member is one else one, member)),
        ("planned restart", restarts, restart),
    ):
        if count:
            gaps = [watch.gap_after((one, other)[turn % 2], blow) for turn in range(count)]
            print(
                f"{name:<18} session {session:>2} s  {idle:>7,} idle   p50 {percentile(gaps, 50):6.2f} s"
                f"   p99 {percentile(gaps, 99):6.2f} s   max {max(gaps):6.2f} s   ({count} times)",
                flush=True,
            )


def kill(member: Member) -> None:
    """No word, no clean-up; it stays away until another has taken over."""
    member.kill()


def lose(folder: Path, heir: Member, member: Member) -> None:
    """The same, and whoever takes over has nothing of what it takes over: no stores but those that it has open."""
    for store in (folder / heir.name).glob("process-0/state/*/scheduler-*"):
        if not is_open(heir, store):
            shutil.rmtree(store.rename(folder / "lost"))  # at once: the heir may come for it any moment
    member.kill()


def is_open(member: Member, store: Path) -> bool:
    """Whether a process has this store open."""
    return any(name.startswith(f"{store}/") for name in map(name_of, Path(f"/proc/{member.pid}/fd").iterdir()))


def name_of(descriptor: Path) -> str:
    """Of what it stands for; nothing when it was closed a moment ago."""
    try:
        return str(descriptor.readlink())
    except FileNotFoundError:
        return ""


def restart(member: Member) -> None:
    """As an upgrade does it."""
    member.ask_to_stop()
    member.wait(30)
    member.start()


def once_a_year(number: int) -> dict[str, Any]:
    """Far from now, and not all at one instant."""
    anchor = datetime.now(UTC) + timedelta(days=180, seconds=number)
    return {"every": "P364D", "anchor": anchor.isoformat(timespec="seconds")}


def publish(bootstrap: str, schedules: Iterable[tuple[str, dict[str, Any]]]) -> None:
    """Schedules by their names and triggers, as any upstream system does it: by a plain producer."""
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 20})
    for name, trigger in schedules:
        job = {"target": {"type": "task", "name": "bench.nothing"}}
        definition = {"trigger": trigger, "overlap": {"policy": "allow_all"}, "job": job}
        data = {"tenant": "bench", "name": name, "definition": definition}
        event = {"specversion": "1.0", "id": name, "source": "bench", "type": "tidewheel.schedule.put.v1"}
        subject = f"bench/{name}"
        producer.produce(
            NAMESPACE + topics.SCHEDULE_CHANGES, orjson.dumps(event | {"data": data}), subject,
            partition=identity.partition_of(subject, PARTITIONS),
        )  # fmt: skip
        if len(producer) > UNSENT_MAX:
            producer.flush(60)
    assert producer.flush(60) == 0


class Watch:
    """Reads what is created, and remembers the newest runs of each scheduler partition."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        self._log: KafkaLog = fleet.log()
        self._reader = self._log.open_reader({TopicPartition(topics.RUNS, number): 0 for number in range(PARTITIONS)})
        self._seen: dict[int, list[Seen]] = {number: [] for number in range(PARTITIONS)}

    def wait_for(self, schedules: int) -> None:
        """Until each of so many schedules has been accepted: its record stands on `schedules`."""
        places = {TopicPartition(topics.SCHEDULES, number): 0 for number in range(PARTITIONS)}
        reader, known = self._log.open_reader(places), set[bytes]()
        deadline = time.monotonic() + GIVE_UP_SECONDS
        while len(known) < schedules:
            assert time.monotonic() < deadline, f"of {schedules} schedules {len(known)} are there"
            records = reader.poll(records_max=5000, bytes_max=1 << 24, timeout=0.5)
            known |= {record.key for record in records if record.key}
        reader.close()

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
            assert time.monotonic() < deadline, f"not within {GIVE_UP_SECONDS} s: {what}\n{self._fleet.said()}"
            for record in self._reader.poll(records_max=5000, bytes_max=1 << 24, timeout=0.1):
                fact: dict[str, Any] = orjson.loads(record.value or b"{}")
                if fact.get("type") != "tidewheel.run.created.v1":
                    continue
                runs = self._seen[identity.partition_of(fact["subject"], PARTITIONS)]
                runs.append(Seen(datetime.fromisoformat(fact["data"]["nominal_time"]), record.appended_at))
                del runs[: -BUSY * 60]  # a minute is more than is ever looked at
