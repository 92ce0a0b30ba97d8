"""Runs that wait, in the order in which they may be handed out.

    lane and task            a line: whose turn it is, the tenants that can be served now
      └ tenant               a stream: the runs of one tenant for that lane and task
          └ limits           a leaf: runs that the same key, retry budget and breaker hold, oldest first

A run can only go to a worker that has its task, so each task has lines of its own. What is held (a full key, a quota,
a rate, a budget) is taken out of the order until it is not, so the next run is always found at the head of something,
whatever stands behind it and whatever is held. Within a stream: by the instant from which a run may be handed out,
then in order of creation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import NamedTuple, Protocol, TypeVar

from dispatcher.ordered import SortedQueue
from dispatcher.run import OpenRun
from dispatcher.timers import Timers

K = TypeVar("K")
T = TypeVar("T")

Entry = tuple[datetime, int, OpenRun]  # not before, number, run: never compared beyond the number, which is its own


class LeafKey(NamedTuple):
    """What runs that are held alike have in common."""

    lane: str
    tenant: str
    task: str
    concurrency: str = ""
    retries_of: str = ""  # the schedule whose budget a retry needs; empty for what is no retry
    breaker: str = ""  # behind which the runs wait; empty for those that were there before it opened


class StreamKey(NamedTuple):
    """What the leaves of a stream have in common."""

    lane: str
    tenant: str
    task: str


LineKey = tuple[str, str]  # lane, task


class Rules(Protocol):
    """What holds runs, as the shard knows it."""

    def is_able(self, task: str) -> bool:
        """Whether a worker with the task has a free slot."""
        ...

    def is_key_full(self, tenant: str, concurrency: str) -> bool:
        """Whether a concurrency key has no room."""
        ...

    def budget_opens_at(self, tenant: str, schedule: str) -> datetime | None:
        """From when a schedule's retry budget has room; None: it has."""
        ...

    def is_breaker_shut(self, tenant: str, breaker: str) -> bool:
        """Whether a breaker lets none of its runs go."""
        ...

    def is_paused(self) -> bool:
        """Whether nothing may be handed out."""
        ...

    def is_tenant_held(self, tenant: str) -> bool:
        """Whether a tenant has as many runs at work as it may, or may have none."""
        ...

    def tenant_opens_at(self, tenant: str) -> datetime | None:
        """From when a tenant's rate has room; None: it has."""
        ...

    def queue_opens_at(self) -> datetime | None:
        """From when the queue's rate has room; None: it has."""
        ...

    def stands_at(self, lane: str, tenant: str) -> tuple[int, bool]:
        """Where a tenant stands in its lane, and whether that is ahead of the lane's level."""
        ...


class Leaf:
    """Runs that are held alike."""

    __slots__ = ("head", "key", "queue", "stream")

    def __init__(self, key: LeafKey, stream: Stream) -> None:
        self.key = key
        self.stream = stream
        self.queue: SortedQueue[Entry] = SortedQueue()
        self.head: Head | None = None  # where it stands in its stream; None while it is held


Head = tuple[datetime, int, Leaf]  # from when its first run may go, that run's number


class Stream:
    """The leaves of one tenant, lane and task."""

    __slots__ = ("heads", "key", "lane", "leaves", "place", "task", "tenant")

    def __init__(self, key: StreamKey) -> None:
        self.key = key
        self.lane, self.tenant, self.task = key
        self.leaves: dict[LeafKey, Leaf] = {}
        self.heads: SortedQueue[Head] = SortedQueue()
        self.place: Place | None = None  # in its line, while it can be served


Place = tuple[bool, tuple[int, datetime, int, Stream]]  # whether ahead of the level; by what it is sorted


class Line:
    """The streams of a lane and task that can be served, but for want of a slot."""

    __slots__ = ("ahead", "level")

    def __init__(self) -> None:
        self.level: SortedQueue[tuple[int, datetime, int, Stream]] = SortedQueue()  # by age: the first number is 0
        self.ahead: SortedQueue[tuple[int, datetime, int, Stream]] = SortedQueue()  # by standing, then age

    def __iter__(self) -> Iterator[Stream]:
        """In the order of their turns."""
        for queue in (self.level, self.ahead):
            for place in queue:
                yield place[3]


