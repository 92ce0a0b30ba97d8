"""A read model of dictionaries: what folds need, and no database."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from projections import batch
from projections.projection import Key, Row
from runtime.record import Outgoing, Record
from schemas.facts import Fact
from tests.projections import histories

Tables = dict[str, dict[Key, Row]]


class Memory:
    """Rows by table and key."""

    def __init__(self) -> None:
        self.tables: Tables = {projection.table: {} for projection in batch.PROJECTIONS}

    def load(self, table: str, keys: Collection[Key]) -> Mapping[Key, Row]:
        return {key: self.tables[table][key] for key in keys if key in self.tables[table]}

    def apply(self, changes: batch.Changes) -> None:
        once = {projection.table for projection in batch.PROJECTIONS if projection.once}
        for table, rows in changes.items():
            for key, row in rows.items():
                if table not in once or key not in self.tables[table]:
                    self.tables[table][key] = row

    def take(self, records: Iterable[Record]) -> None:
        self.apply(batch.fold(batch.read_all(records), self.load))


def rows_after(facts: Sequence[Fact | Outgoing], table: str) -> list[dict[str, Any]]:
    """The rows of a table after these events, each read in a batch of its own."""
    memory = Memory()
    for record in as_read(facts):
        memory.take([record])
    return [memory.tables[table][key] for key in sorted(memory.tables[table])]


def as_read(facts: Iterable[Fact | Outgoing], *, offset: int = 0) -> list[Record]:
    """Records as a reader delivers them, a second apart."""
    read = []
    for number, fact in enumerate(facts, offset):
        out = fact if isinstance(fact, Outgoing) else histories.record(fact, sequence=number + 1)
        at = histories.START + timedelta(seconds=number)
        read.append(Record(out.topic, out.partition, number, out.key, out.value, out.headers, at))
    return read
