"""Bringing a store up to its changelog when a partition is taken over.

The store holds the changelog up to its checkpoint. Rows behind it are held back until the footer of their
transaction is read; rows and a decision without a footer belong to a torn transaction. Its decision, when whole, is
given back to be rolled forward from the state before it; the held-back rows are dropped. A decision with a part
missing sent nothing and is dropped.

A store that cannot be read, belongs to another cluster, topic or partition, or is ahead of the log, is emptied and
built anew from the whole changelog.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from runtime import footer as framing
from runtime.footer import Decision, Footer
from runtime.partition import Checkpoint, Partition, checkpoint_bytes, read_checkpoint
from runtime.store import StoreCorrupt
from runtime.telemetry import Event, Telemetry
from runtime.workspace import META, ROW, Workspace, split_row_key
from schemas.faults import Refused

if TYPE_CHECKING:
    from collections.abc import Iterator

    from runtime.log import Log
    from runtime.record import Record, TopicPartition
    from runtime.store import Store

READ_RECORDS = 5_000  # of one read while replaying
READ_BYTES = 16 * 1024 * 1024
READ_SECONDS = 0.1  # how long one read may wait: only where a partition ends with a gap that holds no record
TAIL_RECORDS = 4_096  # where the last footer is looked for first: more than most transactions hold
HELD_ROWS_MAX = 20_000  # rows applied at once: a long replay is checkpointed on the way, so that it survives a crash


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """Where the partition stood: its last footer, and a whole decision that has none."""

    footer: Footer | None
    torn: Decision | None


@dataclass(slots=True)
class Replay:
    """What was read behind the checkpoint and is not applied yet."""

    footer: Footer | None
    held: dict[bytes, bytes | None] = field(default_factory=dict)
    released: dict[bytes, bytes | None] = field(default_factory=dict)
    parts: list[bytes] = field(default_factory=list)
    touched: set[bytes] = field(default_factory=set)

    def take(self, record: Record) -> None:
        """Read one changelog record."""
        key, value = record.key or b"", record.value
        if key == framing.FOOTER_KEY:
            assert value is not None
            self._close(framing.read_footer(value))
        elif key.startswith(framing.DECISION_KEY):
            assert value is not None
            if key.endswith(b"0000"):
                self.parts.clear()
            self.parts.append(value)
        else:
            assert key.startswith(ROW), f"unknown changelog key {key!r}"
            self.held[key] = value

    def release(self) -> None:
        """The rows read so far are known to be committed: a footer stands behind them."""
        self.released |= self.held
        self.touched |= {split_row_key(key)[0] for key in self.held}
        self.held = {}

    def _close(self, footer: Footer) -> None:
        assert self.footer is None or footer.sequence >= self.footer.sequence, "the changelog's sequence went back"
        self.footer = footer
        self.release()
        self.parts.clear()

    def torn(self) -> Decision | None:
        """The decision at the end whose footer is missing."""
        decision = framing.join_decision(self.parts) if self.parts else None
        if decision is None or (self.footer is not None and decision.head.sequence <= self.footer.sequence):
            return None
        return decision


def restore(log: Log, store: Store, workspace: Workspace, partition: Partition, telemetry: Telemetry) -> Restored:
    """Apply the changelog's tail to the store; call it only after the predecessor is fenced."""
    checkpoint = _usable_checkpoint(log, store, partition, telemetry)
    begin = log.begin_offset(partition.changelog)
    start = begin if checkpoint is None else max(begin, checkpoint.changelog_offset)
    replay = Replay(footer=None if checkpoint is None else checkpoint.footer)
    end = log.end_offset(partition.changelog)
    covered = _last_footer(log, partition.changelog, start, end)
    for records in _read(log, partition.changelog, start, end):
        for record in records:
            replay.take(record)
        if records[-1].offset < covered:
            replay.release()
        if len(replay.released) > HELD_ROWS_MAX and records[-1].offset < covered:
            _apply(log, store, partition, replay, records[-1].offset + 1)
    _apply(log, store, partition, replay, max(start, covered + 1))
    workspace.reindex(replay.touched)
    workspace.derive_anew()
    telemetry.info(
        Event.PARTITION_RESTORED, records=end - start, keys=len(replay.touched), role=partition.role,
        partition=str(partition.number),
    )  # fmt: skip
    return Restored(footer=replay.footer, torn=replay.torn())


def _read(log: Log, changelog: TopicPartition, start: int, end: int) -> Iterator[list[Record]]:
    """The records in [start, end), in batches."""
    reader = log.open_reader({changelog: start})
    try:
        while reader.position(changelog) < end:
            records = reader.poll(records_max=READ_RECORDS, bytes_max=READ_BYTES, timeout=READ_SECONDS)
            if records:
                yield records
    finally:
        reader.close()


def _last_footer(log: Log, changelog: TopicPartition, start: int, end: int) -> int:
    """The offset of the last footer in [start, end), found from the end; `start - 1` when there is none."""
    window = TAIL_RECORDS
    while True:
        low = max(start, end - window)
        found = [
            record.offset
            for records in _read(log, changelog, low, end)
            for record in records
            if record.key == framing.FOOTER_KEY
        ]
        if found:
            return found[-1]
        if low == start:
            return start - 1
        window *= 8


def _apply(log: Log, store: Store, partition: Partition, replay: Replay, offset: int) -> None:
    """Write released rows and up to where they were read, so that a crash in a long replay loses little.

    While rows are held back the checkpoint stays where it was: they must be read again.
    """
    changes = dict(replay.released)
    if not replay.held or replay.footer is not None:
        checkpoint = Checkpoint(
            cluster_id=log.cluster_id, topic_id=log.topic_id(partition.changelog.topic), role=partition.role,
            partition=partition.number, changelog_offset=offset, footer=replay.footer,
        )  # fmt: skip
        changes[META] = checkpoint_bytes(checkpoint)
    store.apply(changes)
    replay.released = {}


def _usable_checkpoint(log: Log, store: Store, partition: Partition, telemetry: Telemetry) -> Checkpoint | None:
    """The store's checkpoint; None after emptying a store that must not be used."""
    try:
        stored = store.get(META)
        if stored is None:
            reason = "" if next(iter(store.scan(b"", None)), None) is None else "it has no checkpoint"
        else:
            checkpoint = read_checkpoint(stored)
            reason = _unusable(log, partition, checkpoint)
            if not reason:
                return checkpoint
    except (StoreCorrupt, Refused) as error:
        reason = str(error)
    if reason:
        telemetry.error(Event.STORE_QUARANTINED, reason=reason, role=partition.role, partition=str(partition.number))
        store.clear()
    return None


def _unusable(log: Log, partition: Partition, checkpoint: Checkpoint) -> str:
    """Why a store must not be used, or nothing."""
    topic = partition.changelog.topic
    if (checkpoint.cluster_id, checkpoint.topic_id) != (log.cluster_id, log.topic_id(topic)):
        return "it belongs to another log"
    if (checkpoint.role, checkpoint.partition) != (partition.role, partition.number):
        return f"it belongs to {checkpoint.role} partition {checkpoint.partition}"
    if checkpoint.format != 1:
        return f"its format is {checkpoint.format}, this version writes 1"
    if checkpoint.changelog_offset > log.end_offset(partition.changelog):
        return "it is ahead of the log"
    return ""
