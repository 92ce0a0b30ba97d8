"""Whether tenants feel bad neighbours: twenty on one queue of a real broker, all alike at first, then three go bad.

floor     every tenant has RATE runs due a second, spread over it, and some have one more in the bulk lane
storm     the same, and the last three are bad at once:
  flood   the first of them asks for FLOOD runs at once, by commands on `schedule-changes`
  hangs   the next one's runs hang, until their time is up
  dies    the last one's runs take their own process down (DEATHS=process), or the worker with all that it holds
          (DEATHS=worker); whoever ends is started again, as by a supervisor

finished  runs of the normal lane that ended, a second
age       from when a run was due until its first attempt began; of one that had not begun, until everything was stopped
legs      of the age: due → created (scheduler) → handed out (dispatcher) → begun (worker)

The marks are what the others, taken together, should keep: they are printed and not asserted. On a machine that is
full the storm also takes processor time from them, which no order of hand-outs gives back: so it is printed who used
how much.

Brokers run for months: this one has both of its compilers, and before the floor it goes through a flood of WARM runs,
which are worked off by then. FLOOR, STORM (seconds), PARTITIONS, PROCESSES, WORKERS, SLOTS (of each), WORK (seconds of
a run), TIMEOUT (of one that hangs) and RUNNING (a quota of each tenant; 0: none) make it another experiment.
"""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import orjson
from confluent_kafka import Producer

from bench.line import children_of, percentile
from deploy.kafka.broker import Cluster
from node.audit import audit
from node.audit.source import LogSource
from schemas import identity, topics
from tests.storm.fleet import TIDEWHEEL, Fleet, Member

TENANTS = int(os.environ.get("TENANTS", "20"))
RATE = int(os.environ.get("RATE", "6"))  # runs a second of each tenant: so many schedules that are due every second
BULK_EVERY = 4  # of so many tenants one has a schedule in the bulk lane too
FLOOD = int(os.environ.get("FLOOD", "50000"))
FLOOR_SECONDS = int(os.environ.get("FLOOR", "60"))
STORM_SECONDS = int(os.environ.get("STORM", "120"))
WORKERS = int(os.environ.get("WORKERS", "2"))
SLOTS = int(os.environ.get("SLOTS", "50"))
WORK_SECONDS = os.environ.get("WORK", "0.05")
TIMEOUT_SECONDS = int(os.environ.get("TIMEOUT", "5"))
RUNNING = int(os.environ.get("RUNNING", "0"))
DYING = {"process": "bench.dies", "worker": "bench.kills"}[os.environ.get("DEATHS", "process")]
LEAD_SECONDS = 5  # from the first definition to the first run
WARM = int(os.environ.get("WARM", "10000"))  # runs: so many until a broker's work costs what it always will, nearly
START_SECONDS = 15  # what came while workers started is worked off by then
WARM_UP_SECONDS = int(os.environ.get("WARM_UP", "75"))  # and so are they
LOOK_SECONDS = 0.5
THROUGHPUT_MIN, AGE_RATIO_MAX, JAIN_MIN = 0.95, 2, 0.95  # the marks
NAMESPACE = "isolation."
PROCESSES = int(os.environ.get("PROCESSES", "1"))  # of schedulers and of dispatchers: an interpreter each
PARTITIONS = int(os.environ.get("PARTITIONS", "2"))  # of each topic: as many as cores, for each has its own commits
UNSENT_MAX = 50_000  # records that the producer may hold: half of what it would
NORMAL, BULK = "normal", "bulk"

TOLD = {  # what is counted of each, in the storm
    "attempt.finished": "outcome",
    "run.finished": "outcome",
    "run.deferred": "reason",
    "breaker.changed": "state",
}
NAMES = [f"t{number:02}" for number in range(1, TENANTS + 1)]
OTHERS, (FLOODS, HANGS, DIES) = NAMES[:-3], NAMES[-3:]


@dataclass(slots=True)
class Run:
    """What became of a run, and when, in seconds of the epoch."""

    tenant: str
    lane: str = ""
    due: float = math.nan
    created: float = math.nan
    handed_out: float = math.nan
    begun: float = math.nan
    finished: float = math.nan
    cause: str = ""


