"""What one batch of a processor decided and is not committed yet."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from runtime.record import Headers, Outgoing
from schemas import identity

if TYPE_CHECKING:
    from runtime.machine import Moment, Output
    from schemas.facts import Fact


class Given(NamedTuple):
    """An input that is a fact, and its bytes."""

    fact: Fact | None
    value: bytes


NOTHING_GIVEN = Given(None, b"")


@dataclass(slots=True)
class Batch:
    """What one batch decided, not yet committed."""

    moment: Moment
    further: Moment  # of wakeups of keys that are known further than all is answered; the same, where none is
    sequence: int
    headers: Headers  # of every output
    facts: list[bytes] = field(default_factory=list)
    told: list[Fact] = field(default_factory=list)  # the same, not encoded
    outputs: list[Outgoing] = field(default_factory=list)
    size: int = 0
    answered: bool = False  # every wakeup due at read_until has been answered
    ahead: bool = False  # some was answered that is due behind read_until
    left: bool = False  # some wakeup that may be answered had no room


def outgoing(route: Output, value: bytes | None, partitions: int, headers: Headers) -> Outgoing:
    """What a route sends, and where."""
    partition = identity.partition_of(route.key, partitions) if route.partition is None else route.partition
    value = None if route.tombstone else value
    return Outgoing(route.topic, partition, route.key.encode(), value, headers + route.headers)
