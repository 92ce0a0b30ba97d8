"""Events in, row changes out: the pure middle of the projector."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
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


def fold(events: Iterable[Event], load: Load, projections: Sequence[Projection] = PROJECTIONS) -> Changes:
    """What the events, in this order, make of the rows they touch. No table depends on another's rows.

    Twice over the events, whatever the number of tables: what is large is looked at while it is at hand.
    """
    touched = [_Touched(projection) for projection in projections]
    steps = _steps(events, touched)
    for each in touched:
        each.load(load)
    for each, key, step, event in steps:
        row = each.rows.get(key)
        try:
            new = step(row, event)
        except _UNFOLDABLE:
            _complain(event)
            continue
        if new is not None and new is not row:
            each.rows[key] = each.changed[key] = new
    return {each.table: each.changed for each in touched if each.changed}


class _Touched:
    """What a batch touches of one table: rows as they are by now, and those of them that are to be written."""

    __slots__ = ("changed", "keys", "projection", "rows", "table")

    def __init__(self, projection: Projection) -> None:
        self.projection = projection
        self.table = projection.table
        self.keys: set[Key] = set()
        self.rows: dict[Key, Row] = {}
        self.changed: dict[Key, Row] = {}

    def load(self, load: Load) -> None:
        """Begin with the rows that exist already."""
        if self.keys and not self.projection.once:
            self.rows = dict(load(self.table, self.keys))


def _steps(events: Iterable[Event], touched: Iterable[_Touched]) -> list[tuple[_Touched, Key, Fold, Event]]:
    """Which fold goes over which row with which event."""
    of_type: dict[str, list[tuple[_Touched, Callable[[Event], Key | None], Fold]]] = {}
    for each in touched:
        for type_, step in each.projection.folds.items():
            of_type.setdefault(type_, []).append((each, each.projection.key, step))
    steps = []
    for event in events:
        for each, key_of, step in of_type.get(event.type, ()):
            try:
                key = key_of(event)
                if key is None:
                    continue
                each.keys.add(key)
            except _UNFOLDABLE:  # also a key that is a list, say, and can name no row
                _complain(event)
                continue
            steps.append((each, key, step, event))
    return steps


# What an event that is not built as its type says makes a fold raise. It costs itself, and is named in the log.
_UNFOLDABLE = (LookupError, TypeError, ValueError, AttributeError)


def _complain(event: Event) -> None:
    _log.exception("projection.unfoldable: %s %s at offset %d", event.type, event.id, event.offset)
