"""Bringing a store up to its changelog when a partition is taken over.

The store holds the changelog up to its checkpoint. Rows behind it are held back until the footer of their
transaction is read; rows and a decision without a footer belong to a torn transaction. Its decision, when whole, is
given back to be rolled forward from the state before it; the held-back rows are dropped. A decision with a part
missing sent nothing and is dropped.

A transaction that hung, and that an owner has ended behind the last footer (`runtime.hanging`), may be whole here and
have been aborted elsewhere: its decision is given back as well where its footer is there, to be carried out once more
from the state before it. A store that has it already, as its owner was told that it is committed, is emptied and built
anew: what was sent may hang elsewhere, and go with an abort there. One that was aborted after all is given back from
its copy.

A store that cannot be read, belongs to another cluster, role or partition, is ahead of the log, or does not fit to it,
is set aside and built anew from the whole changelog, unless there is nothing to build it from (`runtime.continuity`
says when a partition halts instead). It fits when the footer that it knows stands right before its position, and the
next one behind it is of the next transaction. In a changelog that has moved on by more than its compaction lag both may
be gone: then the next one need only be a later one.

One that was away for longer than deletions stay in the changelog is emptied and built anew: it would keep what was
deleted meanwhile. A restore that is cut short goes on where it was: rows are in the store before the checkpoint says
so, and wakeups are derived before it says that all is done, or all of them anew by the next one.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import count, takewhile
from typing import TYPE_CHECKING

from runtime import continuity, hanging, ranges, verification
from runtime import footer as framing
from runtime.footer import Decision, Footer
from runtime.logs.keeping import TOMBSTONES_KEPT
from runtime.partition import Checkpoint, Partition, checkpoint_bytes, read_checkpoint
from runtime.store import StoreCorrupt
from runtime.telemetry import Event, Metric, Telemetry
from runtime.workspace import DERIVATION, META, ROW, Workspace, split_row_key
from schemas.faults import Refused

if TYPE_CHECKING:
    from runtime.clock import Clock
    from runtime.log import Log
    from runtime.record import Record, TopicPartition
    from runtime.store import Store

TAIL_RECORDS = 4_096  # where the last footer is looked for first: more than most transactions hold
HELD_ROWS_MAX = 20_000  # rows applied at once: a long replay is checkpointed on the way, so that it survives a crash
LAG_SURE = 5 / 6  # the share of a compaction lag in which nothing is gone, whatever clocks differ and caches believe
AWAY_MAX = TOMBSTONES_KEPT - timedelta(hours=1)  # an hour for clocks that differ, and for the restore itself
CLAIMS_KEPT = timedelta(minutes=50)  # on Kafka nothing is compacted within an hour (runtime.logs.kafka.topics)
TOLD_SECONDS = 5.0  # between two lines about how much is left


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """Where the partition stood: its last footer, and whole decisions behind it, in order, still to be carried out."""

    footer: Footer | None
    torn: tuple[Decision, ...]


class Impossible(Exception):
    """A changelog says what cannot be behind what was known before, or what nobody can read."""


class Outdated(Exception):
    """The store has to be emptied: what it has must not be gone on from."""


class Progress:
    """How much of a restore is left: `left` for who asks, a gauge, and a line every few seconds."""

    def __init__(self, partition: Partition, clock: Clock, telemetry: Telemetry) -> None:
        self.left: int | None = None  # None while no restore is under way
        self._labels = {"role": partition.role, "partition": str(partition.number)}
        self.began_at = clock.now()
        self._clock, self._telemetry = clock, telemetry
        self._told_at = clock.since_boot()

    def reached(self, left: int) -> None:
        """So many are left now."""
        self.left = left
        self._telemetry.set(Metric.RESTORE_RECORDS_LEFT, self._labels, left)
        if self._clock.since_boot() - self._told_at >= TOLD_SECONDS:
            self._told_at = self._clock.since_boot()
            self._telemetry.info(Event.PARTITION_RESTORING, records_left=left, **self._labels)

    def done(self) -> None:
        """The partition is where its log is."""
        self.reached(0)
        self.left = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A footer that says what the state digests to there.

    `whole`: nothing that was written behind it can have taken rows from before it away by compaction, as that would
    have begun with the decision of its own transaction, which is there.
    """

    footer: Footer
    offset: int
    whole: bool


