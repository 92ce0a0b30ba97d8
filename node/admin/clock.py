"""`tidewheel admin clock accept`: held partitions believe their clocks again, because a person says so."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from node.admin.reaching import Operated, operated
from node.admin.saying import chosen, say
from runtime.log import Log, Reader
from runtime.partition import Partition
from runtime.record import TopicPartition
from schemas import codec, identity, topics
from schemas.facts import ClockReleased
from schemas.faults import Refused
from schemas.operations import ClockAccept

READ_RECORDS, READ_BYTES, READ_SECONDS = 2_000, 8 << 20, 0.5


def accept(
    data: Path | None, role: str | None, number: int | None, wait: float, flags: Mapping[str, Any], *,
    by: str, note: str,
) -> None:  # fmt: skip
    with operated(data, flags) as at:
        partitions = chosen(at, role, number)
        now = datetime.now(UTC)
        words = [ClockAccept(role=each.role, partition=each.number, wall=now, by=by, note=note) for each in partitions]
        click.echo(f"This machine's clock shows {now:%Y-%m-%dT%H:%M:%SZ}.")
        if data is not None:
            say(at, words)
            click.echo("The partitions hear it when the server is started within the next five minutes.")
            return
        released = _told(at, partitions, words, wait)
    if not released:
        click.echo(
            "No partition was released: none is held, or its owner is away, or its clock shows another time. "
            "`tidewheel_clock_held` of each node says which are held.", err=True,
        )  # fmt: skip
        sys.exit(1)


def _told(at: Operated, partitions: list[Partition], words: list[ClockAccept], wait: float) -> int:
    """Say it, and how many have heard it until the time is over; each is told as it comes."""
    left = {(each.role, each.number) for each in partitions}
    count = 0
    with closing(at.log.open_reader(_story_ends(at.log, partitions))) as reader:
        say(at, words)
        for fact in _releases(reader, time.monotonic() + wait):
            if (fact.role, fact.partition) in left:
                left.remove((fact.role, fact.partition))
                count += 1
                click.echo(f"{fact.role} {fact.partition} is released: {fact.reason}")
            if not left:
                break
    return count


def _story_ends(log: Log, partitions: Iterable[Partition]) -> dict[TopicPartition, int]:
    """Where the stories of these partitions will be continued."""
    count = log.partitions(topics.RUN_EVENTS)
    subjects = {f"_/{each.role}-{each.number}" for each in partitions}
    places = {TopicPartition(topics.RUN_EVENTS, identity.partition_of(subject, count)) for subject in subjects}
    return dict(log.end_offsets(places))


def _releases(reader: Reader, until: float) -> Iterator[ClockReleased]:
    while (left := until - time.monotonic()) > 0:
        for record in reader.poll(records_max=READ_RECORDS, bytes_max=READ_BYTES, timeout=min(left, READ_SECONDS)):
            try:
                fact = codec.read_fact(record.value or b"")
            except Refused:
                continue  # of a later version: not what we wait for
            if isinstance(fact, ClockReleased):
                yield fact
