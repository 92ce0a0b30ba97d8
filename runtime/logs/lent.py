"""The log port over a log that another process has open (`runtime.logs.lending`): the borrower's end.

Reads go to the holder, and each transaction, whole when it is committed. A writer that has been fenced is told so by
its commit; a later one of this process's own is known before that. Topics that are known are not asked for again: a
log that is lent never loses one.
"""

from __future__ import annotations

from contextlib import suppress
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

from runtime.log import Fenced, LogError, Owner
from runtime.logs.alone import OnlyMember
from runtime.logs.lending import Described
from runtime.logs.producing import BufferingProducer, Commit, Writer
from runtime.record import Outgoing, Record, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from runtime.logs.line import Line
    from schemas.topics import TopicSpec

Positions = dict[TopicPartition, int]

NOBODYS = 0  # the epoch of an id whose writer was fenced: none that was ever given


def _raise_gone() -> None:
    raise LogError("the process that holds the log is gone")


class LentLog:
    """`Log`; of the lines one is for words, and as many questions are asked at a time as there are others.

    `gone` is called when the holder is not there any more: a process that only lives for it ends.
    """

    def __init__(self, lines: Sequence[Line], *, gone: Callable[[], None] = _raise_gone) -> None:
        self._words, *questions = lines
        self._gone = gone
        self._free: SimpleQueue[Line] = SimpleQueue()
        self._questions_max = len(questions)
        for line in questions:
            self._free.put(line)
        self._epochs: dict[str, int] = {}  # of the latest producers of ours
        self._closed = False
        described: Described = self.ask("describe")
        self.cluster_id, self.compaction_lag = described.cluster_id, described.compaction_lag
        self._topics = dict(described.topics)

    def tell(self, word: Any) -> None:
        """Say something that is not answered; from any thread."""
        try:
            self._words.send(word)
        except OSError:
            self._gone()

    def ask(self, word: str, *said: Any) -> Any:
        """The holder's answer, or what its log has against it; from any thread."""
        if self._closed:
            raise LogError("the log is closed")
        line = self._free.get()
        try:
            line.send((word, *said))
            answer, against = line.receive()
        except (EOFError, OSError):
            self._gone()
            raise LogError("the process that holds the log is gone") from None
        except BaseException:
            line.end()  # what is still under way on it is no answer to anybody else
            raise
        finally:
            self._free.put(line)
        if against is not None:
            raise against
        return answer

    # --- what there is --------------------------------------------------------------------------------------------

    def create(self, specs: Mapping[TopicSpec, int]) -> None:
        """See `Log.create`."""
        self.ask("create", dict(specs))

    def partitions(self, topic: str) -> int:
        """See `Log.partitions`."""
        return self._topic(topic)[0]

    def topics(self) -> Mapping[str, TopicSpec]:
        """See `Log.topics`."""
        specs: Mapping[str, TopicSpec] = self.ask("topics")
        return specs

    def topic_id(self, topic: str) -> str:
        """See `Log.topic_id`."""
        return self._topic(topic)[1]

    def _topic(self, name: str) -> tuple[int, str]:
        known = self._topics.get(name)
        if known is None:
            known = self._topics[name] = self.ask("topic", name)
        return known

    def begin_offset(self, partition: TopicPartition) -> int:
        """See `Log.begin_offset`."""
        offset: int = self.ask("begin_offset", tuple(partition))
        return offset

    def end_offset(self, partition: TopicPartition) -> int:
        """See `Log.end_offset`."""
        return self.end_offsets([partition])[partition]

    def end_offsets(self, partitions: Iterable[TopicPartition]) -> Positions:
        """See `Log.end_offsets`."""
        places = [*partitions]
        return dict(zip(places, self.ask("end_offsets", [*map(tuple, places)]), strict=True))

    def stable_offset(self, partition: TopicPartition) -> int:
        """See `EmbeddedLog.stable_offset`."""
        return self.end_offset(partition)

    def committed(self, group: str, partitions: Iterable[TopicPartition]) -> Positions:
        """See `Log.committed`."""
        known = self.ask("committed", group, [*map(tuple, partitions)])
        return {TopicPartition(*place): offset for place, offset in known.items()}

    # --- writing --------------------------------------------------------------------------------------------------

    def open_producer(self, transactional_id: str, *, group: str) -> BufferingProducer:
        """See `Log.open_producer`."""
        epoch: int = self.ask("open_producer", transactional_id, group)
        self._epochs[transactional_id] = epoch
        return BufferingProducer(self, Writer(transactional_id, epoch, group))

    def join(self, group: str, topic: str, *, name: str, owner: Owner) -> OnlyMember:  # noqa: ARG002 -- nobody else is in it
        """See `Log.join`."""
        return OnlyMember(self, topic, owner)

    def append(self, records: Iterable[Outgoing]) -> Commit:
        """See `Log.append`."""
        return _receipt(*self.ask("append", [*map(tuple, records)]))

    def commit(
        self, writer: Writer, records: Sequence[Outgoing], positions: Mapping[TopicPartition, int]
    ) -> Commit:  # fmt: skip
        """See `Ledger.commit`."""
        moved = {tuple(place): position for place, position in positions.items()}
        try:
            return _receipt(*self.ask("commit", tuple(writer), [*map(tuple, records)], moved))
        except Fenced:
            if self._epochs[writer.transactional_id] == writer.epoch:
                self._epochs[writer.transactional_id] = NOBODYS
            raise

    def check_writer(self, writer: Writer) -> None:
        """See `Ledger.check_writer`."""
        if self._epochs[writer.transactional_id] != writer.epoch:
            raise Fenced(f"a later producer of {writer.transactional_id} has taken over from epoch {writer.epoch}")

    def check_exists(self, records: Iterable[Outgoing]) -> None:
        """See `Ledger.check_exists`."""
        for topic, partition in dict.fromkeys(record[:2] for record in records):
            if not 0 <= partition < self.partitions(topic):
                self.ask("begin_offset", (topic, partition))  # which says what is wrong with it

    # --- reading --------------------------------------------------------------------------------------------------

    def open_reader(self, positions: Mapping[TopicPartition, int]) -> LentReader:
        """See `Log.open_reader`."""
        number: int = self.ask("open_reader", {tuple(place): position for place, position in positions.items()})
        return LentReader(self, number, dict(positions))

    def open_undecided(self, positions: Mapping[TopicPartition, int]) -> LentReader:
        """See `EmbeddedLog.open_undecided`."""
        return self.open_reader(positions)

    # --- upkeep, end ----------------------------------------------------------------------------------------------

    def maintain(self) -> bool:
        """See `Log.maintain`."""
        is_more: bool = self.ask("maintain")
        return is_more

    def close(self) -> None:
        """See `Log.close`: the holder keeps it open. Readers that wait return with an error."""
        if not self._closed:
            self.ask("close")
            self._closed = True
            for line in [self._words, *(self._free.get() for _ in range(self._questions_max))]:
                line.end()
                line.close()
                self._free.put(line)  # who was about to ask finds it closed


