"""The whole line on one machine: `tidewheel dev` on the embedded log, its workers in a child process over HTTP.

start delay      K schedules due every second; start of the user's code minus the instant at which its run was due
  on the second  all K at the same instant, as `0 * * * *` makes it: the last one waits for K others to be handed out
  spread         by a jitter of a second, evenly: what a run waits for by itself
whole runs/s     more schedules than can be served; outcomes folded into rows per second while saturated: of a finite
                 flood from the first tenth of its rows to the last. In all: from the first instant due to the last row
processor        its time a run, in all, of the server and of its children
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
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import httpx
from rocksdict import Options, Rdict, WriteBatch

from bench.line_tasks import NOTE
from projections.store import tables

SECONDS = 10
FLOOD_SECONDS = 15
LOOK_SECONDS = 0.25  # between looks at how many rows there are, which cost time of the same processors
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
    processes: Mapping[str, int]  # their ids by what they are called in the table
    registered_per_second: int = REGISTERED_PER_SECOND


class Flood(NamedTuple):
    """What became of more runs than could be served: how many a second, and microseconds of processor time a run.

    `rate` is that of the saturated line, `in_all` begins before it is and ends when the last row is there.
    """

    rate: float
    in_all: float
    micros: Mapping[str, float]


def main() -> None:
    """Print the table."""
    rates = [int(rate) for rate in os.environ.get("RATES", "100,500,1000").split(",") if rate]
    for rate in rates:
        for spread in (False, True):
            with server() as running:
                print_delays(running, rate, spread=spread)
    with server() as running:
        whole = flood(running, int(os.environ.get("FLOOD", "2500")))
    least = floor()
    print(
        f"whole runs per second        {whole.rate:8.0f}   floor {least:8.0f}   ratio {whole.rate / least:.3f}"
        f"   in all {whole.in_all:.0f}"
    )
    print_micros(whole)


def print_delays(running: Server, rate: int, *, spread: bool) -> None:
    """One line."""
    delays = start_delays(running, rate, spread=spread)
    p50, p99, worst = percentile(delays, 50), percentile(delays, 99), max(delays)
    shape = "spread" if spread else "on the second"
    print(
        f"start delay at {rate:>5} runs/s, {shape:<13}   p50 {p50:6.1f} ms   p99 {p99:6.1f} ms   max {worst:6.1f} ms"
        f"   ({len(delays)} starts)"
    )


def print_micros(flooded: Flood) -> None:
    """One line."""
    each = "   ".join(f"{name} {micros:.0f} µs" for name, micros in flooded.micros.items())
    print(f"processor time a run         {sum(flooded.micros.values()):8.0f} µs: {each}")


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
            processes = {"server": process.pid} | named_children_of(process.pid)
            yield Server(url=url, data=Path(folder) / "data", notes=notes, processes=processes)
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


def register(running: Server, count: int, *, instants: int = 0, spread: bool = False) -> int:
    """Schedules due every second, or in `instants` seconds only, from when all are registered: that epoch second."""
    first = int(time.time()) + WARM_UP_SECONDS + count // running.registered_per_second

    trigger = (
        {"at": [spelt(first + second) for second in range(instants)]}
        if instants
        else {"every": "PT1S", "anchor": spelt(first)} | ({"jitter": "PT1S"} if spread else {})
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


def start_delays(running: Server, rate: int, *, spread: bool = False) -> list[float]:
    """Milliseconds from the instant at which a run was due to its start, over SECONDS after the warm-up."""
    first = register(running, rate, spread=spread) + WARM_UP_SECONDS
    time.sleep(first + SECONDS + 1.5 - time.time())
    window = range(first * 1_000_000, (first + SECONDS) * 1_000_000)
    notes = [note for note in NOTE.iter_unpack(running.notes.read_bytes()) if note[1] in window]
    due = due_instants(running.data)
    while any(note[:2] not in due for note in notes):  # rows come a moment later than starts
        time.sleep(0.5)
        due = due_instants(running.data)
    return [(start - due[number, nominal]) / 1000 for number, nominal, start in notes]


def due_instants(data: Path) -> dict[tuple[int, int], int]:
    """When each run was due, by the number of its schedule and its nominal instant; all in microseconds."""
    asked = "SELECT CAST(substr(schedule, 2) AS INTEGER), nominal_time, due_at FROM runs"
    with contextlib.closing(read_model(data)) as rows:
        return {(number, nominal * 1000): due * 1000 for number, nominal, due in rows.execute(asked)}


def flood(running: Server, schedules: int) -> Flood:
    """From the first instant that is due until the last outcome has become a row.

    The flood is finite: more is due in its few seconds than can be served in them.
    """
    first = register(running, schedules, instants=FLOOD_SECONDS)
    time.sleep(first - time.time())
    return followed(running, lambda: finished_rows(running.data), schedules * FLOOD_SECONDS)


def followed(running: Server, finished: Callable[[], int], runs: int, *, seconds_max: float = 600) -> Flood:
    """Look how many of the runs have ended until all have, or until nobody waits any more."""
    before, looks = processor_seconds(running), [(time.time(), 0)]
    while looks[-1][1] < runs and looks[-1][0] < looks[0][0] + seconds_max:
        time.sleep(LOOK_SECONDS)
        looks.append((time.time(), finished()))
    after, (ended, done) = processor_seconds(running), looks[-1]
    if done < runs:
        print(f"the flood was cut: {done} of {runs} runs have ended within {seconds_max:.0f} s", flush=True)
    micros = {name: (after[name] - before[name]) / max(1, done) * 1e6 for name in before}
    return Flood(rate_between(looks, done // 10, done - done // 10), done / (ended - looks[0][0]), micros)


def rate_between(looks: Sequence[tuple[float, int]], least: int, most: int) -> float:
    """By the looks at which so many had ended, as near as there are any."""
    began, first = next(look for look in looks if look[1] >= least)
    ended, last = next(look for look in looks if look[1] >= most)
    return (last - first) / max(LOOK_SECONDS, ended - began)


def processor_seconds(running: Server) -> dict[str, float]:
    """What each process has worked so far, as Linux counts it."""
    ticks = os.sysconf("SC_CLK_TCK")
    fields = {
        name: Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        for name, pid in running.processes.items()
    }
    return {name: (int(found[11]) + int(found[12])) / ticks for name, found in fields.items()}


def named_children_of(pid: int) -> dict[str, int]:
    """The processes that a process has started, by their modules, once all of them have become what they are to be."""
    while True:
        named = {module_of(child): child for child in children_of(pid)}
        if "" not in named:
            return named
        time.sleep(0.1)


def module_of(pid: int) -> str:
    """The module that a process was started with, as `python -m module`; empty where it is not yet known."""
    words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    return words[words.index("-m") + 1] if "-m" in words else ""


def children_of(pid: int) -> list[int]:
    """The processes that a process has started."""
    return [int(child) for file in Path(f"/proc/{pid}/task").glob("*/children") for child in file.read_text().split()]


def finished_rows(data: Path) -> int:
    """Runs with an outcome in the read model."""
    with contextlib.closing(read_model(data)) as rows:
        return int(rows.execute("SELECT count(*) FROM runs WHERE finished_at IS NOT NULL").fetchone()[0])


def read_model(data: Path) -> sqlite3.Connection:
    """The rows, to be looked at."""
    return sqlite3.connect(f"file:{data / f'read-model-{tables.VERSION}.sqlite'}?mode=ro", uri=True)


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
