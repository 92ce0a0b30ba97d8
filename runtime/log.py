"""The log port: partitioned, ordered, transactional.

What an adapter promises, and the conformance suite checks for each of them:

- Within a partition, offsets strictly increase (gaps are allowed) and append times never decrease.
- A reader sees only committed records, in order, each once; a transaction's records become visible all together
  or never. Reads are bounded by records and bytes (one record is always delivered, however large).
- `open_producer` fences every earlier producer of the same transactional id, also one in another process: whatever
  the predecessor had not committed is never seen, and its next call raises `Fenced`.
- What `commit` or `append` returned for survives kill -9 of the process.
- Positions committed with a transaction are the ones `committed` answers afterwards.
- Retention and compaction follow the topic table. A compacted topic always keeps the last record of each key that
  is not a tombstone. A reader whose position was trimmed away gets `OffsetOutOfRange`, never a silent gap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime, timedelta

    from runtime.record import Outgoing, Record, TopicPartition
    from schemas.topics import TopicSpec


class LogError(Exception):
    """The log could not do what was asked."""


class Fenced(LogError):
    """Another producer with the same transactional id has taken over: this one must stop, and must not retry."""


class UnknownTopic(LogError):
    """The topic or partition does not exist."""


class OffsetOutOfRange(LogError):
    """Records between the asked position and the oldest kept one are gone, or the position is beyond the end."""


class Receipt(Protocol):
    """What a commit says: where each sent record stands, in the order of sending, and the latest append time."""

    @property
    def offsets(self) -> Sequence[int]: ...

    @property
    def appended_at(self) -> datetime: ...

    @property
    def told_at(self) -> datetime | None:
        """What another clock than this machine's showed when the log took the last record; None where there is none."""
        ...


class Producer(Protocol):
    """One transactional writer. Calls from one thread; `begin`, `send`…, `commit` or `abort`."""

    epoch: int
    tells_time: bool  # whether its commits are stamped by another clock than this machine's, and so can judge ours
    marks_ends: bool  # whether each end takes a place behind what was sent, in every partition that it was sent to

    def begin(self) -> None:
        """Open a transaction."""
        ...

    def send(self, records: Iterable[Outgoing]) -> None:
        """Add records to the open transaction."""
        ...

    def flush(self) -> None:
        """Return when everything sent so far has been received by the log (still uncommitted)."""
        ...

    def commit(self, positions: Mapping[TopicPartition, int]) -> Receipt:
        """Make everything sent visible together with the next positions to read; `Fenced` when taken over."""
        ...

    def abort(self) -> None:
        """Drop everything sent since `begin`."""
        ...

    def close(self) -> None:
        """Abort what is open and release the writer; idempotent."""
        ...


class Reader(Protocol):
    """Reads assigned partitions from given positions. Calls from one thread, except `wake`."""

    def poll(self, *, records_max: int, bytes_max: int, timeout: float) -> list[Record]:
        """The next records of any assigned partitions, oldest first within each; [] after `timeout` seconds or `wake`.

        Partitions take turns: a busy one does not starve the others.
        """
        ...

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        """Add partitions (or move present ones) to the given next offsets."""
        ...

    def unassign(self, partitions: Iterable[TopicPartition]) -> None:
        """Stop reading partitions."""
        ...

    def position(self, partition: TopicPartition) -> int:
        """The next offset that `poll` would deliver from."""
        ...

    def wake(self) -> None:
        """Make a waiting `poll` return at once; from any thread."""
        ...

    def close(self) -> None:
        """Release the reader; idempotent."""
        ...


class Owner(Protocol):
    """Who works on the partitions that a group gives to this process. Called from within `Member.poll`."""

    def assigned(self, partitions: Sequence[int], log: Log) -> None:
        """These are ours too from now on. Read and write them through `log`: its commits quote our membership."""
        ...

    def revoked(self, partitions: Sequence[int]) -> None:
        """These will be another's: return once their work is committed or dropped, and no more is done for them."""
        ...

    def lost(self, partitions: Sequence[int]) -> None:
        """These are another's already: return once nothing more is done for them; a commit would be refused."""
        ...


class Member(Protocol):
    """Our place in a group that shares the partitions of one topic. Calls from one thread."""

    @property
    def joined(self) -> bool:
        """Whether the group has said which partitions are ours, be it none."""
        ...

    def poll(self, timeout: float) -> None:
        """Take part in the group for at most `timeout` seconds: tells the owner what is ours and what no longer is.

        Who does not call it every few seconds is taken for dead. `Fenced` when another process has our name.
        """
        ...

    def close(self) -> None:
        """Take part no more: what was ours is revoked, or lost when we are no member any more. Idempotent."""
        ...


class Log(Protocol):
    """A log. `cluster_id` names this one and no other; `topic_id` this incarnation of a topic.

    `compaction_lag`: a record of a changelog that is younger stands where it was written.
    """

    cluster_id: str
    compaction_lag: timedelta

    def create(self, specs: Mapping[TopicSpec, int]) -> None:
        """Create topics with their partition counts; those that exist with the same count are left as they are.

        LogError names a topic that exists with another count or another clean-up. (The embedded log, which has no
        administrator of its own, adopts a changed retention.)
        """
        ...

    def partitions(self, topic: str) -> int:
        """How many partitions; `UnknownTopic` when it does not exist."""
        ...

    def topics(self) -> Mapping[str, TopicSpec]:
        """Every topic there is."""
        ...

    def topic_id(self, topic: str) -> str:
        """Changes when a topic is deleted and created again."""
        ...

    def begin_offset(self, partition: TopicPartition) -> int:
        """The oldest position that can be read from."""
        ...

    def end_offset(self, partition: TopicPartition) -> int:
        """No committed record stands here or later; a reader that has read them all has this position.

        What is open may stand before it: then a reader has it, or a later one, once those transactions have ended.
        """
        ...

    def end_offsets(self, partitions: Iterable[TopicPartition]) -> Mapping[TopicPartition, int]:
        """`end_offset` of many at once, in one question."""
        ...

    def stable_offset(self, partition: TopicPartition) -> int:
        """Up to here everything is decided, and readers get; what is open, if anything, begins here."""
        ...

    def committed(self, group: str, partitions: Iterable[TopicPartition]) -> Mapping[TopicPartition, int]:
        """The next positions a group committed; absent ones were never committed."""
        ...

    def open_reader(self, positions: Mapping[TopicPartition, int]) -> Reader:
        """A reader of the given partitions from the given next offsets."""
        ...

    def open_undecided(self, positions: Mapping[TopicPartition, int]) -> Reader:
        """One that is also given what is not committed, as far as the log has it: what is open, and what was aborted.

        It gets as far as `end_offset`.
        """
        ...

    def open_producer(self, transactional_id: str, *, group: str) -> Producer:
        """The one transactional writer of that id from now on; its positions belong to `group`."""
        ...

    def join(self, group: str, topic: str, *, name: str, owner: Owner) -> Member:
        """Share the partitions of `topic` with the other members of `group`.

        `name` is this process's own and the same after a restart, which then gets back what it had.
        """
        ...

    def append(self, records: Iterable[Outgoing]) -> Receipt:
        """Append without a transaction; returns when the records are durable. Safe from any thread."""
        ...

    def maintain(self) -> bool:
        """One bounded step of retention and compaction; whether more is waiting.

        Called now and then by whoever runs the process, and not while the clock is held: ages are measured by it.
        """
        ...

    def close(self) -> None:
        """Release the log; idempotent."""
        ...