@dataclass(slots=True)
class Story:
    """What `run-events` tells of runs, tenants and slots."""

    runs: dict[str, Run] = field(default_factory=dict)
    counts: defaultdict[tuple[str, str], Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    held: defaultdict[str, list[tuple[float, float]]] = field(default_factory=lambda: defaultdict(list))


class Window(NamedTuple):
    """A phase, in seconds of the epoch, and what each process used of a core meanwhile."""

    start: float
    end: float
    cores: Mapping[str, float]

    @property
    def seconds(self) -> float:
        return self.end - self.start


def main() -> None:
    """Print the table."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # as Ctrl-C does: whatever was started is ended first
    os.environ.setdefault("KAFKA_OPTS", "-XX:TieredStopAtLevel=4")
    load, cores = os.getloadavg()[0], os.cpu_count()
    print(f"{TENANTS} tenants, each {RATE} runs/s of {WORK_SECONDS} s; {WORKERS} workers of {SLOTS} slots", flush=True)
    print(f"{cores} cores, load before {load:.1f}; floor {FLOOR_SECONDS} s, storm {STORM_SECONDS} s", flush=True)
    with tempfile.TemporaryDirectory(prefix="tidewheel-bench-") as folder, Cluster(Path(folder) / "kafka") as cluster:
        (broker,) = children_of(os.getpid())
        fleet = fleet_of(Path(folder), cluster.bootstrap)
        try:
            fleet.start()
            floor, storm, revived = phases(fleet, cluster.bootstrap, broker)
        finally:
            stopped = time.time()
            fleet.stop()
        log = fleet.log()
        tell(read(LogSource(log), storm), floor, storm, stopped)
        print(f"workers started again    {sum(revived.values())}")
        tell_audit(audit(LogSource(log)).as_json())
        log.close()


def fleet_of(folder: Path, bootstrap: str) -> Fleet:
    """PROCESSES for each owning role, and workers on Kafka that have names."""
    roles = {"scheduler": PROCESSES, "dispatcher": PROCESSES, "projector": 1}
    fleet = Fleet(
        folder, bootstrap, namespace=NAMESPACE, roles=roles, workers=0, slots=SLOTS, partitions=PARTITIONS
    )  # fmt: skip
    config = ["--config", str(folder / "tidewheel.toml")]
    queue = [TIDEWHEEL, "admin", "topics", "create", *config, "--queue", "default"]
    subprocess.run(queue, check=True, stdout=subprocess.DEVNULL)
    command = [TIDEWHEEL, "worker", "bench.isolation_tasks:worker", "--slots", str(SLOTS), "--grace", "1"]
    command += ["--bootstrap", bootstrap, "--namespace", NAMESPACE]
    names = [f"worker-{number}" for number in range(WORKERS)]
    environment = {"TIDEWHEEL_BENCH_WORK_SECONDS": WORK_SECONDS}
    fleet.workers = [
        Member(name, command, folder / f"{name}.log", environment | {"TIDEWHEEL_BENCH_WORKER": name}) for name in names
    ]
    return fleet


# --- the two phases ---------------------------------------------------------------------------------------------------


def phases(fleet: Fleet, bootstrap: str, broker: int) -> tuple[Window, Window, Counter[str]]:
    """Floor and storm, one behind the other on the same processes, and who was started again."""
    revived: Counter[str] = Counter()
    first = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=LEAD_SECONDS)
    publish(bootstrap, peace(first))
    watch(fleet, first.timestamp() + START_SECONDS, revived)
    publish(bootstrap, triggers(FLOODS, "warm", WARM))
    watch(fleet, first.timestamp() + START_SECONDS + WARM_UP_SECONDS, revived)
    floor = window(fleet, broker, FLOOR_SECONDS, revived)
    publish(bootstrap, war())
    storm = window(fleet, broker, STORM_SECONDS, revived)
    return floor, storm, revived


def window(fleet: Fleet, broker: int, seconds: int, revived: Counter[str]) -> Window:
    """So many seconds from now on."""
    start, before = time.time(), used(fleet, broker)
    watch(fleet, start + seconds, revived)
    end, after = time.time(), used(fleet, broker)
    return Window(start, end, {name: max(0.0, after[name] - before[name]) / (end - start) for name in after})


def watch(fleet: Fleet, until: float, revived: Counter[str]) -> None:
    """Start again whoever ends, until an instant."""
    while (left := until - time.time()) > 0:
        revived.update(member.name for member in fleet.revive())
        time.sleep(min(left, LOOK_SECONDS))


def used(fleet: Fleet, broker: int) -> dict[str, float]:
    """Processor seconds of each process so far, with those of its children that are over, as Linux counts them."""
    processes = {member.name: member.pid for member in fleet.members} | {"broker": broker}
    return {name: sum(map(int, ticks_of(pid))) / os.sysconf("SC_CLK_TCK") for name, pid in processes.items()}


def ticks_of(pid: int) -> list[str]:
    """Its own and its children's; a process that has just ended has none."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:15]
    except OSError:
        return []


Command = tuple[str, str, dict[str, Any]]  # its kind, its id, its data


def peace(first: datetime) -> Iterator[Command]:
    """All tenants alike, but for the bulk lane of some."""
    for index, tenant in enumerate(NAMES):
        if RUNNING:
            quota = {"queues": {"*": {"running": RUNNING}}}
            yield "tenant.put", "quota", {"tenant": tenant, "name": "_", "definition": {"quota": quota}}
        yield "job.put", "good", job_put(tenant, NORMAL, "bench.short")
        for number in range(RATE):
            yield "schedule.put", "first", schedule_put(tenant, f"s{number}", NORMAL, first)
        if index % BULK_EVERY == 0 and tenant in OTHERS:
            yield "job.put", "good", job_put(tenant, BULK, "bench.short")
            yield "schedule.put", "first", schedule_put(tenant, "bulk", BULK, first)


def war() -> Iterator[Command]:
    """Three go bad."""
    yield "job.put", "bad", job_put(HANGS, NORMAL, "bench.hangs")
    yield "job.put", "bad", job_put(DIES, NORMAL, DYING)
    yield from triggers(FLOODS, "flood", FLOOD)


def triggers(tenant: str, name: str, count: int) -> Iterator[Command]:
    """So many runs by hand, of all schedules of a tenant."""
    for number in range(count):
        yield "schedule.trigger", f"{name}-{number}", {"tenant": tenant, "name": f"s{number % RATE}"}


def job_put(tenant: str, lane: str, task: str) -> dict[str, Any]:
    """A registered job, named as its lane: all of a tenant's schedules have the same, and it has one breaker."""
    target = {"type": "task", "name": task}
    definition = {"target": target, "priority": lane, "timeout": f"PT{TIMEOUT_SECONDS}S"}
    return {"tenant": tenant, "name": lane, "definition": definition}


def schedule_put(tenant: str, name: str, job: str, first: datetime) -> dict[str, Any]:
    """Due every second, somewhere in it."""
    trigger = {"every": "PT1S", "anchor": first.isoformat(), "jitter": "PT1S"}
    definition = {"trigger": trigger, "overlap": {"policy": "allow_all"}, "job": job}
    return {"tenant": tenant, "name": name, "definition": definition}


def publish(bootstrap: str, commands: Iterable[Command]) -> None:
    """As any upstream system does it: by a plain producer."""
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 20})
    for kind, id_, data in commands:
        subject = f"{data['tenant']}/{data['name']}"
        event = {"specversion": "1.0", "id": id_, "source": "bench", "type": f"tidewheel.{kind}.v1", "data": data}
        producer.produce(
            NAMESPACE + topics.SCHEDULE_CHANGES, orjson.dumps(event), subject,
            partition=identity.partition_of(subject, PARTITIONS),
        )  # fmt: skip
        if len(producer) > UNSENT_MAX:
            producer.flush(60)
    assert producer.flush(60) == 0


