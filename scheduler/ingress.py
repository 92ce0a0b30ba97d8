"""What becomes of a record on a topic that is bound to one tenant: sent on to its owner, or rejected.

Such a topic is its publisher's own: any number of partitions, any partitioner, any retention. Who may write there
speaks for one tenant and no other. So the tenant of a command is held against the bound one before it goes on, a
rejection is filed under the bound tenant whatever the record claims, and headers of ours count for nothing: on a
stranger's record they are a claim to have stood elsewhere, or an address for an answer that is none of his.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from runtime.record import Record
from scheduler import forwarding, reading
from scheduler.forwarding import Misplaced
from schemas import codec
from schemas.commands import Command
from schemas.facts import CommandRejected, Position
from schemas.faults import Fault, Refused
from schemas.scheduling import CommandForwarded

OURS = "tw-"  # what headers of ours begin with

# How long a command may say it has waited. Others' topics may hold the publisher's clock instead of the broker's, so
# the instant is a claim; a week is how long commands are remembered, and longer than anyone should leave them unread.
WAITED_MAX = timedelta(days=7)


def decide(record: Record, tenant: str, now: datetime) -> CommandForwarded | CommandRejected:
    """A record of a topic that is bound to `tenant`; both facts name where it stood."""
    record = _without_our_headers(record)
    try:
        envelope = codec.read_envelope(record.value, record.headers)
        command = reading.command(record, envelope)
        _check_tenant(command, tenant)
    except Refused as refused:
        return replace(reading.rejection(record, refused.faults, now), tenant=tenant)
    since = max(record.appended_at, now - WAITED_MAX)
    return forwarding.forward(Misplaced(command=replace(command, appended_at=since), data=envelope.data))


def lost(stood: Position, oldest: int, tenant: str, now: datetime) -> CommandRejected:
    """What is said of records that were gone before they were read, from `stood` to the oldest that is left.

    Who stood behind the end has missed nothing there: the topic is another one of the same name.
    """
    where = f"{stood.topic}-{stood.partition}"
    if oldest > stood.offset:
        message = f"records {stood.offset} to {oldest - 1} of {where} were deleted before they were read"
    else:
        message = f"{where} had been read up to {stood.offset} and ends before it: it is read anew, from {oldest}"
    remedy = "publish what they said again; keep the topic's records longer than an outage lasts"
    fault = Fault(pointer="", code="records_lost", message=message, remedy=remedy)
    return CommandRejected(
        tenant=tenant, name=reading.UNKNOWN, reason=fault.code, faults=(fault,), position=stood, rejected_at=now
    )


def _without_our_headers(record: Record) -> Record:
    strange = tuple(header for header in record.headers if not header[0].lower().startswith(OURS))
    return record._replace(headers=strange)


def _check_tenant(command: Command, tenant: str) -> None:
    if command.tenant != tenant:
        message = f"this topic speaks for {tenant}, not for {command.tenant}"
        remedy = f"name the tenant {tenant}, or publish on a topic of {command.tenant}"
        raise Refused(Fault(pointer="/data/tenant", code="foreign_tenant", message=message, remedy=remedy))
