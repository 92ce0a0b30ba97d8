"""Which waiting run goes to which worker.

Runs in the order of their queue; the lanes share hand-outs by `TURNS`, so that none starves; the worker is the one
with the most free slots. Everything is settled by offsets and names: the same state gives the same hand-outs.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from datetime import datetime

from dispatcher.pools import Offer, Pool, Pools, Tasks
from dispatcher.run import START_BY, OpenRun, key_of
from dispatcher.shard import Shard
from dispatcher.waiting import Entry
from runtime.machine import Moment
from schemas import identity
from schemas.internal import HandOut

HAND_OUTS_PER_STEP = 64  # a step is some five milliseconds; the shell asks again while more is due

CRITICAL, NORMAL, BULK = "critical", "normal", "bulk"
LANES = (CRITICAL, NORMAL, BULK)
# Whose turn the hand-out at an offset is, by the offset's last hexadecimal digit: of sixteen eleven are critical's,
# four normal's and one bulk's. A lane that has nothing leaves its turn to the first one that has.
TURNS = (CRITICAL, NORMAL, CRITICAL, CRITICAL) * 3 + (CRITICAL, NORMAL, BULK, CRITICAL)


def decide(shard: Shard, moment: Moment) -> list[HandOut]:
    """The next hand-outs, as many as there are runs and free slots for, within one step."""
    queues = _Queues(shard, moment.now)
    slots = _Slots(shard.workforce.pools)
    hand_outs: list[HandOut] = []
    while len(hand_outs) < HAND_OUTS_PER_STEP:
        offset = shard.counters.next_offset + len(hand_outs)
        match = queues.match(TURNS[offset % len(TURNS)], slots)
        if match is None:
            break
        hand_outs.append(_hand_out(shard, *match, offset, moment))
    return hand_outs


NOBODY: Offer = (0, "")  # no slot is free: stands behind every offer


class _Queues:
    """The heads of the open queues, lane by lane; what is taken here is only noted."""

    def __init__(self, shard: Shard, now: datetime) -> None:
        self._now = now
        self._heads: dict[str, list[tuple[datetime, int, OpenRun, Iterator[Entry]]]] = {}
        for key in shard.waiting.open_queues(now):
            self._advance(key[0], iter(shard.waiting.queues[key]))

    def match(self, turn: str, slots: _Slots) -> tuple[OpenRun, str] | None:
        """The next run of the lane whose turn it is, or of the first that has one, and the worker for it."""
        for lane in (turn, *LANES):
            while heads := self._heads.get(lane):
                _, _, run, rest = heapq.heappop(heads)
                incarnation = slots.take(run.task)
                if incarnation is not None:
                    self._advance(lane, rest)
                    return run, incarnation
        return None

    def _advance(self, lane: str, rest: Iterator[Entry]) -> None:
        entry = next(rest, None)
        if entry is not None and entry[0] <= self._now:
            heapq.heappush(self._heads.setdefault(lane, []), (*entry, rest))


class _Slots:
    """Free slots, less what this step has taken."""

    def __init__(self, pools: Pools) -> None:
        self._pools = pools
        self._offers: dict[Tasks, _Offers] = {}
        self._of_task: dict[str, list[_Offers]] = {}

    def take(self, task: str) -> str | None:
        """A slot of the freest worker that has the task; None when all are taken."""
        of_task = self._of_task.get(task)
        if of_task is None:
            of_task = self._of_task[task] = [self._of(tasks, pool) for tasks, pool in self._pools.of(task)]
        if not of_task:
            return None
        freest = of_task[0] if len(of_task) == 1 else min(of_task, key=_Offers.best)
        best = freest.best()
        return freest.take(best) if best is not NOBODY else None

    def _of(self, tasks: Tasks, pool: Pool) -> _Offers:
        offers = self._offers.get(tasks)
        if offers is None:
            offers = self._offers[tasks] = _Offers(pool)
        return offers


class _Offers:
    """The offers of one pool: those not touched yet in its order, those taken from in a heap of their own."""

    def __init__(self, pool: Pool) -> None:
        self._untouched = iter(pool)
        self._next = next(self._untouched, NOBODY)
        self._touched: list[Offer] = []

    def best(self) -> Offer:
        """The freest worker; NOBODY when none is left."""
        return min(self._next, self._touched[0]) if self._touched else self._next

    def take(self, best: Offer) -> str:
        """A slot of the freest, which is `best`."""
        minus_free, incarnation = best
        if best is self._next:
            self._next = next(self._untouched, NOBODY)
        else:
            heapq.heappop(self._touched)
        if minus_free < -1:
            heapq.heappush(self._touched, (minus_free + 1, incarnation))
        return incarnation


def _hand_out(shard: Shard, run: OpenRun, incarnation: str, offset: int, moment: Moment) -> HandOut:
    worker = shard.workforce.by_incarnation[incarnation]
    key = identity.lease_key(moment.entropy, shard.name, offset)
    return HandOut(
        incarnation=incarnation, inbox=worker.record.inbox, shard=shard.number, offset=offset,
        lease=f"{shard.lease_prefix}{offset}.{key}", lease_key=key, lease_duration=run.lease_duration,
        timeout=run.timeout,
        start_by=START_BY, attempt=run.attempts + 1, may_have_run=run.attempts > 0, handed_out_at=moment.now,
        run=shard.bodies.get(key_of(run)),
    )  # fmt: skip