# --- what the topics tell ---------------------------------------------------------------------------------------------


def read(source: LogSource, storm: Window) -> Story:
    """All of `run-events`."""
    story = Story()
    for partition in range(PARTITIONS):
        for entry in source.entries(topics.RUN_EVENTS, partition, 0):
            note(story, entry.value, counts=entry.appended_at.timestamp() >= storm.start)
    return story


def note(story: Story, event: Mapping[str, Any], *, counts: bool) -> None:
    """One event more. Of what is told twice, the first word counts."""
    kind, data = event["type"].removeprefix("tidewheel.").removesuffix(".v1"), event["data"]
    tenant = data.get("tenant", "")
    if counts and kind in TOLD:
        story.counts[tenant, kind][data[TOLD[kind]]] += 1
    if kind not in ("run.created", "attempt.started", "attempt.finished", "run.finished"):
        return
    run = story.runs.setdefault(f"{tenant}/{data['run_id']}", Run(tenant))
    if kind == "run.created":
        run.lane, run.cause = data["job"]["priority"], data["cause"]
        run.due, run.created = instant(data["due_at"]), instant(data["created_at"])
    elif kind == "attempt.started" and math.isnan(run.begun):
        run.handed_out, run.begun = instant(data["handed_out_at"]), instant(data["started_at"])
    elif kind == "attempt.finished":
        story.held[tenant].append((instant(data["handed_out_at"]), instant(data["finished_at"])))
    elif kind == "run.finished" and math.isnan(run.finished):
        run.finished = instant(data["finished_at"])


