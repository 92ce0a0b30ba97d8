"""Commands that were answered are remembered for seven days, so that the same one again is answered alike.

They stand in rows named by a digest of (tenant, name, source, id), the one that a manual run's id is made of too, and
again by age, so that forgetting needs no search.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

from scheduler import keys
from scheduler.instants import from_millis, millis
from scheduler.state import Memory
from schemas import codec, identity
from schemas.faults import Fault
from schemas.frozen import frozen
from schemas.scheduling import CommandRemembered, HistoryForgotten

if TYPE_CHECKING:
    from runtime.machine import Rows

DAY_MS = 24 * 60 * 60 * 1000
KEPT_MS = 7 * DAY_MS
SLACK_MS = DAY_MS  # forgotten a day late, so that there is one step of forgetting a day and not one a command
COMMANDS_MAX = 10_000  # of one schedule or job: ten megabytes at most; the oldest make room
FORGOTTEN_MAX = 256  # in one step


@frozen
class Remembered:
    """How a command was answered."""

    at: datetime
    status: int
    body: Mapping[str, Any]
    faults: tuple[Fault, ...] = ()


def digest(tenant: str, name: str, source: str, command_id: str) -> str:
    """What a command is known by within its schedule or job."""
    return identity.manual_run_id(tenant, name, source, command_id)[-16:]


def recall(rows: Rows, known_by: str, now: datetime) -> Remembered | None:
    """The answer that was given, if it was given in the last seven days."""
    row = rows.get(keys.COMMAND + known_by.encode())
    if row is None:
        return None
    remembered = codec.load(Remembered, codec.parse(row))
    return remembered if millis(now) - millis(remembered.at) <= KEPT_MS else None


def remember(memory: Memory, rows: Rows, fact: CommandRemembered) -> Memory:
    """Write an answer down."""
    known_by = digest(fact.tenant, fact.name, fact.source, fact.command_id).encode()
    at_ms = millis(fact.remembered_at)
    row = codec.dump(Remembered(at=fact.remembered_at, status=fact.status, body=fact.body, faults=fact.faults))
    again = rows.get(keys.COMMAND + known_by)
    if again is not None:  # the same command after seven days: what was known of it makes room
        old = codec.load(Remembered, codec.parse(again))
        rows.delete(keys.number(keys.COMMAND_AT, millis(old.at)) + known_by)
        memory = replace(memory, count=memory.count - 1)
    rows.put(keys.COMMAND + known_by, row)
    rows.put(keys.number(keys.COMMAND_AT, at_ms) + known_by, b"")
    memory = Memory(count=memory.count + 1, oldest_ms=memory.oldest_ms if memory.count else at_ms)
    return memory if memory.count <= COMMANDS_MAX else _forget_rows(memory, rows, _oldest(rows, 1))


def forget_at_ms(memory: Memory) -> int | None:
    """When the next step of forgetting is due."""
    return memory.oldest_ms + KEPT_MS + SLACK_MS if memory.count else None


def forgetting(of: str, tenant: str, name: str, rows: Rows, now_ms: int) -> HistoryForgotten:
    """One step: what is older than seven days, and no more than a step may hold."""
    until_ms = now_ms - KEPT_MS
    page = _oldest(rows, FORGOTTEN_MAX)
    if len(page) == FORGOTTEN_MAX:
        until_ms = min(until_ms, _instant_ms(page[-1]))
    return HistoryForgotten(of=of, tenant=tenant, name=name, commands_until=from_millis(until_ms))


def forget(memory: Memory, rows: Rows, until: datetime) -> Memory:
    """Remove what was answered up to an instant."""
    end = keys.number(keys.COMMAND_AT, millis(until) + 1)
    return _forget_rows(memory, rows, [row for row, _ in rows.scan(keys.COMMAND_AT, end)])


def _forget_rows(memory: Memory, rows: Rows, old: list[bytes]) -> Memory:
    for row in old:
        rows.delete(row)
        rows.delete(keys.COMMAND + row[len(keys.COMMAND_AT) + 8 :])
    oldest = _oldest(rows, 1)
    return Memory(count=memory.count - len(old), oldest_ms=_instant_ms(oldest[0]) if oldest else 0)


def _oldest(rows: Rows, count: int) -> list[bytes]:
    return [row for row, _ in islice(rows.scan(keys.COMMAND_AT, keys.end_of(keys.COMMAND_AT)), count)]


def _instant_ms(row: bytes) -> int:
    return int.from_bytes(row[len(keys.COMMAND_AT) : len(keys.COMMAND_AT) + 8], "big")
