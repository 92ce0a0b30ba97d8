"""Whole runs, which are needed twice: when one is handed out and when it ends.

A run's row is its state, a line end, and its body as it was created: the body is written once as JSON and then only
copied. Bodies in use are kept, as they are and as JSON, as many as fit a bound; the others are read from their rows.
"""

from __future__ import annotations

from collections import OrderedDict

from dispatcher.run import OpenRun, key_of
from runtime.machine import Rows
from schemas import codec
from schemas.facts import RunCreated

KEPT_BYTES_MAX = 8 * 1024 * 1024  # of JSON, some 50 MB of objects: what a few batches hand out and finish
RUN, RUN_END = b"r/", b"r0"  # "0" follows "/"


class Bodies:
    """The bodies of open runs, in rows or about to be."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self._kept: OrderedDict[str, tuple[RunCreated, bytes]] = OrderedDict()  # oldest first
        self._kept_bytes = 0
        self._unsaved: dict[str, bytes] = {}

    def add(self, fact: RunCreated) -> None:
        """A run that has no row yet."""
        body = codec.dump_shared(fact)  # its hand-out carries it
        self._unsaved[key_of(fact)] = body
        self._keep(fact, body)

    def get(self, key: str) -> RunCreated:
        """The body of an open run."""
        kept = self._kept.get(key)
        if kept is not None:
            return kept[0]
        body = self._json(key)
        fact = codec.load(RunCreated, codec.parse(body))
        self._keep(fact, body)
        return fact

    def write(self, run: OpenRun) -> None:
        """Write a run's row as it stands now."""
        key = key_of(run)
        self.rows.put(run_row(key), b"\n".join((codec.dump(run), self._json(key))))
        self._unsaved.pop(key, None)

    def remove(self, key: str) -> None:
        """A run is over: it leaves no row, and one that never had a row leaves no trace of it."""
        if self._unsaved.pop(key, None) is None:
            self.rows.delete(run_row(key))
        kept = self._kept.pop(key, None)
        if kept is not None:
            self._kept_bytes -= len(kept[1])

    def _json(self, key: str) -> bytes:
        unsaved = self._unsaved.get(key)
        if unsaved is not None:
            return unsaved
        kept = self._kept.get(key)
        if kept is not None:
            return kept[1]
        row = self.rows.get(run_row(key))
        assert row is not None, f"open run {key} has no row"
        return row[row.index(b"\n") + 1 :]

    def _keep(self, fact: RunCreated, body: bytes) -> None:
        self._kept[key_of(fact)] = (fact, body)
        self._kept_bytes += len(body)
        while self._kept_bytes > KEPT_BYTES_MAX:
            _, (_, dropped) = self._kept.popitem(last=False)
            self._kept_bytes -= len(dropped)


def run_row(key: str) -> bytes:
    """The row of an open run."""
    return RUN + key.encode()


def read_run(row: bytes) -> OpenRun:
    """The state in a run's row."""
    return codec.load(OpenRun, codec.parse(row[: row.index(b"\n")]))
