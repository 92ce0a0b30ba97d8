"""The blows of a storm: who is struck when, drawn from a seed."""

from __future__ import annotations

import threading
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random

    from deploy.kafka.broker import Cluster
    from tests.storm.fleet import Fleet, Member

FROZEN_SHARE = 0.2  # of all blows; the others kill
FROZEN_SECONDS = (1.0, 14.0)  # a session lasts six
UNEVEN = 0.4  # blows come so much earlier or later than evenly
# A single broker is away for ten seconds, and everybody with it; of three nobody should miss one.
BROKER_EVERY = {1: timedelta(minutes=6), 3: timedelta(minutes=1)}


class Blows:
    """Strikes one after another, `every` so many seconds, until the time is up; who was struck comes back."""

    def __init__(
        self, fleet: Fleet, broker: Cluster, chance: random.Random, *, every: float, spares_brokers: bool
    ) -> None:
        self._fleet, self._broker, self._chance, self._every = fleet, broker, chance, every
        self._spares_brokers = spares_brokers
        self._frozen: dict[str, tuple[Member, datetime]] = {}  # until when
        self._pause = threading.Event()
        self.struck: Counter[str] = Counter()

    def until(self, end: datetime) -> None:
        """Blows at random moments; at times one for a broker, the first one in the middle of the time at the latest."""
        now = datetime.now(UTC)
        between = BROKER_EVERY[len(self._broker.nodes)]
        next_broker = now + min(between, (end - now) / 2)
        while (now := datetime.now(UTC)) < end:
            if now >= next_broker and not self._spares_brokers:
                self._strike_broker()
                next_broker = now + between
            else:
                self._strike()
            self._wait(self._every * self._chance.uniform(1 - UNEVEN, 1 + UNEVEN))
        self._thaw(None)

    def _strike(self) -> None:
        """Anyone who is not frozen."""
        member = self._chance.choice([each for each in self._fleet.members if each.name not in self._frozen])
        if self._chance.random() >= FROZEN_SHARE:
            member.kill()
            member.start()
            self.struck[f"{_role(member)} killed"] += 1
        else:
            member.freeze()
            until = datetime.now(UTC) + timedelta(seconds=self._chance.uniform(*FROZEN_SECONDS))
            self._frozen[member.name] = (member, until)
            self.struck[f"{_role(member)} frozen"] += 1

    def _strike_broker(self) -> None:
        self._chance.choice(self._broker.nodes).kill()
        self._broker.start()
        self.struck["broker killed"] += 1

    def _wait(self, seconds: float) -> None:
        """Until the next blow; meanwhile who was frozen long enough goes on, and who has ended is started again."""
        end = datetime.now(UTC) + timedelta(seconds=seconds)
        while (now := datetime.now(UTC)) < end:
            self._thaw(now)
            for each in self._fleet.revive():  # its place in the group had become another's
                self.struck[f"{_role(each)} ended by itself"] += 1
            self._pause.wait(min(0.2, (end - now).total_seconds()))

    def _thaw(self, now: datetime | None) -> None:
        """Those whose time has come; without a time all."""
        for member, until in list(self._frozen.values()):
            if now is None or until <= now:
                member.thaw()
                del self._frozen[member.name]


def _role(member: Member) -> str:
    return member.name.rpartition("-")[0]
