"""What frames a transaction in a changelog: the decision record first, the footer last.

Both stand under fixed keys, so that compaction removes the ones of earlier transactions. A decision whose footer
is missing belongs to a transaction that was torn: it is rolled forward from its facts (`runtime.restore`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

import orjson

from runtime.record import TopicPartition
from runtime.strands import Further
from schemas import codec
from schemas.frozen import frozen

FOOTER_KEY = b"\0footer"
DECISION_KEY = b"\0decision-"  # followed by the part's number, four digits
PART_BYTES_MAX = 512 * 1024  # half the smallest record limit in common use, so that a part always fits


@frozen
class InputPosition:
    """The next offset to read of one input; `topic_id` is its topic's incarnation ("": before that was kept).

    Everything before `offset` is answered; of each of the `strands`, by number, everything before its offset there
    (`runtime.strands`). None is beyond it, mostly; before that was kept, none was.
    """

    topic: str
    partition: int
    offset: int
    topic_id: str = ""
    strands: Mapping[str, int] = field(default_factory=dict)


@frozen
class Footer:
    """The last record of a transaction. `clock_mark` never goes back from one footer of a partition to the next.

    Every wakeup of the partition due at or before `decided_until` has been answered, with all inputs read that the
    log held at that instant; for the scheduler: each occurrence up to it has its decision.
    `changelog_id` is the incarnation of the topic it was written to ("": before that was kept), `digest` now and then
    that of all rows as the transaction leaves them (`runtime.digest`).
    """

    role: str
    partition: int
    epoch: int
    sequence: int
    clock_mark: datetime
    decided_until: datetime
    positions: tuple[InputPosition, ...]
    facts: int
    outputs: int
    rows: int
    decision_parts: int
    changelog_id: str = ""
    digest: str = ""


@frozen
class DecisionHead:
    """What a decision record says besides its facts."""

    role: str
    partition: int
    epoch: int
    sequence: int
    part: int
    last: bool
    now: datetime
    read_until: datetime
    decided_until: datetime
    entropy: str
    positions: tuple[InputPosition, ...]


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision record put together again; `facts` are structured CloudEvents as written.

    `footed` is the last footer of those who have carried it out: all that may be missing is what was to be sent.
    """

    head: DecisionHead
    facts: tuple[bytes, ...]
    footed: Footer | None = None

    @property
    def sequence(self) -> int:
        """Of the transaction that carries it out."""
        return self.head.sequence if self.footed is None else self.footed.sequence + 1

    @property
    def epoch(self) -> int:
        """The latest that has written it."""
        return self.head.epoch if self.footed is None else self.footed.epoch

    @property
    def now(self) -> datetime:
        """The clock mark once it is carried out."""
        return self.head.now if self.footed is None else self.footed.clock_mark

    @property
    def decided_until(self) -> datetime:
        """Up to where everything is decided then."""
        return self.head.decided_until if self.footed is None else self.footed.decided_until

    @property
    def positions(self) -> tuple[InputPosition, ...]:
        """Up to where the inputs are read then."""
        return self.head.positions if self.footed is None else self.footed.positions


def positions_of(positions: Iterable[InputPosition]) -> dict[TopicPartition, int]:
    """As the log port wants them."""
    return {TopicPartition(item.topic, item.partition): item.offset for item in positions}


def further_of(positions: Iterable[InputPosition]) -> dict[TopicPartition, Further]:
    """Which strands are answered beyond them."""
    return {
        TopicPartition(item.topic, item.partition): {int(strand): offset for strand, offset in item.strands.items()}
        for item in positions
    }


def footer_bytes(footer: Footer) -> bytes:
    """A footer as written."""
    return codec.dump(footer)


def read_footer(value: bytes) -> Footer:
    """A footer as read."""
    return codec.load(Footer, codec.parse(value))


def decision_parts(head: DecisionHead, facts: Sequence[bytes]) -> list[bytes]:
    """The decision record cut into parts of at most about PART_BYTES_MAX; the last one says so."""
    parts = _cut(facts)
    return [_part(head, index, index == len(parts) - 1, chunk) for index, chunk in enumerate(parts)]


def _cut(facts: Sequence[bytes]) -> list[list[bytes]]:
    if sum(map(len, facts)) <= PART_BYTES_MAX:
        return [[*facts]]  # mostly
    parts: list[list[bytes]] = [[]]
    size = 0
    for fact in facts:
        if parts[-1] and size + len(fact) > PART_BYTES_MAX:
            parts.append([])
            size = 0
        parts[-1].append(fact)
        size += len(fact)
    return parts


def _part(head: DecisionHead, index: int, last: bool, facts: Sequence[bytes]) -> bytes:  # noqa: FBT001 -- private
    fields = codec.plain(head) | {"part": index, "last": last}
    opening = orjson.dumps(fields, option=orjson.OPT_UTC_Z)[:-1]
    return b"".join((opening, b',"facts":[', b",".join(facts), b"]}"))


def read_head(part: bytes) -> DecisionHead:
    """What a part says besides its facts."""
    return codec.load(DecisionHead, orjson.loads(part))


def join_decision(parts: Sequence[bytes]) -> Decision | None:
    """The decision in `parts` (in order of reading), or None when a part is missing: then nothing was sent."""
    documents = [orjson.loads(part) for part in parts]
    heads = [codec.load(DecisionHead, document) for document in documents]
    if not heads or not heads[-1].last or [head.part for head in heads] != list(range(len(heads))):
        return None
    facts = tuple(orjson.dumps(fact) for document in documents for fact in document["facts"])
    return Decision(head=heads[0], facts=facts)