class _Task:
    """The streams that want one task."""

    __slots__ = ("openings", "streams")

    def __init__(self, opens_at: Callable[[StreamKey], datetime | None]) -> None:
        self.streams: dict[StreamKey, None] = {}
        self.openings: Timers[StreamKey] = Timers(opens_at)


class Waiting:
    """All runs of a shard that wait, and which of them could go to a worker, and when."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self.leaves: dict[LeafKey, Leaf] = {}  # none of them is empty
        self.lines: dict[LineKey, Line] = {}
        self.in_lane: dict[str, int] = {}
        self._in_lane_of: Counter[tuple[str, str]] = Counter()  # lane, tenant
        self._streams: dict[StreamKey, Stream] = {}
        self._tasks: dict[str, _Task] = {}
        self._of_tenant: dict[str, dict[Stream, None]] = {}
        self._of_key: dict[tuple[str, str], dict[Leaf, None]] = {}
        self._of_schedule: dict[tuple[str, str], dict[Leaf, None]] = {}
        self._of_breaker: dict[tuple[str, str], dict[Leaf, None]] = {}
        self._moved: dict[Stream, None] = {}  # whose place has to be found again before anyone asks
        self._openings: Timers[str] = Timers(self._task_opens_at)
        self._arrivals: Timers[StreamKey] = Timers(self._arrives_at)

    # --- changes --------------------------------------------------------------------------------------------------

    def add(self, run: OpenRun) -> Leaf:
        """A run waits from now on; in which leaf."""
        key = leaf_key(run)
        leaf = self.leaves.get(key) or self._new_leaf(key)
        self.in_lane[run.lane] = self.in_lane.get(run.lane, 0) + 1
        self._in_lane_of[run.lane, run.tenant] += 1
        leaf.queue.add(entry_of(run))
        self._set_head(leaf)
        return leaf

    def remove(self, run: OpenRun) -> None:
        """A run waits no longer; its place is found by what it was added with."""
        leaf = self.leaves[leaf_key(run)]
        self.in_lane[run.lane] -= 1
        self._in_lane_of[run.lane, run.tenant] -= 1
        if not self._in_lane_of[run.lane, run.tenant]:
            del self._in_lane_of[run.lane, run.tenant]
        leaf.queue.remove(entry_of(run))
        if not leaf.queue:
            self._drop_leaf(leaf)
        self._set_head(leaf)

    def key_changed(self, tenant: str, concurrency: str) -> None:
        """More or fewer runs of a concurrency key may be handed out."""
        for leaf in self._of_key.get((tenant, concurrency), ()):
            self._set_head(leaf)

    def budget_changed(self, tenant: str, schedule: str) -> None:
        """More or fewer retries of a schedule may be handed out."""
        for leaf in self._of_schedule.get((tenant, schedule), ()):
            self._set_head(leaf)

    def breaker_changed(self, tenant: str, breaker: str) -> None:
        """More or fewer runs of a breaker may be handed out."""
        for leaf in self._of_breaker.get((tenant, breaker), ()):
            self._set_head(leaf)

    def tenant_changed(self, tenant: str) -> None:
        """A tenant may be handed more or less."""
        for stream in self._of_tenant.get(tenant, ()):
            self._moved[stream] = None

    def turn_changed(self, lane: str, tenant: str) -> None:
        """A tenant has its turn at another time."""
        for stream in self._of_tenant.get(tenant, ()):
            if stream.lane == lane:
                self._moved[stream] = None

    def turns_changed(self) -> None:
        """All may be handed more or less, or have their turns at other times."""
        self._moved.update(dict.fromkeys(self._streams.values()))

    def task_is_able(self, task: str) -> None:
        """A worker with the task has a free slot."""
        self.settle()
        known = self._tasks.get(task)
        first = None if known is None else known.openings.first()
        if first is not None:
            self._openings.not_before(task, first[0])

    # --- questions ------------------------------------------------------------------------------------------------

    @property
    def has_retries(self) -> bool:
        """Whether any run waits that needs a retry budget."""
        return bool(self._of_schedule)

    def has_others(self, lane: str, tenant: str) -> bool:
        """Whether anyone but a tenant waits in a lane."""
        return self.in_lane.get(lane, 0) > self._in_lane_of.get((lane, tenant), 0)

    def of_tenant(self, tenant: str) -> Iterator[Leaf]:
        """The leaves of a tenant."""
        for stream in self._of_tenant.get(tenant, ()):
            yield from stream.leaves.values()

    def of_key(self, tenant: str, concurrency: str) -> Iterator[Leaf]:
        """The leaves of a concurrency key."""
        yield from self._of_key.get((tenant, concurrency), ())

    def of_schedule(self, tenant: str, schedule: str) -> Iterator[Leaf]:
        """The leaves of a schedule's retries."""
        yield from self._of_schedule.get((tenant, schedule), ())

    def of_breaker(self, tenant: str, breaker: str) -> Iterator[Leaf]:
        """The leaves of a breaker."""
        yield from self._of_breaker.get((tenant, breaker), ())

    def opening(self) -> datetime | None:
        """The first instant at which a waiting run can go to a worker that is there."""
        self.settle()
        first = self._openings.first()
        if first is None or self._rules.is_paused():
            return None
        return _later(first[0], self._rules.queue_opens_at())

    def wanting(self) -> datetime | None:
        """The first instant at which a waiting run wants nothing but a worker with a free slot, there or not."""
        self.settle()
        if self._rules.is_paused():
            return None
        firsts = [task.openings.first() for task in self._tasks.values()]
        first = min((each[0] for each in firsts if each is not None), default=None)
        return None if first is None else _later(first, self._rules.queue_opens_at())

    def open(self, now: datetime) -> None:
        """Let every stream that can be served by now stand in its line; nothing else follows from it."""
        self.settle()
        while (first := self._arrivals.first()) is not None and first[0] <= now:
            self._stand(self._streams[first[1]])

    def settle(self) -> None:
        """Bring the streams' places to what is known: once for all that happened since."""
        if self._moved:
            moved, self._moved = self._moved, {}
            for stream in moved:
                self._leave_line(stream)
                self._expect(stream)

    # --- what follows ---------------------------------------------------------------------------------------------

    def _set_head(self, leaf: Leaf) -> None:
        """Where a leaf stands in its stream now."""
        stream, head = leaf.stream, self._head_of(leaf)
        if head == leaf.head:
            return
        if leaf.head is not None:
            stream.heads.remove(leaf.head)
        if head is not None:
            stream.heads.add(head)
        leaf.head = head
        self._moved[stream] = None

    def _head_of(self, leaf: Leaf) -> Head | None:
        key = leaf.key
        if not leaf.queue or (key.concurrency and self._rules.is_key_full(key.tenant, key.concurrency)):
            return None
        if key.breaker and self._rules.is_breaker_shut(key.tenant, key.breaker):
            return None
        not_before, number, _ = leaf.queue.first()
        if key.retries_of:
            not_before = _later(not_before, self._rules.budget_opens_at(key.tenant, key.retries_of))
        return not_before, number, leaf

    def _opens_at(self, stream: Stream) -> datetime | None:
        """From when a stream can be served, but for want of a slot."""
        if not stream.heads or self._rules.is_tenant_held(stream.tenant):
            return None
        return _later(stream.heads.first()[0], self._rules.tenant_opens_at(stream.tenant))

    def _stream_opens_at(self, key: StreamKey) -> datetime | None:
        stream = self._streams.get(key)
        return None if stream is None else self._opens_at(stream)

    def _arrives_at(self, key: StreamKey) -> datetime | None:
        stream = self._streams.get(key)
        return None if stream is None or stream.place is not None else self._opens_at(stream)

    def _task_opens_at(self, task: str) -> datetime | None:
        known = self._tasks.get(task)
        if known is None or not self._rules.is_able(task):
            return None
        first = known.openings.first()
        return None if first is None else first[0]

    def _expect(self, stream: Stream) -> None:
        """A stream has not its place yet: it is given one when it opens."""
        if not stream.leaves:
            self._drop_stream(stream)
            return
        opens_at = self._opens_at(stream)
        if opens_at is not None:
            self._arrivals.not_before(stream.key, opens_at)
            self._tasks[stream.task].openings.not_before(stream.key, opens_at)
            if self._rules.is_able(stream.task):
                self._openings.not_before(stream.task, opens_at)

    def _stand(self, stream: Stream) -> None:
        self._arrivals.drop(stream.key)
        standing, is_ahead = self._rules.stands_at(stream.lane, stream.tenant)
        not_before, number, _ = stream.heads.first()
        stream.place = (is_ahead, (standing if is_ahead else 0, not_before, number, stream))
        line = self.lines.setdefault((stream.lane, stream.task), Line())
        (line.ahead if is_ahead else line.level).add(stream.place[1])

    def _leave_line(self, stream: Stream) -> None:
        if stream.place is None:
            return
        line = self.lines[stream.lane, stream.task]
        is_ahead, place = stream.place
        (line.ahead if is_ahead else line.level).remove(place)
        if not line.ahead and not line.level:
            del self.lines[stream.lane, stream.task]
        stream.place = None

    # --- coming and going -----------------------------------------------------------------------------------------

    def _new_leaf(self, key: LeafKey) -> Leaf:
        stream = self._streams.get(StreamKey(key.lane, key.tenant, key.task)) or self._new_stream(key)
        leaf = self.leaves[key] = stream.leaves[key] = Leaf(key, stream)
        if key.concurrency:
            self._of_key.setdefault((key.tenant, key.concurrency), {})[leaf] = None
        if key.retries_of:
            self._of_schedule.setdefault((key.tenant, key.retries_of), {})[leaf] = None
        if key.breaker:
            self._of_breaker.setdefault((key.tenant, key.breaker), {})[leaf] = None
        return leaf

    def _drop_leaf(self, leaf: Leaf) -> None:
        key = leaf.key
        del self.leaves[key], leaf.stream.leaves[key]
        if key.concurrency:
            _leave(self._of_key, (key.tenant, key.concurrency), leaf)
        if key.retries_of:
            _leave(self._of_schedule, (key.tenant, key.retries_of), leaf)
        if key.breaker:
            _leave(self._of_breaker, (key.tenant, key.breaker), leaf)
        self._moved[leaf.stream] = None

    def _new_stream(self, key: LeafKey) -> Stream:
        stream = Stream(StreamKey(key.lane, key.tenant, key.task))
        self._streams[stream.key] = stream
        self._of_tenant.setdefault(key.tenant, {})[stream] = None
        task = self._tasks.get(key.task)
        if task is None:
            task = self._tasks[key.task] = _Task(self._stream_opens_at)
        task.streams[stream.key] = None
        return stream

    def _drop_stream(self, stream: Stream) -> None:
        if self._streams.pop(stream.key, None) is None:
            return
        self._arrivals.drop(stream.key)
        _leave(self._of_tenant, stream.tenant, stream)
        task = self._tasks[stream.task]
        task.openings.drop(stream.key)
        del task.streams[stream.key]
        if not task.streams:
            del self._tasks[stream.task]
            self._openings.drop(stream.task)


def entry_of(run: OpenRun) -> Entry:
    """Where a run stands in its leaf."""
    return run.not_before, run.number, run


def leaf_key(run: OpenRun) -> LeafKey:
    """The leaf of a run that waits."""
    retries_of = run.schedule if run.is_retry else ""
    return LeafKey(run.lane, run.tenant, run.task, run.concurrency, retries_of, run.held_by)


def _later(instant: datetime, other: datetime | None) -> datetime:
    return instant if other is None else max(instant, other)


def _leave(index: dict[K, dict[T, None]], key: K, thing: T) -> None:
    del index[key][thing]
    if not index[key]:
        del index[key]
