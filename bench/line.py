"""The whole line on one machine: `tidewheel dev` on the embedded log, its workers in a child process over HTTP.

start delay      K schedules due on every whole second; start of the user's code minus the nominal instant
whole runs/s     more schedules than can be served; outcomes folded into rows per second while saturated
floor            one loop that writes the same number of records and rows with nothing in between
"""

from __future__ import annotations

import contextlib
import os
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import httpx
from rocksdict import Options, Rdict, WriteBatch

from bench.line_tasks import NOTE
from projections.store import tables

SECONDS = 10
FLOOD_SECONDS = 5
WARM_UP_SECONDS = 3
REGISTERED_PER_SECOND = 60  # by eight clients at once, on a slow day
SLOTS = 1000
RECORDS_PER_RUN, RECORD_BYTES, ROWS_PER_RUN = 10, 420, 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A running server and where its task writes notes."""

    url: str
    data: Path
    notes: Path
    registered_per_second: int = REGISTERED_PER_SECOND


def main() -> None:
    """Print the table."""
    rates = [int(rate) for rate in os.environ.get("RATES", "100,500,1000").split(",") if rate]
    for rate in rates:
        with server() as running:
            delays = start_delays(running, rate)
            p50, p99, worst = percentile(delays, 50), percentile(delays, 99), max(delays)
            print(
                f"start delay at {rate:>5} runs/s   p50 {p50:6.1f} ms   p99 {p99:6.1f} ms   max {worst:6.1f} ms"
                f"   ({len(delays)} starts)"
            )
    with server() as running:
        whole = whole_rate(running, int(os.environ.get("FLOOD", "1500")))
    least = floor()
    print(f"whole runs per second        {whole:8.0f}   floor {least:8.0f}   ratio {whole / least:.3f}")


@contextlib.contextmanager
def server() -> Iterator[Server]:
    """A server in a folder of its own, ended by its process id."""
    with tempfile.TemporaryDirectory(prefix="tidewheel-bench-") as folder:
        port, notes = free_port(), Path(folder) / "notes"
        environment = os.environ | {"TIDEWHEEL_BENCH_NOTES": str(notes), "TIDEWHEEL_WORKER_SLOTS": str(SLOTS)}
        command = [
            str(Path(sys.executable).parent / "tidewheel"),
            "dev",
            "--data",
            f"{folder}/data",
            "--port",
            str(port),
        ]
        log = (Path(folder) / "log").open("wb")
        process = subprocess.Popen(
            [*command, "--tasks", "bench.line_tasks:worker"], env=environment, stdout=log, stderr=log
        )
        url = f"http://127.0.0.1:{port}"
        try:
            wait_until_ready(url, process)
            yield Server(url=url, data=Path(folder) / "data", notes=notes)
        finally:
            process.terminate()
            process.wait(30)


def wait_until_ready(url: str, process: subprocess.Popen[bytes]) -> None:
    """Until /readyz says so."""
    for _ in range(300):
        with contextlib.suppress(httpx.HTTPError):
            if httpx.get(f"{url}/readyz").status_code == httpx.codes.OK:
                return
        if process.poll() is not None:
            break
        time.sleep(0.1)
    raise SystemExit("the server did not become ready")


def register(running: Server, count: int, *, instants: int = 0) -> int:
    """Schedules due every second, or in `instants` seconds only, from when all are registered: that epoch second."""
    first = int(time.time()) + WARM_UP_SECONDS + count // running.registered_per_second

    trigger = (
        {"at": [spelt(first + second) for second in range(instants)]}
        if instants
        else {"every": "PT1S", "anchor": spelt(first)}
    )

    def put(number: int) -> None:
        definition = {
            "trigger": trigger,
            "overlap": {"policy": "allow_all"},
            "job": {"target": {"type": "task", "name": "bench.note"}, "payload": {"number": number}},
        }
        clients[number % 8].put(f"/v1/tenants/bench/schedules/s{number}", json=definition).raise_for_status()

    clients = [httpx.Client(base_url=running.url, timeout=30) for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(put, range(count)))
    assert time.time() < first, "registering took longer than was allowed for"
    return first


def start_delays(running: Server, rate: int) -> list[float]:
    """Milliseconds from nominal instant to start, over SECONDS after the warm-up."""
    first = register(running, rate) + WARM_UP_SECONDS
    time.sleep(first + SECONDS + 1.5 - time.time())
    notes = NOTE.iter_unpack(running.notes.read_bytes())
    window = range(first * 1_000_000, (first + SECONDS) * 1_000_000)
    return [(start - due) / 1000 for _, due, start in notes if due in window]


def whole_rate(running: Server, schedules: int) -> float:
    """Runs a second from the first instant that is due until the last outcome has become a row.

    The flood is finite: more is due in its few seconds than can be served in them.
    """
    first = register(running, schedules, instants=FLOOD_SECONDS)
    time.sleep(first - time.time())
    while finished_rows(running.data) < schedules * FLOOD_SECONDS:
        time.sleep(0.05)
    return schedules * FLOOD_SECONDS / (time.time() - first)


def finished_rows(data: Path) -> int:
    """Runs with an outcome in the read model."""
    model = data / f"read-model-{tables.VERSION}.sqlite"
    with contextlib.closing(sqlite3.connect(f"file:{model}?mode=ro", uri=True)) as rows:
        return int(rows.execute("SELECT count(*) FROM runs WHERE finished_at IS NOT NULL").fetchone()[0])


def floor() -> float:
    """Runs a second of a loop that only writes: the line's records to RocksDB, its rows to SQLite."""
    with tempfile.TemporaryDirectory(prefix="tidewheel-bench-") as folder:
        options = Options(raw_mode=True)
        options.create_if_missing(create_if_missing=True)
        log = Rdict(f"{folder}/log", options)
        rows = sqlite3.connect(f"{folder}/rows.sqlite")
        rows.execute("PRAGMA journal_mode=WAL")
        rows.execute("CREATE TABLE run (id TEXT PRIMARY KEY, body TEXT)")
        began, runs, batch = time.monotonic(), 0, 200
        while time.monotonic() - began < 3:
            write = WriteBatch(raw_mode=True)
            for record in range(batch * RECORDS_PER_RUN):
                write.put((runs * RECORDS_PER_RUN + record).to_bytes(8, "big"), bytes(RECORD_BYTES))
            log.write(write)
            with rows:
                rows.executemany(
                    "INSERT INTO run VALUES (?, ?)",
                    [(f"{runs}-{row}", "x" * 100) for row in range(batch * ROWS_PER_RUN)],
                )
            runs += batch
        rate = runs / (time.monotonic() - began)
        rows.close()
        log.close()
        return rate


def spelt(seconds: int) -> str:
    """An instant as definitions want it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def percentile(values: list[float], percent: int) -> float:
    """The value below which `percent` of them lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]


def free_port() -> int:
    """A port nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


if __name__ == "__main__":
    main()