@dataclass(slots=True)
class Replay:
    """What was read behind the checkpoint and is not applied yet.

    `footer` is the last one that is known; at first that of the store, which should stand right before its `position`.
    `strict`: the store is so young that this footer, and the one behind it, cannot have been compacted.
    `anew`: every wakeup is derived anew at the end, not only those of touched keys. `claim` is the last footer with a
    digest of the state there; `claimed` are the rows up to it that are not applied yet.
    """

    footer: Footer | None
    position: int
    strict: bool
    anew: bool
    began_at: datetime
    recognised: bool = False  # the store's footer stands where it should
    hung_at: int | None = None  # where transactions begin that hung: the last may not be whole elsewhere
    footed: tuple[Footer, int] | None = None  # that one's, and where it stands: it is not taken for done
    copies: list[bytes] = field(default_factory=list)  # parts of decisions that hung, in any order
    held: dict[bytes, bytes | None] = field(default_factory=dict)
    released: dict[bytes, bytes | None] = field(default_factory=dict)
    parts: list[bytes] = field(default_factory=list)
    touched: set[bytes] = field(default_factory=set)
    claim: Claim | None = None
    claimed: dict[bytes, bytes | None] = field(default_factory=dict)

    def take(self, record: Record) -> None:
        """Read one changelog record."""
        key, value = record.key or b"", record.value
        if record.offset < self.position:
            self._recognise(key, value)
        elif key == framing.FOOTER_KEY:
            footer = _footer(value)
            if self.hung_at is not None and record.offset >= self.hung_at and self.parts:
                self.footed = footer, record.offset
            else:
                self._close(footer, record.offset)
        elif key.startswith(hanging.COPY_KEY):
            self.copies.append(value or b"")
        elif key.startswith(framing.DECISION_KEY):
            if key.endswith(b"0000"):
                self._begin()
            self.parts.append(value or b"")
        elif key.startswith(ROW):
            self.held[key] = value
        else:
            raise Impossible(f"the record at {record.offset} has the unknown key {key!r}")

    def release(self) -> None:
        """The rows read so far are known to be committed: a footer stands behind them."""
        self.released |= self.held
        self.touched |= {split_row_key(key)[0] for key in self.held}
        self.held = {}

    def _recognise(self, key: bytes, value: bytes | None) -> None:
        if key != framing.FOOTER_KEY or _footer(value) != self.footer:
            raise Impossible(f"what stands before {self.position} is not the transaction that the store has read last")
        self.recognised = True

    def _begin(self) -> None:
        """Another decision. Whoever made it knew that the one before was committed, if that has its footer."""
        if self.footed is not None:
            footed, self.footed = self.footed, None
            self._close(*footed)
        self.parts.clear()

    def _check_follows(self, footer: Footer) -> None:
        """Whether a footer can be the next one behind the last."""
        strict, self.strict = self.strict, False
        if self.footer is None:
            return
        last = self.footer.sequence
        if footer.sequence <= last:
            raise Impossible(f"transaction {footer.sequence} stands behind transaction {last}")
        if strict and not self.recognised:
            raise Impossible(f"no transaction ends before {self.position}")
        if strict and footer.sequence > last + 1:
            raise Impossible(f"transaction {footer.sequence} stands where {last + 1} should")

    def _close(self, footer: Footer, offset: int) -> None:
        self._check_follows(footer)
        self.footer, self.position = footer, offset + 1
        self.release()
        if footer.digest:
            recent = footer.clock_mark > self.began_at - CLAIMS_KEPT
            self.claim = Claim(footer=footer, offset=offset, whole=recent and bool(self.parts))
            self.claimed |= self.released
            self.released = {}
        self.parts.clear()

    def torn(self) -> tuple[Decision, ...]:
        """The decision at the end that is not done, or the copy of one; and copies of those that were to follow."""
        try:
            decision = framing.join_decision(self.parts) if self.parts else None
            found = hanging.joined(self.copies)
        except (Refused, ValueError) as error:
            raise Impossible(f"the last decision cannot be read: {error}") from error
        if decision is not None:
            footed, copy = None if self.footed is None else self.footed[0], found.get(decision.head.sequence)
            if footed is not None or copy is None or copy.head.epoch <= decision.head.epoch:
                found[decision.head.sequence] = replace(decision, footed=footed)
        done = 0 if self.footer is None else self.footer.sequence
        first = min((number for number in found if number > done), default=done)
        return tuple(found[number] for number in takewhile(found.__contains__, count(first)) if number > done)


