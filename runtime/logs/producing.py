"""A transactional writer for logs that live in this process: what it sends stays with it until it commits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, Protocol

from runtime.log import LogError
from runtime.record import Outgoing, TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """`Receipt`: where each record stands, in the order of sending, the latest append time, and who told it."""

    offsets: Sequence[int]
    appended_at: datetime
    told_at: datetime | None = None


class Writer(NamedTuple):
    """Who writes: one epoch of a transactional id."""

    transactional_id: str
    epoch: int
    group: str


class Ledger(Protocol):
    """What a log offers to its producers."""

    def check_writer(self, writer: Writer) -> None:
        """`Fenced` when a later epoch has taken over."""
        ...

    def check_exists(self, records: Iterable[Outgoing]) -> None:
        """`UnknownTopic` for a record that has nowhere to go."""
        ...

    def commit(self, writer: Writer, records: Sequence[Outgoing], positions: Mapping[TopicPartition, int]) -> Commit:
        """Everything together, or `Fenced`, or another error and nothing."""
        ...


class BufferingProducer:
    """`Producer`."""

    tells_time = False  # its append times come from the clock that they would have to judge
    marks_ends = False  # what is committed is there, and nothing hangs

    def __init__(self, ledger: Ledger, writer: Writer) -> None:
        self._ledger = ledger
        self._writer = writer
        self._sent: list[Outgoing] | None = None
        self._closed = False
        self.epoch = writer.epoch

    def begin(self) -> None:
        """See `Producer.begin`."""
        if self._closed:
            raise LogError(f"producer {self._writer.transactional_id} is closed")
        if self._sent is not None:
            raise LogError(f"producer {self._writer.transactional_id} has a transaction open already")
        self._ledger.check_writer(self._writer)
        self._sent = []

    def send(self, records: Iterable[Outgoing]) -> None:
        """See `Producer.send`."""
        sent = self._open()
        self._ledger.check_writer(self._writer)
        added = list(records)
        self._ledger.check_exists(added)
        sent += added

    def flush(self) -> None:
        """See `Producer.flush`: nothing is on its way to anywhere."""
        self._open()
        self._ledger.check_writer(self._writer)

    def commit(self, positions: Mapping[TopicPartition, int]) -> Commit:
        """See `Producer.commit`; whatever happens, the transaction is over."""
        sent, self._sent = self._open(), None
        return self._ledger.commit(self._writer, sent, positions)

    def abort(self) -> None:
        """See `Producer.abort`."""
        self._open()
        self._sent = None

    def close(self) -> None:
        """See `Producer.close`."""
        self._sent = None
        self._closed = True

    def _open(self) -> list[Outgoing]:
        if self._sent is None:
            raise LogError(f"producer {self._writer.transactional_id} has no transaction open")
        return self._sent
