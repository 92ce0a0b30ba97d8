"""How a word of an operator gets to the owners of partitions: on the topic `operations`, with its author."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import click

from node.admin.reaching import Operated
from node.roles import partitions_of
from runtime.log import LogError, UnknownTopic
from runtime.partition import Partition
from runtime.record import Outgoing
from schemas import codec, topics
from schemas.facts import Fact

SOURCE = "tidewheel/admin"


def chosen(at: Operated, role: str | None, number: int | None) -> list[Partition]:
    """The partitions that are meant; wrong usage when there are none."""
    found = [each for each in partitions_of(at.layout) if role in (None, each.role) and number in (None, each.number)]
    if not found:
        raise click.UsageError(f"--partition: there is no partition {number}")
    return found


def say(at: Operated, words: Sequence[Fact]) -> None:
    """Write them down; returns when they are durable."""
    now = datetime.now(UTC)
    try:
        at.log.append(list(_records(words, now)))
    except UnknownTopic as error:
        raise LogError(f"{error}: tidewheel admin topics create") from error


def _records(words: Sequence[Fact], now: datetime) -> Iterator[Outgoing]:
    for word in words:
        _, value = codec.encode(word, source=SOURCE, time=now)
        yield Outgoing(topics.OPERATIONS, 0, word.subject.encode(), value)