def restore(
    log: Log, store: Store, workspace: Workspace, partition: Partition, telemetry: Telemetry, progress: Progress
) -> Restored:  # fmt: skip
    """Apply the changelog's tail to the store; call it only after the predecessor is fenced.

    `continuity.Halted` when the log has lost what the store would have to be built from.
    """
    checkpoint = _usable_checkpoint(log, store, partition, telemetry)
    try:
        return _replayed(log, store, workspace, partition, telemetry, progress, checkpoint)
    except Outdated:
        telemetry.warning(Event.STORE_OUTDATED, role=partition.role, partition=str(partition.number))
        store.clear()
    except Impossible as reason:
        if checkpoint is None:
            raise continuity.impossible(partition, str(reason), store.place) from reason
        _misfit(log, store, partition, checkpoint, telemetry, str(reason))
    return restore(log, store, workspace, partition, telemetry, progress)  # the store is empty now


def _replayed(
    log: Log, store: Store, workspace: Workspace, partition: Partition, telemetry: Telemetry, progress: Progress,
    checkpoint: Checkpoint | None,
) -> Restored:  # fmt: skip
    """`Impossible` when the changelog cannot be followed from there, `Outdated` when it must not be."""
    if checkpoint is not None and _was_away_for_long(log, partition, checkpoint, progress.began_at):
        raise Outdated
    begin, end = log.begin_offset(partition.changelog), log.end_offset(partition.changelog)
    replay = _begun(log, begin, checkpoint, progress.began_at)
    left = end - replay.position
    progress.reached(left)
    start = replay.position if replay.footer is None else max(begin, replay.position - 1)
    covered, replay.hung_at = _last_sure(log, partition.changelog, start, end)
    if checkpoint is not None and replay.hung_at is not None and replay.hung_at < checkpoint.changelog_offset:
        raise Outdated  # Its owner was told that what hung is committed: it may be missing elsewhere.
    if replay.footer is not None and covered < start:
        raise Impossible(f"no transaction ends before {replay.position}, or behind it")
    for records in ranges.read(log, partition.changelog, start, end):
        for record in records:
            replay.take(record)
        if records[-1].offset < covered:
            replay.release()
        if len(replay.claimed) + len(replay.released) > HELD_ROWS_MAX and records[-1].offset < covered:
            replay.anew = True
            _verify(log, store, partition, replay, telemetry)
            _apply(log, store, partition, replay, records[-1].offset + 1)
        progress.reached(max(end - records[-1].offset - 1, 0))
    torn = replay.torn()
    _verify(log, store, partition, replay, telemetry)
    _finish(log, store, workspace, partition, replay)
    progress.done()
    telemetry.info(
        Event.PARTITION_RESTORED, records=left, keys=len(replay.touched), role=partition.role,
        partition=str(partition.number),
    )  # fmt: skip
    return Restored(footer=replay.footer, torn=torn)


def _begun(log: Log, begin: int, checkpoint: Checkpoint | None, now: datetime) -> Replay:
    """Where a replay stands before it has read anything."""
    if checkpoint is None:
        return Replay(footer=None, position=begin, strict=False, anew=True, began_at=now)
    known_at = _known_at(checkpoint)
    return Replay(
        footer=checkpoint.footer, position=max(begin, checkpoint.changelog_offset), anew=False, began_at=now,
        strict=known_at is not None and now - known_at < log.compaction_lag * LAG_SURE,
    )  # fmt: skip