def instant(text: str) -> float:
    """Seconds of the epoch."""
    return datetime.fromisoformat(text).timestamp()


# --- figures ----------------------------------------------------------------------------------------------------------


def tell(story: Story, floor: Window, storm: Window, stopped: float) -> None:
    """A line for each tenant, the others together with the marks, and what became of the bad ones."""
    runs = [run for run in story.runs.values() if run.lane]
    normal = {name: [run for run in runs if run.tenant == name and run.lane == NORMAL] for name in NAMES}
    print("tenant     finished/s: floor  storm  ratio     age p50: floor   storm       p99: floor   storm")
    for name in NAMES:
        tell_tenant(name, normal[name], (floor, storm), stopped)
    others = [normal[name] for name in OTHERS]
    tell_others(others, floor, storm, stopped)
    bulk = [run for run in runs if run.lane == BULK]
    p99 = [spelt(ages(bulk, each, stopped), 99) for each in (floor, storm)]
    print(
        f"bulk lane     finished/s floor {rate(bulk, floor):.2f}, storm {rate(bulk, storm):.2f}; p99 {p99[0]}, {p99[1]}"
    )
    if FLOOD:
        tell_flood([run for run in normal[FLOODS] if run.cause == "manual" and run.due >= floor.end], storm)
    for names, what in (([FLOODS], "floods"), ([HANGS], "hangs"), ([DIES], "dies"), (OTHERS, "the others")):
        told = {kind: sum((story.counts[name, kind] for name in names), Counter[str]()) for kind in TOLD}
        mean, most = slots_of([each for name in names for each in story.held[name]], storm)
        said = "; ".join(f"{kind} {listed(counts)}" for kind, counts in told.items() if counts)
        print(f"{what:<13} slots held {mean:.1f}, at most {most}; {said}")
    for word, window_ in (("floor", floor), ("storm", storm)):
        shares = ", ".join(f"{name} {share:.2f}" for name, share in window_.cores.items())
        print(f"cores, {word}  {sum(window_.cores.values()):.2f}: {shares}")


def tell_tenant(name: str, runs: Sequence[Run], windows: Sequence[Window], stopped: float) -> None:
    """One line."""
    was, became = (rate(runs, each) for each in windows)
    old = [ages(runs, each, stopped) for each in windows]
    print(
        f"{name:<10}             {was:6.2f} {became:6.2f}  {became / was if was else math.nan:5.2f}"
        f"              {spelt(old[0], 50)} {spelt(old[1], 50)}           {spelt(old[0], 99)} {spelt(old[1], 99)}"
    )


