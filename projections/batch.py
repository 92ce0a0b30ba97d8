"""Events in, row changes out: the pure middle of the projector."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from projections import activity, attempts, catalog, commands, occurrences, runs, schedules, story, versions
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
    story.PROJECTION,
    commands.PROJECTION,
    catalog.PROJECTION,
)
INPUTS = (topics.RUN_EVENTS, topics.SCHEDULES, topics.VERSIONS, topics.CATALOG, topics.REJECTIONS)

Changes = Mapping[str, Mapping["Key", "Row"]]  # table → key → the row as it is now
Load = Callable[[str, Collection["Key"]], Mapping["Key", "Row"]]  # the rows of a table that exist already

_log = logging.getLogger("tidewheel.projections")
_Step = tuple[str, "Key", "Fold", Event]


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


def fold(events: Sequence[Event], load: Load) -> Changes:
    """What the events, in this order, make of the rows they touch."""
    steps, touched = _plan(events)
    rows: dict[str, dict[Key, Row]] = {table: {**load(table, keys)} for table, keys in touched.items()}
    changed: dict[str, dict[Key, Row]] = defaultdict(dict)
    for table, key, step, event in steps:
        known = rows.setdefault(table, {})
        row = known.get(key)
        try:
            new = step(row, event)
        except (KeyError, TypeError, ValueError, AttributeError):
            _log.exception("projection.unfoldable: %s %s at offset %d", event.type, event.id, event.offset)
            continue
        if new is not None and new is not row:
            known[key] = changed[table][key] = new
    return changed


def _plan(events: Iterable[Event]) -> tuple[list[_Step], dict[str, set[Key]]]:
    """Which fold goes over which row with which event, and which rows have to be read first."""
    steps: list[_Step] = []
    touched: dict[str, set[Key]] = defaultdict(set)
    for event in events:
        for projection in _BY_TYPE.get(event.type, ()):
            try:
                key = projection.key(event)
            except (KeyError, TypeError, ValueError, AttributeError):
                _log.exception("projection.unfoldable: %s %s at offset %d", event.type, event.id, event.offset)
                continue
            if key is None:
                continue
            steps.append((projection.table, key, projection.folds[event.type], event))
            if not projection.once:
                touched[projection.table].add(key)
    return steps, touched


def _by_type() -> dict[str, list[Projection]]:
    found: dict[str, list[Projection]] = defaultdict(list)
    for projection in PROJECTIONS:
        for type_ in projection.folds:
            found[type_].append(projection)
    return dict(found)


_BY_TYPE = _by_type()
