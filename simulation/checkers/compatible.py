"""I16: nothing that a version does not know is dropped in silence.

A command of a type that the contract does not name has a rejection. A command with a field that no version knows (its
publisher says so with the header `sim-unknown`) is accepted with a warning that names the field, or rejected; one that
changes nothing has the warning in its answer.
What else an old reader makes of a new writer is not observed here: seeds that mix versions are judged by the others.
"""

from __future__ import annotations

from collections.abc import Iterator

from schemas import topics
from simulation.checkers.reading import SCHEDULER, Data, Event, events, facts
from simulation.evidence import UNKNOWN, Evidence, Place, Violation

ID = "I16"
COMMANDS = {
    "schedule": ("put", "pause", "resume", "delete", "trigger", "skip_occurrence"),
    "job": ("put", "delete"),
    "calendar": ("put", "delete"),
    "queue": ("put", "delete"),
    "tenant": ("put", "delete"),
    "backfill": ("start", "pause", "resume", "cancel"),
    "run": ("cancel", "rerun", "redrive"),
    "breaker": ("reset",),
}
KNOWN = {f"{kind}.{word}" for kind, words in COMMANDS.items() for word in words}


def observed(evidence: Evidence) -> int:
    """How many commands had something that nobody knows."""
    return len(_strange(evidence))


def check(evidence: Evidence) -> Iterator[Violation]:
    """Every command of which something was dropped."""
    rejected = {
        Place(at["topic"], at["partition"], at["offset"])
        for event in events(evidence, topics.REJECTIONS)
        if event.type == "command.rejected" and (at := event.data["position"])
    }
    accepted = _accepted(evidence)
    for event in _strange(evidence):
        if event.place in rejected or event.record.header("tw-origin") is not None:
            continue
        field = event.record.header(UNKNOWN)
        if event.type not in KNOWN:
            what = f"a command of the unknown type {event.type} has no rejection"
            yield Violation(invariant=ID, what=what, where=event.place)
        elif not any(field in warning for warning in _warnings(accepted, event) if field is not None):
            what = f"the unknown field {field} of {event.type} is dropped without a word"
            yield Violation(invariant=ID, what=what, where=event.place)


def _strange(evidence: Evidence) -> list[Event]:
    return [
        event
        for event in events(evidence, topics.SCHEDULE_CHANGES)
        if event.type not in KNOWN or event.record.header(UNKNOWN) is not None
    ]


def _accepted(evidence: Evidence) -> dict[str, list[Data]]:
    """What was said of each command that was accepted."""
    found: dict[str, list[Data]] = {}
    for event in events(evidence, topics.RUN_EVENTS):
        if event.type == "schedule.accepted":
            found.setdefault(event.data.get("command_id", ""), []).append(event.data)
    for fact in facts(evidence, SCHEDULER):
        if fact.type == "command.remembered":
            found.setdefault(fact.data["command_id"], []).append(fact.data["body"])
    return found


def _warnings(accepted: dict[str, list[Data]], event: Event) -> list[str]:
    return [warning for data in accepted.get(event.id, ()) for warning in data.get("warnings", ())]