def last_word(log: Log, partition: Partition, now: datetime) -> Restored:
    """Where a partition stood by its changelog alone, for who looks at it from outside: no store is asked."""
    begin, end = log.begin_offset(partition.changelog), log.end_offset(partition.changelog)
    start = max(begin, _last_footer(log, partition.changelog, begin, end))
    replay = Replay(footer=None, position=start, strict=False, anew=False, began_at=now)
    try:
        for records in ranges.read(log, partition.changelog, start, end):
            for record in records:
                replay.take(record)
        return Restored(footer=replay.footer, torn=replay.torn())
    except Impossible as reason:
        raise continuity.impossible(partition, str(reason), "the data folder of its owner") from reason


def _misfit(
    log: Log, store: Store, partition: Partition, checkpoint: Checkpoint, telemetry: Telemetry, reason: str
) -> None:
    """A store is not what its changelog tells; `Halted` when it must be kept all the same."""
    told = f"the store is at {checkpoint.changelog_offset}, and does not fit to the log: {reason}"
    begin, end = log.begin_offset(partition.changelog), log.end_offset(partition.changelog)
    if _last_footer(log, partition.changelog, begin, end) < begin:
        raise continuity.lost(partition, told, store.place)
    set_aside(store, partition, telemetry, told)


def set_aside(store: Store, partition: Partition, telemetry: Telemetry, reason: str) -> None:
    """Begin the store anew, and say why and where the old one is."""
    told_store_set_aside(partition, telemetry, reason, store.set_aside())


def told_store_set_aside(partition: Partition, telemetry: Telemetry, reason: str, kept: str) -> None:
    """Say that a store could not be trusted and is built anew."""
    telemetry.error(
        Event.STORE_QUARANTINED, reason=reason, kept=kept, role=partition.role, partition=str(partition.number)
    )


def _last_footer(log: Log, place: TopicPartition, start: int, end: int) -> int:
    """The offset of the last footer in [start, end), found from the end; `start - 1` when there is none."""
    return _tail(log, place, start, end)[0]


def _last_sure(log: Log, place: TopicPartition, start: int, end: int) -> tuple[int, int | None]:
    """The last footer of a transaction that did not hang, as `_last_footer`, and where what hung behind it began.

    One hang may stand on another: who carries out again what hung may leave it hanging.
    """
    covered, began = _tail(log, place, start, end)
    hung_at = None
    while began:
        hung_at = min(began)
        covered, began = _tail(log, place, start, hung_at)
    return covered, hung_at


def _tail(log: Log, place: TopicPartition, start: int, end: int) -> tuple[int, list[int]]:
    """The last footer, and where each hang began that was ended behind it."""
    window = TAIL_RECORDS
    while True:
        low = max(start, end - window)
        last, began = start - 1, list[int]()
        for records in ranges.read(log, place, low, end):
            for record in records:
                if record.key == framing.FOOTER_KEY:
                    last, began = record.offset, []
                elif (at := hanging.began_at(record)) is not None:
                    began.append(at)
        if last >= start or low == start:
            return last, began
        window *= 8


def _verify(log: Log, store: Store, partition: Partition, replay: Replay, telemetry: Telemetry) -> None:
    """Hold the state at the last footer that has a digest against it."""
    if replay.claim is None:
        return
    claim = replay.claim
    meta = _checkpoint(log, partition, replay, claim.footer, claim.offset + 1)
    # Of a store that only catches up the checkpoint stays behind: its keys are all touched again after a crash here.
    store.apply(replay.claimed | ({META: meta, DERIVATION: None} if replay.anew else {}))
    replay.claim, replay.claimed = None, {}
    if claim.whole or not (replay.released or replay.held):
        verification.verify(log, partition, store, claim.footer, claim.offset, telemetry)