def tell_others(others: Sequence[Sequence[Run]], floor: Window, storm: Window, stopped: float) -> None:
    """What the marks are about."""
    together = [run for runs in others for run in runs]
    ratios = [rate(runs, storm) / rate(runs, floor) for runs in others if rate(runs, floor)]
    print(
        f"the other {len(others)}: finished   storm/floor {rate(together, storm) / rate(together, floor):.3f}"
        f" (mark: at least {THROUGHPUT_MIN}); the least of them {min(ratios):.3f}"
    )
    was, became = (percentile(ages(together, each, stopped), 99) for each in (floor, storm))
    print(
        f"              age p99    storm/floor {became / was:.2f} (mark: at most {AGE_RATIO_MAX}):"
        f" {became * 1000:.0f} ms, before {was * 1000:.0f} ms"
    )
    jains = [jain([rate(runs, each) for runs in others]) for each in (floor, storm)]
    print(f"              Jain's index of finished {jains[1]:.4f} (mark: at least {JAIN_MIN}); floor {jains[0]:.4f}")
    for word, each in (("floor", floor), ("storm", storm)):
        legs = "   ".join(f"{name} {spelt(took, 50)} / {spelt(took, 99)}" for name, took in legs_of(together, each))
        print(f"              legs in the {word}, p50 / p99   {legs}")


def tell_flood(asked: Sequence[Run], storm: Window) -> None:
    """How quickly it came, and went."""
    last = max((run.created for run in asked), default=math.nan) - storm.start
    served = sum(run.finished < storm.end for run in asked)
    print(f"the flood     {len(asked):,} of {FLOOD:,} created within {last:.0f} s, {served:,} finished in the storm")


def tell_audit(found: Mapping[str, Any]) -> None:
    """What the audit counts in the topics."""
    words = ("due", "created", "missing", "duplicated", "double_outcomes", "unexpected", "undelivered", "open_runs")
    print("audit                    " + ", ".join(f"{word} {found[word]:,}" for word in words))
    print(f"                         skipped {found['skipped']}, pending {found['pending']}")


def rate(runs: Iterable[Run], when: Window) -> float:
    """Runs that ended, a second."""
    return sum(when.start <= run.finished < when.end for run in runs) / when.seconds


def ages(runs: Iterable[Run], when: Window, stopped: float) -> list[float]:
    """Of the runs that were due then: how long they waited for their first attempt."""
    due = (run for run in runs if when.start <= run.due < when.end)
    return [(stopped if math.isnan(run.begun) else run.begun) - run.due for run in due]


def legs_of(runs: Iterable[Run], when: Window) -> Iterator[tuple[str, list[float]]]:
    """The same, apart, of those that have begun."""
    begun = [run for run in runs if when.start <= run.due < when.end and not math.isnan(run.begun)]
    yield "created", [run.created - run.due for run in begun]
    yield "handed out", [run.handed_out - run.created for run in begun]
    yield "begun", [run.begun - run.handed_out for run in begun]


def slots_of(held: Iterable[tuple[float, float]], when: Window) -> tuple[float, int]:
    """How many slots attempts that have ended held then, in the mean and at most."""
    within = [(max(start, when.start), min(end, when.end)) for start, end in held]
    changes = sorted(change for start, end in within if start < end for change in ((start, 1), (end, -1)))
    most = max(accumulate(change for _, change in changes), default=0)
    return sum(end - start for start, end in within if start < end) / when.seconds, most


def jain(rates: Sequence[float]) -> float:
    """One when all have the same, one over their number when one has all."""
    return sum(rates) ** 2 / (len(rates) * sum(each**2 for each in rates)) if any(rates) else math.nan


def spelt(seconds: list[float], percent: int) -> str:
    """A percentile in milliseconds."""
    return f"{percentile(seconds, percent) * 1000:6.0f}ms" if seconds else "      --"


def listed(counts: Counter[str]) -> str:
    """Counts by name."""
    return ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items())) or "none"


if __name__ == "__main__":
    main()
