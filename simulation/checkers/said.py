"""No attempt ends by a word that nobody said of it: a part of I6.

That an attempt has succeeded or failed its owner knows from a report that quotes its lease, by the incarnation that was
handed it, or by whom that passed its right on (`number` below 0), and that stood among what was read by then.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from runtime.record import TopicPartition
from schemas import topics
from simulation.checkers.reading import DISPATCHER, Changelog, Data, changelogs, documents, read_up_to
from simulation.evidence import Evidence, Violation

ID = "I6"
SAID = frozenset({"succeeded", "failed"})  # what only a worker can know
Words = Mapping[tuple[str, str], list[tuple[int, str]]]  # by lease and outcome: where it was said, and by whom
ANYBODY = ""  # of the leases alone


def check(evidence: Evidence) -> Iterator[Violation]:
    """Every end that was nobody's word."""
    for log in changelogs(evidence, DISPATCHER):
        yield from _partition(log, _words(evidence, TopicPartition(topics.ATTEMPTS, log.partition)))


def _words(evidence: Evidence, place: TopicPartition) -> Words:
    found: dict[tuple[str, str], list[tuple[int, str]]] = defaultdict(list)
    if place not in evidence.records:
        return found
    for record, document in zip(evidence.records[place], documents(evidence, place), strict=True):
        data: Any = document.get("data") if isinstance(document, dict) else None
        if not isinstance(data, dict) or not isinstance(data.get("finished"), list):
            continue
        who = ANYBODY if data.get("number", 0) < 0 else str(data.get("incarnation"))
        for entry in data["finished"]:
            if isinstance(entry, dict):
                found[str(entry.get("lease")), str(entry.get("outcome"))].append((record.offset, who))
    return found


def _partition(log: Changelog, words: Words) -> Iterator[Violation]:
    handouts: dict[tuple[Any, ...], Data] = {}
    for written in log.whole:
        read = read_up_to(written, topics.ATTEMPTS)
        for fact in written.facts():
            data = fact.data
            if fact.type == "run.handed_out":
                run = data["run"]
                handouts[run["tenant"], run["run_id"], data["offset"]] = data
            elif fact.type == "attempt.finished" and data["outcome"] in SAID:
                handout = handouts.get((data["tenant"], data["run_id"], data["handout"]))
                if handout is None:
                    continue
                said = words.get((handout["lease"], data["outcome"]), ())
                if not any(at < read and who in {ANYBODY, handout["incarnation"]} for at, who in said):
                    what = f"attempt {data['attempt']} of {data['run_id']} ends {data['outcome']}, and nobody said so"
                    yield Violation(invariant=ID, what=f"{data['tenant']}: {what}", where=fact.place)
