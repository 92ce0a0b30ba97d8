"""Hand-out, worker, report over HTTP: bursts into an inbox, a worker process that runs them, and what that costs.

The owner is played here: it appends each burst in a few commits, as the dispatcher does at a whole second.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import Future
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry

from api.app import create_app
from api.appender import Appender
from api.inboxes import InboxFeed
from api.leases import SimpleLeases
from api.relay import WorkerRelay
from api.services import ApiServices, ApiSettings
from bench.line_tasks import NOTE
from node.web import WebServer
from runtime.clock import SystemClock
from runtime.logs.embedded import EmbeddedLog
from runtime.record import Outgoing, TopicPartition
from schemas import codec, topics
from schemas.facts import Cause, JobSnapshot, RetryPolicy, RunCreated
from schemas.internal import HandOut, WorkerReport

BURST = 500
BURSTS = 8
COMMIT = 25  # hand-outs in one append of the owner
PAUSE_SECONDS = 0.002  # between its appends
SLOTS = 1000
RETRY = RetryPolicy(
    max_attempts=3, initial=timedelta(seconds=1), factor=2, max=timedelta(minutes=5), jitter="full"
)  # fmt: skip


def main() -> None:
    """Print the table."""
    with node() as (log, web, registry, inbox), worker(web.url) as (process, notes):
        incarnation = first_report(log).incarnation
        loop = web_loop()
        starts: list[float] = []
        cpu = {"loop": 0.0, "process": 0.0, "worker": 0.0}
        for burst in range(BURSTS + 1):  # the first warms up
            records = hand_outs(incarnation, inbox, burst)
            requests, before = asked(registry), costs(loop, process.pid)
            starts_before = size(notes)
            began, owner = feed(log, records)
            while size(notes) < starts_before + BURST * NOTE.size:
                time.sleep(0.01)
            time.sleep(0.5)
            after = costs(loop, process.pid)
            if burst == 0:
                continue
            for name in cpu:
                cpu[name] += after[name] - before[name] - (owner if name == "process" else 0.0)
            noted = [start / 1e6 - began for _, _, start in NOTE.iter_unpack(notes.read_bytes()[starts_before:])]
            starts += noted
            print(f"burst {burst}: last start {max(noted) * 1e3:6.1f} ms, requests {asked(registry) - requests:4.0f}")
        ordered = sorted(starts)
        p50, p99 = (ordered[len(ordered) * percent // 100] * 1e3 for percent in (50, 99))
        print(f"start p50 {p50:.1f} ms, p99 {p99:.1f} ms")
        runs = BURST * BURSTS
        print(", ".join(f"{name} {seconds / runs * 1e6:.0f} us a run" for name, seconds in cpu.items()))


@contextlib.contextmanager
def node() -> Iterator[tuple[EmbeddedLog, WebServer, CollectorRegistry, int]]:
    """The part of a node that speaks with workers."""
    with tempfile.TemporaryDirectory(prefix="tidewheel-bench-") as folder:
        clock, registry = SystemClock(), CollectorRegistry()
        log = EmbeddedLog(Path(folder) / "log", clock, durability="process")
        log.create(dict.fromkeys(topics.topic_table(topics.Retention()), 1))
        appender = Appender(log)
        feed = InboxFeed(
            log=log, node_id="bench",
            ensure_queue=lambda queue: log.create(
                {topics.dispatch_spec(queue, topics.Retention()): topics.INBOXES}
            ),
        )  # fmt: skip
        relay = WorkerRelay(log=log, appender=appender, feed=feed, now=clock.now)
        web = WebServer(host="127.0.0.1", port=0)
        stub: Any = None  # no request of a worker asks for these
        app = create_app(
            ApiServices(
                log=log, now=clock.now, reader=stub, progress=stub, log_progress=stub, commander=stub,
                appender=appender, relay=relay, leases=SimpleLeases(relay), forecast=stub, arithmetic=stub,
                registry=registry, unready=dict,
                settings=ApiSettings(version="1"),
            )
        )  # fmt: skip
        feed_follow = feed.follow

        async def follow(queue: str, deliver: Any) -> None:
            LOOP.append(asyncio.get_running_loop())
            await feed_follow(queue, deliver)

        feed.follow = follow  # type: ignore[method-assign]  # how the loop becomes known here
        web.serve(app)
        services = (appender, feed, web)
        for service in services:
            service.start()
            assert service.ready(10)
        try:
            yield log, web, registry, feed.inbox
        finally:
            for service in reversed(services):
                service.stop(10)
            log.close()


LOOP: list[asyncio.AbstractEventLoop] = []


def web_loop() -> asyncio.AbstractEventLoop:
    """The loop that serves HTTP."""
    return LOOP[0]


@contextlib.contextmanager
def worker(url: str) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """The task of the line benchmark in a process of its own, and the file of its notes."""
    with tempfile.TemporaryDirectory(prefix="tidewheel-bench-") as folder:
        notes = Path(folder) / "notes"
        environment = os.environ | {"TIDEWHEEL_BENCH_NOTES": str(notes), "TIDEWHEEL_URL": url}
        command = [sys.executable, "-m", "tidewheel.supervised", "bench.line_tasks:worker", "--slots", str(SLOTS)]
        process = subprocess.Popen([*command, "--log-level", "warning"], env=environment, stdin=subprocess.PIPE)
        try:
            yield process, notes
        finally:
            process.kill()
            process.wait()


def first_report(log: EmbeddedLog) -> WorkerReport:
    """The worker's first word."""
    reader = log.open_reader({TopicPartition(topics.ATTEMPTS, 0): 0})
    while not (records := reader.poll(records_max=1, bytes_max=1 << 20, timeout=1.0)):
        pass
    reader.close()
    fact = codec.read_fact(records[0].value or b"")
    assert isinstance(fact, WorkerReport)
    return fact


