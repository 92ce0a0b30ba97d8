"""Whole runs, which are needed twice: when one is handed out and when it ends.

A run's row is its state, a line end, and its body as it was created: the body is written once as JSON and then only
copied. Bodies in use are kept, as they are and as JSON, as many as fit a bound; the others are read from their rows.
"""

from __future__ import annotations

from collections import OrderedDict

from dispatcher.run import OpenRun
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
        self._unsaved[fact.run_id] = body
        self._keep(fact, body)

    def get(self, run_id: str) -> RunCreated:
        """The body of an open run."""
        kept = self._kept.get(run_id)
        if kept is not None:
            return kept[0]
        body = self._json(run_id)
        fact = codec.load(RunCreated, codec.parse(body))
        self._keep(fact, body)
        return fact

    def write(self, run: OpenRun) -> None:
        """Write a run's row as it stands now."""
        self.rows.put(run_row(run.run_id), b"\n".join((codec.dump(run), self._json(run.run_id))))
        self._unsaved.pop(run.run_id, None)

    def remove(self, run_id: str) -> None:
        """A run is over: it leaves no row, and one that never had a row leaves no trace of it."""
        if self._unsaved.pop(run_id, None) is None:
            self.rows.delete(run_row(run_id))
        kept = self._kept.pop(run_id, None)
        if kept is not None:
            self._kept_bytes -= len(kept[1])

    def _json(self, run_id: str) -> bytes:
        unsaved = self._unsaved.get(run_id)
        if unsaved is not None:
            return unsaved
        kept = self._kept.get(run_id)
        if kept is not None:
            return kept[1]
        row = self.rows.get(run_row(run_id))
        assert row is not None, f"open run {run_id} has no row"
        return row[row.index(b"\n") + 1 :]

    def _keep(self, fact: RunCreated, body: bytes) -> None:
        self._kept[fact.run_id] = (fact, body)
        self._kept_bytes += len(body)
        while self._kept_bytes > KEPT_BYTES_MAX:
            _, (_, dropped) = self._kept.popitem(last=False)
            self._kept_bytes -= len(dropped)


def run_row(run_id: str) -> bytes:
    """The row of an open run."""
    return RUN + run_id.encode()


def read_run(row: bytes) -> OpenRun:
    """The state in a run's row."""
    return codec.load(OpenRun, codec.parse(row[: row.index(b"\n")]))
