"""Crash points of the read-process-write cycle: an owner's process dies exactly there, once, when it was armed to.

The points stand in the log and the store that a process is given; production code passes them and knows of none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from random import Random
from typing import TYPE_CHECKING, Any

from runtime.hanging import ENDED_KEY
from runtime.record import Outgoing, Record, TopicPartition
from simulation.cluster.disk import AFTER_APPLY, BEFORE_APPLY
from simulation.loop import Killed, Loop, Machine

if TYPE_CHECKING:
    from runtime.log import Log, Producer, Reader, Receipt

POINTS = ("A1", "A2", "A3", "A4", "A5", "A6", "A7", "A8", "A9", "A10", "A12")
SKIP_MAX = 3  # so that not always the first passage is the one
BREATH_SECONDS = 0.02  # more than a look at nothing takes, so that an hour has fewer of them
COMMIT_SECONDS_MAX = 0.05  # within which a commit is under way, or has just been made


class Points:
    """What one process is armed with. `died` hears where it died."""

    def __init__(self, loop: Loop, machine: Machine, chance: Random, died: Callable[[str], None]) -> None:
        self._loop, self._machine, self._chance, self._died = loop, machine, chance, died
        self.armed, self._skip = "", 0
        self._stands_still: Callable[[], None] | None = None
        self.restoring = False

    def arm(self, point: str) -> None:
        """Die at this point, at one of its next passages."""
        self.armed, self._skip = point, self._chance.randint(0, SKIP_MAX)

    def disarm(self) -> None:
        """Nothing happens any more."""
        self.armed, self._stands_still = "", None

    def stand_still(self, do: Callable[[], None]) -> None:
        """Call `do`, which freezes the process, in the middle of its next transaction."""
        self._stands_still = do

    def begun(self) -> None:
        """Something of a transaction is on its way."""
        do, self._stands_still = self._stands_still, None
        if do is not None:
            do()

    def passes(self, *points: str) -> None:
        """The process is at these points."""
        if self.armed not in points:
            return
        if self._skip > 0:
            self._skip -= 1
            return
        self.die()

    def die(self) -> None:
        """Here and now."""
        self.end()
        raise Killed

    def end(self) -> None:
        """Kill the process from outside."""
        if self._machine.alive:
            point, self.armed = self.armed, ""
            self._died(point)
            self._loop.kill(self._machine)

    def breathe(self) -> None:
        """Some time passes."""
        self._loop.sleep(BREATH_SECONDS)

    def soon(self, *points: str) -> None:
        """The process may die at any time from now on while a commit takes."""
        if self.armed in points:
            self._loop.later(self._chance.uniform(0, COMMIT_SECONDS_MAX), self.end)

    def store_passes(self, step: str) -> None:
        """A store is before or behind a change."""
        if self.restoring:
            self.passes("A10")
        elif step == BEFORE_APPLY:
            self.passes("A7", "A8")
        else:
            assert step == AFTER_APPLY
            self.passes("A8", "A9")


class DyingLog:
    """Any log; its producers pass the points."""

    def __init__(self, log: Log, points: Points) -> None:
        self._log, self._points = log, points
        self.topic_id, self.partitions, self.end_offsets = log.topic_id, log.partitions, log.end_offsets  # asked often
        self.cluster_id = log.cluster_id

    def open_producer(self, transactional_id: str, *, group: str) -> DyingProducer:
        """See `Log.open_producer`."""
        self._points.restoring = True
        producer = self._log.open_producer(transactional_id, group=group)
        self._points.passes("A10")
        return DyingProducer(producer, self._points)

    def open_reader(self, positions: Mapping[TopicPartition, int]) -> BreathingReader:
        """See `Log.open_reader`."""
        return BreathingReader(self._log.open_reader(positions), self._points.breathe)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)


class BreathingReader:
    """A reader that lets time pass when it is asked again and again for what has not come: real time would, too."""

    def __init__(self, reader: Reader, breathe: Callable[[], None]) -> None:
        self._reader, self._breathe = reader, breathe
        self.position = reader.position  # asked often

    def poll(self, *, records_max: int, bytes_max: int, timeout: float) -> list[Record]:
        """See `Reader.poll`."""
        records = self._reader.poll(records_max=records_max, bytes_max=bytes_max, timeout=timeout)
        if not records and timeout < BREATH_SECONDS:
            self._breathe()
        return records

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reader, name)


class DyingProducer:
    """See `DyingLog`."""

    def __init__(self, producer: Producer, points: Points) -> None:
        self._producer, self._points = producer, points
        self._open = False

    @property
    def epoch(self) -> int:
        """See `Producer.epoch`."""
        return self._producer.epoch

    @property
    def tells_time(self) -> bool:
        """See `Producer.tells_time`."""
        return self._producer.tells_time

    @property
    def marks_ends(self) -> bool:
        """See `Producer.marks_ends`."""
        return self._producer.marks_ends

    def begin(self) -> None:
        """See `Producer.begin`."""
        self._points.restoring = False
        self._points.passes("A1")
        self._producer.begin()
        self._open = True
        self._points.passes("A2")

    def send(self, records: Iterable[Outgoing]) -> None:
        """See `Producer.send`."""
        if self._points.armed == "A10":
            records = list(records)
            self._producer.send(records)
            if any(record.key == ENDED_KEY for record in records):  # it is rare to be armed just then: no skipping
                self._producer.flush()
                self._points.die()
        elif self._points.armed == "A3":
            records = list(records)
            self._producer.send(islice(records, len(records) // 2))
            self._points.passes("A3")
            self._producer.send(islice(records, len(records) // 2, None))
        else:
            self._producer.send(records)

    def flush(self) -> None:
        """See `Producer.flush`."""
        self._producer.flush()
        self._points.begun()
        self._points.passes("A3")

    def commit(self, positions: Mapping[TopicPartition, int]) -> Receipt:
        """See `Producer.commit`."""
        if self._points.armed == "A4":
            self._producer.flush()
            self._points.passes("A4")
        self._points.soon("A5", "A6")
        receipt = self._producer.commit(positions)
        self._open = False
        return receipt

    def abort(self) -> None:
        """See `Producer.abort`."""
        self._points.passes("A12")
        self._producer.abort()
        self._open = False

    def close(self) -> None:
        """See `Producer.close`."""
        if self._open:
            self._points.passes("A12")
        self._producer.close()
