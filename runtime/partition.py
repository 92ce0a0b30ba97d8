"""Which partition of which role, what it reads and where it writes; and up to where a store has followed it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from runtime.footer import Footer
from runtime.record import TopicPartition
from schemas import codec, topics


@dataclass(frozen=True, slots=True, kw_only=True)
class Inputs:
    """What a role reads. `references` have one partition each and are read whole by every partition of the role."""

    lead: str
    companions: tuple[str, ...] = ()
    references: tuple[str, ...] = ()

    def of(self, partition: int) -> tuple[TopicPartition, ...]:
        """The inputs of one partition."""
        own = tuple(TopicPartition(topic, partition) for topic in (self.lead, *self.companions))
        return own + tuple(TopicPartition(topic, 0) for topic in self.references)


@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """Which partition of which role this is, and what it reads and writes."""

    role: str
    number: int
    inputs: Inputs
    layout: topics.Layout

    @property
    def changelog(self) -> TopicPartition:
        """Where its state is logged."""
        return TopicPartition(topics.changelog_topic(self.role), self.number)

    @property
    def transactional_id(self) -> str:
        """One writer at a time holds it."""
        return f"{self.role}.{self.number}"

    @property
    def source(self) -> str:
        """The CloudEvents source of its facts."""
        return f"tidewheel/{self.role}/{self.number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """Up to where a store has applied the changelog, and whose store it is.

    `footer` is the last one applied, and stands right before `changelog_offset`; None in the middle of a restore.
    `read_at` is when a restore read up to there; None: at the footer's clock mark.
    """

    cluster_id: str
    topic_id: str
    role: str
    partition: int
    changelog_offset: int
    footer: Footer | None = None
    read_at: datetime | None = None
    format: int = 1


def checkpoint_bytes(checkpoint: Checkpoint) -> bytes:
    """As stored."""
    return codec.dump(checkpoint)


def read_checkpoint(value: bytes) -> Checkpoint:
    """As read; `Refused` when it is not one."""
    return codec.load(Checkpoint, codec.parse(value))
