"""Definitions of queues and tenants, as a dispatcher's partition has adopted them."""

from collections.abc import Mapping
from typing import Any

from dispatcher.adoption import Shared
from runtime.machine import PARTITION
from runtime.record import Record
from schemas import codec, topics
from schemas.facts import CatalogEntry
from tests.dispatcher.harness import T0, Bench, MemoryRows


class Catalog:
    """The part of a partition that all shards share, and what it adopted."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.rows = MemoryRows()
        self.offset = -1
        bench.shared = self.state = self.load()

    def load(self) -> Shared:
        state = self.bench.core.load(PARTITION, self.rows)
        assert isinstance(state, Shared)
        return state

    def put(self, kind: str, name: str, definition: Mapping[str, Any] | None) -> list[Any]:
        self.offset += 1
        tenant, own = (name, "_") if kind == "tenant" else ("_", name)
        entry = CatalogEntry(
            kind=kind, tenant=tenant, name=own, version=self.offset + 1, changed_at=T0, definition=definition
        )  # fmt: skip
        _, value = codec.encode(entry, source="tidewheel/test", time=T0)
        record = Record(topics.CATALOG, 0, self.offset, entry.subject.encode(), value, (), T0)
        read = self.bench.core.read(record)
        assert read is not None
        assert read[0] == PARTITION
        facts = list(self.bench.core.decide(self.state, read[1], self.bench.moment(), self.state))
        for fact in facts:
            assert self.bench.core.key_of(fact) == PARTITION
            self.bench.core.evolve(self.state, fact)
        self.bench.core.save(PARTITION, self.state, self.rows)
        return facts
