"""What SQLite and PostgreSQL do differently: the port that `dialects/` fills. Everything else is said once for both.

Statements are compiled once and given to the driver as text: a projection writes some ten thousand rows a second, and
building each statement anew would cost more than the database does. Rows travel as one text of JSON: one step of the
driver for a list of rows, whatever their number.

A database may hold several **layouts** beside each other, each a set of the tables as one VERSION of them has it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sqlalchemy import Connection, Engine, Table

    from projections.projection import Key, Row


class Upsert(Protocol):
    """Writes whole rows, the new one taking the place of the old, or (`once`) the old one standing."""

    def run(self, connection: Connection, rows: Sequence[Row]) -> None: ...


class Lookup(Protocol):
    """Reads whole rows by their keys, as folds made them."""

    def run(self, connection: Connection, keys: Sequence[Key]) -> Iterable[Row]: ...


class Dialect(Protocol):
    """One database."""

    def open(self, layout: int) -> Engine:
        """Connections to a layout, which need not be there yet; nothing is connected so far."""
        ...

    def layouts(self, connection: Connection) -> Sequence[int]:
        """The layouts that are there, whole or not, from the oldest to the newest. Any connection will do."""
        ...

    def make(self, connection: Connection, layout: int) -> None:
        """The place for the tables of the layout that the connection is of."""
        ...

    def drop(self, connection: Connection, layout: int) -> None:
        """Forget a layout, unless somebody is connected to it. The connection is of another, in a transaction."""
        ...

    def begin_change(self, connection: Connection) -> None:
        """Until the commit nobody else changes this layout, and readers see what there was."""
        ...

    def refuses(self, error: BaseException) -> bool:
        """Whether the error says that a row cannot be stored as it is, and never will."""
        ...

    def upsert(self, table: Table, *, once: bool) -> Upsert:
        """The upsert of a table."""
        ...

    def lookup(self, table: Table) -> Lookup:
        """The lookup of a table."""
        ...


def settled(insert: Any, table: Table, *, once: bool) -> Any:
    """An insert that knows what to do with a row that is there already; of two transactions the later one stands."""
    keys = [column.name for column in table.primary_key]
    if once:
        return insert.on_conflict_do_nothing(index_elements=keys)
    others = {name: insert.excluded[name] for name in names(table) if name not in keys}
    newer = insert.excluded["sequence"] >= table.c.sequence if "sequence" in table.c else None
    return insert.on_conflict_do_update(index_elements=keys, set_=others, where=newer)


def names(table: Table) -> list[str]:
    """The columns of a table in their order."""
    return [str(column.name) for column in table.c]
