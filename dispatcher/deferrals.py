"""What waits for want of a worker, and who has not been told yet.

A run is told why it waits once the reason has lasted for a short settling, and again only when the reason changes: a
fleet that hands out at once tells nobody anything. That all slots are taken is no reason: it is what a queue is for.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from dispatcher.ordered import SortedQueue
from dispatcher.run import OpenRun
from dispatcher.timers import Timers
from dispatcher.waiting import Entry, LeafKey, Waiting, entry_of, leaf_key
from dispatcher.workforce import Workforce
from schemas.facts import RunDeferReason, RunDeferred

SETTLING = timedelta(seconds=5)  # one idle report: a worker that is there has said so by then


def deferred(
    queue: str, shard: int, run: OpenRun, reason: RunDeferReason, since: datetime, until: datetime | None,
    at: datetime, *, breaker: str = "",
) -> RunDeferred:  # fmt: skip
    """What a run is told."""
    return RunDeferred(
        tenant=run.tenant, schedule=run.schedule, run_id=run.run_id, reason=reason, since=since, decided_at=at,
        until=until, queue=queue, shard=shard, breaker=breaker, start_by_at=run.unstarted_until,
    )  # fmt: skip


@dataclass(slots=True)
class Shortage:
    """Nobody can take the runs of one queue; `untold` are those who do not know."""

    reason: RunDeferReason
    untold: SortedQueue[Entry]


class Deferrals:
    """The queues that nobody can take from. What `due` answers follows from the queues and the workforce alone."""

    def __init__(self, waiting: Waiting, workforce: Workforce) -> None:
        self._waiting = waiting
        self._workforce = workforce
        self._shortages: dict[LeafKey, Shortage] = {}
        self._timers: Timers[LeafKey] = Timers(self._tell_at)

    def is_short(self, key: LeafKey) -> bool:
        """Whether nobody takes runs of a leaf at present."""
        return key in self._shortages

    def due(self) -> tuple[datetime, LeafKey] | None:
        """The queue of which first a run must be told, and when."""
        return self._timers.first()

    def to_tell(self, key: LeafKey, now: datetime) -> Iterator[tuple[OpenRun, RunDeferReason, datetime]]:
        """The runs of a queue that must be told by now, with the reason and since when it holds for them."""
        shortage = self._shortages[key]
        for entry in shortage.untold:
            if self._settled_at(shortage.reason, entry) > now:
                return
            yield entry[2], shortage.reason, self._since(shortage.reason, entry)

    def added(self, run: OpenRun) -> None:
        """A run waits from now on."""
        reason = self._reason(run.task)
        if reason is None:
            return
        key = leaf_key(run)
        shortage = self._shortages.get(key)
        if shortage is None:
            shortage = self._shortages[key] = Shortage(reason, SortedQueue())
        if run.deferred is not reason:
            shortage.untold.add(entry_of(run))
            self._timers.not_before(key, self._settled_at(reason, entry_of(run)))

    def removed(self, run: OpenRun) -> None:
        """A run waits no longer."""
        if not self._shortages:
            return  # nearly always: whatever is handed out has somebody who takes it
        key = leaf_key(run)
        shortage = self._shortages.get(key)
        if shortage is not None:
            shortage.untold.discard(entry_of(run))
            if key not in self._waiting.leaves:
                del self._shortages[key]

    def told(self, run: OpenRun) -> None:
        """A run knows why it waits."""
        shortage = self._shortages.get(leaf_key(run))
        if shortage is not None:
            shortage.untold.discard(entry_of(run))

    def workforce_changed(self) -> None:
        """Work out again which queues nobody can take from; a queue's runs are walked over when its reason changed."""
        for key, leaf in self._waiting.leaves.items():
            shortage = self._shortages.get(key)
            reason = self._reason(key.task)
            if reason is None:
                self._shortages.pop(key, None)
            elif shortage is None or shortage.reason is not reason:
                untold = SortedQueue([entry for entry in leaf.queue if entry[2].deferred is not reason])
                self._shortages[key] = Shortage(reason, untold)
                if untold:
                    self._timers.not_before(key, self._settled_at(reason, untold.first()))

    def _reason(self, task: str) -> RunDeferReason | None:
        if self._workforce.has_task(task):
            return None
        return RunDeferReason.NO_WORKER if self._workforce.is_empty() else RunDeferReason.NO_TASK

    def _tell_at(self, key: LeafKey) -> datetime | None:
        shortage = self._shortages.get(key)
        if shortage is None or not shortage.untold:
            return None
        return self._settled_at(shortage.reason, shortage.untold.first())

    def _settled_at(self, reason: RunDeferReason, entry: Entry) -> datetime:
        """When a run is told. In the order of its queue, so that the head is always told first."""
        return self._begun(reason, entry[0]) + SETTLING

    def _since(self, reason: RunDeferReason, entry: Entry) -> datetime:
        return self._begun(reason, max(entry[0], entry[2].queued_at))

    def _begun(self, reason: RunDeferReason, waits_since: datetime) -> datetime:
        idle_since = self._workforce.idle_since
        if reason is RunDeferReason.NO_WORKER and idle_since is not None:
            return max(waits_since, idle_since)
        return waits_since
