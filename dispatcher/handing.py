"""Which waiting run goes to which worker.

The lanes share hand-outs by `TURNS`, so that none starves; in a lane the tenants share slot time by weight (`shares`);
of a tenant the oldest run goes first; the worker is the one with the most free slots. Everything is settled by offsets
and names: the same state gives the same hand-outs.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator
from datetime import datetime, timedelta

from dispatcher import shares
from dispatcher.deferrals import deferred
from dispatcher.pools import Offer, Pool, Pools, Tasks
from dispatcher.run import OpenRun, key_of
from dispatcher.shard import Shard
from dispatcher.waiting import Entry, Head, Leaf, Stream
from runtime.machine import Moment
from schemas import identity
from schemas.facts import RunDeferReason, RunDeferred
from schemas.internal import HandOut

HAND_OUTS_PER_STEP = 64  # a step is some five milliseconds; the shell asks again while more is due
BLOCKED_PER_STEP = HAND_OUTS_PER_STEP // 2  # runs met behind a breaker; the other half is for those whom nothing holds

CRITICAL, NORMAL, BULK = "critical", "normal", "bulk"
LANES = (CRITICAL, NORMAL, BULK)
# Whose turn the hand-out at an offset is, by the offset's last hexadecimal digit: of sixteen eleven are critical's,
# four normal's and one bulk's. A lane that has nothing leaves its turn to the first one that has.
TURNS = (CRITICAL, NORMAL, CRITICAL, CRITICAL) * 3 + (CRITICAL, NORMAL, BULK, CRITICAL)


def decide(shard: Shard, moment: Moment) -> list[HandOut | RunDeferred]:
    """The next hand-outs, as many as there are runs and free slots for, within one step.

    Runs whose turn has come and whose breaker has opened while they waited are told so, and stand behind it.
    """
    opens_at = shard.limits.queue_opens_at()
    if shard.limits.is_paused or (opens_at is not None and opens_at > moment.now):
        return []
    shard.waiting.open(moment.now)
    turns = _Turns(shard, moment.now)
    hand_outs: list[HandOut] = []
    while len(hand_outs) + len(turns.blocked) < HAND_OUTS_PER_STEP:
        offset = shard.counters.next_offset + len(hand_outs)
        match = turns.match(TURNS[offset % len(TURNS)])
        if match is None:
            break
        hand_outs.append(_hand_out(shard, *match, offset, moment))
    return [*hand_outs, *(_blocked(shard, run, breaker, moment) for run, breaker in turns.blocked)]


NOBODY: Offer = (0, "")  # no slot is free: stands behind every offer


class _Turns:
    """Whose turn it is, lane by lane; what is taken here is only noted.

    A limit is looked at as it was before the step. So where the next in turn is one whose limit a hand-out of this
    step has used, the step ends: the shell asks again, and then it is known.
    """

    def __init__(self, shard: Shard, now: datetime) -> None:
        self._shard, self._now = shard, now
        self._slots = _Slots(shard.workforce.pools)
        self._lanes: dict[str, _Lane] = {}
        self._used: set[tuple[str, ...]] = set()  # limits
        self.blocked: list[tuple[OpenRun, str]] = []  # with the breaker of each

    def match(self, turn: str) -> tuple[OpenRun, str] | None:
        """The next run of the lane whose turn it is, or of the first that has one, and the worker for it."""
        for lane in (turn, *LANES):
            tenants = self._lanes.get(lane)
            if tenants is None:
                tenants = self._lanes[lane] = _Lane(self._shard, lane, self._now)
            while (run := tenants.next()) is not None:
                limits = self._limits_of(run)
                if limits and not self._used.isdisjoint(limits):
                    return None
                if breaker := self._shard.breakers.blocking(run):
                    if len(self.blocked) < BLOCKED_PER_STEP:
                        self.blocked.append((run, breaker))
                        tenants.leave_run()
                    else:
                        tenants.leave_stream()
                    continue
                incarnation = self._take_slot(run)
                if incarnation is not None:
                    self._used.update(limits)
                    tenants.take()
                    return run, incarnation
                tenants.leave_task()
        return None

    def _limits_of(self, run: OpenRun) -> list[tuple[str, ...]]:
        limits: list[tuple[str, ...]] = []
        if self._shard.limits.queue.rate is not None:
            limits.append(("queue",))
        if self._shard.limits.is_limited(run.tenant):
            limits.append(("tenant", run.tenant))
        if run.concurrency:
            limits.append(("key", run.tenant, run.concurrency))
        if run.is_retry:
            limits.append(("budget", run.tenant, run.schedule))
        for breaker in self._shard.breakers.trying(run):
            limits.append(("breaker", run.tenant, breaker))
            if self._shard.breakers.is_suspect(run.tenant, breaker):
                limits.append(("suspects",))
        return limits

    def _take_slot(self, run: OpenRun) -> str | None:
        """The freest worker; for a suspect rather one that has no other."""
        breakers = self._shard.breakers
        if breakers.tries_suspects and breakers.is_suspect(run.tenant, run.own_breaker):
            return self._slots.take_apart(run.task, breakers.with_suspects())
        return self._slots.take(run.task)


_Next = tuple[datetime, int, OpenRun, Leaf, Iterator[Entry]]
Turn = tuple[int, datetime, int]  # where the tenant stands, from when its run may go, the run's number


class _Lane:
    """The tenants of a lane in the order of their turns, as hand-outs of this step change it."""

    def __init__(self, shard: Shard, lane: str, now: datetime) -> None:
        self._shard, self._now = shard, now
        self._share = shard.holds.share(lane)
        self._stands_at: dict[str, int] = {}  # of who was served in this step
        self._turns: list[tuple[Turn, _Runs, Iterator[Stream] | None]] = []
        self._left: set[str] = set()  # tasks for which there is no slot
        for (of_lane, task), line in shard.waiting.lines.items():
            if of_lane == lane and shard.holds.is_able(task):
                self._advance(iter(line))

    def next(self) -> OpenRun | None:
        """The run whose turn it is."""
        while self._turns:
            turn, runs, rest = self._turns[0]
            stands_at = self._stands_at.get(runs.stream.tenant)
            if runs.stream.task in self._left:
                heapq.heappop(self._turns)
            elif stands_at is not None and turn[0] < stands_at:
                heapq.heapreplace(self._turns, ((stands_at, *turn[1:]), runs, None))
                if rest is not None:
                    self._advance(rest)
            else:
                return runs.run
        return None

    def take(self) -> None:
        """What `next` said is handed out."""
        turn, runs, rest = heapq.heappop(self._turns)
        tenant = runs.stream.tenant
        self._stands_at[tenant] = turn[0] + shares.cost_of(self._shard.limits.weight(tenant))
        if rest is not None:
            self._advance(rest)
        if runs.advance(self._now):
            heapq.heappush(self._turns, ((self._stands_at[tenant], *runs.place), runs, None))

    def leave_run(self) -> None:
        """What `next` said is not to be handed out; its tenant keeps its turn."""
        turn, runs, _ = self._turns[0]
        self.leave_stream()
        if runs.advance(self._now):
            heapq.heappush(self._turns, ((turn[0], *runs.place), runs, None))

    def leave_stream(self) -> None:
        """What `next` said, and what stands behind it, is left to the next step."""
        _, _, rest = heapq.heappop(self._turns)
        if rest is not None:
            self._advance(rest)

    def leave_task(self) -> None:
        """There is no slot for what `next` said, nor for anything with its task."""
        self._left.add(self._turns[0][1].stream.task)

    def _advance(self, rest: Iterator[Stream]) -> None:
        stream = next(rest, None)
        if stream is not None:
            runs = _Runs(stream)
            stands_at = self._share.stands_at(stream.tenant)
            heapq.heappush(self._turns, ((stands_at, *runs.place), runs, rest))


class _Runs:
    """The runs of a stream in their order, one after the other. Only what is touched is looked at."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        self._heads = iter(stream.heads)  # of leaves not touched yet
        self._head: Head | None = next(self._heads)
        self._touched: list[_Next] = []
        self._first: _Next = self._next_head()

    @property
    def place(self) -> tuple[datetime, int]:
        """From when the first run may be handed out, and its number."""
        return self._first[:2]

    @property
    def run(self) -> OpenRun:
        """The first run."""
        return self._first[2]

    def advance(self, now: datetime) -> bool:
        """Go on to the next run; whether there is one that may be handed out by now."""
        _, _, _, leaf, rest = self._first
        if (entry := next(rest, None)) is not None:
            opens_at = max(entry[0], self._first[0]) if leaf.key.retries_of else entry[0]
            heapq.heappush(self._touched, (opens_at, entry[1], entry[2], leaf, rest))
        if self._head is not None and (not self._touched or self._head[:2] < self._touched[0][:2]):
            self._first = self._next_head()
        elif self._touched:
            self._first = heapq.heappop(self._touched)
        else:
            return False
        return self._first[0] <= now

    def _next_head(self) -> _Next:
        assert self._head is not None
        opens_at, number, leaf = self._head
        rest = iter(leaf.queue)
        self._head = next(self._heads, None)
        return opens_at, number, next(rest)[2], leaf, rest


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

    def take_apart(self, task: str, others: Collection[str]) -> str | None:
        """A slot of the freest worker that is none of `others`; of any, where there is no such one."""
        of_task = [self._of(tasks, pool) for tasks, pool in self._pools.of(task)]
        found = [(best, offers) for offers in of_task if (best := offers.best_apart(others)) is not NOBODY]
        if not found:
            return self.take(task)
        best, offers = min(found, key=lambda pair: pair[0])
        return offers.take(best)

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

    def best_apart(self, others: Collection[str]) -> Offer:
        """The freest worker that is none of `others`; NOBODY when all are."""
        while self._next[1] in others:
            heapq.heappush(self._touched, self._next)
            self._next = next(self._untouched, NOBODY)
        return min([self._next, *(offer for offer in self._touched if offer[1] not in others)])

    def take(self, best: Offer) -> str:
        """A slot of the worker that `best`, or `best_apart`, said."""
        minus_free, incarnation = best
        if best is self._next:
            self._next = next(self._untouched, NOBODY)
        elif best is self._touched[0]:
            heapq.heappop(self._touched)
        else:
            self._touched.remove(best)
            heapq.heapify(self._touched)
        if minus_free < -1:
            heapq.heappush(self._touched, (minus_free + 1, incarnation))
        return incarnation


