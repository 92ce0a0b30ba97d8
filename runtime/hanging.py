"""What a broker has left without an end in a changelog, and what keeps it from being lost (KAFKA-20734).

A transaction hangs: its coordinator takes it for ended, be it committed or aborted, and its partition was never told.
The next end under the same id is its end too, whichever that is. Its owner may have been told that it is committed,
and others may have read what it sent. So whoever takes the partition over wants to commit; and as it may die before,
which aborts, it leaves two words:

    a copy of each decision that hangs    appended outside of any transaction: no abort takes it. Should the decision
                                          itself go, its copy is rolled forward in its place.
    where the hang began                  with the end itself: who finds it behind the last footer knows that what was
                                          to be sent may be aborted elsewhere, and carries the decision out once more.

A copy is no owner's word: one that was fenced long ago may append it late. It is heard while no footer says that a
transaction of its number is done, and says what had been decided, as it had been written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime import footer as framing
from runtime import ranges
from runtime.machine import PARTITION
from runtime.record import Outgoing
from runtime.workspace import row_key

if TYPE_CHECKING:
    from collections.abc import Iterable

    from runtime.footer import Decision
    from runtime.log import Log
    from runtime.record import Record, TopicPartition

COPY_KEY = framing.DECISION_KEY + b"copy-"  # then the part's number; an older version takes it for the decision
ENDED_KEY = row_key(PARTITION, b"\0")  # a row of no core: whoever reads that it is deleted deletes nothing
BEGAN_HEADER = "tw-hung-at"


def copies(log: Log, changelog: TopicPartition, begin: int, end: int, *, whole: bool = False) -> list[Outgoing]:
    """What to append: the decisions that stand in [begin, end) and are open, unless a copy of them does already.

    `whole`: only of those whose footer stands there as well.
    """
    decided: dict[tuple[bytes, bytes], None] = {}
    pending: dict[tuple[bytes, bytes], None] = {}
    copied: set[bytes] = set()
    for records in ranges.read(log, changelog, begin, end, undecided=True):
        for record in records:
            key, value = record.key or b"", record.value or b""
            if key.startswith(COPY_KEY):
                copied.add(value)
            elif key.startswith(framing.DECISION_KEY):
                pending[key.removeprefix(framing.DECISION_KEY), value] = None
            if key == framing.FOOTER_KEY or not whole:
                decided |= pending
                pending.clear()
    return [Outgoing(*changelog, COPY_KEY + number, value) for number, value in decided if value not in copied]


def ended(changelog: TopicPartition, began_at: int) -> Outgoing:
    """What the end of a hang commits."""
    return Outgoing(*changelog, ENDED_KEY, None, ((BEGAN_HEADER, b"%d" % began_at),))


def began_at(record: Record) -> int | None:
    """Where what a record ended had begun; None for any other record."""
    if record.key != ENDED_KEY:
        return None
    return next((int(value) for name, value in record.headers if name == BEGAN_HEADER), None)


def joined(parts: Iterable[bytes]) -> dict[int, Decision]:
    """The decisions of which all parts are among these, by number: of each the one that was written last.

    Parts may stand in any order, and several times: those of one number and epoch are of one decision.
    """
    found: dict[tuple[int, int], dict[int, bytes]] = {}
    for value in parts:
        head = framing.read_head(value)
        found.setdefault((head.sequence, head.epoch), {})[head.part] = value
    whole: dict[int, Decision] = {}
    for (sequence, _), numbered in sorted(found.items()):
        decision = framing.join_decision([value for _, value in sorted(numbered.items())])
        if decision is not None:
            whole[sequence] = decision
    return whole
