"""What waits because of a limit, and who has not been told yet.

A run is told once in each of its waits, by the first limit that holds it when it has waited for a short settling: full
keys and quotas come and go with every run that ends, and nobody wants to hear of each. Where somebody has to come
first who can take it at all, that is what it is told (`deferrals`). A run that waits behind a rate, and for nothing
else that is known, is told of the rate. A pause is no matter of which limit is tighter: whoever waits is told of it,
whatever it was told before, and after it what holds it then.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from dispatcher.deferrals import SETTLING, Deferrals
from dispatcher.holds import Holds
from dispatcher.ordered import SortedQueue
from dispatcher.run import OpenRun
from dispatcher.timers import Timers
from dispatcher.waiting import Entry, Leaf, LeafKey, Waiting, entry_of, leaf_key
from schemas.facts import RunDeferReason

LIMITS = frozenset(
    {
        RunDeferReason.BREAKER, RunDeferReason.CONCURRENCY, RunDeferReason.QUOTA, RunDeferReason.RATE,
        RunDeferReason.RETRY_BUDGET,
    }
)  # fmt: skip

Telling = tuple[OpenRun, RunDeferReason, datetime, datetime | None]  # run, reason, since, until


@dataclass(frozen=True, slots=True)
class Untold:
    """The runs of a leaf that do not know what holds them: of a pause, or else of any limit."""

    of_pause: bool
    entries: SortedQueue[Entry]

    def note(self, run: OpenRun) -> None:
        """A run waits, or was told something."""
        if not _knows(run, of_pause=self.of_pause):
            self.entries.add(entry_of(run))


def _knows(run: OpenRun, *, of_pause: bool) -> bool:
    return run.deferred is RunDeferReason.PAUSED if of_pause else run.deferred in LIMITS


class Held:
    """The leaves that limits hold. What `due` answers follows from the leaves, the limits and the workforce alone."""

    def __init__(self, waiting: Waiting, holds: Holds, deferrals: Deferrals) -> None:
        self._waiting, self._holds, self._deferrals = waiting, holds, deferrals
        self._untold: dict[LeafKey, Untold] = {}  # of leaves that were held at some time
        self._timers: Timers[LeafKey] = Timers(self._tell_at)

    def due(self) -> tuple[datetime, LeafKey] | None:
        """The leaf of which first a run must be told, and when."""
        return self._timers.first()

    def to_tell(self, key: LeafKey, now: datetime) -> Iterator[Telling]:
        """The runs of a leaf that must be told by now."""
        reason = self._reason(key)
        assert reason is not None, f"nothing holds {key}"
        until = self._until(key, reason)
        began_at = self._began_at(key, reason)
        for entry in self._untold[key].entries:
            settled_at = _later(entry[0], began_at) + SETTLING
            if settled_at > now or (until is not None and settled_at >= until):
                return
            yield entry[2], reason, _later(max(entry[0], entry[2].queued_at), began_at), until

    def added(self, run: OpenRun, leaf: Leaf) -> None:
        """A run waits in a leaf from now on."""
        untold = self._untold.get(leaf.key)
        if untold is not None:
            untold.note(run)
        self.changed(leaf)

    def removed(self, run: OpenRun) -> None:
        """A run waits no longer."""
        if not self._untold:
            return  # nearly always: nothing has been held
        key = leaf_key(run)
        untold = self._untold.get(key)
        if untold is not None:
            untold.entries.discard(entry_of(run))
            if key not in self._waiting.leaves:
                del self._untold[key]

    def told(self, run: OpenRun) -> None:
        """A run was told why it waits."""
        untold = self._untold.get(leaf_key(run))
        if untold is not None:
            untold.entries.discard(entry_of(run))
            untold.note(run)

    def changed(self, leaf: Leaf) -> None:
        """What holds a leaf may be another thing than before."""
        key, reason = leaf.key, self._reason(leaf.key)
        if reason is None:
            return
        of_pause = reason is RunDeferReason.PAUSED
        if key not in self._untold or self._untold[key].of_pause is not of_pause:
            untold = [entry for entry in leaf.queue if not _knows(entry[2], of_pause=of_pause)]
            self._untold[key] = Untold(of_pause, SortedQueue(untold))
        tell_at = self._tell_at(key)
        if tell_at is not None:
            self._timers.not_before(key, tell_at)

    def all_changed(self) -> None:
        """The workforce is another one, or what is defined."""
        for leaf in self._waiting.leaves.values():
            self.changed(leaf)

    def _reason(self, key: LeafKey) -> RunDeferReason | None:
        holds = self._holds
        if self._deferrals.is_short(key):
            return None
        if holds.limits.paused_at(key.tenant) is not None:
            return RunDeferReason.PAUSED
        if key.breaker and holds.is_breaker_shut(key.tenant, key.breaker):
            return RunDeferReason.BREAKER
        if holds.limits.is_full(key.tenant):
            return RunDeferReason.QUOTA
        if key.concurrency and holds.is_key_full(key.tenant, key.concurrency):
            return RunDeferReason.CONCURRENCY
        if self._budget_opens_at(key) is not None:
            return RunDeferReason.RETRY_BUDGET
        return RunDeferReason.RATE if holds.limits.has_rate(key.tenant) else None

    def _budget_opens_at(self, key: LeafKey) -> datetime | None:
        return self._holds.budget_opens_at(key.tenant, key.retries_of) if key.retries_of else None

    def _until(self, key: LeafKey, reason: RunDeferReason) -> datetime | None:
        """Until when it is held, where that is known."""
        if reason is RunDeferReason.RETRY_BUDGET:
            return self._budget_opens_at(key)
        return self._holds.breakers.until(key.tenant, key.breaker) if reason is RunDeferReason.BREAKER else None

    def _began_at(self, key: LeafKey, reason: RunDeferReason) -> datetime | None:
        """Since when whatever holds it does, where that may be later than the run has waited."""
        if reason is RunDeferReason.BREAKER:
            return self._holds.breakers.since(key.tenant, key.breaker)
        return self._holds.limits.paused_at(key.tenant)

    def _tell_at(self, key: LeafKey) -> datetime | None:
        untold = self._untold.get(key)
        if untold is None or not untold.entries:
            return None  # nor may anything be asked of a key or a breaker that no run names any more
        reason = self._reason(key)
        if reason is None:
            return None
        tell_at = _later(untold.entries.first()[0], self._began_at(key, reason)) + SETTLING
        until = self._until(key, reason)
        return tell_at if until is None or tell_at < until else None


def _later(instant: datetime, paused_at: datetime | None) -> datetime:
    return instant if paused_at is None else max(instant, paused_at)
