"""Records in, inputs out; and what is said about a record that cannot be one."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

import orjson

from runtime.machine import PARTITION, Moment
from runtime.record import REPLY_HEADER, SEQUENCE_HEADER, Record
from scheduler import bounds, commands, forwarding, keys
from scheduler.forwarding import Misplaced
from scheduler.links import exchange
from scheduler.links.exchange import LinkRead
from scheduler.partition import CatalogRead
from schemas import codec, identity, topics
from schemas.codec import Envelope
from schemas.commands import COMMANDS, EVERYONE, Command, read_request
from schemas.facts import CatalogEntry, CommandRejected, Fact, RunFinished
from schemas.faults import Fault, Refused
from schemas.frozen import frozen
from schemas.internal import CommandAnswered

RAW_BYTES_MAX = 1024  # of an unreadable record, kept for whoever has to find its publisher
NAME_CHARACTERS_MAX = identity.NAME_LENGTH_MAX
UNKNOWN = "_"
STATUS = {"wrong_partition": 421, "unknown_type": 400, "not_json": 400, "not_an_event": 400}
INVALID = 422
REASONS = frozenset({"wrong_subject", "foreign_tenant", *STATUS})  # of a whole record


@frozen
class OutcomeRead:
    """A run's outcome, and when it was appended to the log: from then on the run is not active any more."""

    finished: RunFinished
    appended_at: datetime


Input = Command | Misplaced | OutcomeRead | CatalogRead | LinkRead


def read(record: Record, partition: int, layout: topics.Layout) -> tuple[bytes, Input] | None:
    """The key and the input of a record; None when it is not for us; `Refused` when it is poison."""
    if record.topic == topics.CATALOG:
        return _catalog(record)
    if record.topic == topics.RUN_OUTCOMES:
        return _outcome(record)
    if record.topic == topics.LINKS:
        return exchange.read(_fact(record), record.appended_at)
    envelope = codec.read_envelope(record.value, record.headers)
    asked = command(record, envelope)
    right = identity.partition_of(f"{asked.tenant}/{asked.name}", layout.schedule)
    if right == partition:
        return commands.key_of(asked), asked
    if forwarding.was_forwarded(record):
        message = f"{asked.tenant}/{asked.name} belongs to partition {right}, this is {partition}"
        remedy = "choose the partition by murmur2 of tenant/name, as Java producers do"
        raise Refused(Fault(pointer="", code="wrong_partition", message=message, remedy=remedy))
    return commands.key_of(asked), Misplaced(command=asked, data=envelope.data)  # of another partition's key


def about(record: Record) -> bytes | None:
    """Whom a command of our own form is about; None where that takes a closer look."""
    if record.topic != topics.SCHEDULE_CHANGES or any(name[:3].lower() == "ce_" for name, _ in record.headers):
        return None
    try:
        event = orjson.loads(record.value or b"")
        kind, tenant, name = event["type"], event["data"]["tenant"], event["data"]["name"]
        return _key_of(kind, tenant, name) if max(len(tenant), len(name)) <= NAME_CHARACTERS_MAX else None
    except (ValueError, LookupError, TypeError):
        return None


@lru_cache(maxsize=4096)  # A flood names a few again and again, and whoever is due waits until it is looked at.
def _key_of(kind: str, tenant: str, name: str) -> bytes | None:
    """Whom a command of that type is about, if these may be its tenant and its name."""
    return commands.key_for(COMMANDS[kind], tenant, name) if _may_name(tenant) and _may_name(name) else None


def _may_name(text: str) -> bool:
    return text == EVERYONE or identity.is_name(text)


def strand(record: Record, key: bytes | None) -> bytes:
    """See `Core.strand`. Of a command that is refused it is the tenant that it names, as of one that is not."""
    if record.topic != topics.SCHEDULE_CHANGES:
        return b""
    named = key or about(record)
    return _named(_envelope_of(record))[0].encode() if named is None else keys.tenant(named)


