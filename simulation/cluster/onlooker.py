"""Somebody who looks at the read model now and then, as a page does, and remembers what versions it saw."""

from __future__ import annotations

from typing import TYPE_CHECKING

from projections.batch import PROJECTIONS
from simulation.evidence import Glimpse

if TYPE_CHECKING:
    from collections.abc import Mapping

    from projections.projection import Key, Row
    from simulation.cluster.projecting import ReadModelPlace

CHANGING = frozenset(projection.table for projection in PROJECTIONS if not projection.once)


class Onlooker:
    """Looks when told to. A row that is as it was is not mentioned again."""

    def __init__(self, place: ReadModelPlace) -> None:
        self._place = place
        self._seen: dict[str, dict[Key, int]] = {}  # versions, by table
        self.glimpses: list[Glimpse] = []

    def look(self) -> None:
        """All rows that can change, with the sequence of what they were last changed by."""
        for table, rows in self._place.rows().items():
            if table in CHANGING:
                self._look_at(table, rows)

    def _look_at(self, table: str, rows: Mapping[Key, Row]) -> None:
        seen = self._seen.setdefault(table, {})
        for key, row in rows.items():
            version = row.get("sequence") or 0
            if seen.get(key) != version:
                seen[key] = version
                self.glimpses.append(Glimpse(table=table, key=str(key), version=int(version)))
