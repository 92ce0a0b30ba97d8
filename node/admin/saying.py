"""How a word of an operator gets to the owners of partitions: on the topic `operations`, with its author."""

from __future__ import annotations

import getpass
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

import click

from node.admin.reaching import Operated, kafka_options
from node.roles import partitions_of
from runtime.log import LogError, UnknownTopic
from runtime.partition import Partition
from runtime.record import Outgoing
from schemas import codec, topics
from schemas.facts import Fact

F = TypeVar("F", bound=Callable[..., Any])

SOURCE = "tidewheel/admin"


def word_options(command: F) -> F:
    """`--role`, `--partition`, `--by`, `--note`, and which cluster."""
    note = click.option("--note", default="", help="Why; it stands on the log.")
    by = click.option(
        "--by", default=_author, show_default="the user's name", help="Who says so; it stands on the log."
    )
    number = click.option("--partition", "number", type=click.IntRange(min=0), help="One partition [all].")
    role = click.option("--role", type=click.Choice(["scheduler", "dispatcher"]), help="One role [both].")
    return role(number(by(note(kafka_options(command)))))


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


def _author() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
