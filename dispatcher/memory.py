"""What a shard remembers of what is over: the outcome of each run, and the hand-outs it took back.

Both are kept as long as `runs` is retained, and forgotten in bounded steps, oldest first. Rows:

    d/<run>             the outcome of a run, by its key (`run.key_of`)
    t/<number>          sixty-four keys in the order in which they finished: so that forgetting needs no search
    e/<offset>          a hand-out that ended without its worker's word: so that a late report is known for what it is
"""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import islice

from runtime.machine import Rows
from schemas import codec
from schemas.facts import AttemptOutcome, Outcome
from schemas.frozen import frozen

IDS_PER_ROW = 64  # a full row is some 4 KiB; the last one is written anew with each batch that finishes a run
ROWS_PER_STEP = 4  # with their ids 260 rows are deleted at a time: well under a millisecond
PAST_PER_STEP = 256
SLACK = timedelta(minutes=10)  # forgotten later than necessary: clocks of two partitions differ, and steps are fuller


@frozen
class Remembered:
    """How a run ended. `event_id` is what its outcome goes by, also when it is repeated."""

    outcome: Outcome
    attempts: int
    finished_at: datetime
    event_id: str
    started_at: datetime | None = None


@frozen
class PastLease:
    """A hand-out that ended without its worker's word."""

    offset: int
    run_id: str
    tenant: str
    schedule: str
    attempt: int
    incarnation: str
    worker: str
    lease: str
    outcome: AttemptOutcome
    ended_at: datetime


@frozen
class FinishedIds:
    """Runs in the order in which they finished; `until` is when the last of them did."""

    until: datetime
    run_ids: tuple[str, ...]  # keys, since ids alone are unique within a tenant only


class Memory:
    """Outcomes and past hand-outs in rows. `finished` and `forgotten` count ids and full rows since the beginning."""

    def __init__(self, rows: Rows, retention: timedelta, *, finished: int, forgotten: int) -> None:
        self.rows = rows
        self._retention = retention
        self.finished = finished
        self.forgotten = forgotten
        open_row = self._ids(finished // IDS_PER_ROW) if finished % IDS_PER_ROW else None
        self._open: list[str] = [] if open_row is None else list(open_row.run_ids)
        self._open_until: datetime | None = None if open_row is None else open_row.until
        self._dirty = False
        self._oldest_ids_until = self._find_oldest_ids()
        self._oldest_past = self._find_oldest_past()

    def recall(self, key: str) -> Remembered | None:
        """How a run ended, if it is over and not forgotten."""
        row = self.rows.get(_outcome_row(key))
        return None if row is None else codec.load(Remembered, codec.parse(row))

    def knows(self, key: str) -> bool:
        """Whether a run is over and not forgotten."""
        return self.rows.get(_outcome_row(key)) is not None

    def past(self, offset: int) -> PastLease | None:
        """The hand-out at `offset`, if it ended without its worker's word and is not forgotten."""
        row = self.rows.get(_past_row(offset))
        return None if row is None else codec.load(PastLease, codec.parse(row))

    def trim_at(self) -> datetime | None:
        """When the oldest of it has to be forgotten."""
        oldest_past = None if self._oldest_past is None else self._oldest_past[1]
        instants = [instant for instant in (self._oldest_ids_until, oldest_past) if instant is not None]
        return min(instants) + self._retention + SLACK if instants else None

    def keeps_since(self, now: datetime) -> datetime:
        """What ended at this instant or later is certainly remembered."""
        return now - self._retention

    def remember(self, key: str, remembered: Remembered) -> None:
        """A run is over."""
        self.rows.put(_outcome_row(key), codec.dump(remembered))
        self._open.append(key)
        self._open_until = remembered.finished_at
        self.finished += 1
        self._dirty = True
        if len(self._open) == IDS_PER_ROW:
            self._write_open((self.finished - 1) // IDS_PER_ROW)
            self._open = []
            if self._oldest_ids_until is None:
                self._oldest_ids_until = self._open_until

    def note_past(self, lease: PastLease) -> None:
        """A hand-out ended without its worker's word."""
        self.rows.put(_past_row(lease.offset), codec.dump(lease))
        if self._oldest_past is None or lease.offset < self._oldest_past[0]:
            self._oldest_past = (lease.offset, lease.ended_at)

    def trim(self, until: datetime) -> None:
        """Forget a bounded part of what ended before `until`."""
        for _ in range(ROWS_PER_STEP):
            if self._oldest_ids_until is None or self._oldest_ids_until >= until:
                break
            self._forget_row(self.forgotten)
        for row, value in list(islice(self.rows.scan(_PAST, _PAST_END), PAST_PER_STEP)):
            if codec.load(PastLease, codec.parse(value)).ended_at >= until:
                break
            self.rows.delete(row)
        self._oldest_past = self._find_oldest_past()

    def save(self) -> None:
        """Write the ids that do not fill a row yet."""
        if self._dirty and self._open:
            self._write_open(self.finished // IDS_PER_ROW)
        self._dirty = False

    def _write_open(self, number: int) -> None:
        assert self._open_until is not None
        ids = FinishedIds(until=self._open_until, run_ids=tuple(self._open))
        self.rows.put(_ids_row(number), codec.dump(ids))

    def _forget_row(self, number: int) -> None:
        ids = self._ids(number)
        assert ids is not None, f"row {number} of finished ids is missing"
        for key in ids.run_ids:
            self.rows.delete(_outcome_row(key))
        self.rows.delete(_ids_row(number))
        self.forgotten += 1
        self._oldest_ids_until = self._find_oldest_ids()

    def _ids(self, number: int) -> FinishedIds | None:
        row = self.rows.get(_ids_row(number))
        return None if row is None else codec.load(FinishedIds, codec.parse(row))

    def _find_oldest_ids(self) -> datetime | None:
        """Until when the oldest full row reaches; the one that is being filled is not counted."""
        if self.forgotten >= self.finished // IDS_PER_ROW:
            return None
        ids = self._ids(self.forgotten)
        assert ids is not None, f"row {self.forgotten} of finished ids is missing"
        return ids.until

    def _find_oldest_past(self) -> tuple[int, datetime] | None:
        for _, value in self.rows.scan(_PAST, _PAST_END):
            oldest = codec.load(PastLease, codec.parse(value))
            return oldest.offset, oldest.ended_at
        return None


_PAST, _PAST_END = b"e/", b"e0"  # "0" follows "/"


def _outcome_row(key: str) -> bytes:
    return b"d/" + key.encode()


def _ids_row(number: int) -> bytes:
    return b"t/%016x" % number


def _past_row(offset: int) -> bytes:
    return b"e/%016x" % offset
