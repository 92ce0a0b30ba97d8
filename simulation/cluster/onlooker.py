"""Somebody who looks at the read model now and then, as a page does, and remembers what versions it saw."""

from __future__ import annotations

from typing import TYPE_CHECKING

from projections.batch import PROJECTIONS
from simulation.evidence import Glimpse

if TYPE_CHECKING:
    from simulation.cluster.projecting import ReadModelPlace

CHANGING = frozenset(projection.table for projection in PROJECTIONS if not projection.once)


class Onlooker:
    """Looks when told to. A row that is as it was is not mentioned again."""

    def __init__(self, place: ReadModelPlace) -> None:
        self._place = place
        self._seen: dict[tuple[str, str], int] = {}
        self.glimpses: list[Glimpse] = []

    def look(self) -> None:
        """All rows that can change, with the sequence of what they were last changed by."""
        for table, rows in self._place.rows().items():
            if table in CHANGING:
                for key, row in rows.items():
                    self._see(table, str(key), int(row.get("sequence") or 0))

    def _see(self, table: str, key: str, version: int) -> None:
        if self._seen.get((table, key)) != version:
            self._seen[table, key] = version
            self.glimpses.append(Glimpse(table=table, key=key, version=version))
