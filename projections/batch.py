"""Events in, row changes out: the pure middle of the projector."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from projections import (
    activity,
    attempts,
    backfills,
    breakers,
    catalog,
    changes,
    commands,
    logs,
    occurrences,
    runs,
    schedules,
    story,
    versions,
    workers,
)
from projections.event import Event, Unreadable, read
from schemas import topics

if TYPE_CHECKING:
    from projections.projection import Fold, Key, Projection, Row
    from runtime.record import Record

PROJECTIONS: tuple[Projection, ...] = (
    schedules.PROJECTION,
    versions.PROJECTION,
    activity.PROJECTION,
    occurrences.PROJECTION,
    runs.PROJECTION,
    attempts.PROJECTION,
    backfills.PROJECTION,
    story.PROJECTION,
    commands.PROJECTION,
    catalog.PROJECTION,
    changes.PROJECTION,
    workers.PROJECTION,
    breakers.PROJECTION,
)
INPUTS = (
    topics.RUN_EVENTS, topics.SCHEDULES, topics.VERSIONS, topics.CATALOG, topics.REJECTIONS, topics.WORKERS
)  # fmt: skip

# Followed by themselves. Workers write that topic: nothing in it becomes a row of another table, and a job that writes
# much makes only other logs late.
LOG_PROJECTIONS: tuple[Projection, ...] = (logs.PROJECTION,)
LOG_INPUTS = (topics.LOGS,)

Changes = Mapping[str, Mapping["Key", "Row"]]  # table → key → the row as it is now
Load = Callable[[str, Collection["Key"]], Mapping["Key", "Row"]]  # the rows of a table that exist already

_log = logging.getLogger("tidewheel.projections")


def read_all(records: Iterable[Record]) -> list[Event]:
    """The events in records; one that is none is left out and named in the log."""
    events = []
    for record in records:
        try:
            event = read(record)
        except Unreadable as error:
            _log.error("projection.unreadable: %s", error)
            continue
        if event is not None:
            events.append(event)
    return events


def fold(events: Sequence[Event], load: Load, projections: Sequence[Projection] = PROJECTIONS) -> Changes:
    """What the events, in this order, make of the rows they touch. No table depends on another's rows."""
    changes = {projection.table: _fold_one(projection, events, load) for projection in projections}
    return {table: rows for table, rows in changes.items() if rows}


def _fold_one(projection: Projection, events: Sequence[Event], load: Load) -> Mapping[Key, Row]:
    steps = list(_steps(projection, events))
    rows = {} if projection.once or not steps else dict(load(projection.table, {key for key, _, _ in steps}))
    changed: dict[Key, Row] = {}
    for key, step, event in steps:
        row = rows.get(key)
        try:
            new = step(row, event)
        except _UNFOLDABLE:
            _complain(event)
            continue
        if new is not None and new is not row:
            rows[key] = changed[key] = new
    return changed


def _steps(projection: Projection, events: Iterable[Event]) -> Iterator[tuple[Key, Fold, Event]]:
    """Which fold goes over which row with which event."""
    for event in events:
        step = projection.folds.get(event.type)
        if step is None:
            continue
        try:
            key = projection.key(event)
        except _UNFOLDABLE:
            _complain(event)
            continue
        if key is not None:
            yield key, step, event


# What an event that is not built as its type says makes a fold raise. It costs itself, and is named in the log.
_UNFOLDABLE = (LookupError, TypeError, ValueError, AttributeError)


def _complain(event: Event) -> None:
    _log.exception("projection.unfoldable: %s %s at offset %d", event.type, event.id, event.offset)
