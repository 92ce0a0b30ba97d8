"""A partition's look at the clocks: moves its mark, or holds it, and says so on the log.

What the guard decides is pure (`runtime.clock_guard`). Where the log tells the time, every commit is a witness; while
the clock is held it is asked for one again and again, by commits without content. A hold ends when the clocks agree
again, when it has lasted for `accept_after`, or when an operator accepts the wall (`schemas.operations`): their clock
and ours must then show about the same time, so that neither an old word nor a wrong machine is believed.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from runtime.clock_guard import ClockGuard
from runtime.telemetry import Event, Metric
from schemas.facts import ClockHeld, ClockReleased

if TYPE_CHECKING:
    from collections.abc import Callable

    from runtime.operations import Said
    from runtime.partition import Partition
    from runtime.processor import World
    from schemas.facts import Fact
    from schemas.operations import ClockAccept

NEVER_READ = datetime(1970, 1, 1, tzinfo=UTC)  # the mark of a partition that has none yet
ACCEPTED_WITHIN = timedelta(minutes=5)  # from when an operator looked at the clock until an owner reads their word
ASK_SECONDS = 2.0  # between questions to the log's clock, while ours is held
TOLD_SECONDS_MAX = 5.0  # a commit that took longer leaves too much room to open a partition by
ASKED_MAX = 3  # then a cluster is so slow that we go by what it says


@dataclass(slots=True)
class Remembered:
    """What the partitions of one process share: a wall that jumped is not new to one that is opened afterwards."""

    guard: ClockGuard | None = None  # of who believed the wall last


class ClockWatch:
    """See above. Calls from one thread."""

    def __init__(
        self, partition: Partition, world: World, said: Said, *, accept_after: timedelta | None
    ) -> None:  # fmt: skip
        self._partition, self._clock, self._telemetry, self._said = partition, world.clock, world.telemetry, said
        self._labels = {"role": partition.role, "partition": str(partition.number)}
        known = world.remembered.guard or ClockGuard(accept_after=accept_after)
        self._guard, self._remembered = known.of_another_partition(accept_after), world.remembered
        self._told_at: datetime | None = None  # by the log's clock, where it has one
        self._told_boot = self._told_seconds = 0.0  # when, and how long that took
        self._heard: ClockAccept | None = None  # each word is answered once
        self._told_held: bool | None = None  # what was last told of it; None: nothing yet

    @property
    def held(self) -> bool:
        """Whether nothing may be decided by time."""
        return bool(self._guard.held)

    @property
    def wants_time(self) -> bool:
        """While ours is held: whether the log should tell the time again."""
        return self._told_at is not None and self._clock.since_boot() - self._told_boot >= ASK_SECONDS

    def ask(self, commit: Callable[[], None]) -> None:
        """Before the first look: commit until the log has told the time within the time that it takes to tell."""
        for _ in range(ASKED_MAX):
            if self._told_at is not None and self._told_seconds <= TOLD_SECONDS_MAX:
                return
            commit()

    def hear(self, told_at: datetime | None, sent_at: float) -> None:
        """What the log's clock showed when it took what we had sent at `sent_at` since boot; None where it has none."""
        if told_at is None:
            return
        self._told_at, self._told_boot = told_at, self._clock.since_boot()
        self._told_seconds = self._told_boot - sent_at
        self._guard = self._guard.told(
            told_at, wall=self._clock.now(), boot=self._told_boot, seconds=self._told_seconds
        )  # fmt: skip

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
        self._tell_if_held()
        if self._guard.held:  # Who never had a mark goes by the time of the log, which stamped what is to be answered.
            return (self._told_at or mark) if mark == NEVER_READ else mark, facts
        self._remembered.guard = self._guard
        self._telemetry.set(Metric.CLOCK_MARK_LAG_SECONDS, self._labels, (wall - mark).total_seconds())
        return max(mark, wall), facts

    def _tell_if_held(self) -> None:
        """When it changes: a busy partition looks at the clock hundreds of times a second."""
        if self._told_held is not self.held:
            self._told_held = self.held
            self._telemetry.set(Metric.CLOCK_IS_HELD, self._labels, 1 if self.held else 0)

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
