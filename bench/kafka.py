"""Tidewheel on a real Kafka broker of its own, beside the same records sent by a bare client.

creation         one scheduler partition with a backlog: runs created a second, and per second of its processor time
floor            the same transactions (records, partitions, bytes), produced by confluent-kafka with nothing in between
start delay      K schedules due every second, at one instant or spread; as `bench.line` says
  legs           of it: due → created (scheduler) → handed out (dispatcher) → begun (worker)
whole runs/s     more schedules than can be served; outcomes folded into rows per second while saturated
processor        its time a run, meanwhile, of each process and of the broker

For the whole line there are three processes of Tidewheel, as its roles have them, and one worker beside the broker. Its
parts follow each other on the same processes, five minutes in all; each is printed as it ends. PARTS, RATES and FLOOD
leave some out.

PARTITIONS is how many of each topic there are. Each of the scheduler's writes transactions of its own, and the one of
the dispatcher that answers all of them sends a request for each place that it writes to: fewer are quicker here.

Brokers run for months: this one has both of its compilers, and before the line is measured it is under the load of
WARM_RATE runs a second for WARM seconds. In the first minute of it the thorough compiler takes a third of all processor
time. WARM=0 KAFKA_OPTS=-XX:TieredStopAtLevel=1 has a broker as it runs in tests.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import NamedTuple

import orjson
from confluent_kafka import Producer

from bench.line import (
    FLOOD_SECONDS,
    SLOTS,
    WARM_UP_SECONDS,
    Flood,
    Server,
    children_of,
    finished_rows,
    followed,
    free_port,
    percentile,
    print_micros,
    spelt,
    wait_until_ready,
)
from bench.line_tasks import NOTE
from deploy.kafka.broker import Cluster
from node.roles import SCHEDULER, Entropy
from runtime.clock import SystemClock
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
from schemas import identity, topics
from simulation.clock import ManualClock

SCHEDULES, SECONDS = 500, 20  # of the backlog: 10,000 runs
LAYOUT = topics.Layout(schedule=1, shard=4)
TOPICS = (topics.RUNS, topics.RUN_EVENTS, topics.changelog_topic("scheduler"))  # where a created run goes

PARTS = os.environ.get("PARTS", "creation,line").split(",")
RATES = [int(rate) for rate in os.environ.get("RATES", "100,500,1000").split(",") if rate]
FLOOD = int(os.environ.get("FLOOD", "2000"))  # schedules due in each second of it
PARTITIONS = int(os.environ.get("PARTITIONS", "4"))
WARM_RATE, WARM_SECONDS = 500, int(os.environ.get("WARM", "90"))
LINE = "line."
LEAD_SECONDS = 3  # from the first definition to the first run
PUT_PER_SECOND = 100  # definitions that four schedulers take in, on a slow day
SECONDS_OF_DELAYS = 10
PATIENCE_SECONDS = 20  # for the last of the runs to begin
FLOOD_SECONDS_MAX = 60


class Rate(NamedTuple):
    """Runs a second, by the clock and by processor time."""

    wall: float
    core: float


def main() -> None:
    """Print the table."""
    os.environ.setdefault("KAFKA_OPTS", "-XX:TieredStopAtLevel=4")
    with tempfile.TemporaryDirectory(prefix="tidewheel-bench-") as folder, Cluster(Path(folder) / "kafka") as cluster:
        if "creation" in PARTS:
            print_creation(cluster.bootstrap, Path(folder))
        if "line" in PARTS:
            with server(cluster.bootstrap) as running, log_of(cluster.bootstrap, LINE) as log:
                warm_up(log)
                print_line(running, log)


def print_creation(bootstrap: str, folder: Path) -> None:
    """Three lines."""
    ours, sent = creation(bootstrap, folder)
    say(f"run creation      {ours.wall:7.0f} runs/s   {ours.core:7.0f} per core")
    bare = floor(bootstrap, sent)
    say(f"  floor           {bare.wall:7.0f} runs/s   {bare.core:7.0f} per core")
    say(f"  ratio           {ours.wall / bare.wall:7.2f}          {ours.core / bare.core:7.2f}")


def print_line(running: Server, log: KafkaLog) -> None:
    """A line for each rate and shape, with its legs; then the flood."""
    for rate in RATES:
        for spread in (False, True):
            print_start_delays(log, running.notes, rate, spread=spread)
    if FLOOD:
        whole = flooded(running, log, FLOOD)
        say(f"whole runs per second  {whole.rate:6.0f}   in all {whole.in_all:.0f}")
        print_micros(whole)


def say(line: str) -> None:
    """Print it at once."""
    print(line, flush=True)


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
    log = ByHand(settings_of(bootstrap, "creation."), clock)
    log.create({spec: LAYOUT.partitions(spec.family) for spec in topics.topic_table(topics.Retention())})
    partition = Partition(role="scheduler", number=0, inputs=SCHEDULER, layout=LAYOUT)
    world = World(clock=clock, entropy=Entropy(), telemetry=Telemetry())
    processor = Processor(
        SchedulerCore(LAYOUT, 0, tz_version()), partition, log, RocksStore(folder / "state"), world,
        accept_clock_after=None,
    )  # fmt: skip
    processor.open()
    trigger = {"every": "PT1S", "anchor": clock.now().isoformat()}
    log.append([_put(f"s{number}", trigger, LAYOUT.schedule, number=number) for number in range(SCHEDULES)])
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


def _put(name: str, trigger: Mapping[str, object], partitions: int, *, number: int) -> Outgoing:
    definition = {
        "trigger": trigger,
        "overlap": {"policy": "allow_all"},
        "grace": "PT1H",
        "job": {"target": {"type": "task", "name": "bench.note"}, "payload": {"number": number}},
    }
    key, data = f"bench/{name}", {"tenant": "bench", "name": name, "definition": definition}
    event = {"specversion": "1.0", "id": name, "source": "bench", "type": "tidewheel.schedule.put.v1"}
    place = identity.partition_of(key, partitions)
    return Outgoing(topics.SCHEDULE_CHANGES, place, key.encode(), orjson.dumps(event | {"data": data}))


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


def warm_up(log: KafkaLog) -> None:
    """Let the brokers' compilers do most of their work."""
    if WARM_SECONDS:
        first = put_schedules(log, WARM_RATE, seconds=WARM_SECONDS, spread=True)
        time.sleep(max(0.0, first + WARM_SECONDS - time.time()))