def hand_outs(incarnation: str, inbox: int, burst: int) -> list[Outgoing]:
    """Records as the dispatcher writes them."""
    now = datetime.now(UTC).replace(microsecond=0)
    job = JobSnapshot(
        queue="default", target={"type": "task", "name": "bench.note"}, payload={"number": 1}, priority="normal",
        timeout=timedelta(hours=1), deadline=timedelta(days=7), lease=timedelta(seconds=30), retry=RETRY,
    )  # fmt: skip
    records = []
    for number in range(BURST):
        offset = burst * BURST + number
        run = RunCreated(
            run_id=f"bench/s{number}/{burst}", tenant="bench", schedule=f"s{number}", version=1, cause=Cause.SCHEDULE,
            nominal_time=now, created_at=now, due_at=now, deadline_at=now + timedelta(days=7), shard=0, job=job,
            rule="cron", tz_version="2026a",
        )  # fmt: skip
        fact = HandOut(
            incarnation=incarnation, inbox=inbox, shard=0, offset=offset, lease=f"default.0.{offset}.key{offset}",
            lease_key=f"key{offset}", lease_duration=timedelta(seconds=30), timeout=timedelta(hours=1),
            start_by=timedelta(seconds=10), attempt=1, may_have_run=False, handed_out_at=now, run=run,
        )  # fmt: skip
        _, value = codec.encode(fact, source="tidewheel/dispatcher/0", time=now)
        records.append(Outgoing(topics.dispatch_topic("default"), inbox, incarnation.encode(), value))
    return records


def feed(log: EmbeddedLog, records: list[Outgoing]) -> tuple[float, float]:
    """Append a burst as its owner does; when that began, and the seconds of CPU it took here."""
    began, cpu = time.time(), time.thread_time()
    for at in range(0, len(records), COMMIT):
        log.append(records[at : at + COMMIT])
        time.sleep(PAUSE_SECONDS)
    return began, time.thread_time() - cpu


def costs(loop: asyncio.AbstractEventLoop, pid: int) -> dict[str, float]:
    """Seconds of CPU so far: the loop's thread, this process, the worker's process."""
    told: Future[float] = Future()
    loop.call_soon_threadsafe(lambda: told.set_result(time.thread_time()))
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    worker_seconds = sum(int(task.read_text().split()[0]) for task in tasks) / 1e9
    return {"loop": told.result(), "process": time.process_time(), "worker": worker_seconds}


def asked(registry: CollectorRegistry) -> float:
    """Requests answered so far."""
    return sum(
        sample.value
        for metric in registry.collect()
        for sample in metric.samples
        if sample.name == "tidewheel_http_requests_total"
    )


def size(path: Path) -> int:
    """Bytes of a file, none when there is none."""
    return path.stat().st_size if path.exists() else 0


if __name__ == "__main__":
    main()
