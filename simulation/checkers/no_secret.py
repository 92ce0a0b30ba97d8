"""I17: no secret anywhere.

Secrets that were used in the run (`canaries`) stand in no record, committed or aborted, in no header or key, on no
disk, in no read model, no answer and no text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import orjson

from simulation.evidence import Committed, Evidence, Place, Violation

ID = "I17"


def observed(evidence: Evidence) -> int:
    """How many records and other things were looked through; 0 where no secret was used."""
    if not evidence.canaries:
        return 0
    records = sum(len(there) for everything in (evidence.records, evidence.aborted) for there in everything.values())
    return records + sum(1 for _ in _elsewhere(evidence))


def check(evidence: Evidence) -> Iterator[Violation]:
    """Every place where a secret stands; the secret itself is not repeated."""
    for number, canary in enumerate(evidence.canaries, 1):
        for where in _holding(evidence, canary.encode()):
            yield Violation(invariant=ID, what=f"holds secret {number}", where=where)


def _holding(evidence: Evidence, secret: bytes) -> Iterator[Place | str]:
    for everything in (evidence.records, evidence.aborted):
        for place, records in everything.items():
            if secret in _all_of(records):
                yield from (Place(*place, record.offset) for record in records if secret in _all_of((record,)))
    yield from (where for where, raw in _elsewhere(evidence) if secret in raw)


def _all_of(records: Iterable[Committed]) -> bytes:
    """Everything that stands in some records."""
    parts = [part for record in records for part in (record.key, record.value, *_of_headers(record)) if part]
    return b"\n".join(parts)


def _of_headers(record: Committed) -> list[bytes]:
    return [value for _, value in record.headers]


def _elsewhere(evidence: Evidence) -> Iterator[tuple[str, bytes]]:
    for store in evidence.stores:
        name = f"store of {store.role}-{store.partition} on {store.machine}"
        yield name, b"\n".join(raw for item in store.entries for raw in item)
    for call in evidence.history:
        yield f"call {call.number}, {call.kind}", orjson.dumps(call.answer, default=str)
    for table, rows in evidence.read_model.items():
        yield f"read model, {table}", b"\n".join(orjson.dumps(dict(row), default=str) for row in rows)
    for name, text in evidence.texts.items():
        yield name, text.encode()
