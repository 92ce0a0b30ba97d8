"""Which of our processes give way to the others on a machine that is full."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

# Rows may be late, runs should not: a batch of rows is some 50 ms, for which what is due would wait on a busy core. A
# third of the others' weight is left to it, so that rows keep up unless all else wants both cores for long.
NICENESS = 5


def gives_way(roles: Collection[str]) -> bool:
    """Whether nothing that a process does is what a run waits for."""
    return set(roles) == {"projector"}


def give_way() -> None:
    """From now on, with all threads that are started from now on, and for good: only root could take it back."""
    os.nice(NICENESS)
