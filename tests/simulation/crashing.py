"""A log whose process dies at a chosen step of a transaction, or between the transaction and the store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from runtime.stores.memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from runtime.log import Log, Producer, Receipt
    from runtime.record import Outgoing, TopicPartition


class Crash(BaseException):
    """The process is gone. No code of ours may catch it."""


class CrashingLog:
    """Any log, but the process dies before its n-th step from now on."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._left: int | None = None

    def crash_after(self, steps: int) -> None:
        """Die before the step that follows `steps` more."""
        self._left = steps

    def crash_never(self) -> None:
        """Go on living."""
        self._left = None

    def step(self) -> None:
        """One step of somebody's; the last one for all when its number is up."""
        if self._left is None:
            return
        if self._left == 0:
            raise Crash
        self._left -= 1

    def open_producer(self, transactional_id: str, *, group: str) -> Producer:
        """A producer that dies with the process."""
        return CrashingProducer(self._log.open_producer(transactional_id, group=group), self)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)


class CrashingProducer:
    """Each call is a step; a commit is two: before it is made, and after, before anyone hears of it."""

    def __init__(self, producer: Producer, log: CrashingLog) -> None:
        self._producer, self._crashing = producer, log
        self.epoch, self.tells_time, self.marks_ends = producer.epoch, producer.tells_time, producer.marks_ends

    def begin(self) -> None:
        self._crashing.step()
        self._producer.begin()

    def send(self, records: Iterable[Outgoing]) -> None:
        self._crashing.step()
        self._producer.send(records)

    def flush(self) -> None:
        self._crashing.step()
        self._producer.flush()

    def commit(self, positions: Mapping[TopicPartition, int]) -> Receipt:
        self._crashing.step()
        receipt = self._producer.commit(positions)
        self._crashing.step()
        return receipt

    def abort(self) -> None:
        self._producer.abort()

    def close(self) -> None:
        self._producer.close()


class CrashingStore(MemoryStore):
    """Each change is a step."""

    def __init__(self, log: CrashingLog) -> None:
        super().__init__()
        self._crashing = log

    def apply(self, changes: Mapping[bytes, bytes | None]) -> None:
        self._crashing.step()
        super().apply(changes)
