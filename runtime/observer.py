"""Who watches a partition for the sake of figures: hears of what was committed, and looks at states now and then.

Called from the partition's thread, between batches, and never part of a decision. What it counts is what this process
committed: a transaction that was in doubt and turns out to be whole when it is read back is counted by nobody, one
that is rolled forward by whoever completes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime

    from schemas.facts import Fact

LOOK_SECONDS = 5.0  # between looks at states: less than people let pass between two scrapes


class States(Protocol):
    """The states of a partition's keys, loaded one by one as far as they are looked at, today or at a later look."""

    def __call__(self, keys: Iterable[bytes] | None = None) -> Iterator[Any]:
        """Those of these keys, or of all that are stored."""
        ...


class Observer(Protocol):
    """See above."""

    def committed(self, facts: Sequence[Fact], *, decided_until: datetime) -> None:
        """These facts are on the log. Everything up to `decided_until` had been decided before them."""
        ...

    def look(self, states: States, shared: Any, now: datetime) -> None:
        """Nothing is under way. What a look costs, the partition waits: it must not grow with what it has stored."""
        ...

    def close(self) -> None:
        """The partition is given up."""
        ...


class Unobserved:
    """An `Observer` that is not interested."""

    def committed(self, facts: Sequence[Fact], *, decided_until: datetime) -> None:
        """See `Observer.committed`."""

    def look(self, states: States, shared: Any, now: datetime) -> None:
        """See `Observer.look`."""

    def close(self) -> None:
        """See `Observer.close`."""


UNOBSERVED: Observer = Unobserved()
