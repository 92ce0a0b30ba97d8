"""What operators have said to the owner of a partition (`schemas.operations`).

An owner asks only while it is in need of such a word, so that in good times the topic costs nothing. The topic is
compacted, a few records a partition: the first question reads it whole, later ones only what is new.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Protocol

from runtime import ranges
from runtime.log import UnknownTopic
from runtime.record import TopicPartition
from runtime.telemetry import Event
from schemas import codec, topics
from schemas.faults import Refused
from schemas.operations import ClockAccept, GapAccept

if TYPE_CHECKING:
    from runtime.log import Log
    from runtime.partition import Partition
    from runtime.record import Record
    from runtime.telemetry import Telemetry
    from schemas.facts import Fact

PLACE = TopicPartition(topics.OPERATIONS, 0)


class Said(Protocol):
    """Where a partition asks what its operators have said."""

    def clock(self) -> ClockAccept | None:
        """The newest word about its clock."""
        ...

    def gap(self, place: TopicPartition) -> GapAccept | None:
        """The newest word about a gap in one of its inputs."""
        ...


class Operations:
    """`Said` on the log."""

    def __init__(self, log: Log, partition: Partition, telemetry: Telemetry) -> None:
        self._log, self._role, self._number, self._telemetry = log, partition.role, partition.number, telemetry
        self._newest: dict[str, Fact] = {}
        self._read_up_to = 0

    def clock(self) -> ClockAccept | None:
        """See `Said.clock`."""
        self._catch_up()
        found = self._newest.get(f"clock/{self._role}/{self._number}")
        return found if isinstance(found, ClockAccept) else None

    def gap(self, place: TopicPartition) -> GapAccept | None:
        """See `Said.gap`."""
        self._catch_up()
        found = self._newest.get(f"gap/{self._role}/{self._number}/{place.topic}/{place.partition}")
        return found if isinstance(found, GapAccept) else None

    def _catch_up(self) -> None:
        try:
            begin, end = self._log.begin_offset(PLACE), self._log.end_offset(PLACE)
        except UnknownTopic:
            return  # of a cluster whose topics were made by an earlier version: nobody can have said anything
        start = self._read_up_to if begin <= self._read_up_to <= end else begin
        for record in chain.from_iterable(ranges.read(self._log, PLACE, start, end)):
            self._take(record)
        self._read_up_to = end

    def _take(self, record: Record) -> None:
        """Keep what is about us; what cannot be read costs itself."""
        try:
            fact = codec.read_fact(record.value or b"")
        except Refused as refusal:
            self._telemetry.warning(
                Event.RECORD_REJECTED, topic=record.topic, offset=record.offset, reason=str(refusal), role=self._role,
                partition=str(self._number),
            )  # fmt: skip
            return
        if isinstance(fact, ClockAccept | GapAccept) and (fact.role, fact.partition) == (self._role, self._number):
            self._newest[fact.subject] = fact
