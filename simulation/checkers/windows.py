"""What is to wait for other schedules waits: a part of I20.

An occurrence of a schedule that names another with `mode: interval` has a run only when all that the other decided in
the window had come right by then: its run, or one that made up for it, has ended as it should. What was skipped has
not, unless a backfill gave it a run; what rules took out is no occurrence. `run_anyway` lets it go on all the same.

Instants are those at which the broker took a record. Whoever is no longer named is not waited for, so a schedule that
was edited meanwhile is judged no further back.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from schemas import topics
from simulation.checkers.marks import duration
from simulation.checkers.reading import Event, events, instant
from simulation.evidence import Evidence, Violation

ID = "I20"
NAME = tuple[str, str]  # tenant and schedule
TAKEN_OUT = "excluded"
OF_ITS_OWN = frozenset({"schedule", "catch_up"})  # runs that waited: those of backfills and by hand do not
EDITS = frozenset({"schedule.accepted", "schedule.deleted"})


@dataclass(slots=True)
class _Schedule:
    """What became of its occurrences. `decided`: when, and how, each by its nominal instant; `ended`: their runs."""

    decided: dict[datetime, str] = field(default_factory=dict)
    edited: list[datetime] = field(default_factory=list)
    ended: dict[datetime, list[tuple[datetime, str]]] = field(default_factory=lambda: defaultdict(list))
    waits: dict[int, list[dict[str, Any]]] = field(default_factory=dict)  # by version: for whom


def check(evidence: Evidence) -> Iterator[Violation]:
    """Every run that was to wait and did not."""
    known = _known(evidence)
    seen: set[str] = set()
    for event in events(evidence, topics.RUN_EVENTS):
        if event.type != "run.created" or event.data["cause"] not in OF_ITS_OWN or event.id in seen:
            continue
        seen.add(event.id)
        data = event.data
        for entry in known[data["tenant"], data["schedule"]].waits.get(data["version"], ()):
            yield from _early(known, event, entry)


def _known(evidence: Evidence) -> dict[NAME, _Schedule]:
    known: dict[NAME, _Schedule] = defaultdict(_Schedule)
    for event in events(evidence, topics.RUN_EVENTS):
        data = event.data
        if "schedule" not in data:
            continue
        schedule = known[data["tenant"], data["schedule"]]
        nominal = instant(data["nominal_time"]) if data.get("nominal_time") else None
        if event.type in EDITS:
            schedule.edited.append(event.record.appended_at)
        if event.type == "schedule.accepted":
            after = data["definition"].get("after") or ()
            schedule.waits[data["version"]] = [each for each in after if each["mode"] == "interval"]
        elif event.type == "run.created" and nominal is not None and data["cause"] in OF_ITS_OWN:
            schedule.decided[nominal] = "run"
        elif event.type == "occurrence.skipped" and nominal is not None and data["reason"] != TAKEN_OUT:
            schedule.decided.setdefault(nominal, f"skipped {data['reason']}")
        elif event.type == "run.finished" and nominal is not None and data.get("cause") != "manual":
            schedule.ended[nominal].append((event.record.appended_at, data["outcome"]))
    return known


def _early(known: dict[NAME, _Schedule], event: Event, entry: dict[str, Any]) -> Iterator[Violation]:
    data, at = event.data, event.record.appended_at
    own, upstream = known[data["tenant"], data["schedule"]], known[data["tenant"], entry["schedule"]]
    nominal = instant(data["nominal_time"])
    if entry["on_unmet"] == "run_anyway" or "span" not in entry or any(nominal < edit <= at for edit in own.edited):
        return
    until = nominal + _signed(entry["offset"])
    first = until - duration(entry["span"])
    for awaited, how in sorted(upstream.decided.items()):
        if first < awaited <= until and not _came_right(upstream, awaited, at, entry["condition"]):
            what = (
                f"{data['run_id']} is created, and {entry['schedule']} of {awaited:%H:%M:%S}, {how}, had not come right"
            )
            yield Violation(invariant=ID, what=what, where=event.place)
            return


def _came_right(upstream: _Schedule, nominal: datetime, by: datetime, condition: str) -> bool:
    ended = [outcome for at, outcome in upstream.ended[nominal] if at <= by]
    return bool(ended) if condition == "finished" else "succeeded" in ended


def _signed(text: str) -> timedelta:
    return -duration(text[1:]) if text.startswith("-") else duration(text)
