"""The log lent to a child process, which may not have it open itself: its parent reads for it, over a pipe.

    child                            parent
    which topics, which ends  ─▶     the log answers
    poll                      ─▶     a reader answers: records as plain tuples, and the positions behind them
    how far the rows are      ─▶     (heard, not answered)

Both ends are this program, started one by the other: what comes over the pipe is trusted as much as the memory it was
written from. When one of them is gone the other end of its pipe says so.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from runtime.log import LogError
from runtime.record import Record, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime
    from multiprocessing.connection import Connection

    from runtime.log import Log, Reader

Positions = dict[TopicPartition, int]


class Standing(NamedTuple):
    """How far a projector is: up to where its rows follow, whether it has caught up, and what it is up against."""

    positions: Positions
    as_of: datetime
    ready: bool
    problem: str | None


class Lender:
    """The parent's end. `serve` until the child is gone, in a thread of its own."""

    def __init__(self, log: Log, topics: Sequence[str], heard: Callable[[Standing], None]) -> None:
        self._log, self._topics, self._heard = log, topics, heard
        self._reader: Reader | None = None

    def serve(self, pipe: Connection) -> None:
        """Answer what the child asks, one thing after another."""
        with suppress(EOFError, OSError), pipe:
            while True:
                said = pipe.recv()
                if isinstance(said, Standing):
                    self._heard(said)
                else:
                    pipe.send(self._answer(*said))
        self._close()

    def _answer(self, word: str, *said: Any) -> tuple[Any, str]:
        """What was asked for, and what the log has against it."""
        try:
            return getattr(self, f"_{word}")(*said), ""
        except LogError as error:
            return None, str(error)
        except Exception as error:  # noqa: BLE001 -- the border: a projector goes on after whatever its log raised
            return None, f"{type(error).__name__}: {error}"

    def _describe(self) -> tuple[str, Mapping[str, tuple[int, str]]]:
        log = self._log
        return log.cluster_id, {topic: (log.partitions(topic), log.topic_id(topic)) for topic in self._topics}

    def _begin_offset(self, place: TopicPartition) -> int:
        return self._log.begin_offset(place)

    def _end_offsets(self, places: list[TopicPartition]) -> Positions:
        return dict(self._log.end_offsets(places))

    def _open(self, positions: Positions) -> None:
        self._close()
        self._reader, self._places = self._log.open_reader(positions), [*positions]

    def _poll(self, records_max: int, bytes_max: int, timeout: float) -> tuple[list[tuple[Any, ...]], Positions]:
        assert self._reader is not None, "open it first"
        records = self._reader.poll(records_max=records_max, bytes_max=bytes_max, timeout=timeout)
        return [*map(tuple, records)], {place: self._reader.position(place) for place in self._places}

    def _close(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None


class LentLog:
    """The child's end: `projections.projector.EventLog`. Calls from one thread."""

    def __init__(self, pipe: Connection) -> None:
        self.pipe = pipe
        self.cluster_id, self._topics = self.ask("describe")

    def ask(self, word: str, *said: Any) -> Any:
        """The parent's answer; LogError as its log raised it. EOFError or OSError when the parent is gone."""
        self.pipe.send((word, *said))
        answer, against = self.pipe.recv()
        if against:
            raise LogError(against)
        return answer

    def partitions(self, topic: str) -> int:
        """See `Log.partitions`."""
        count: int = self._topics[topic][0]
        return count

    def topic_id(self, topic: str) -> str:
        """See `Log.topic_id`."""
        id_: str = self._topics[topic][1]
        return id_

    def begin_offset(self, partition: TopicPartition) -> int:
        """See `Log.begin_offset`."""
        offset: int = self.ask("begin_offset", partition)
        return offset

    def end_offsets(self, partitions: Iterable[TopicPartition]) -> Positions:
        """See `Log.end_offsets`."""
        ends: Positions = self.ask("end_offsets", [*partitions])
        return ends

    def open_reader(self, positions: Mapping[TopicPartition, int]) -> LentReader:
        """See `Log.open_reader`; one at a time."""
        self.ask("open", dict(positions))
        return LentReader(self, dict(positions))


class LentReader:
    """`projections.projector.EventReader`."""

    def __init__(self, log: LentLog, positions: Positions) -> None:
        self._log, self._positions = log, positions

    def poll(self, *, records_max: int, bytes_max: int, timeout: float) -> list[Record]:
        """See `Reader.poll`."""
        records, self._positions = self._log.ask("poll", records_max, bytes_max, timeout)
        return [*map(Record._make, records)]

    def position(self, partition: TopicPartition) -> int:
        """See `Reader.position`."""
        return self._positions[partition]

    def wake(self) -> None:
        """A projector waits a tenth of a second at most: it need not be woken from that."""

    def close(self) -> None:
        """See `Reader.close`; the parent does when it is asked for the next one, or left alone."""
