"""The blows of a storm: who is struck when, drawn from a seed."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence

    from deploy.kafka.broker import Cluster
    from tests.storm.fleet import Fleet, Member

FROZEN_SHARE = 0.2  # of all blows; the others kill
FROZEN_SECONDS = (1.0, 14.0)  # a session lasts six
UNEVEN = 0.4  # blows come so much earlier or later than evenly
# A single broker is away for ten seconds, and everybody with it; of three nobody should miss one.
BROKER_EVERY = {1: timedelta(minutes=6), 3: timedelta(minutes=1)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Blow:
    """Who was struck. One that was killed was gone by `until`, a frozen one stood still from `since` to `until`."""

    member: str
    pid: int
    is_kill: bool
    since: datetime
    until: datetime


class Blows:
    """Strikes one after another, `every` so many seconds; who was struck comes back. Anyone may be, or only `members`.

    Of all blows `frozen_share` freeze, for `frozen_seconds`; the others kill.
    """

    def __init__(
        self, fleet: Fleet, broker: Cluster, chance: random.Random, *, every: float, spares_brokers: bool,
        members: Sequence[Member] | None = None, frozen_share: float = FROZEN_SHARE,
        frozen_seconds: tuple[float, float] = FROZEN_SECONDS,
    ) -> None:  # fmt: skip
        self._fleet, self._broker, self._chance, self._every = fleet, broker, chance, every
        self._members = fleet.members if members is None else members
        self._spares_brokers = spares_brokers
        self._frozen_share, self._frozen_seconds = frozen_share, frozen_seconds
        self._frozen: dict[str, tuple[Member, datetime, datetime]] = {}  # since and until when
        self._pause = threading.Event()
        self.struck: Counter[str] = Counter()
        self.given: list[Blow] = []

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
            self._rest()
        self._thaw(None)

    def once(self) -> None:
        """One blow, and the time until the next."""
        self._strike()
        self._rest()

    def end(self) -> None:
        """Who is frozen goes on."""
        self._thaw(None)

    def _rest(self) -> None:
        self._wait(self._every * self._chance.uniform(1 - UNEVEN, 1 + UNEVEN))

    def _strike(self) -> None:
        """Anyone who is not frozen."""
        standing = [each for each in self._members if each.name not in self._frozen]
        if not standing:
            return
        member = self._chance.choice(standing)
        now = datetime.now(UTC)
        if self._chance.random() >= self._frozen_share:
            pid = member.pid
            member.kill()
            self._note(member, pid, is_kill=True, since=now)
            member.start()
        else:
            member.freeze()
            until = now + timedelta(seconds=self._chance.uniform(*self._frozen_seconds))
            self._frozen[member.name] = (member, now, until)

    def _note(self, member: Member, pid: int, *, is_kill: bool, since: datetime) -> None:
        self.struck[f"{_role(member)} {'killed' if is_kill else 'frozen'}"] += 1
        self.given.append(
            Blow(member=member.name, pid=pid, is_kill=is_kill, since=since, until=datetime.now(UTC))
        )  # fmt: skip

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
        for member, since, until in list(self._frozen.values()):
            if now is None or until <= now:
                self._note(member, member.pid, is_kill=False, since=since)
                member.thaw()
                del self._frozen[member.name]


def _role(member: Member) -> str:
    return member.name.rpartition("-")[0]