def refuse(record: Record, faults: Sequence[Fault], moment: Moment) -> Sequence[Fact]:
    """A rejection that says where the record first stood, and an answer when one was asked for."""
    rejected = rejection(record, faults, moment.now)
    reply_to = _reply_to(record)
    if reply_to is None or rejected.raw is not None:
        return (rejected,)
    reason = rejected.reason
    body = {"tenant": rejected.tenant, "name": rejected.name, "reason": reason, "detail": bounds.detail(faults)}
    answered = CommandAnswered(
        command_id=rejected.command_id, reply_to=reply_to, status=STATUS.get(reason, INVALID), body=body,
        faults=rejected.faults,
    )  # fmt: skip
    return (rejected, answered)


def rejection(record: Record, faults: Sequence[Fault], now: datetime) -> CommandRejected:
    """What is said of a record that is refused; its head goes along where it cannot be read."""
    envelope = _envelope_of(record)
    tenant, name = _named(envelope)
    return CommandRejected(
        tenant=tenant,
        name=name,
        reason=_reason(faults),
        faults=bounds.faults(faults),
        position=forwarding.place_of(record).position,
        rejected_at=now,
        command_id="" if envelope is None else envelope.id,
        command_type="" if envelope is None else envelope.type,
        source="" if envelope is None else envelope.source,
        raw=base64.b64encode((record.value or b"")[:RAW_BYTES_MAX]).decode() if envelope is None else None,
    )


def command(record: Record, envelope: Envelope) -> Command:
    """The command in a record, or `Refused`."""
    request = read_request(envelope)
    place = forwarding.place_of(record)
    return Command(
        id=envelope.id,
        source=envelope.source,
        type=envelope.type,
        request=request,
        position=place.position,
        appended_at=place.appended_at,
        reply_to=_reply_to(record),
    )


def _outcome(record: Record) -> tuple[bytes, OutcomeRead] | None:
    fact = _fact(record)
    if not isinstance(fact, RunFinished):
        return None
    return keys.schedule(fact.tenant, fact.schedule), OutcomeRead(finished=fact, appended_at=record.appended_at)


def _fact(record: Record) -> Fact:
    """The fact of a record: nearly always one that a processor of ours wrote, known by the only header that it has."""
    headers = record.headers
    if record.value is not None and len(headers) == 1 and headers[0][0] == SEQUENCE_HEADER:
        return codec.read_fact(record.value)
    return codec.decode(codec.read_envelope(record.value, headers))


def _catalog(record: Record) -> tuple[bytes, CatalogRead] | None:
    if record.value is None:
        return None  # a tombstone: the entry that it removes said already that there is nothing
    fact = codec.read_fact(record.value)
    if not isinstance(fact, CatalogEntry):
        return None
    position = (record.header(SEQUENCE_HEADER) or b"").decode()
    return PARTITION, CatalogRead(entry=fact, offset=record.offset, position=position)


def _envelope_of(record: Record) -> Envelope | None:
    try:
        return codec.read_envelope(record.value, record.headers)
    except Refused:
        return None


def _named(envelope: Envelope | None) -> tuple[str, str]:
    data: Any = None if envelope is None else envelope.data
    values = [data.get(field) if isinstance(data, dict) else None for field in ("tenant", "name")]
    tenant, name = (value if isinstance(value, str) and identity.is_name(value) else UNKNOWN for value in values)
    return tenant, name


def _reason(faults: Sequence[Fault]) -> str:
    """The word that programs branch on: a fault of the whole record says it, faults of its fields are `invalid`."""
    return next((fault.code for fault in faults if fault.code in REASONS), "invalid")


def _reply_to(record: Record) -> int | None:
    text = record.header(REPLY_HEADER)
    if text is None or not text.isdigit() or len(text) > 3 or int(text) >= topics.REPLY_PARTITIONS:  # noqa: PLR2004
        return None
    return int(text)
