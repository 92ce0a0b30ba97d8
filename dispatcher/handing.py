"""Which waiting run goes to which worker.

Runs in the order of their queue; the lanes share hand-outs by `TURNS`, so that none starves; the worker is the one
with the most free slots. Everything is settled by offsets and names: the same state gives the same hand-outs.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from datetime import datetime

from dispatcher.run import START_BY, OpenRun
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
    slots = _Slots(shard)
    hand_outs: list[HandOut] = []
    while len(hand_outs) < HAND_OUTS_PER_STEP:
        offset = shard.counters.next_offset + len(hand_outs)
        run = queues.next(TURNS[offset % len(TURNS)], slots)
        if run is None:
            break
        hand_outs.append(_hand_out(shard, run, slots.take(run.task), offset, moment))
    return hand_outs


class _Queues:
    """The heads of the open queues, lane by lane; what is taken here is only noted."""

    def __init__(self, shard: Shard, now: datetime) -> None:
        self._now = now
        self._heads: dict[str, list[tuple[datetime, int, OpenRun, Iterator[Entry]]]] = {}
        for key in shard.waiting.open_queues(now):
            self._advance(key[0], iter(shard.waiting.queues[key]))

    def next(self, turn: str, slots: _Slots) -> OpenRun | None:
        """The next run of the lane whose turn it is, or of the first that has one."""
        for lane in (turn, *LANES):
            while heads := self._heads.get(lane):
                _, _, run, rest = heapq.heappop(heads)
                if slots.has(run.task):
                    self._advance(lane, rest)
                    return run
        return None

    def _advance(self, lane: str, rest: Iterator[Entry]) -> None:
        entry = next(rest, None)
        if entry is not None and entry[0] <= self._now:
            heapq.heappush(self._heads.setdefault(lane, []), (*entry, rest))


class _Slots:
    """Free slots by task, less what this step has taken."""

    def __init__(self, shard: Shard) -> None:
        self._workforce = shard.workforce
        self._left: dict[str, int] = {}
        self._by_task: dict[str, list[tuple[int, str]]] = {}  # heaps of (-free, incarnation), as they were

    def has(self, task: str) -> bool:
        """Whether some worker with the task has a slot left; the freest one comes to the top."""
        heap = self._heap(task)
        while heap:
            known, incarnation = heap[0]
            left = self._left[incarnation]
            if left == -known:
                return left > 0
            heapq.heapreplace(heap, (-left, incarnation))
        return False

    def take(self, task: str) -> str:
        """A slot of the freest worker that has the task; there is one."""
        assert self.has(task), f"nobody has a slot for {task}"
        incarnation = self._by_task[task][0][1]
        self._left[incarnation] -= 1
        return incarnation

    def _heap(self, task: str) -> list[tuple[int, str]]:
        heap = self._by_task.get(task)
        if heap is None:
            heap = self._by_task[task] = []
            for worker in self._workforce.able(task):
                incarnation = worker.record.incarnation
                heap.append((-self._left.setdefault(incarnation, worker.free), incarnation))
            heapq.heapify(heap)
        return heap


def _hand_out(shard: Shard, run: OpenRun, incarnation: str, offset: int, moment: Moment) -> HandOut:
    worker = shard.workforce.by_incarnation[incarnation]
    key = identity.lease_key(moment.entropy, shard.name, offset)
    return HandOut(
        incarnation=incarnation, inbox=worker.record.inbox, shard=shard.number, offset=offset,
        lease=f"{shard.lease_prefix}{offset}.{key}", lease_key=key, lease_duration=run.lease_duration,
        timeout=run.timeout,
        start_by=START_BY, attempt=run.attempts + 1, may_have_run=run.attempts > 0, handed_out_at=moment.now,
        run=shard.bodies.get(run.run_id),
    )  # fmt: skip
