"""What partitions have lost of their inputs, looked at from outside: by their changelogs and what the log has.

The owners find the same by the same rules (`runtime.continuity`), and halt.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import chain

from runtime import continuity, ranges
from runtime.continuity import Halted, Loss
from runtime.log import Log
from runtime.partition import Partition
from runtime.record import Record, TopicPartition
from runtime.restore import last_word
from schemas.facts import GapReason
from schemas.frozen import frozen
from schemas.operations import GapAccept

CLOCKS_APART = timedelta(seconds=10)  # of whoever appends and whoever owns: further apart an owner holds
LOOK_BACK = 4_096  # records: where the first that was appended since is looked for at first
STORE = "the data folder of the node that had it"


@frozen
class Gap:
    """A loss that can be accepted, and where the partition would go on."""

    partition: Partition
    loss: Loss
    go_on_at: int

    def accepted(self, by: str, note: str) -> GapAccept:
        """The word that accepts it."""
        return GapAccept(
            role=self.partition.role, partition=self.partition.number, topic=self.loss.place.topic,
            topic_partition=self.loss.place.partition, left_id=self.loss.left_id, topic_id=self.loss.topic_id,
            read_up_to=self.loss.read_up_to, go_on_at=self.go_on_at, by=by, note=note,
        )  # fmt: skip


@frozen
class Refusal:
    """What a person cannot accept, and what to do instead."""

    partition: Partition
    why: str


def find(log: Log, partitions: Iterable[Partition], now: datetime) -> Iterator[Gap | Refusal]:
    """Everything that these have lost."""
    for partition in partitions:
        try:
            yield from _of(log, partition, now)
        except Halted as halt:
            yield Refusal(partition=partition, why=str(halt))


def _of(log: Log, partition: Partition, now: datetime) -> Iterator[Gap | Refusal]:
    last = last_word(log, partition, now)
    incarnations = continuity.incarnations_of(log, partition)
    committed = continuity.committed_of(log, partition)
    continuity.check_changelog(partition, last, incarnations, committed, STORE)
    since = datetime.min.replace(tzinfo=UTC) if last.footer is None else last.footer.clock_mark - CLOCKS_APART
    for loss in continuity.losses(log, partition, continuity.left_at(last), incarnations, committed):
        if continuity.is_acceptable(partition, loss):
            yield Gap(partition=partition, loss=loss, go_on_at=_go_on_at(log, loss, since))
        else:
            yield Refusal(partition=partition, why=str(continuity.halted(partition, loss)))


def _go_on_at(log: Log, loss: Loss, since: datetime) -> int:
    """Where nothing is passed over that nobody has read: what is read twice by that is known again by its ids."""
    if loss.reason is GapReason.TRUNCATED:
        # Of some strands what stands there was answered; of others it was not, since longer than that perhaps.
        return max(loss.begin, min(loss.position, _appended_since(log, loss, since)))
    return loss.begin


def _appended_since(log: Log, loss: Loss, since: datetime) -> int:
    """The first record that was appended since; the end when there is none. Append times never decrease."""
    window, first = LOOK_BACK, loss.end
    while True:
        start = max(loss.begin, loss.end - window)
        records = list(_records(log, loss.place, start, loss.end))
        first = next((record.offset for record in records if record.appended_at >= since), first)
        if start == loss.begin or (records and records[0].appended_at < since):
            return first
        window *= 8


def _records(log: Log, place: TopicPartition, start: int, end: int) -> Iterator[Record]:
    return chain.from_iterable(ranges.read(log, place, start, end))
