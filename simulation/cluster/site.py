"""What all inhabitants of one simulated cluster share: time, chance, the story, and the way to the log."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from random import Random
from typing import TYPE_CHECKING, Any

from schemas import topics
from simulation.clock import MachineClock
from simulation.cluster import situations
from simulation.cluster.agenda import agenda
from simulation.cluster.ledger import Ledger
from simulation.cluster.story import Story, told
from simulation.history import History
from simulation.loop import Loop, Machine, Task

if TYPE_CHECKING:
    from runtime.log import Log
    from runtime.record import Outgoing
    from simulation.cluster.options import Options

SKEW_SECONDS_MAX = 2.0  # G3: well below what is taken for a wrong clock


class Site:
    """One cluster's surroundings. `log_of` gives a process its own log client."""

    def __init__(self, options: Options, tell: Callable[[str], None] | None = None) -> None:
        self.options = options
        self.chance = Random(f"site {options.seed}")
        self.loop = Loop(Random(f"turns {options.seed}"))
        self.story = Story(self.loop, tell)
        self.ledger = Ledger(self.now)
        self.history = History(self.now)
        self.layout = topics.Layout(schedule=options.schedule_partitions, shard=options.shard_partitions)
        self.agenda = agenda(options)
        self._at, self._now = 0.0, self.agenda.began_at  # what was asked for last
        self.retention = situations.KEPT if options.has("kept") else topics.Retention()
        self.under_faults = True
        self.freezes: dict[tuple[str, str], list[dict[str, Any]]] = {}  # put last, by tenant and name of the definition
        self.shards = 1  # of the queue, as its definition was put last
        self.log_of: Callable[[Machine, MachineClock], Log]
        self.undisturbed_since: Callable[[Machine], float]  # when nothing stood between a machine and the brokers
        self.publish: Callable[[Outgoing], None]  # a record from outside, until it stands in the log

    def now(self) -> datetime:
        """The true time."""
        if self.loop.seconds != self._at:
            self._at = self.loop.seconds
            self._now = self.agenda.began_at + timedelta(milliseconds=int(self._at * 1000))
        return self._now

    def instant(self, seconds: float) -> datetime:
        """The true time so many seconds after the beginning."""
        return self.agenda.began_at + timedelta(seconds=seconds)

    def seconds_of(self, instant: datetime) -> float:
        """How many seconds after the beginning an instant of the true time is."""
        return (instant - self.agenda.began_at).total_seconds()

    def clock(self, skew_seconds: float = 0.0) -> MachineClock:
        """The clock of a new machine."""
        return MachineClock(self.loop, self.agenda.began_at, skew_seconds)

    def skew(self) -> float:
        """By how much a machine's clock is off (G3)."""
        return self.chance.uniform(-SKEW_SECONDS_MAX, SKEW_SECONDS_MAX) if self.options.has("G3") else 0.0

    def spawn(self, name: str, body: Callable[[], None], machine: Machine) -> Task:
        """Begin a task of an inhabitant that is none of the product's; an error of it is a failure of the run."""

        def guarded() -> None:
            try:
                body()
            except Exception as error:  # noqa: BLE001 -- whatever it is, it must be seen
                self.story.fail(name, told(error))

        return self.loop.spawn(name, guarded, machine)
