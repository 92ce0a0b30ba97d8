"""What a scheduler partition has still to catch up: counted schedule by schedule, without looking at all of them again
and again.

An owner is told nothing of what its predecessor left, so it walks over its schedules once, some at each look, and says
nothing until it is through: half a sum would look like an end. After that it looks only at schedules of which it has
heard that something of them waits.
"""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import TYPE_CHECKING

from scheduler import keys
from scheduler.state import ScheduleState
from schemas.facts import DeferReason, Fact, OccurrenceDeferred

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from runtime.observer import States

WALKED_MAX = 500  # schedules of one look in the walk: some tens of milliseconds, for which what is due waits
LOOKED_AT_MAX = 1_000  # schedules of one look that were heard of, most of them still at hand
PACED, FROZEN = DeferReason.PACED.value, DeferReason.FROZEN.value  # what the first one in line waits for
REASONS = (PACED, FROZEN)


class Backlogs:
    """Of one partition: which schedules have a backlog, and how many occurrences."""

    def __init__(self) -> None:
        self._left: dict[bytes, tuple[str, int]] = {}
        self._heard: dict[bytes, None] = {}  # in the order in which they are looked at
        self._walk: Iterator[Any] | None = None
        self._is_through = False

    def hear(self, fact: Fact) -> None:
        """A fact after which a schedule may have another backlog than before. There is one with every run."""
        waits = isinstance(fact, OccurrenceDeferred) and fact.release_at is not None
        if not (waits or self._left):
            return
        tenant, _, name = fact.subject.partition("/")
        key = keys.schedule(tenant, name)
        if waits or key in self._left:
            self._heard[key] = None

    def look(self, states: States) -> Mapping[str, int] | None:
        """How many occurrences wait, by what the first of their schedule waits for; None while that is not known."""
        if not self._is_through:
            self._walk_on(states)
        looked_at = list(islice(self._heard, LOOKED_AT_MAX))
        for key in looked_at:
            del self._heard[key]
        self._note(states(looked_at))
        if not self._is_through:
            return None
        sums: Counter[str] = Counter(dict.fromkeys(REASONS, 0))
        for reason, count in self._left.values():
            sums[reason] += count
        return sums

    def _walk_on(self, states: States) -> None:
        self._walk = self._walk or states()
        part = list(islice(self._walk, WALKED_MAX))
        self._note(iter(part))
        self._is_through = len(part) < WALKED_MAX

    def _note(self, found: Iterator[Any]) -> None:
        for state in found:
            if not isinstance(state, ScheduleState):
                continue
            key = keys.schedule(state.tenant, state.name)
            if state.backlog is None:
                self._left.pop(key, None)
            else:
                self._left[key] = (FROZEN if state.backlog.frozen else PACED, state.backlog_count)
