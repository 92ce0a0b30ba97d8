"""I8: no run before its time.

On the partition's own clock: the instant of the decision that creates a run is not before its nominal time. On
everybody's clock: nor does its record reach the log earlier than that, but for what a wall clock may be ahead before it
is held.
"""

from __future__ import annotations

from collections.abc import Iterator

from schemas import topics
from simulation.checkers.reading import SCHEDULER, Fact, events, facts, instant
from simulation.evidence import Evidence, Violation

ID = "I8"


def observed(evidence: Evidence) -> int:
    """How many runs with a nominal time were looked at."""
    return len(_timed(evidence))


def check(evidence: Evidence) -> Iterator[Violation]:
    """Every run that came before its time."""
    for fact in _timed(evidence):
        name, nominal = f"{fact.data['tenant']}: run {fact.data['run_id']}", instant(fact.data["nominal_time"])
        if instant(fact.now) < nominal or instant(fact.data["created_at"]) < nominal:
            what = f"{name} is created at {fact.now} on its partition's clock"
            yield Violation(invariant=ID, what=what, where=fact.place)
    for event in events(evidence, topics.RUNS):
        if event.type == "run.created" and event.data.get("nominal_time") is not None:
            early = instant(event.data["nominal_time"]) - event.record.appended_at
            if early > evidence.clocks_apart_max:
                what = f"{event.data['tenant']}: run {event.data['run_id']} is {early} early on the log's clock"
                yield Violation(invariant=ID, what=what, where=event.place)


def _timed(evidence: Evidence) -> list[Fact]:
    return evidence.once(
        "timed runs",
        lambda: [
            fact
            for fact in facts(evidence, SCHEDULER)
            if fact.type == "run.created" and fact.data.get("nominal_time") is not None
        ],
    )
