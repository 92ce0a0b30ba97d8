"""What a task of the storm notes for itself: a ledger of its executions, and writes to a database of its user.

Tidewheel knows nothing of either. The ledger is one file for each process, to which a line is appended when an
execution begins and one when it ends, so that what was begun and never ended is seen. The database does what the guide
for workers says: it remembers the largest fencing token of a run and refuses a smaller one, in the transaction that
writes; what it did with each write is noted in the same transaction.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from collections.abc import Iterator

BUSY_SECONDS = 120  # a writer may be frozen in the middle of its transaction, and the others wait for it

_TABLES = """
CREATE TABLE results (run TEXT PRIMARY KEY, token INTEGER NOT NULL, step TEXT NOT NULL);
CREATE TABLE writes (number INTEGER PRIMARY KEY, run TEXT NOT NULL, token INTEGER NOT NULL, accepted INTEGER NOT NULL);
"""
_FENCED = """
INSERT INTO results (run, token, step) VALUES (?, ?, ?)
ON CONFLICT (run) DO UPDATE SET token = excluded.token, step = excluded.step WHERE excluded.token >= results.token
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """One call of the task, as its process noted it; instants in seconds of the wall clock.

    `outcome` is `succeeded`, `failed` or `stopped` (it was interrupted from outside), and empty while it has not ended.
    """

    line: str  # where its beginning stands: file and number
    worker: str
    pid: int
    run: str
    attempt: int
    token: int
    begun: float
    ended: float | None = None
    outcome: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """What the database did with a write."""

    run: str
    token: int
    accepted: bool


class Ledger:
    """The file of one process."""

    def __init__(self, folder: Path, worker: str) -> None:
        path = folder / f"{worker}.{os.getpid()}.jsonl"
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    @contextlib.contextmanager
    def execution(self, *, run: str, attempt: int, token: int) -> Iterator[None]:
        """Note that an execution begins, and how it ends."""
        self._note(run=run, token=token, attempt=attempt, begun=time.time())
        outcome = "failed"
        try:
            yield
            outcome = "succeeded"
        except asyncio.CancelledError:
            outcome = "stopped"
            raise
        finally:
            self._note(run=run, token=token, outcome=outcome, ended=time.time())

    def _note(self, **line: Any) -> None:
        os.write(self._file, orjson.dumps(line) + b"\n")  # in one call: no other line comes between


def executions(folder: Path) -> list[Execution]:
    """All that was noted."""
    return [each for path in sorted(folder.glob("*.jsonl")) for each in _of_process(path)]


def _of_process(path: Path) -> Iterator[Execution]:
    worker, pid, _ = path.name.rsplit(".", 2)
    ends: dict[tuple[str, int], dict[str, Any]] = {}
    begins: list[tuple[int, dict[str, Any]]] = []
    for number, text in enumerate(path.read_bytes().splitlines(), 1):
        line = orjson.loads(text)
        if "begun" in line:
            begins.append((number, line))
        else:
            ends[line["run"], line["token"]] = line
    for number, line in begins:
        end = ends.get((line["run"], line["token"]), {})
        yield Execution(
            line=f"{path.name}:{number}", worker=worker, pid=int(pid), run=line["run"], attempt=line["attempt"],
            token=line["token"], begun=line["begun"], ended=end.get("ended"), outcome=end.get("outcome", ""),
        )  # fmt: skip


def create_database(path: Path) -> None:
    """An empty one. Nothing is waited for to reach a disk: what a kill takes is memory."""
    with closing(sqlite3.connect(path)) as database:
        database.executescript("PRAGMA journal_mode = WAL;" + _TABLES)


def write(path: Path, *, run: str, token: int, step: str) -> bool:
    """Write with a fencing check; whether it was accepted."""
    with closing(sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None)) as database:
        database.execute("PRAGMA synchronous = OFF")
        database.execute("BEGIN IMMEDIATE")
        accepted = database.execute(_FENCED, (run, token, step)).rowcount == 1
        database.execute("INSERT INTO writes (run, token, accepted) VALUES (?, ?, ?)", (run, token, accepted))
        database.execute("COMMIT")
    return accepted


def writes(path: Path) -> list[Write]:
    """What was done with each, in order."""
    with closing(sqlite3.connect(path)) as database:
        rows = database.execute("SELECT run, token, accepted FROM writes ORDER BY number").fetchall()
    return [Write(run=run, token=token, accepted=bool(accepted)) for run, token, accepted in rows]
