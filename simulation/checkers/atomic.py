"""I5: of a transaction everything is visible, or nothing, or what was torn has been made whole.

A footer announces facts, outputs, rows and decision parts. All of them must be there, and no more; where the decision
stood in the log before, without a footer, the transaction was torn, and what had become visible of it may be there
twice. An output of which no footer ever spoke was never made whole: when the run has come to rest, or when its
partition has written since. Where owners give up a producer whose commit is in doubt, nothing is torn.

Outputs are counted by their header `tw-seq`, in all of the evidence; where the model of Kafka says which transaction
wrote a record, in that one. Of a record that hung (C7) it says none: such outputs may stand for those that are missing,
or beside them, as when the changelog heard that their transaction is aborted and their own partition did not. What hung
in the changelog may have lost its outputs: then the next transaction has them, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from simulation.checkers.reading import (
    Changelog,
    Sequence,
    Written,
    changelogs,
    sequence_of,
    topics_of_events,
)
from simulation.evidence import Committed, Evidence, Place, Violation

ID = "I5"
SOON = 3  # transactions: one that ends what hung, or the first of a successor, and some that hung in their turn


def observed(evidence: Evidence) -> int:
    """How many transactions were held against what they announce."""
    return sum(len(log.whole) for log in changelogs(evidence))


def check(evidence: Evidence) -> Iterator[Violation]:
    """Every transaction of which something is missing, or of which there is too much."""
    outputs = _outputs(evidence)
    known: set[Sequence] = set()
    newest: dict[tuple[str, int], int] = {}
    for log in changelogs(evidence):
        for place in log.odd:
            yield Violation(invariant=ID, what="fits neither decision, row nor footer", where=place)
        yield from _transactions(log, outputs)
        ended = {
            Sequence(log.role, log.partition, written.footer["sequence"]) for written in log.whole if written.footer
        }
        known |= ended
        newest[log.role, log.partition] = max((sequence.number for sequence in ended), default=0)
        yield from _torn_at_the_end(evidence, log)
        yield from _torn_in_spite_of_doubts(evidence, log)
    for sequence in sorted(outputs.keys() - known):
        if evidence.rested_at is not None or sequence.number < newest.get(sequence[:2], 0):
            what = f"belongs to {_named(sequence)}, which has no footer"
            yield Violation(invariant=ID, what=what, where=outputs[sequence][0][0])


def _transactions(log: Changelog, outputs: dict[Sequence, list[tuple[Place, Committed]]]) -> Iterator[Violation]:
    torn = set(log.copied)
    for index, written in enumerate(log.written):
        if written.footer is None:
            if written.head is not None and written.whole:
                torn.add(written.head["sequence"])
            continue
        sequence = Sequence(log.role, log.partition, written.footer["sequence"])
        yield from _announced(written, sequence)
        if not (written.hung and _is_carried_out_again(written, log.written[index + 1 :])):
            yield from _sent(written, sequence, outputs.get(sequence, []), was_torn=sequence.number in torn)


def _is_carried_out_again(hung: Written, later: list[Written]) -> bool:
    """Whether one soon behind it decides nothing, and sends as much."""
    assert hung.footer is not None, "what is whole has a footer"
    wanted = hung.footer["outputs"]
    ended = (written for written in later if written.footer is not None)
    return any(not again.parts and again.footer["outputs"] == wanted for again in islice(ended, SOON))  # type: ignore[index]


def _announced(written: Written, sequence: Sequence) -> Iterator[Violation]:
    """What stands in the changelog itself."""
    footer = written.footer
    assert footer is not None
    found = {
        "decision_parts": len(written.parts),
        "facts": sum(len(part["facts"]) for part in written.parts),
        "rows": len(written.rows),
    }
    where = written.footer_at or written.at
    for name, count in found.items():
        if count != footer[name]:
            what = f"{_named(sequence)} announces {footer[name]} {name}, of which {count} are there"
            yield Violation(invariant=ID, what=what, where=where)
    if written.parts and (not written.whole or written.parts[0]["sequence"] != sequence.number):
        yield Violation(invariant=ID, what=f"{_named(sequence)} closes another decision, or half of one", where=where)


def _sent(
    written: Written, sequence: Sequence, sent: list[tuple[Place, Committed]], *, was_torn: bool
) -> Iterator[Violation]:  # fmt: skip
    footer, where = written.footer, written.footer_at or written.at
    assert footer is not None
    own = sent if written.hung else [item for item in sent if written.transaction in (None, item[1].transaction)]
    hung = [item for item in sent if item not in own and item[1].transaction is None]
    exact = not written.hung and (written.transaction is not None or not was_torn)
    if len(own) + len(hung) < footer["outputs"] or (exact and len(own) > footer["outputs"]):
        what = f"{_named(sequence)} announces {footer['outputs']} outputs, of which {len(own) + len(hung)} are visible"
        yield Violation(invariant=ID, what=what, where=where)
    if len(own) + len(hung) < len(sent) and not was_torn:
        foreign = next(place for place, record in sent if record.transaction not in (None, written.transaction))
        what = f"says it is of {_named(sequence)}, and another transaction wrote it"
        yield Violation(invariant=ID, what=what, where=foreign)


def _torn_at_the_end(evidence: Evidence, log: Changelog) -> Iterator[Violation]:
    last = log.written[-1] if log.written else None
    if last is not None and last.footer is None and evidence.rested_at is not None:
        yield Violation(invariant=ID, what="a torn transaction that nobody has made whole", where=last.at)


def _torn_in_spite_of_doubts(evidence: Evidence, log: Changelog) -> Iterator[Violation]:
    for written in log.written if evidence.doubting else ():
        if written.footer is None and not written.hung:
            what = "a torn transaction, though its owner gives up what it doubts"
            yield Violation(invariant=ID, what=what, where=written.at)


def _outputs(evidence: Evidence) -> dict[Sequence, list[tuple[Place, Committed]]]:
    found: dict[Sequence, list[tuple[Place, Committed]]] = {}
    for topic in topics_of_events(evidence):
        for place in evidence.partitions(topic):
            for record in evidence.records[place]:
                sequence = sequence_of(record)
                if sequence is not None:
                    found.setdefault(sequence, []).append((Place(*place, record.offset), record))
    return found


def _named(sequence: Sequence) -> str:
    return f"{sequence.role}-{sequence.partition} transaction {sequence.number}"
