r"""The state of one partition as the running batch sees it: stored rows under what the batch has changed so far.

Layout of a partition's store (and, for rows, of its changelog):

    r <len(key)> <key> <row>   a row of a key; also the record key in the changelog
    w <instant ms> <key>       the key wants to be asked at that instant            \\  derived from states,
    e <instant ms> <key>       the same, against the evidence                        |  written in the same batch,
    k <key>                    which w and e entries the key has                    /   never in the changelog
    m                          the checkpoint: up to where the changelog is applied
    d                          what the wakeups were derived with (`Core.derivation`)
"""

from __future__ import annotations

from collections import OrderedDict
from datetime import UTC, datetime, timedelta
from heapq import merge
from typing import TYPE_CHECKING, Any

from runtime.digest import Walk
from runtime.machine import NEVER, PARTITION, Wakeup

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from runtime.machine import Core
    from runtime.store import Store

ROW, AT, EVIDENCE, KEYED, META, DERIVATION = b"r", b"w", b"e", b"k", b"m", b"d"
STATES_MAX = 20_000  # decoded states kept between batches: some 40 MB, and most due keys of a busy partition
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def row_key(key: bytes, row: bytes) -> bytes:
    """Where a key's row stands."""
    return b"".join((ROW, len(key).to_bytes(2, "big"), key, row))


def split_row_key(stored: bytes) -> tuple[bytes, bytes]:
    """The key and the row of a stored row's key."""
    end = 3 + int.from_bytes(stored[1:3], "big")
    return stored[3:end], stored[end:]


