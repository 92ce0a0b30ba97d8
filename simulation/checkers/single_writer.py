"""I3: a partition has one writer at a time.

In the committed order of its changelog (owner epoch, transaction sequence) strictly grows, and the sequence by one. On
every topic the sequences of one partition never go back; nor do the producers of its id and their epochs, as the model
of Kafka knows them. A sequence may come twice where a torn transaction was rolled forward. Whoever writes as a new
producer signs with a higher owner epoch than whoever wrote before: an epoch that two owners share tells nobody which of
them wrote. Who loses a partition lets go of it (see `letting_go`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from simulation.checkers import letting_go
from simulation.checkers.reading import Changelog, Sequence, changelogs, sequence_of
from simulation.evidence import Committed, Evidence, Place, Transaction, Violation

ID = "I3"


class Writer(NamedTuple):
    """Who wrote, in the order in which writers of one id follow each other."""

    number: int
    epoch: int

    def __str__(self) -> str:
        return f"{self.number} epoch {self.epoch}"


def observed(evidence: Evidence) -> int:
    """How many transactions were looked at."""
    return sum(len(log.written) for log in changelogs(evidence))


def check(evidence: Evidence) -> Iterator[Violation]:
    """Every transaction and record that another owner must have written in between."""
    for log in changelogs(evidence):
        yield from _in_changelog(log)
        yield from _signed(evidence, log)
    for place, records in evidence.spans():
        yield from _by_sequence(place.topic, place.partition, records)
        yield from _by_epoch(evidence, place.topic, place.partition, records)
    yield from letting_go.check(evidence)


def _in_changelog(log: Changelog) -> Iterator[Violation]:
    epoch = sequence = 0
    for written in log.written:
        said = written.footer or written.head
        if said is None:
            continue
        where = written.footer_at or written.at
        if said["epoch"] < epoch:
            what = f"owner epoch {said['epoch']} after {epoch}"
            yield Violation(invariant=ID, what=what, where=where)
        if written.footer is not None and said["sequence"] != sequence + 1:
            what = f"transaction {said['sequence']} after {sequence}"
            yield Violation(invariant=ID, what=what, where=where)
        epoch = max(epoch, said["epoch"])
        sequence = said["sequence"] if written.footer is not None else sequence


def _signed(evidence: Evidence, log: Changelog) -> Iterator[Violation]:
    """Whether owner epochs rise with those of producers, footer by footer."""
    before: tuple[Writer, int] | None = None
    for written in log.whole:
        if written.footer is None or written.transaction is None:
            continue
        producer, owner = _writer(evidence.transactions[written.transaction]), written.footer["epoch"]
        if before is not None and producer > before[0] and owner <= before[1]:
            what = f"producer {producer} after {before[0]} signs with owner epoch {owner} after {before[1]}"
            yield Violation(invariant=ID, what=what, where=written.footer_at or written.at)
        before = producer, owner


def _by_sequence(topic: str, partition: int, records: tuple[Committed, ...]) -> Iterator[Violation]:
    newest: dict[tuple[str, int], int] = {}
    before: Sequence | None = None
    for record in records:
        sequence = sequence_of(record)
        if sequence is None or sequence == before:  # all of one transaction
            continue
        before, owner = sequence, sequence[:2]
        if sequence.number < newest.get(owner, 0):
            what = f"a record of {owner[0]}-{owner[1]} transaction {sequence.number} after one of {newest[owner]}"
            yield Violation(invariant=ID, what=what, where=Place(topic, partition, record.offset))
            before = None  # each such record is told
        newest[owner] = max(sequence.number, newest.get(owner, 0))


def _by_epoch(
    evidence: Evidence, topic: str, partition: int, records: tuple[Committed, ...]
) -> Iterator[Violation]:  # fmt: skip
    newest: dict[str, Writer] = {}
    before: int | None = None
    for record in records:
        if record.transaction is None or record.transaction == before:
            continue
        before = record.transaction
        transaction = evidence.transactions[record.transaction]
        id_, writer = transaction.transactional_id, _writer(transaction)
        if writer < newest.get(id_, writer):
            what = f"a record of {id_} by producer {writer} after one by {newest[id_]}"
            yield Violation(invariant=ID, what=what, where=Place(topic, partition, record.offset))
            before = None
        newest[id_] = max(writer, newest.get(id_, writer))


def _writer(transaction: Transaction) -> Writer:
    return Writer(transaction.producer, transaction.epoch)