def print_start_delays(log: KafkaLog, notes: Path, rate: int, *, spread: bool) -> None:
    """Due every second for a while: how late tasks begin, and where that time goes."""
    first = put_schedules(log, rate, seconds=WARM_UP_SECONDS + SECONDS_OF_DELAYS, spread=spread) + WARM_UP_SECONDS
    begins = log.end_offsets([TopicPartition(topics.RUN_EVENTS, number) for number in range(PARTITIONS)])
    time.sleep(max(0.0, first + SECONDS_OF_DELAYS - time.time()))
    expected = rate * SECONDS_OF_DELAYS
    found: list[Begun] = []
    for _ in range(PATIENCE_SECONDS):
        time.sleep(1)
        found = [run for run in begun(log, dict(begins), notes) if first <= run.due < first + SECONDS_OF_DELAYS]
        if len(found) >= expected:
            break
    shape = "spread" if spread else "on the second"
    short = "" if len(found) == expected else f"   only {len(found)} of {expected} began"
    say(f"start delay at {rate:>5} runs/s, {shape:<13}   {spelt_ms([run.begun - run.due for run in found])}{short}")
    say(f"  due → created                           {spelt_ms([run.created - run.due for run in found])}")
    say(f"  created → handed out                    {spelt_ms([run.handed_out - run.created for run in found])}")
    say(f"  handed out → begun                      {spelt_ms([run.begun - run.handed_out for run in found])}")


def put_schedules(log: KafkaLog, count: int, *, seconds: int, spread: bool = False) -> int:
    """Schedules due in each of so many seconds, published as by any upstream system; the first of these seconds."""
    first = int(time.time()) + LEAD_SECONDS + count // PUT_PER_SECOND
    ends = datetime.fromtimestamp(first + seconds, UTC)
    trigger: dict[str, object] = {"every": "PT1S", "anchor": spelt(first), "start_at": spelt(first)}
    trigger |= {"end_at": ends.isoformat()} | ({"jitter": "PT1S"} if spread else {})
    shape = f"{count}{'spread' if spread else ''}-{first}"
    log.append([_put(f"{shape}-{number}", trigger, PARTITIONS, number=number) for number in range(count)])
    return first


