"""I15: everything has a hard cap, and keeps it.

Records of owners are within a megabyte, and a part of a decision within 512 KiB unless it is a single fact; a whole
decision is within twice the 8 MiB at which a batch ends. A transaction ends within the coordinator's timeout. A run is
tried no more often than its job says, what burns no attempt left out.
Memory and disk are not observed here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from runtime.record import TopicPartition
from schemas import topics
from simulation.checkers.reading import DISPATCHER, ROLES, changelog, facts, sequence_of
from simulation.evidence import Evidence, Place, Violation

ID = "I15"
RECORD_BYTES_MAX = 1024 * 1024  # what brokers take by default
PART_BYTES_MAX = 512 * 1024 + 16 * 1024  # with its head
DECISION_BYTES_MAX = 2 * 8 * 1024 * 1024


def observed(evidence: Evidence) -> int:
    """How many records and transactions were measured."""
    return sum(map(len, evidence.records.values())) + len(evidence.transactions)


def check(evidence: Evidence) -> Iterator[Violation]:
    """Everything that is larger, longer or more often than it may be."""
    yield from _records(evidence)
    for role in ROLES:
        for place in evidence.partitions(topics.changelog_topic(role)):
            yield from _decisions(evidence, role, place)
    yield from _transactions(evidence)
    yield from _attempts(evidence)


def _records(evidence: Evidence) -> Iterator[Violation]:
    for place, records in evidence.spans():
        for record in records:
            size = len(record.key or b"") + len(record.value or b"")
            if size > RECORD_BYTES_MAX and sequence_of(record) is not None:
                what = f"a record of {size} bytes, of at most {RECORD_BYTES_MAX}"
                yield Violation(invariant=ID, what=what, where=Place(*place, record.offset))


def _decisions(evidence: Evidence, role: str, place: TopicPartition) -> Iterator[Violation]:
    for written in changelog(evidence, (role, place.partition)).written:
        for part, size in zip(written.parts, written.sizes, strict=True):
            if size > PART_BYTES_MAX and len(part["facts"]) > 1:
                what = f"part {part['part']} of a decision has {size} bytes, of at most {PART_BYTES_MAX}"
                yield Violation(invariant=ID, what=what, where=written.at)
        if sum(written.sizes) > DECISION_BYTES_MAX:
            what = f"a decision of {sum(written.sizes)} bytes, of at most {DECISION_BYTES_MAX}"
            yield Violation(invariant=ID, what=what, where=written.at)


def _transactions(evidence: Evidence) -> Iterator[Violation]:
    longest = evidence.transaction_seconds_max
    if not longest:
        return
    for transaction in evidence.transactions.values():
        until = transaction.ended_at or evidence.ended_at
        seconds = 0.0 if until is None else (until - transaction.began_at).total_seconds()
        if seconds > longest:
            what = f"a transaction ({transaction.outcome}) was open for {seconds:.1f} s, of at most {longest:.1f} s"
            yield Violation(invariant=ID, what=what, where=transaction.transactional_id)


def _attempts(evidence: Evidence) -> Iterator[Violation]:
    used: Counter[tuple[str, str]] = Counter()
    allowed: dict[tuple[str, str], int] = {}
    for fact in facts(evidence, DISPATCHER):
        if fact.type == "run.created":
            allowed[fact.data["tenant"], fact.data["run_id"]] = fact.data["job"]["retry"]["max_attempts"]
        elif fact.type == "attempt.finished" and fact.data.get("counted", True):
            run = (fact.data["tenant"], fact.data["run_id"])
            used[run] += 1
            if used[run] > allowed.get(run, used[run]):
                what = f"{run[0]}: attempt {used[run]} of run {run[1]}, of at most {allowed[run]}"
                yield Violation(invariant=ID, what=what, where=fact.place)
