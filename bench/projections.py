"""What the projector costs: processor time for a run, and how long a run takes it beside busy threads.

No log: records are made beforehand, so what is measured is read, fold, upsert, commit. Bare sqlite3 writing the same
rows is the measure beside it. The neighbours count in Python: wherever the projector lets go of the interpreter, one of
them takes it, and gives it back milliseconds later. PostgreSQL does its part in processes of its own: of its time only
what passes here is counted.
"""

from __future__ import annotations

import contextlib
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from projections import batch
from projections.store import tables
from projections.store.database import open_database
from projections.store.writer import Writer
from runtime.record import Record, TopicPartition
from schemas import topics
from tests.projections import histories
from tests.support.postgres import LocalServer, NoServer

RUNS = 2_000
BATCH = 500
NEIGHBOURS = 3
SCHEDULES = 200


def main() -> None:
    records = make_records(RUNS)
    with tempfile.TemporaryDirectory() as folder, postgresql(folder) as server:
        alone = project(records, f"sqlite:///{folder}/alone.sqlite")
        beside = beside_counters(lambda: project(records, f"sqlite:///{folder}/beside.sqlite"))
        written = rows_in(f"sqlite:///{folder}/alone.sqlite")
        floor = bare_sqlite(written, f"{folder}/bare")
        shared = project(records, server) if server else None
    rows = sum(map(len, written.values()))
    print(f"{len(records):,} events of {RUNS:,} runs, {rows:,} rows; microseconds for a run:")
    print(f"projector alone     {_each(alone.wall)} wall  {_each(alone.processor)} processor")
    print(f"beside busy threads {_each(beside.wall)} wall  {_each(beside.processor)} processor")
    print(f"bare sqlite3        {_each(floor.wall)} wall  {_each(floor.processor)} processor  (the final rows, once)")
    if shared is None:
        print("on PostgreSQL       not measured: there is no server on this machine")
    else:
        rate = f"{rows / shared.wall:,.0f} rows/s"
        print(f"on PostgreSQL       {_each(shared.wall)} wall  {_each(shared.processor)} processor  ({rate})")


@contextlib.contextmanager
def postgresql(folder: str) -> Iterator[str | None]:
    """A server with its own defaults, where there is one."""
    try:
        server = LocalServer(Path(f"{folder}-pg"), settings=())
    except NoServer:
        yield None
        return
    server.create()
    server.start()
    yield server.url
    server.stop()
    server.remove()


def _each(seconds: float) -> str:
    return f"{seconds / RUNS * 1e6:7.1f}"


class Cost(NamedTuple):
    """Seconds that something took, and that a processor worked for it in this thread."""

    wall: float
    processor: float


def cost_of(work: Callable[[], None]) -> Cost:
    wall, processor = time.perf_counter(), time.thread_time()
    work()
    return Cost(time.perf_counter() - wall, time.thread_time() - processor)


def beside_counters(work: Callable[[], Cost]) -> Cost:
    """The cost of work while other threads never wait."""
    enough = threading.Event()
    threads = [threading.Thread(target=_count, args=(enough,)) for _ in range(NEIGHBOURS)]
    for thread in threads:
        thread.start()
    cost = work()
    enough.set()
    for thread in threads:
        thread.join()
    return cost


def _count(enough: threading.Event) -> None:
    number = 0
    while not enough.is_set():
        number += 1


def make_records(runs: int) -> list[Record]:
    """Runs in flight beside each other, as they would be: a run's events are some hundred records apart."""
    at = datetime(2026, 3, 1, tzinfo=UTC)
    stories = [histories.succeeded(f"schedule-{n % SCHEDULES}", n // SCHEDULES * 60, handout=n) for n in range(runs)]
    facts = [stories[n - lag * 300][lag] for n in range(runs + 900) for lag in range(4) if 0 <= n - lag * 300 < runs]
    made = []
    for offset, fact in enumerate(facts):
        out = histories.record(fact, sequence=offset)
        made.append(Record(out.topic, 0, offset, out.key, out.value, out.headers, at))
    return made


def project(records: list[Record], url: str) -> Cost:
    database = open_database(url)
    writer = Writer(database)
    writer.belong_to({}, anew=True)
    cost = cost_of(lambda: _project(records, writer))
    database.dispose()
    return cost


def _project(records: list[Record], writer: Writer) -> None:
    place = TopicPartition(topics.RUN_EVENTS, 0)
    positions: dict[TopicPartition, int] = {}
    for start in range(0, len(records), BATCH):
        some = records[start : start + BATCH]
        new = {place: some[-1].offset + 1}
        writer.apply(batch.fold(batch.read_all(some), writer.load), positions, new)
        positions = new


def rows_in(url: str) -> dict[str, list[tuple[object, ...]]]:
    with open_database(url).connect() as connection:
        return {
            name: [tuple(row) for row in connection.exec_driver_sql(f"SELECT * FROM {name}")]
            for name in tables.PROJECTED
        }


def bare_sqlite(written: dict[str, list[tuple[object, ...]]], path: str) -> Cost:
    """The least that the database itself costs: the same rows, tables and indexes, executemany, same batches."""
    database = open_database(f"sqlite:///{path}.sqlite")
    database.belong_to({}, anew=True)
    database.dispose()
    connection = sqlite3.connect(f"{path}-{tables.VERSION}.sqlite")
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")
    cost = cost_of(lambda: _insert(connection, written))
    connection.close()
    return cost


def _insert(connection: sqlite3.Connection, written: dict[str, list[tuple[object, ...]]]) -> None:
    for start in range(0, RUNS, BATCH // 4):
        for name, rows in written.items():
            share = rows[len(rows) * start // RUNS : len(rows) * (start + BATCH // 4) // RUNS]
            marks = ", ".join("?" for _ in tables.PROJECTED[name].columns)
            connection.executemany(f"INSERT OR REPLACE INTO {name} VALUES ({marks})", share)
        connection.commit()


if __name__ == "__main__":
    main()
