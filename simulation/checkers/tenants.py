"""I12: no tenant sees anything of another.

Publishers put a marker into everything that is a tenant's own (payloads, labels, results). A record about one tenant,
the answer to a call of one, and a row of one never hold the marker of another; and the key and the subject of an event
about a schedule name the tenant that its data names.
Reports and notices of workers, who serve all tenants of a queue, are about none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import orjson

from simulation.checkers.reading import Data, Event, events, topics_of_events
from simulation.evidence import MARKER, Evidence, Violation

ID = "I12"
_FIND = re.compile(MARKER.encode() + rb"([A-Za-z0-9_-]+)\.")
_MARK = MARKER.encode()


def observed(evidence: Evidence) -> int:
    """How many records, answers and rows held a marker."""
    marked = sum(_MARK in (event.record.value or b"") for event, _ in _of_tenants(evidence))
    return marked + sum(_MARK in raw for _, raw, _ in _told(evidence))


def check(evidence: Evidence) -> Iterator[Violation]:
    """Every place where one tenant can see another."""
    for event, tenant in _of_tenants(evidence):
        for other in _others(tenant, event.record.value or b""):
            what = f"{event.type} of tenant {tenant} holds the marker of {other}"
            yield Violation(invariant=ID, what=what, where=event.place)
        named = event.data.get("schedule")
        if named is not None and event.subject != f"{tenant}/{named}":
            what = f"{event.type} of {tenant}/{named} has the subject {event.subject}"
            yield Violation(invariant=ID, what=what, where=event.place)
    for tenant, raw, where in _told(evidence):
        for other in _others(tenant, raw):
            what = f"what tenant {tenant} is shown holds the marker of {other}"
            yield Violation(invariant=ID, what=what, where=where)


def _others(tenant: str, raw: bytes) -> list[str]:
    if _MARK not in raw:
        return []
    return sorted({found.decode() for found in _FIND.findall(raw)} - {tenant})


def _of_tenants(evidence: Evidence) -> list[tuple[Event, str]]:
    everything = (event for topic in topics_of_events(evidence) for event in events(evidence, topic))
    return evidence.once(
        "events of tenants",
        lambda: [(event, tenant) for event in everything if (tenant := _tenant_of(event.data)) is not None],
    )


def _tenant_of(data: Data) -> str | None:
    """Whose it is; `_` stands for none."""
    tenant = data.get("tenant")
    if tenant is None:
        holder = data.get("run") or data.get("body")
        tenant = holder.get("tenant") if isinstance(holder, dict) else None
    return tenant if isinstance(tenant, str) and tenant != "_" else None


def _told(evidence: Evidence) -> Iterator[tuple[str, bytes, str]]:
    """What somebody of a tenant got to see: whose, the bytes, and where."""
    for call in evidence.history:
        if call.tenant != "_":
            yield call.tenant, orjson.dumps(call.answer, default=str), f"call {call.number}, {call.kind}"
    for table, rows in evidence.read_model.items():
        for row in rows:
            if isinstance(row.get("tenant"), str):
                yield row["tenant"], orjson.dumps(dict(row), default=str), f"read model, {table}"