class LentReader:
    """`Reader`."""

    def __init__(self, log: LentLog, number: int, positions: Positions) -> None:
        self._log, self._number, self._positions = log, number, positions
        self._closed = False

    def poll(self, *, records_max: int, bytes_max: int, timeout: float) -> list[Record]:
        """See `Reader.poll`."""
        records, positions = self._log.ask("poll", self._number, records_max, bytes_max, timeout)
        self._positions = dict(zip(self._positions, positions, strict=True))
        return [*map(Record._make, records)]

    def assign(self, positions: Mapping[TopicPartition, int]) -> None:
        """See `Reader.assign`."""
        self._log.ask("assign", self._number, {tuple(place): position for place, position in positions.items()})
        self._positions |= positions

    def unassign(self, partitions: Iterable[TopicPartition]) -> None:
        """See `Reader.unassign`."""
        gone = [place for place in partitions if place in self._positions]
        self._log.ask("unassign", self._number, [*map(tuple, gone)])
        for place in gone:
            del self._positions[place]

    def position(self, partition: TopicPartition) -> int:
        """See `Reader.position`."""
        if partition not in self._positions:
            raise LogError(f"{partition.topic}-{partition.partition} is not assigned to this reader")
        return self._positions[partition]

    def wake(self) -> None:
        """See `Reader.wake`."""
        with suppress(LogError):  # one that is closed waits for nothing
            self._log.ask("wake", self._number)

    def close(self) -> None:
        """See `Reader.close`."""
        if not self._closed:
            self._closed = True
            self._log.ask("close_reader", self._number)


def _receipt(offsets: Sequence[int], appended_at: Any) -> Commit:
    return Commit(offsets=offsets, appended_at=appended_at)
