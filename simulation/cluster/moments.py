"""Who changes a schedule at the last moment: just before or just behind the instant at which it is due."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simulation.cluster.client import Caller

if TYPE_CHECKING:
    from simulation.cluster.client import Asking

SECONDS_OF_AN_HOUR = 3600.0
MINUTE_SECONDS = 60.0
CLOSE_SECONDS = 1.5  # to a full minute
SHORT_SECONDS = 4.0  # a pause that leaves one occurrence out, or none
LONG_SECONDS = 130.0


class LastMinute(Caller):
    """Pauses and resumes, edits what it has read, and deletes what it puts again, all around full minutes."""

    def live(self) -> None:
        """As often as the situation says."""
        rate = self._site.options.rate("moments") / SECONDS_OF_AN_HOUR
        while self._site.under_faults:
            self._site.loop.sleep(self.chance.expovariate(rate))
            self._site.loop.sleep(self._to_a_minute())
            if self._site.under_faults:
                self._change()

    def _to_a_minute(self) -> float:
        """Until somewhere close to a full minute."""
        left = MINUTE_SECONDS - self._site.loop.seconds % MINUTE_SECONDS
        return max(0.0, left + self.chance.uniform(-CLOSE_SECONDS, CLOSE_SECONDS))

    def _change(self) -> None:
        tenant, name = self.chance.choice(self._agenda.frequent)
        subject: dict[str, Any] = {"tenant": tenant, "name": name}
        self._site.story.fault("moments", self.name, f"changes {tenant}/{name}")
        match self.chance.choices(("pause", "edit", "delete"), (5, 4, 1))[0]:
            case "pause":
                self.call("schedule.pause", subject)
                self._site.loop.sleep(self.chance.uniform(0, self.chance.choice((SHORT_SECONDS, LONG_SECONDS))))
                self.call("schedule.resume", subject)
            case "edit":
                self._edit(tenant, name)
            case "delete":
                self.call("schedule.delete", subject)
                self._site.loop.sleep(self.chance.uniform(0, SHORT_SECONDS))
                if self._site.under_faults:  # Afterwards all are deleted.
                    self.call("schedule.put", self._agenda.put(tenant, name))

    def _edit(self, tenant: str, name: str) -> None:
        """Put an edition, and another one on top of it, unless somebody else was quicker."""
        first = self.call("schedule.put", self._agenda.edited(tenant, name, self._count))
        version = _version(first)
        if version:
            self._site.loop.sleep(self.chance.uniform(0, SHORT_SECONDS))
            edited = self._agenda.edited(tenant, name, self._count)
            if self._site.under_faults:
                self.call("schedule.put", edited | {"expected_version": version})


def _version(asking: Asking | None) -> int:
    return 0 if asking is None else int(asking.body.get("version", 0))
