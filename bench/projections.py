"""How many runs a second the projector turns into rows, against bare sqlite3 writing the same rows.

One core, no log: records are made beforehand, so what is measured is read, fold, upsert, commit.
"""

from __future__ import annotations

import sqlite3
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from projections import batch
from projections.store import tables
from projections.store.database import open_database
from projections.store.dialect import upsert
from projections.store.writer import Writer
from runtime.record import Record, TopicPartition
from schemas import topics
from tests.projections import histories

RUNS = 8_000
BATCH = 2_000
SCHEDULES = 200


def main() -> None:
    records = make_records(RUNS)
    with tempfile.TemporaryDirectory() as folder:
        seconds, written = project(records, Path(folder) / "model.sqlite")
        floor = bare_sqlite(written, Path(folder) / "bare.sqlite")
    rows = sum(map(len, written.values()))
    print(f"{len(records):,} events of {RUNS:,} runs, {rows:,} rows")
    print(f"projector     {RUNS / seconds:9,.0f} runs/s  {rows / seconds:9,.0f} rows/s")
    print(f"bare sqlite3  {RUNS / floor:9,.0f} runs/s  {rows / floor:9,.0f} rows/s  (the final rows, once)")
    print(f"ratio         {floor / seconds:9.2f}")


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


def project(records: list[Record], path: Path) -> tuple[float, dict[str, list[tuple[object, ...]]]]:
    engine = open_database(f"sqlite:///{path}")
    writer = Writer(engine)
    place = TopicPartition(topics.RUN_EVENTS, 0)
    began = time.perf_counter()
    positions: dict[TopicPartition, int] = {}
    for start in range(0, len(records), BATCH):
        some = records[start : start + BATCH]
        new = {place: some[-1].offset + 1}
        writer.apply(batch.fold(batch.read_all(some), writer.load), positions, new)
        positions = new
    seconds = time.perf_counter() - began
    with sqlite3.connect(path) as connection:
        written = {name: connection.execute(f"SELECT * FROM {name}").fetchall() for name in tables.PROJECTED}
    engine.dispose()
    return seconds, written


def bare_sqlite(written: dict[str, list[tuple[object, ...]]], path: Path) -> float:
    """The least that the database itself costs: the same rows, tables and indexes, executemany, same batches."""
    engine = open_database(f"sqlite:///{path}")
    dialect = engine.dialect
    engine.dispose()
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")
    began = time.perf_counter()
    for start in range(0, RUNS, BATCH // 4):
        for name, rows in written.items():
            share = len(rows) * start // RUNS, len(rows) * (start + BATCH // 4) // RUNS
            statement = upsert(tables.PROJECTED[name], dialect, once=False)
            connection.executemany(statement.sql, rows[slice(*share)])
        connection.commit()
    seconds = time.perf_counter() - began
    connection.close()
    return seconds


if __name__ == "__main__":
    main()
