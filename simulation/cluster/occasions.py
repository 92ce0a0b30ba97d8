"""What situations bring about over time, as often as the options say."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import TYPE_CHECKING

from simulation.cluster import situations
from simulation.cluster.options import SITUATIONS
from simulation.cluster.situations import KEPT_LAGS
from simulation.cluster.strays import Strays

if TYPE_CHECKING:
    from simulation.cluster.world import World

SECONDS_OF_AN_HOUR = 3600.0
CHANGES_MAX = 4  # while nobody reads them
OUTAGE_SECONDS = (15.0, 300.0)  # within the windows of what is owed, at their end, and beyond


class Occasions:
    """Each at random instants, for as long as there are faults; brokers tidy up for ever."""

    def __init__(self, world: World) -> None:
        self._world, self._site = world, world.site
        self._chance = Random(f"occasions {world.site.options.seed}")
        self._strays = Strays(world, self._chance)
        self._does: Mapping[str, Callable[[], None]] = {
            "owed": lambda: self._schedulers_away("owed"), "paced": lambda: self._schedulers_away("paced"),
            "strays": self._stray, "kept": self._tidy,
            "calendars": self._close, "freezes": self._freeze, "floods": self._flood,
        }  # fmt: skip

    def begin(self) -> None:
        """Let them come."""
        for name, rate in self._site.options.situations.items():
            if name in self._does:
                self._next(name, rate)
            elif not SITUATIONS[name][1]:
                self._site.story.fault(name, "cluster", SITUATIONS[name][0])

    def _next(self, name: str, rate: float) -> None:
        self._site.loop.later(self._chance.expovariate(rate / SECONDS_OF_AN_HOUR), lambda: self._now(name, rate))

    def _now(self, name: str, rate: float) -> None:
        if self._site.under_faults or name == "kept":
            self._does[name]()
            self._next(name, rate)

    def _schedulers_away(self, why: str) -> None:
        seconds = self._chance.uniform(*OUTAGE_SECONDS)
        self._site.story.fault(why, "schedulers", f"are all away for {seconds:.0f} s")
        schedulers = [node for node in self._world.nodes if node.role == "scheduler"]
        self._world.storm.send_away(schedulers, why, seconds)
        for _ in range(self._chance.randint(0, CHANGES_MAX)):
            self._world.upstream.pause_and_resume(seconds)

    def _stray(self) -> None:
        what = self._strays.stray()
        if what:
            self._site.story.fault("strays", "somebody", what)

    def _close(self) -> None:
        tenant, definition = situations.calendar(self._site.now(), self._chance)
        data = {"tenant": tenant, "name": situations.CALENDAR}
        if definition is None:
            self._world.upstream.publish("calendar.delete", data)
        else:
            self._world.upstream.publish("calendar.put", {**data, "definition": definition})
        self._site.story.fault("calendars", tenant, "has no calendar" if definition is None else str(definition))

    def _freeze(self) -> None:
        """Whatever limits the definition has are gone with it, as when somebody writes it anew."""
        (kind, tenant, name), definition = situations.freezes(self._site.now(), self._chance)
        self._site.freezes[tenant, name] = definition["freezes"]
        if kind == "queue" and self._site.shards > 1:
            definition["shards"] = self._site.shards
        self._world.upstream.publish(f"{kind}.put", {"tenant": tenant, "name": name, "definition": definition})
        self._site.story.fault("freezes", f"{kind} {tenant}/{name}", str(definition))

    def _flood(self) -> None:
        """All of it stands in one partition, and what its neighbours there publish stands right behind it."""
        commands = self._chance.randint(*situations.FLOOD)
        behind = self._world.upstream.flood(situations.FLOODED, commands, situations.TRIGGERED_OF)
        self._site.story.fault("floods", "upstream", f"publishes {commands} commands at once, and behind them {behind}")

    def _tidy(self) -> None:
        lag = self._chance.choice(KEPT_LAGS)
        self._site.story.fault("kept", "brokers", f"tidy up, and compact what is older than {lag}")
        self._world.broker.tidy(lag)
