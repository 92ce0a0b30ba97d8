"""Versions of a schedule: those that still decide, and those that have ended.

Each version has a record on `versions`, which the audit walks, and its definition here, by which a backfill may go.
Both go when nothing of the version is left: its time is out of the history, no entry of the ledger names it, no
occurrence of it waits and no backfill goes by it. Versions end in their order and go in their order; the one in force
never goes.
"""

from __future__ import annotations

from itertools import islice

from scheduler import keys, ledger
from scheduler.instants import SECOND_MS
from scheduler.state import Ended, ScheduleState

FORGOTTEN_MAX = 256  # in one step: as many tombstones


def row(version: int) -> bytes:
    """Where the definition of a version stands for as long as anything may go by it."""
    return keys.number(keys.VERSION, version)


def oldest_deciding(state: ScheduleState) -> int:
    """The oldest version that still decides something."""
    waiting = [state.waiting.version] if state.waiting is not None else []
    if state.backlog is not None:
        waiting.append(state.backlog.version)
    if state.links.waiting.count:
        waiting.append(state.links.waiting.version)
    if state.links.awaits.count:
        waiting.append(state.links.awaits.version)
    if waiting:
        return min(waiting)
    first = state.phases[0] if state.phases else None
    if first is None or (first.deleted and len(state.phases) == 1):
        return state.version + 1
    return first.version


def end(state: ScheduleState, at_ms: int) -> Ended:
    """The version in force ends: the oldest one that has ended and still has its record."""
    state.rows.put(keys.number(keys.ENDED, state.version), at_ms.to_bytes(8, "big"))
    return state.ended or Ended(version=state.version, at_ms=at_ms)


def forget_at(state: ScheduleState, kept_seconds: int) -> int | None:
    """When the next record may go: not before the oldest piece of the ledger, which may name its version."""
    ended = state.ended
    if ended is None or ended.version >= _oldest_needed(state):
        return None
    return max(ended.at_ms // SECOND_MS, state.spilled_to or 0) + kept_seconds + ledger.SLACK_SECONDS


def forgettable(state: ScheduleState, until: int) -> int | None:
    """The last version whose record goes with what the ledger forgets before an instant."""
    first_kept = min(_oldest_needed(state), ledger.oldest_version(state, until) or state.version + 1)
    gone = [version for version, at_ms in _ended(state) if version < first_kept and at_ms < until * SECOND_MS]
    return gone[-1] if gone else None


def up_to(state: ScheduleState, last: int) -> list[int]:
    """The ended versions with a record up to one of them."""
    return [version for version, _ in _ended(state) if version <= last]


def forget(state: ScheduleState, last: int) -> Ended | None:
    """Their records are gone; the oldest one that is left."""
    for version in up_to(state, last):
        state.rows.delete(keys.number(keys.ENDED, version))
        state.rows.delete(row(version))
    return next((Ended(version=version, at_ms=at_ms) for version, at_ms in _ended(state)), None)


def _oldest_needed(state: ScheduleState) -> int:
    return min((oldest_deciding(state), *(backfill.version for backfill in state.backfills)))


def _ended(state: ScheduleState) -> list[tuple[int, int]]:
    """Versions that have ended, and when; the oldest ones, as many as a step takes."""
    page = islice(state.rows.scan(keys.ENDED, keys.end_of(keys.ENDED)), FORGOTTEN_MAX)
    return [(int.from_bytes(name[len(keys.ENDED) :], "big"), int.from_bytes(value, "big")) for name, value in page]
