"""I17: no secret anywhere.

Secrets that were used in the run (`canaries`) stand in no record, committed or aborted, in no header or key, on no
disk, in no read model, no answer and no text.
"""

from __future__ import annotations

from collections.abc import Iterator

import orjson

from simulation.evidence import Evidence, Place, Violation

ID = "I17"


def observed(evidence: Evidence) -> int:
    """How many places were looked through; 0 where no secret was used."""
    return sum(1 for _ in _places(evidence)) if evidence.canaries else 0


def check(evidence: Evidence) -> Iterator[Violation]:
    """Every place where a secret stands; the secret itself is not repeated."""
    canaries = [canary.encode() for canary in evidence.canaries]
    if not canaries:
        return
    for where, parts in _places(evidence):
        for number, canary in enumerate(canaries, 1):
            if any(canary in part for part in parts):
                yield Violation(invariant=ID, what=f"holds secret {number}", where=where)


def _places(evidence: Evidence) -> Iterator[tuple[Place | str, list[bytes]]]:
    for records in (evidence.records, evidence.aborted):
        for place, there in records.items():
            for record in there:
                headers = [value for _, value in record.headers]
                yield Place(*place, record.offset), [record.key or b"", record.value or b"", *headers]
    for store in evidence.stores:
        yield (
            f"store of {store.role}-{store.partition} on {store.machine}",
            [raw for item in store.entries for raw in item],
        )
    for call in evidence.history:
        yield f"call {call.number}, {call.kind}", [orjson.dumps(call.answer, default=str)]
    for table, rows in evidence.read_model.items():
        yield f"read model, {table}", [orjson.dumps(dict(row), default=str) for row in rows]
    for name, text in evidence.texts.items():
        yield name, [text.encode()]
