"""Over which shards of its queue a worker spreads its slots, and when it moves some to another. Pure.

A queue's shards say themselves when they want slots, again and again while they do; who says nothing wants nothing.

    as many slots as shards, or more    each shard keeps one at least; those that idle go where runs wait
    fewer                               those that idle go where runs wait; where none idles, they take turns

Shards that the queue has no more count as well, while they call: what is left there must come to an end.

Nobody knows who else moves. So each worker waits for a while of its own before it follows a call, the longer the more
workers there are: the first ones to come end the call. And what has just been moved stays for a while.

Instants are seconds of one clock.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from tidewheel.wire import Layout

FORGOTTEN_SECONDS = 15.0  # Three calls that did not come: the shard wants nothing any more, or nobody decides there.
STAY_SECONDS = 5.0  # An idle slot stays for as long as a call takes to be repeated.
TURN_SECONDS = 30.0  # A slot that works leaves for a shard where nobody does after so long: moving costs it 3 reports.
PATIENCE_SECONDS = 0.1  # for each worker of the queue: as calls end, so many of them may move at once,
PATIENCE_SECONDS_MAX = 4.0  # but before the call is repeated


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What a worker has in one shard: slots, how many of them work, and since when it has as many."""

    slots: int
    busy: int = 0
    since: float = 0.0

    @property
    def idle(self) -> int:
        """Slots without a task."""
        return max(0, self.slots - self.busy)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A shard wants slots: since when, and since when nobody serves it (None: somebody does)."""

    queued: int
    heard_at: float
    since: float
    unserved_since: float | None = None


@dataclass(slots=True)
class Layouts:
    """What a worker has heard of the shards of its queue."""

    shards: int = 1
    _calls: dict[int, Call] = field(default_factory=dict)
    _workers: dict[int, int] = field(default_factory=dict)

    def hear(self, layout: Layout, now: float) -> None:
        """A shard says how it stands."""
        self.shards = max(1, layout.shards)
        self._workers[layout.shard] = layout.workers
        before = self._calls.pop(layout.shard, None)
        if not layout.queued:
            return
        is_unserved = not (layout.running or layout.free)
        known = before if before is not None and now - before.heard_at < FORGOTTEN_SECONDS else None
        unserved_since = None if known is None else known.unserved_since
        self._calls[layout.shard] = Call(
            queued=layout.queued, heard_at=now, since=now if known is None else known.since,
            unserved_since=(now if unserved_since is None else unserved_since) if is_unserved else None,
        )  # fmt: skip

    def calls(self, now: float) -> dict[int, Call]:
        """Who wants slots."""
        return {shard: call for shard, call in self._calls.items() if now - call.heard_at < FORGOTTEN_SECONDS}

    @property
    def heard(self) -> bool:
        """Whether any shard has said anything: the only one of a queue does not."""
        return bool(self._workers)

    @property
    def workers(self) -> int:
        """How many may hear the same, at least."""
        return max(self._workers.values(), default=1)


def spread(slots: int, shards: int, seed: int) -> dict[int, int]:
    """Slots by shard, evenly; what is left over goes to shards that differ from worker to worker."""
    each, more = divmod(slots, shards)
    first = seed % shards
    counts = {(first + step) % shards: each + (step < more) for step in range(shards)}
    return {shard: count for shard, count in sorted(counts.items()) if count}


def moved(
    places: Mapping[int, Place], layouts: Layouts, *, seed: int, now: float, barred: Collection[int] = ()
) -> dict[int, int]:
    """Slots by shard from now on: as they are, or after one move. A `barred` shard cannot be gone to now."""
    kept = {shard: place.slots for shard, place in places.items() if place.slots}
    move = next(_moves(places, layouts, seed, now, barred), None)
    if move is None:
        return kept
    source, target, count = move
    kept[source] -= count
    kept[target] = kept.get(target, 0) + count
    return {shard: slots for shard, slots in kept.items() if slots}


def _moves(
    places: Mapping[int, Place], layouts: Layouts, seed: int, now: float, barred: Collection[int]
) -> Iterator[tuple[int, int, int]]:
    """Moves that may be made now, the best first: from where, to where, how many."""
    calls = layouts.calls(now)
    slots = sum(place.slots for place in places.values())
    leaving = sum(shard >= layouts.shards for shard in calls)
    keeps = 1 if slots >= layouts.shards + leaving else 0  # what stays in each shard, whatever is called
    idle = [
        shard
        for shard, place in places.items()
        if _spare(shard, place, keeps, layouts) and now - place.since >= STAY_SECONDS
    ]
    idle.sort(key=lambda shard: (-_spare(shard, places[shard], keeps, layouts), shard))
    for target in sorted(calls, key=lambda shard: _urgency(calls[shard], shard, seed)):
        call = calls[target]
        if target in barred or now - call.since < _patience(target, layouts.workers, seed):
            continue
        for source in idle:
            if source not in calls:
                wanted = -(-call.queued // max(1, layouts.workers))
                yield source, target, min(_spare(source, places[source], keeps, layouts), wanted)
        if call.unserved_since is None or places.get(target, Place(slots=0)).slots:
            continue
        for source, place in sorted(places.items(), key=lambda item: (item[1].since, item[0])):
            if place.slots > (keeps if source < layouts.shards else 0) and now - place.since >= TURN_SECONDS:
                yield source, target, 1
    homes = set(range(layouts.shards)).difference(barred)
    for source in idle:
        if source >= layouts.shards and source not in calls and homes:  # Its last runs are over, and no more come.
            yield source, _home(homes, places, seed), places[source].idle


def _spare(shard: int, place: Place, keeps: int, layouts: Layouts) -> int:
    """How many idle slots a shard can do without."""
    return min(place.idle, place.slots - (keeps if shard < layouts.shards else 0))


def _urgency(call: Call, shard: int, seed: int) -> tuple[bool, float, int]:
    """Where nobody works first, the longest time first; then each worker in an order of its own."""
    is_served = call.unserved_since is None
    return is_served, call.since if call.unserved_since is None else call.unserved_since, _own(shard, seed)


def _patience(shard: int, workers: int, seed: int) -> float:
    """How long this worker lets others go first."""
    return min(PATIENCE_SECONDS_MAX, PATIENCE_SECONDS * (workers - 1)) * (_own(shard, seed) % 1000) / 1000


def _own(shard: int, seed: int) -> int:
    """A number for a shard that is another one for each worker."""
    return zlib.crc32(f"{seed}/{shard}".encode())


def _home(homes: Collection[int], places: Mapping[int, Place], seed: int) -> int:
    """The shard of some in which this worker has the fewest slots."""
    return min(homes, key=lambda shard: (places.get(shard, Place(slots=0)).slots, _own(shard, seed)))
