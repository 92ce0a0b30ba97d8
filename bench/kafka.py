"""Tidewheel on a real Kafka broker of its own, beside the same records sent by a bare client.

creation         one scheduler partition with a backlog: runs created a second, and per second of its processor time
floor            the same transactions (records, partitions, bytes), produced by confluent-kafka with nothing in between
start delay      K schedules due every second, at one instant or spread; as `bench.line` says
whole runs/s     more schedules than can be served; outcomes folded into rows per second while saturated
processor        its time a run, meanwhile, of each process and of the broker

For the whole line there are two processes of Tidewheel and one worker beside the broker.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import orjson
from confluent_kafka import Producer

from bench.line import SLOTS, Server, children_of, flood, free_port, print_delays, print_micros, wait_until_ready
from deploy.kafka.broker import Cluster
from node.roles import SCHEDULER, Entropy
from runtime.logs.kafka.log import KafkaLog
from runtime.logs.kafka.producing import KafkaProducer
from runtime.logs.kafka.settings import KafkaSettings
from runtime.partition import Partition
from runtime.processor import Processor, World
from runtime.record import Outgoing, Record, TopicPartition
from runtime.stores.rocksdb import RocksStore
from runtime.telemetry import Telemetry
from scheduler import SchedulerCore
from scheduler.occurrences import tz_version
from schemas import topics
from simulation.clock import ManualClock

SCHEDULES, SECONDS = 500, 20  # of the backlog: 10,000 runs
LAYOUT = topics.Layout(schedule=1, shard=4)
TOPICS = (topics.RUNS, topics.RUN_EVENTS, topics.changelog_topic("scheduler"))  # where a created run goes
PARTITIONS = 4


class Rate(NamedTuple):
    """Runs a second, by the clock and by processor time."""

    wall: float
    core: float


def main() -> None:
    """Print the table."""
    os.environ.setdefault("KAFKA_OPTS", "-XX:TieredStopAtLevel=4")  # a broker that has time to become quick
    with tempfile.TemporaryDirectory(prefix="tidewheel-bench-") as folder, Cluster(Path(folder) / "kafka") as cluster:
        ours, sent = creation(cluster.bootstrap, Path(folder))
        bare = floor(cluster.bootstrap, sent)
        print(f"run creation      {ours.wall:7.0f} runs/s   {ours.core:7.0f} per core")
        print(f"  floor           {bare.wall:7.0f} runs/s   {bare.core:7.0f} per core")
        print(f"  ratio           {ours.wall / bare.wall:7.2f}          {ours.core / bare.core:7.2f}")
        for rate in [int(rate) for rate in os.environ.get("RATES", "100,500,1000").split(",") if rate]:
            for spread in (False, True):
                with server(cluster.bootstrap, f"delay{rate}{spread}.") as running:
                    print_delays(running, rate, spread=spread)
        with server(cluster.bootstrap, "flood.") as running:
            whole = flood(running, int(os.environ.get("FLOOD", "1500")))
        print(f"whole runs per second  {whole.rate:6.0f}")
        print_micros(whole)


# --- creation ---------------------------------------------------------------------------------------------------------


class ByHand(KafkaLog):
    """Brokers of whom no clock is asked: ours is turned by hand."""

    def open_producer(self, transactional_id: str, *, group: str) -> KafkaProducer:
        """See `Log.open_producer`."""
        producer = super().open_producer(transactional_id, group=group)
        producer.tells_time = False
        return producer


def creation(bootstrap: str, folder: Path) -> tuple[Rate, Sequence[Sequence[Outgoing]]]:
    """How quickly a backlog becomes runs; and the transactions that it took."""
    clock = ManualClock(datetime.now(UTC).replace(microsecond=0) - timedelta(seconds=SECONDS + 60))
    settings = KafkaSettings(
        bootstrap=bootstrap, namespace="creation.", replication_factor=1, min_insync_replicas=1
    )  # fmt: skip
    log = ByHand(settings, clock)
    log.create({spec: LAYOUT.partitions(spec.family) for spec in topics.topic_table(topics.Retention())})
    partition = Partition(role="scheduler", number=0, inputs=SCHEDULER, layout=LAYOUT)
    world = World(clock=clock, entropy=Entropy(), telemetry=Telemetry())
    processor = Processor(
        SchedulerCore(LAYOUT, 0, tz_version()), partition, log, RocksStore(folder / "state"), world,
        accept_clock_after=None,
    )  # fmt: skip
    processor.open()
    log.append([_put(number, clock.now()) for number in range(SCHEDULES)])
    _settle(processor)
    places = [TopicPartition(topic, number) for topic in TOPICS for number in range(log.partitions(topic))]
    before = log.end_offsets(places)
    wall, core = time.monotonic(), time.process_time()
    for _ in range(SECONDS):
        clock.advance(timedelta(seconds=1))
        _settle(processor)
    wall, core = time.monotonic() - wall, time.process_time() - core
    processor.close()
    runs = SCHEDULES * SECONDS
    return Rate(runs / wall, runs / core), list(_transactions(_records(log, dict(before))))


def _put(number: int, at: datetime) -> Outgoing:
    definition = {
        "trigger": {"every": "PT1S", "anchor": at.isoformat()},
        "overlap": {"policy": "allow_all"},
        "grace": "PT1H",
        "job": {"target": {"type": "task", "name": "bench.note"}, "payload": {"number": number}},
    }
    data = {"tenant": "bench", "name": f"s{number}", "definition": definition}
    event = {"specversion": "1.0", "id": str(number), "source": "bench", "type": "tidewheel.schedule.put.v1"}
    return Outgoing(topics.SCHEDULE_CHANGES, 0, f"bench/s{number}".encode(), orjson.dumps(event | {"data": data}))


def _settle(processor: Processor) -> None:
    idle = 0
    while idle < 2:  # one step may only learn that everything has been read
        idle = 0 if processor.step(0.0) else idle + 1


def _records(log: KafkaLog, positions: dict[TopicPartition, int]) -> list[Record]:
    reader, ends = log.open_reader(positions), log.end_offsets(positions)
    found: list[Record] = []
    while any(reader.position(place) < end for place, end in ends.items()):
        found += reader.poll(records_max=10_000, bytes_max=1 << 26, timeout=1.0)
    reader.close()
    return found


def _transactions(records: list[Record]) -> Iterator[list[Outgoing]]:
    """The records by the transaction that sent them. Rows and footer have no such header: they are shared out."""
    by_sequence: dict[bytes, list[Outgoing]] = {}
    rest: list[Outgoing] = []
    for record in records:
        sequence = record.header("tw-seq")
        target = rest if sequence is None else by_sequence.setdefault(sequence, [])
        target.append(Outgoing(record.topic, record.partition, record.key, record.value, record.headers))
    share = -(-len(rest) // len(by_sequence))
    for index, outputs in enumerate(by_sequence.values()):
        yield outputs + rest[index * share : (index + 1) * share]


def floor(bootstrap: str, transactions: Sequence[Sequence[Outgoing]]) -> Rate:
    """The same records in the same transactions."""
    producer = Producer({
        "bootstrap.servers": bootstrap, "transactional.id": "floor", "linger.ms": 5, "acks": "all",
    })  # fmt: skip
    producer.init_transactions()
    wall, core = time.monotonic(), time.process_time()
    for transaction in transactions:
        producer.begin_transaction()
        for topic, partition, key, value, headers in transaction:
            producer.produce("creation." + topic, value, key, partition=partition, headers=list(headers))
            producer.poll(0)
        producer.commit_transaction()
    wall, core = time.monotonic() - wall, time.process_time() - core
    runs = SCHEDULES * SECONDS
    return Rate(runs / wall, runs / core)


# --- the whole line ---------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def server(bootstrap: str, namespace: str) -> Iterator[Server]:
    """Owners in one process, API and projector in another, one worker on Kafka."""
    with tempfile.TemporaryDirectory(prefix="tidewheel-bench-") as folder, contextlib.ExitStack() as running:
        port, notes = free_port(), Path(folder) / "notes"
        config = Path(folder) / "tidewheel.toml"
        config.write_text(
            f'bootstrap = "{bootstrap}"\nnamespace = "{namespace}"\npartitions = {PARTITIONS}\nport = {port}\n'
            f"replication_factor = 1\nmin_insync_replicas = 1\n"
            f'read_model = "sqlite:///{folder}/read-model.sqlite"\n',
            encoding="utf-8",
        )
        (broker,) = children_of(os.getpid())
        tidewheel = str(Path(sys.executable).parent / "tidewheel")
        serve = [tidewheel, "serve", "--config", str(config), "--data"]
        queue = [tidewheel, "admin", "topics", "create", "--config", str(config), "--queue", "default"]
        subprocess.run(queue, check=True, stdout=subprocess.DEVNULL)
        api = running.enter_context(process([*serve, f"{folder}/api", "--roles", "api,projector"], folder))
        owners = running.enter_context(process([*serve, f"{folder}/owners", "--roles", "scheduler,dispatcher"], folder))
        worker = [tidewheel, "worker", "bench.line_tasks:worker", "--slots", str(SLOTS), "--bootstrap", bootstrap]
        environment = {"TIDEWHEEL_BENCH_NOTES": str(notes)}
        workers = running.enter_context(process([*worker, "--namespace", namespace], folder, environment))
        wait_until_ready(f"http://127.0.0.1:{port}", api)
        processes = {"owners": owners.pid, "api and projector": api.pid, "worker": workers.pid, "broker": broker}
        yield Server(
            url=f"http://127.0.0.1:{port}", data=Path(folder), notes=notes, processes=processes,
            registered_per_second=15,
        )  # fmt: skip


@contextlib.contextmanager
def process(
    command: Sequence[str], folder: str, environment: dict[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """A child, ended by its process id."""
    with (Path(folder) / "log").open("ab") as log:
        child = subprocess.Popen(command, env=os.environ | (environment or {}), stdout=log, stderr=log)
    try:
        yield child
    finally:
        child.send_signal(signal.SIGTERM)
        try:
            child.wait(40)
        except subprocess.TimeoutExpired:
            child.kill()