def instant_bytes(instant: datetime) -> bytes:
    """Eight bytes that sort as the instants do (instants before 1970 sort as 1970)."""
    return max((instant - _EPOCH) // _MILLISECOND, 0).to_bytes(8, "big")


def instant_of(entry: bytes) -> datetime:
    """The instant of an index entry."""
    return _EPOCH + timedelta(milliseconds=int.from_bytes(entry[1:9], "big"))


def end_of(kind: bytes, until: datetime) -> bytes:
    """The first index entry of `kind` that would be due behind an instant."""
    return kind + (int.from_bytes(instant_bytes(until), "big") + 1).to_bytes(8, "big")


class KeyRows:
    """The rows of one key. Implements `runtime.machine.Rows`."""

    __slots__ = ("_changes", "_prefix", "_store")

    def __init__(self, store: Store, changes: dict[bytes, bytes | None], key: bytes) -> None:
        self._store = store
        self._changes = changes
        self._prefix = row_key(key, b"")

    def get(self, row: bytes) -> bytes | None:
        """One row."""
        full = self._prefix + row
        return self._changes[full] if full in self._changes else self._store.get(full)

    def put(self, row: bytes, value: bytes) -> None:
        """Write one row."""
        self._changes[self._prefix + row] = value

    def delete(self, row: bytes) -> None:
        """Remove one row."""
        self._changes[self._prefix + row] = None

    def scan(
        self, start: bytes = b"", end: bytes | None = None, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """Rows with start <= row < end, in byte order."""
        low = self._prefix + start
        high = _after(self._prefix) if end is None else self._prefix + end
        changed = sorted(
            ((full, value) for full, value in list(self._changes.items()) if low <= full < high), reverse=reverse
        )
        seen = {full for full, _ in changed}
        stored = ((full, value) for full, value in self._store.scan(low, high, reverse=reverse) if full not in seen)
        cut = len(self._prefix)
        for full, value in merge(changed, stored, key=lambda item: item[0], reverse=reverse):
            if value is not None:
                yield full[cut:], value


def _after(prefix: bytes) -> bytes:
    """The first key behind all that begin with `prefix` (which never is all 0xff here: it begins with a letter)."""
    number = int.from_bytes(prefix, "big") + 1
    return number.to_bytes(len(prefix), "big")


_ENDS = {kind: _after(kind) for kind in (AT, EVIDENCE)}  # of the indexes


class Workspace:
    """States, rows and wakeups of one partition between two commits."""

    def __init__(self, core: Core[Any], store: Store) -> None:
        self._core = core
        self._store = store
        self.walk = Walk(store)
        self._states: OrderedDict[bytes, Any] = OrderedDict()
        self._dirty: dict[bytes, None] = {}
        self._changes: dict[bytes, bytes | None] = {}
        self._asked: dict[bytes, Wakeup] = {}  # what states at hand want, until a fact changes them
        self._wakeups: dict[bytes, Wakeup] = {}
        self._staged: dict[bytes, bytes | None] = {}
        self._staged_index: dict[bytes, bytes | None] = {}  # those of them that are derived
        self._floors: dict[bytes, bytes | None] = {AT: AT, EVIDENCE: EVIDENCE}
        self._gone = {AT, EVIDENCE}  # of which the first entry is to be sought from its floor
        self._opened = False  # whether the core was asked what is to be said first

    @property
    def shared(self) -> Any:
        """What all keys of the partition share."""
        return self.state(PARTITION)

    def state(self, key: bytes) -> Any:
        """The state of a key, loaded when it is not at hand."""
        state = self._states.get(key)
        if state is None:
            state = self._states[key] = self._core.load(key, self._rows(key))
        else:
            self._states.move_to_end(key)
        return state

    def evolve(self, key: bytes, fact: Any) -> None:
        """Let a fact change a key's state."""
        state = self._states.get(key) or self.state(key)  # at hand: the fact was decided on it
        self._states[key] = self._core.evolve(state, fact)
        self._dirty[key] = None
        self._asked.pop(key, None)

    def wakeup(self, key: bytes) -> Wakeup:
        """When a key wants to be asked again."""
        wakeup = self._asked.get(key)
        if wakeup is None:
            wakeup = self._asked[key] = self._core.wakeup(self.state(key))
        return wakeup

    def touched_keys(self) -> list[bytes]:
        """Keys that facts of this batch changed."""
        return list(self._dirty)

    def stage(self) -> dict[bytes, bytes | None]:
        """What the batch changed: rows (for the changelog) and derived index entries, ready for one store batch."""
        for key in self._dirty:
            self._core.save(key, self._states[key], self._rows(key))
        rows = dict(self._changes)
        self.walk.change(rows)
        index: dict[bytes, bytes | None] = {}
        for key in self._dirty:
            self._index(key, index)
        self._staged, self._staged_index = rows | index, index
        return rows

    def apply(self, extra: dict[bytes, bytes | None]) -> None:
        """Make the staged batch, with `extra`, part of the store."""
        self._store.apply(self._staged | extra)
        for entry, value in self._staged_index.items():
            self._move_floor(entry, value)
        self._dirty.clear()
        self._changes.clear()
        self._staged, self._staged_index = {}, {}
        self._forget_old_states()

    def due(self, kind: bytes, until: datetime, *, after: bytes, limit: int) -> list[bytes]:
        """Index entries of `kind` due at or before `until`, the first `limit` behind the entry `after`."""
        start = max(self._floor(kind), after + b"\0" if after else kind)
        entries: list[bytes] = []
        for entry, _ in self._store.scan(start, end_of(kind, until)):
            entries.append(entry)
            if len(entries) >= limit:
                break
        return entries

    def drop_if_stale(self, entry: bytes) -> None:
        """Remove an index entry that no state wants any more: it would be found due for ever."""
        key, kind = entry[9:], entry[:1]
        if key in self._dirty:
            return  # its entries are written anew with the batch
        wakeup = self.wakeup(key)
        wanted = wakeup.at if kind == AT else wakeup.on_evidence_at
        if wanted is None or instant_bytes(wanted) != entry[1:9]:
            self._store.apply({entry: None})
            self._move_floor(entry, None)

    def earliest_wakeup(self) -> datetime | None:
        """The earliest wakeup of either kind: of those that are stored, and of keys that the batch has changed."""
        stored = [instant_of(floor) for kind, end in _ENDS.items() if (floor := self._floor(kind)) != end]
        changed = [at for key in self._dirty for at in _instants(self.wakeup(key)) if at is not None]
        return min(stored + changed, default=None)

    def reindex(self, keys: set[bytes]) -> None:
        """Derive the wakeups of keys whose rows were replayed, in store batches of bounded size."""
        index: dict[bytes, bytes | None] = {}
        for key in sorted(keys):
            self.state(key)
            self._index(key, index)
            if len(index) > STATES_MAX:
                self._store.apply(index)
                index = {}
                self._forget_old_states()
        self._store.apply(index)
        self._floors, self._gone = {AT: AT, EVIDENCE: EVIDENCE}, {AT, EVIDENCE}

    def opening(self, now: datetime) -> Sequence[Any]:
        """What the core has to say when it has been opened; once."""
        if self._opened:
            return ()
        self._opened = True
        return self._core.opened(self._all_states(), self.shared, now)

    def states(self, keys: Iterable[bytes] | None = None) -> Iterator[Any]:
        """The states of these keys, or of every stored one; between batches. One look a key, whatever rows it has."""
        if keys is not None:
            yield from map(self.state, keys)
            return
        first = next(iter(self._store.scan(ROW, _after(ROW))), None)
        while first is not None:
            key, _ = split_row_key(first[0])
            yield self.state(key)
            self._forget_old_states()
            first = next(iter(self._store.scan(_after(row_key(key, b"")), _after(ROW))), None)

    def _all_states(self) -> Iterator[Any]:
        """Every stored key's, one after another; no more of them are kept at hand than ever. Before any is changed."""
        before = None
        for stored, _ in self._store.scan(ROW, _after(ROW)):
            key, _ = split_row_key(stored)
            if key != before:
                before = key
                yield self.state(key)
                self._forget_old_states()

    def derive_anew(self) -> None:
        """Derive every key's wakeup again when they were derived with something else."""
        wanted = self._core.derivation.encode()
        if self._store.get(DERIVATION) != wanted:
            self.reindex({split_row_key(stored)[0] for stored, _ in self._store.scan(ROW, _after(ROW))})
            self._store.apply({DERIVATION: wanted})

    def _rows(self, key: bytes) -> KeyRows:
        return KeyRows(self._store, self._changes, key)

    def _index(self, key: bytes, index: dict[bytes, bytes | None]) -> None:
        wakeup = self.wakeup(key)
        before = self._wakeups.get(key) or self._stored_wakeup(key)
        if wakeup == before:
            return
        for kind, old, new in (
            (AT, before.at, wakeup.at),
            (EVIDENCE, before.on_evidence_at, wakeup.on_evidence_at),
        ):
            if old is not None:
                index[kind + instant_bytes(old) + key] = None
            if new is not None:
                index[kind + instant_bytes(new) + key] = b""
        index[KEYED + key] = _wakeup_bytes(wakeup)
        self._wakeups[key] = wakeup

    def _stored_wakeup(self, key: bytes) -> Wakeup:
        stored = self._store.get(KEYED + key)
        return NEVER if stored is None else _wakeup_of(stored)

    def _floor(self, kind: bytes) -> bytes:
        """The first entry of `kind`, sought from the last known one: deleted entries are not walked over twice."""
        floor = self._floors[kind]
        if floor is not None and kind in self._gone:
            first = next(iter(self._store.scan(floor, _ENDS[kind])), None)
            floor = self._floors[kind] = None if first is None else first[0]
            self._gone.remove(kind)
        return floor if floor is not None else _ENDS[kind]

    def _move_floor(self, entry: bytes, value: bytes | None) -> None:
        """Whether an entry that was written is the first one now, or was it and is gone."""
        kind = entry[:1]
        if kind not in self._floors:
            return
        floor = self._floors[kind]
        if value is None:
            if entry == floor:
                self._gone.add(kind)
        elif floor is None or entry < floor:
            self._floors[kind] = entry
            self._gone.discard(kind)

    def forget_states(self) -> None:
        """Load each state anew when it is next asked for, as a new owner does. Between batches."""
        self._states.clear()
        self._asked.clear()
        self._wakeups.clear()

    def _forget_old_states(self) -> None:
        while len(self._states) > STATES_MAX:
            key, _ = self._states.popitem(last=False)
            self._asked.pop(key, None)
            self._wakeups.pop(key, None)


def _instants(wakeup: Wakeup) -> tuple[datetime | None, datetime | None]:
    return wakeup.at, wakeup.on_evidence_at


def _wakeup_bytes(wakeup: Wakeup) -> bytes:
    return b"".join(b"\xff" * 8 if part is None else instant_bytes(part) for part in _instants(wakeup))


def _wakeup_of(stored: bytes) -> Wakeup:
    at, evidence = (None if part == b"\xff" * 8 else instant_of(b" " + part) for part in (stored[:8], stored[8:]))
    return Wakeup(at=at, on_evidence_at=evidence)
