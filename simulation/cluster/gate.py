"""The way from projectors to the database of the read model, which may be away (J3)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from projections.store.database import Database


@dataclass(slots=True)
class Gate:
    """Whether the database is there. `skip`: the question that is refused once so many have passed."""

    away: bool = False
    skip: int | None = None

    def refuse_one(self, skip: int) -> None:
        """One question is refused, when so many have passed."""
        self.skip = skip

    def open(self) -> None:
        """The database is there from now on."""
        self.away, self.skip = False, None

    def passes(self) -> None:
        """A question is asked; ConnectionError when nobody is there to answer it."""
        if self.skip is not None:
            self.skip -= 1
        refused = self.skip is not None and self.skip < 0
        if refused:
            self.skip = None
        if self.away or refused:
            raise ConnectionError("the database is away")


class GatedDatabase:
    """A database behind a gate. Its own upkeep is not in the way of anybody."""

    def __init__(self, database: Database, gate: Gate) -> None:
        self._database, self._gate = database, gate

    def connect(self) -> Any:
        """See `Database.connect`."""
        self._gate.passes()
        return self._database.connect()

    @contextmanager
    def change(self) -> Iterator[Any]:
        """See `Database.change`."""
        self._gate.passes()
        with self._database.change() as connection:
            yield connection

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)
