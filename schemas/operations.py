"""What operators tell the owners of partitions, on the compacted topic `operations`.

One record a partition and matter, the newest stands. Owners read it only while they are in need of such a word: held by
a clock, or halted over a gap. What follows from it is a fact of the partition (`clock.released`, `gap.accepted`).
"""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from schemas.facts import Fact
from schemas.frozen import frozen


@frozen
class ClockAccept(Fact):
    """The wall clock of a partition's owner may be believed, if it shows about `wall`, as the operator's does."""

    TYPE: ClassVar[str] = "tidewheel.clock.accept.v1"
    role: str
    partition: int
    wall: datetime
    by: str
    note: str = ""

    @property
    def subject(self) -> str:
        return f"clock/{self.role}/{self.partition}"


@frozen
class GapAccept(Fact):
    """A partition may go on at `go_on_at` of an input of which it had read up to `read_up_to`.

    Only that very loss is meant: the input's incarnation was `left_id` then and is `topic_id` now.
    """

    TYPE: ClassVar[str] = "tidewheel.gap.accept.v1"
    role: str
    partition: int
    topic: str
    topic_partition: int
    left_id: str
    topic_id: str
    read_up_to: int
    go_on_at: int
    by: str
    note: str = ""

    @property
    def subject(self) -> str:
        return f"gap/{self.role}/{self.partition}/{self.topic}/{self.topic_partition}"


OPERATIONS: tuple[type[Fact], ...] = (ClockAccept, GapAccept)
