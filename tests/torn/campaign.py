"""Many tears, each under a combination of guards, and what they came to."""

from __future__ import annotations

import logging
import time
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from random import Random
from threading import Lock
from typing import Any

from node.audit.report import FAULTS
from tests.support.kafka import delete_topics
from tests.torn.house import House, Verdict
from tests.torn.owners import Guards
from tests.torn.tears import Draw

PER_HOUSE = 15  # tears: an audit reads all that is there from the beginning
DAMAGES_TOLD = 20

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Found:
    """What came of the tears so far; from any thread."""

    guards: Guards
    seed: int
    tears: int = 0
    took_place: int = 0
    damaged: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    damaged_kinds: Counter[str] = field(default_factory=Counter)
    damage: Counter[str] = field(default_factory=Counter)
    happened: Counter[str] = field(default_factory=Counter)
    owners: Counter[str] = field(default_factory=Counter)
    told: list[str] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)
    _lock: Lock = field(default_factory=Lock)

    def note(self, verdict: Verdict, where: str) -> None:
        """One more."""
        with self._lock:
            self.tears += 1
            self.took_place += verdict.took_place
            self.kinds[verdict.kind] += 1
            self.happened.update(verdict.happened)
            self.owners.update(verdict.owners)
            if verdict.damage:
                self.damaged += 1
                self.damaged_kinds[verdict.kind] += 1
                self.damage.update(verdict.damage)
                self.told.append(f"{where}, {verdict.kind} of a {verdict.role}: {verdict.damage} {verdict.told}")
                _log.warning("%s, tear %d: %s", self.guards, self.tears, self.told[-1])

    @property
    def is_damaged(self) -> bool:
        """Whether the audit has found anything."""
        return bool(self.damage.keys() & FAULTS.keys())

    def as_json(self) -> dict[str, Any]:
        """A line of the results."""
        return {
            "at": datetime.now(UTC).isoformat(timespec="seconds"), "seed": self.seed, "guards": str(self.guards),
            "tears": self.tears, "took_place": self.took_place, "damaged": self.damaged,
            "kinds": dict(sorted(self.kinds.items())), "damaged_kinds": dict(sorted(self.damaged_kinds.items())),
            "damage": dict(sorted(self.damage.items())), "happened": dict(sorted(self.happened.items())),
            "owners": dict(sorted(self.owners.items())), "seconds": round(time.monotonic() - self.began, 1),
            "told": self.told[:DAMAGES_TOLD],
        }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Planned:
    """A tear that is counted under a name. `until_damaged`: it is left out once the audit has seen damage under it."""

    name: str
    guards: Guards
    draw: Draw
    until_damaged: bool = False


def campaign(
    bootstrap: str, folder: Path, plan: Sequence[Planned], *, seed: int, lanes: int = 1,
) -> Mapping[str, Found]:  # fmt: skip
    """These tears in this order, in houses side by side; one that was damaged is left, and the next begins whole."""
    found = {each.name: Found(each.guards, seed) for each in plan}
    left, lock = iter(plan), Lock()

    def ahead() -> Planned | None:
        with lock:
            return next((each for each in left if not (each.until_damaged and found[each.name].is_damaged)), None)

    def lane(number: int) -> None:
        planned = ahead()
        for visit in count():
            if planned is None:
                return
            where = f"seed {seed}, lane {number}, house {visit}"
            chance, namespace = Random(where), f"torn-{uuid.uuid4().hex[:12]}."
            with closing(House(bootstrap, namespace, folder / where, chance)) as house:
                for _ in range(PER_HOUSE):
                    verdict = house.tear(planned.draw(chance), planned.guards)
                    found[planned.name].note(verdict, where)
                    planned = ahead()
                    if planned is None or verdict.damage.keys() - {"changelog"}:
                        break
            delete_topics(bootstrap, namespace)

    with ThreadPoolExecutor(lanes) as pool:
        for result in [pool.submit(lane, number) for number in range(lanes)]:
            result.result()
    return found
