"""I11: a bad record costs itself.

A record is bad when its publisher says so (header `sim-poison`), or when it stands on an input of a role and is no JSON
object of a CloudEvent. For each there is a rejection that says why and where it (first) stood, and the partition's
position is behind it: what follows it was read. A publisher that heard nothing appends a command again under its id:
that is one command, and refused once.
"""

from __future__ import annotations

from collections.abc import Iterator

from runtime.record import TopicPartition
from schemas import topics
from simulation.checkers.reading import Data, changelogs, documents, events
from simulation.evidence import POISON, Committed, Evidence, Place, Violation

ID = "I11"
ORIGIN = "tw-origin"
Command = tuple[str, str] | None  # its source and id; None for what has none
# Deleting a key is a tombstone there, and no bad record.
COMPACTED = frozenset({topics.CATALOG, topics.OPERATIONS})


def observed(evidence: Evidence) -> int:
    """How many bad records were published."""
    return len(_bad(evidence))


def check(evidence: Evidence) -> Iterator[Violation]:
    """Every bad record that was dropped in silence, or that held up what stands behind it."""
    rejections, refused = _rejections(evidence), _refused(evidence)
    read_up_to = _positions(evidence)
    for place, record, command in _bad(evidence):
        kind = record.header(POISON) or "is no event"
        rejection = rejections.get(place)
        if rejection is None and record.header(ORIGIN) is None and command not in refused:
            yield Violation(invariant=ID, what=f"a bad record ({kind}) has no rejection", where=place)
        elif rejection is not None and not (rejection["reason"] and rejection["faults"]):
            yield Violation(invariant=ID, what=f"the rejection of a bad record ({kind}) gives no reason", where=place)
        for owner, position in read_up_to.get(TopicPartition(place.topic, place.partition), {}).items():
            if position <= place.offset:
                what = f"a bad record ({kind}) holds up {owner}, which is at {position}"
                yield Violation(invariant=ID, what=what, where=place)


def _bad(evidence: Evidence) -> list[tuple[Place, Committed, Command]]:
    inputs = _positions(evidence)
    return evidence.once("bad records", lambda: [item for place in inputs for item in _bad_in(evidence, place)])


def _bad_in(evidence: Evidence, place: TopicPartition) -> Iterator[tuple[Place, Committed, Command]]:
    if place not in evidence.records:
        return
    for record, document in zip(evidence.records[place], documents(evidence, place), strict=True):
        is_event = isinstance(document, dict) and {"type", "id"} <= document.keys()
        is_tombstone = record.value is None and place.topic in COMPACTED
        is_binary = record.header("ce_type") is not None
        if record.header(POISON) is not None or not (is_event or is_tombstone or is_binary):
            command = (str(document.get("source", "")), str(document["id"])) if is_event else None
            yield Place(*place, record.offset), record, command


def _refused(evidence: Evidence) -> set[Command]:
    return {
        (event.data.get("source", ""), event.data["command_id"])
        for event in events(evidence, topics.REJECTIONS)
        if event.type == "command.rejected" and event.data.get("command_id")
    }


def _rejections(evidence: Evidence) -> dict[Place, Data]:
    return {
        Place(at["topic"], at["partition"], at["offset"]): event.data
        for event in events(evidence, topics.REJECTIONS)
        if event.type == "command.rejected" and (at := event.data["position"])
    }


def _positions(evidence: Evidence) -> dict[TopicPartition, dict[str, int]]:
    """Where each partition's last footer stands in each of its inputs."""
    found: dict[TopicPartition, dict[str, int]] = {}
    for log in changelogs(evidence):
        footer = log.whole[-1].footer if log.whole else None
        for item in footer["positions"] if footer is not None else ():
            place = TopicPartition(item["topic"], item["partition"])
            found.setdefault(place, {})[f"{log.role}-{log.partition}"] = item["offset"]
    return found