class Begun(NamedTuple):
    """A run whose first attempt has begun, in seconds of the epoch."""

    due: float
    created: float
    handed_out: float
    begun: float


def begun(log: KafkaLog, positions: dict[TopicPartition, int], notes: Path) -> list[Begun]:
    """What `run-events` tells from these positions on, and when tasks noted that they began.

    Events say only when an owner heard of a beginning. Of what is told twice, the first word counts.
    """
    made: dict[str, tuple[tuple[int, int], float, float]] = {}
    handed_out: dict[str, float] = {}
    for record in _records(log, positions):
        event = orjson.loads(record.value or b"{}")
        kind, data = event.get("type", ""), event.get("data", {})
        if kind == "tidewheel.run.created.v1":
            which = data["job"]["payload"]["number"], int(_instant(data["nominal_time"])) * 1_000_000
            made.setdefault(data["run_id"], (which, _instant(data["due_at"]), _instant(data["created_at"])))
        elif kind == "tidewheel.attempt.started.v1":
            handed_out.setdefault(data["run_id"], _instant(data["handed_out_at"]))
    noted = {note[:2]: note[2] / 1e6 for note in NOTE.iter_unpack(notes.read_bytes())}
    runs = [(*made[run], at) for run, at in handed_out.items() if run in made]
    return [Begun(due, created, at, noted[which]) for which, due, created, at in runs if which in noted]


def _instant(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def spelt_ms(seconds: list[float]) -> str:
    """Percentiles in milliseconds."""
    if not seconds:
        return "--"
    p50, p99, worst = (each * 1000 for each in (percentile(seconds, 50), percentile(seconds, 99), max(seconds)))
    return f"p50 {p50:6.1f} ms   p99 {p99:6.1f} ms   max {worst:6.1f} ms"


def flooded(running: Server, log: KafkaLog, schedules: int) -> Flood:
    """From the first instant that is due until the last outcome has become a row; as `bench.line.flood` does."""
    before = finished_rows(running.data)
    first = put_schedules(log, schedules, seconds=FLOOD_SECONDS)
    time.sleep(max(0.0, first - time.time()))
    finished = partial(_finished_since, running, before)
    return followed(running, finished, schedules * FLOOD_SECONDS, seconds_max=FLOOD_SECONDS_MAX)


def _finished_since(running: Server, before: int) -> int:
    return finished_rows(running.data) - before


@contextlib.contextmanager
def log_of(bootstrap: str, namespace: str) -> Iterator[KafkaLog]:
    """The log of one namespace."""
    log = KafkaLog(settings_of(bootstrap, namespace), SystemClock())
    try:
        yield log
    finally:
        log.close()


def settings_of(bootstrap: str, namespace: str) -> KafkaSettings:
    """One broker has all there is."""
    return KafkaSettings(bootstrap=bootstrap, namespace=namespace, replication_factor=1, min_insync_replicas=1)


@contextlib.contextmanager
def server(bootstrap: str) -> Iterator[Server]:
    """Scheduler, dispatcher, and API with projector, each in a process of its own; one worker on Kafka."""
    with tempfile.TemporaryDirectory(prefix="tidewheel-bench-") as folder, contextlib.ExitStack() as running:
        port, notes = free_port(), Path(folder) / "notes"
        config = Path(folder) / "tidewheel.toml"
        config.write_text(
            f'bootstrap = "{bootstrap}"\nnamespace = "{LINE}"\npartitions = {PARTITIONS}\nport = {port}\n'
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
        owners = {
            role: running.enter_context(process([*serve, f"{folder}/{role}", "--roles", role], folder)).pid
            for role in ("scheduler", "dispatcher")
        }
        worker = [tidewheel, "worker", "bench.line_tasks:worker", "--slots", str(SLOTS), "--bootstrap", bootstrap]
        environment = {"TIDEWHEEL_BENCH_NOTES": str(notes)}
        workers = running.enter_context(process([*worker, "--namespace", LINE], folder, environment))
        wait_until_ready(f"http://127.0.0.1:{port}", api)
        processes = {**owners, "api and projector": api.pid, "worker": workers.pid, "broker": broker}
        yield Server(url=f"http://127.0.0.1:{port}", data=Path(folder), notes=notes, processes=processes)


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
