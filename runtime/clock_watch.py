"""A partition's look at the clocks: moves its mark, or holds it, and says so on the log.

What the guard decides is pure (`runtime.clock_guard`). A hold ends when the clocks agree again, when it has lasted for
`accept_after`, or when an operator accepts the wall (`schemas.operations`): their clock and ours must then show about
the same time, so that neither an old word nor a wrong machine is believed.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from runtime.clock_guard import ClockGuard
from runtime.telemetry import Event, Metric
from schemas.facts import ClockHeld, ClockReleased

if TYPE_CHECKING:
    from runtime.clock import Clock
    from runtime.operations import Said
    from runtime.partition import Partition
    from runtime.telemetry import Telemetry
    from schemas.facts import Fact
    from schemas.operations import ClockAccept

NEVER_READ = datetime(1970, 1, 1, tzinfo=UTC)  # the mark of a partition that has none yet
ACCEPTED_WITHIN = timedelta(minutes=5)  # from when an operator looked at the clock until an owner reads their word


class ClockWatch:
    """See above. Calls from one thread."""

    def __init__(
        self, partition: Partition, clock: Clock, telemetry: Telemetry, said: Said, *, accept_after: timedelta | None
    ) -> None:
        self._partition, self._clock, self._telemetry, self._said = partition, clock, telemetry, said
        self._labels = {"role": partition.role, "partition": str(partition.number)}
        self._guard = ClockGuard(accept_after=accept_after)
        self._heard: ClockAccept | None = None  # each word is answered once

    @property
    def held(self) -> bool:
        """Whether nothing may be decided by time."""
        return bool(self._guard.held)

    def look(self, mark: datetime, boot: float) -> tuple[datetime, list[Fact]]:
        """The clock mark after a look at both clocks, and what there is to say."""
        role, number = self._partition.role, self._partition.number
        wall, before = self._clock.now(), self._guard.held
        facts: list[Fact] = []
        believed = wall if mark == NEVER_READ else mark  # who never had a mark believes the first wall
        self._guard = self._guard.look(mark=believed, wall=wall, boot=boot)
        if self._guard.held and not before:
            self._telemetry.error(Event.CLOCK_HELD, reason=self._guard.held, **self._labels)
            facts.append(ClockHeld(reason=self._guard.held, mark=mark, wall=wall, role=role, partition=number))
        reason = self._guard.held or before
        word = self._accepted(wall, boot) if self._guard.held else None
        if reason and not self._guard.held:
            by, note = ("", "") if word is None else (word.by, word.note)
            self._telemetry.warning(Event.CLOCK_RELEASED, reason=reason, accepted_by=by, **self._labels)
            facts.append(
                ClockReleased(
                    reason=reason, mark=mark, wall=wall, role=role, partition=number, accepted_by=by, note=note
                )
            )
        self._telemetry.set(Metric.CLOCK_IS_HELD, self._labels, 1 if self._guard.held else 0)
        if self._guard.held:
            return mark, facts
        self._telemetry.set(Metric.CLOCK_MARK_LAG_SECONDS, self._labels, (wall - mark).total_seconds())
        return max(mark, wall), facts

    def _accepted(self, wall: datetime, boot: float) -> ClockAccept | None:
        """An operator's word that has come since and is about this wall; with it the hold is over."""
        word = self._said.clock()
        if word is None or word == self._heard:
            return None
        self._heard = word
        if abs(word.wall - wall) > ACCEPTED_WITHIN:
            self._telemetry.warning(
                Event.CLOCK_NOT_ACCEPTED, accepted_by=word.by, accepted=word.wall, wall=wall, **self._labels
            )
            return None
        self._guard = self._guard.accepted(wall, boot)
        return word
