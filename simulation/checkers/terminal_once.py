"""I7: a run reaches exactly one outcome and never leaves it.

In the order of the dispatcher's decisions nothing happens to a run behind its outcome: what is known already may be
said again (`repeat`), late reports are noted as duplicates. On `run-outcomes` and `run-events` all that tells how a run
ended goes by one event id, with one outcome. That there is an outcome at all is asked by I9.
"""

from __future__ import annotations

from collections.abc import Iterator

from schemas import topics
from simulation.checkers.reading import DISPATCHER, Event, Fact, events, facts
from simulation.evidence import Evidence, Violation

ID = "I7"
# What changes a run. `run.created` too: a dispatcher takes a run once.
CHANGES = {
    "run.created", "run.handed_out", "attempt.started", "attempt.finished", "run.retry_scheduled",
    "run.cancel_requested", "run.finished",
}  # fmt: skip


def observed(evidence: Evidence) -> int:
    """How many outcomes were looked at."""
    return len(_outcomes(evidence))


def check(evidence: Evidence) -> Iterator[Violation]:
    """Every second outcome, and everything that happened to a run behind its first."""
    ended: dict[tuple[str, str], Fact] = {}
    for fact in facts(evidence, DISPATCHER):
        if fact.type not in CHANGES or fact.data.get("repeat"):
            continue
        data = fact.data.get("run", fact.data)
        key = (data["tenant"], data["run_id"])
        if (end := ended.get(key)) is not None:
            what = f"{fact.type} of {key[0]}: run {key[1]}, which ended {end.data['outcome']} at {end.place}"
            yield Violation(invariant=ID, what=what, where=fact.place)
        elif fact.type == "run.finished":
            ended[key] = fact
    yield from _told_alike(_outcomes(evidence))


def _told_alike(outcomes: list[Event]) -> Iterator[Violation]:
    first: dict[tuple[str, str], Event] = {}
    for event in outcomes:
        key = (event.data["tenant"], event.data["run_id"])
        said = first.setdefault(key, event)
        if (said.id, said.data["outcome"]) != (event.id, event.data["outcome"]):
            what = f"{key[0]}: run {key[1]} ended {event.data['outcome']}, and {said.data['outcome']} at {said.place}"
            yield Violation(invariant=ID, what=what, where=event.place)


def _outcomes(evidence: Evidence) -> list[Event]:
    return evidence.once(
        "outcomes",
        lambda: [
            event
            for topic in (topics.RUN_OUTCOMES, topics.RUN_EVENTS)
            for event in events(evidence, topic)
            if event.type == "run.finished"
        ],
    )
