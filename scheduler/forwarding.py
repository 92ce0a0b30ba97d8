"""A command that stands in a partition of another owner is sent on to the right one, once.

Producers hash differently (librdkafka by CRC32 unless told, Java by murmur2), so a record in the wrong place is an
honest mistake. It goes on as it is, with two headers more: `tw-origin`, where it first stood, and `tw-origin-at`, since
when. So it takes effect as if it had stood right from the beginning, and what is refused of it names the place that
its publisher knows. A record that was sent on and is wrong again is refused: nothing goes round in circles.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any, NamedTuple

from runtime.record import ORIGIN_AT_HEADER, ORIGIN_HEADER, REPLY_HEADER, Headers, Record
from scheduler.instants import text
from schemas import codec, values
from schemas.commands import Command
from schemas.facts import Position
from schemas.faults import Refused
from schemas.frozen import frozen
from schemas.scheduling import CommandForwarded

_ORIGIN = re.compile(rb"([A-Za-z0-9._-]{1,249})-([0-9]{1,6})-([0-9]{1,18})\Z")


@frozen
class Misplaced:
    """A command of another partition, as an input of the one where it stands; `data` is its body as it came."""

    command: Command
    data: Any


class Place(NamedTuple):
    """Where a record first stood, and since when."""

    position: Position
    appended_at: datetime


def forward(misplaced: Misplaced) -> CommandForwarded:
    """The command goes to its owner."""
    command = misplaced.command
    return CommandForwarded(
        tenant=command.tenant,
        name=command.name,
        source=command.source,
        command_id=command.id,
        command_type=command.type,
        data=misplaced.data,
        position=command.position,
        appended_at=command.appended_at,
        reply_to=command.reply_to,
    )


def record_of(fact: CommandForwarded) -> bytes:
    """The command as it is sent on."""
    envelope = codec.Envelope(
        id=fact.command_id, source=fact.source, type=fact.command_type, subject=fact.subject, data=fact.data
    )
    return codec.write_envelope(envelope)


def headers_of(fact: CommandForwarded) -> Headers:
    """What goes with it."""
    stood = fact.position
    origin = f"{stood.topic}-{stood.partition}-{stood.offset}"
    texts = {ORIGIN_HEADER: origin, ORIGIN_AT_HEADER: text(fact.appended_at)}
    if fact.reply_to is not None:
        texts[REPLY_HEADER] = str(fact.reply_to)
    return tuple((name, value.encode()) for name, value in texts.items())


def was_forwarded(record: Record) -> bool:
    """Whether the record was sent on before."""
    return _origin(record) is not None


def place_of(record: Record) -> Place:
    """Where the record first stood, as far as it says so."""
    origin = _origin(record)
    if origin is None:
        return Place(Position(topic=record.topic, partition=record.partition, offset=record.offset), record.appended_at)
    return Place(origin, min(_since(record) or record.appended_at, record.appended_at))


def _origin(record: Record) -> Position | None:
    found = _ORIGIN.match(record.header(ORIGIN_HEADER) or b"")
    if found is None:
        return None
    topic, partition, offset = found.groups()
    return Position(topic=topic.decode(), partition=int(partition), offset=int(offset))


def _since(record: Record) -> datetime | None:
    try:
        return values.instant((record.header(ORIGIN_AT_HEADER) or b"").decode(), ("", ORIGIN_AT_HEADER))
    except (Refused, UnicodeDecodeError):
        return None