def _apply(log: Log, store: Store, partition: Partition, replay: Replay, offset: int) -> None:
    """Write released rows and up to where they were read; the wakeups that follow from them are still to be derived."""
    footer = replay.footer if offset == replay.position else None
    meta = _checkpoint(log, partition, replay, footer, offset)
    store.apply(replay.released | {META: meta, DERIVATION: None})
    replay.released = {}


def _finish(log: Log, store: Store, workspace: Workspace, partition: Partition, replay: Replay) -> None:
    """Write what is left, and derive the wakeups that follow; a crash in between leaves it to be done again."""
    if replay.anew:
        _apply(log, store, partition, replay, replay.position)
    else:
        store.apply(replay.released)
        workspace.reindex(replay.touched)
        store.apply({META: _checkpoint(log, partition, replay, replay.footer, replay.position)})
    workspace.derive_anew()


def _checkpoint(log: Log, partition: Partition, replay: Replay, footer: Footer | None, offset: int) -> bytes:
    return checkpoint_bytes(
        Checkpoint(
            cluster_id=log.cluster_id, topic_id=log.topic_id(partition.changelog.topic), role=partition.role,
            partition=partition.number, changelog_offset=offset, footer=footer, read_at=replay.began_at,
        )
    )  # fmt: skip


def _was_away_for_long(log: Log, partition: Partition, checkpoint: Checkpoint, now: datetime) -> bool:
    """Whether there is something to catch up with, and deletions in it may be gone already."""
    known_at = _known_at(checkpoint)
    if known_at is not None and now - known_at < AWAY_MAX:
        return False
    begin, end = log.begin_offset(partition.changelog), log.end_offset(partition.changelog)
    start = max(begin, checkpoint.changelog_offset)
    return _last_footer(log, partition.changelog, start, end) >= start


def _known_at(checkpoint: Checkpoint) -> datetime | None:
    """When the store knew all that stood before its position; None: nobody has written that down."""
    return checkpoint.read_at or (None if checkpoint.footer is None else checkpoint.footer.clock_mark)


def _footer(value: bytes | None) -> Footer:
    try:
        return framing.read_footer(value or b"")
    except Refused as error:
        raise Impossible(f"a footer cannot be read: {error}") from error


def _usable_checkpoint(log: Log, store: Store, partition: Partition, telemetry: Telemetry) -> Checkpoint | None:
    """The store's checkpoint; None when it is empty, also because what was in it had to be set aside."""
    try:
        stored = store.get(META)
        if stored is None:
            reason = "" if next(iter(store.scan(b"", None)), None) is None else "it has no checkpoint"
        else:
            checkpoint = read_checkpoint(stored)
            reason = _unusable(log, partition, checkpoint, store.place)
            if not reason:
                return checkpoint
    except (StoreCorrupt, Refused) as error:
        reason = str(error)
    if reason:
        set_aside(store, partition, telemetry, reason)
    return None


def _unusable(log: Log, partition: Partition, checkpoint: Checkpoint, place: str) -> str:
    """Why a store must not be used, or nothing; `Halted` when it must be kept all the same."""
    if checkpoint.format != 1:
        return f"its format is {checkpoint.format}, this version writes 1"
    if checkpoint.cluster_id != log.cluster_id:
        return f"it belongs to the cluster {checkpoint.cluster_id}, not to {log.cluster_id}"
    if (checkpoint.role, checkpoint.partition) != (partition.role, partition.number):
        return f"it belongs to {checkpoint.role} partition {checkpoint.partition}"
    changelog = partition.changelog
    if checkpoint.topic_id != log.topic_id(changelog.topic):
        raise continuity.recreated(partition, place)
    begin, end = log.begin_offset(changelog), log.end_offset(changelog)
    if checkpoint.changelog_offset <= end:
        return ""
    ahead = f"the store is at {checkpoint.changelog_offset}, ahead of the log, which ends at {end}"
    if _last_footer(log, changelog, begin, end) < begin:
        raise continuity.lost(partition, ahead, place)
    return f"{ahead}: transactions that were committed are lost"
