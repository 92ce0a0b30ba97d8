"""What all keys of a partition share: adopted definitions, the recovery under way, the tz database it decides with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from runtime.machine import Reached, Unfit
from scheduler import freezes, holding, keys, pacing, shards
from scheduler.context import Context
from scheduler.instants import millis
from scheduler.plan import Adopted
from scheduler.state import PartitionState, Recovery
from schemas import codec
from schemas.facts import (
    CatalogAdopted,
    CatalogEntry,
    Fact,
    HistoryTrimmed,
    RecoveryFinished,
    RecoveryStarted,
    TzAdopted,
)
from schemas.frozen import frozen
from schemas.scheduling import HoldNoted, HoldsReviewed, TenantPaced, TzRulesNoted

ROLE = "scheduler"
TRIMMED_EVERY = timedelta(days=1)
ADOPTED = frozenset({"job", "calendar", "queue", "tenant"})  # kinds of the catalog that decisions rest on


class TzVersionTooOld(Unfit):
    """Our tz database is older than the one the partition was decided with: we must not decide here."""

    def __init__(self, partition: int, *, adopted: str, here: str) -> None:
        super().__init__(
            f"scheduler partition {partition} follows tz database {adopted}, this process has {here}: "
            f"install tzdata {adopted} or newer here"
        )
        self.wanted = adopted


@frozen
class CatalogRead:
    """A record of the catalog, as an input of the partition."""

    entry: CatalogEntry
    offset: int
    position: str = ""


def check_tz(state: PartitionState, partition: int, version: str) -> PartitionState:
    """Versions such as 2026f sort as they were published."""
    if state.tz_version > version:
        raise TzVersionTooOld(partition, adopted=state.tz_version, here=version)
    return state


def reached(state: PartitionState, input_: Reached, context: Context) -> tuple[Fact, ...]:
    """What follows when everything up to an instant is decided."""
    told = () if state.review is None else holding.tell(state, context, state.review)
    return (*_recovered(state, input_.until, context), *_trimmed(state, input_.until, context), *told)


def _recovered(state: PartitionState, until: datetime, context: Context) -> tuple[Fact, ...]:
    recovery = state.recovery
    if recovery is None or until < recovery.to:
        return ()
    fact = RecoveryFinished(
        role=ROLE, partition=context.partition, from_=recovery.from_, to=recovery.to, finished_at=context.now
    )
    return (fact,)


def _trimmed(state: PartitionState, until: datetime, context: Context) -> tuple[Fact, ...]:
    """Once a day: how far back the decisions of this partition can still be read."""
    kept_from = until - timedelta(seconds=context.history_seconds)
    if state.history_from is None or kept_from - state.history_from < TRIMMED_EVERY:
        return ()
    return (HistoryTrimmed(role=ROLE, partition=context.partition, until=kept_from),)


def adopt(state: PartitionState, input_: CatalogRead, context: Context) -> tuple[Fact, ...]:
    """The partition uses what the catalog says from now on; known records and unknown kinds are left alone."""
    if input_.offset <= state.catalog_offset or input_.entry.kind not in ADOPTED:
        return ()
    fact = CatalogAdopted(
        role=ROLE, partition=context.partition, offset=input_.offset, adopted_at=context.now, entries=(input_.entry,),
        position=input_.position,
    )  # fmt: skip
    entry = input_.entry
    known = _known(state, entry)
    if freezes.change(known, entry.definition) or (state.freezes and _moves(known, entry)):
        return (fact, *holding.changed(state, context, entry.kind, entry.tenant))
    return (fact,)


def _moves(known: Mapping[str, Any] | None, entry: CatalogEntry) -> bool:
    """Whether a job goes to another queue, and so to other freezes, from now on.

    One that comes anew may do so: nobody knows any more which queue it had before it was deleted.
    """
    if entry.kind != "job" or entry.definition is None:
        return False
    return known is None or known.get("queue") != entry.definition.get("queue")


def has_adopted(state: PartitionState, position: str | None) -> bool:
    """Whether the catalog is used up to a position. Transactions of one owner stand in the catalog in their order."""
    if position is None:
        return True
    owner, _, sequence = position.rpartition("-")
    row = state.rows.get(keys.ADOPTED + owner.encode())
    return row is not None and int(row) >= int(sequence)


def evolve(state: PartitionState, fact: Fact) -> PartitionState:
    """The state after a fact. Facts that no key keeps (answers, refusals) pass through here unchanged."""
    match fact:
        case RecoveryStarted():
            pacing.forget_turns(state, millis(fact.to))
            holding.forget(state, millis(fact.to))
            return replace(state, recovery=Recovery(from_=fact.from_, to=fact.to, tenant_rate=fact.tenant_rate))
        case TenantPaced():
            pacing.tenant_paced(state, fact)
            return state
        case HoldNoted():
            holding.note(state, fact)
            return state
        case HoldsReviewed():
            return replace(state, review=holding.reviewed(fact))
        case RecoveryFinished():
            return replace(state, recovery=None)
        case TzAdopted():
            return replace(state, tz_version=fact.version, history_from=state.history_from or fact.adopted_at)
        case TzRulesNoted():
            state.rows.put(keys.TZ_RULES, codec.dump(fact))
            return state
        case HistoryTrimmed():
            holding.forget(state, millis(fact.until))
            return replace(state, history_from=fact.until)
        case CatalogAdopted():
            for entry in fact.entries:
                state = _adopt_row(state, entry)
            if fact.position:
                owner, _, sequence = fact.position.rpartition("-")
                state.rows.put(keys.ADOPTED + owner.encode(), sequence.encode())
            return replace(state, catalog_offset=fact.offset)
        case _:
            return state


def _adopt_row(state: PartitionState, entry: CatalogEntry) -> PartitionState:
    row = keys.adopted(entry.kind, entry.tenant, entry.name)
    known = _known(state, entry)
    had, was = freezes.are_in(known), shards.are_in(entry.kind, known)
    shards.note(state, entry)
    if entry.definition is None:
        state.rows.delete(row)
    else:
        state.rows.put(row, codec.dump(Adopted(version=entry.version, definition=entry.definition)))
    return replace(
        state, freezes=state.freezes + freezes.are_in(entry.definition) - had,
        sharded=state.sharded + shards.are_in(entry.kind, entry.definition) - was,
    )  # fmt: skip


def _known(state: PartitionState, entry: CatalogEntry) -> Mapping[str, Any] | None:
    """The definition that an entry takes the place of."""
    row = state.rows.get(keys.adopted(entry.kind, entry.tenant, entry.name))
    return None if row is None else codec.load(Adopted, codec.parse(row)).definition