def _blocked(shard: Shard, run: OpenRun, breaker: str, moment: Moment) -> RunDeferred:
    since = max(run.queued_at, run.not_before, shard.breakers.since(run.tenant, breaker) or run.queued_at)
    until = shard.breakers.until(run.tenant, breaker)
    reason = RunDeferReason.BREAKER
    return deferred(shard.queue, shard.number, run, reason, since, until, moment.now, breaker=breaker)


def _hand_out(shard: Shard, run: OpenRun, incarnation: str, offset: int, moment: Moment) -> HandOut:
    worker = shard.workforce.by_incarnation[incarnation]
    key = identity.lease_key(moment.entropy, shard.name, offset)
    return HandOut(
        incarnation=incarnation, inbox=worker.record.inbox, shard=shard.number, offset=offset,
        lease=f"{shard.lease_prefix}{offset}.{key}", lease_key=key, lease_duration=run.lease_duration,
        timeout=run.timeout, start_by=_start_by(run, moment), attempt=run.attempts + 1,
        may_have_run=run.attempts > 0, handed_out_at=moment.now, run=shard.bodies.get(key_of(run)),
    )  # fmt: skip


def _start_by(run: OpenRun, moment: Moment) -> timedelta:
    """Who reads it later than that leaves it to others; what may not begin any more is not begun."""
    until = run.unstarted_until
    return run.start_by if until is None else min(run.start_by, until - moment.now)
