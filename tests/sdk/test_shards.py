"""Over which shards a worker spreads its slots, and when it moves some."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidewheel.shards import Layouts, Place, moved, spread
from tidewheel.wire import Layout

SHARDS = 3


def heard(*layouts: Layout, at: float = 0.0, shards: int = SHARDS) -> Layouts:
    known = Layouts(shards=shards)
    for layout in layouts:
        known.hear(layout, at)
    return known


def calls(shard: int, queued: int = 1, *, running: int = 0, free: int = 0, workers: int = 1) -> Layout:
    return Layout(shard=shard, shards=SHARDS, queued=queued, running=running, free=free, workers=workers)


def quiet(shard: int) -> Layout:
    return Layout(shard=shard, shards=SHARDS)


# --- at first --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("slots", "shards", "seed", "counts"),
    [
        (10, 1, 7, {0: 10}),
        (9, 3, 0, {0: 3, 1: 3, 2: 3}),
        (10, 3, 0, {0: 4, 1: 3, 2: 3}),
        (10, 3, 1, {0: 3, 1: 4, 2: 3}),
        (10, 3, 5, {0: 3, 1: 3, 2: 4}),
        (1, 3, 1, {1: 1}),
        (2, 3, 2, {0: 1, 2: 1}),
    ],
)
def test_slots_are_spread_evenly_and_what_is_left_differs_from_worker_to_worker(slots, shards, seed, counts):
    assert spread(slots, shards, seed) == counts


# --- calls -----------------------------------------------------------------------------------------------------------

EVEN = {0: Place(slots=3), 1: Place(slots=3), 2: Place(slots=3)}


def test_without_a_call_nothing_moves():
    assert moved(EVEN, heard(quiet(0), quiet(1), quiet(2)), seed=0, now=1000.0) == {0: 3, 1: 3, 2: 3}


def test_idle_slots_go_to_the_shard_that_calls_and_each_shard_keeps_one():
    assert moved(EVEN, heard(calls(1, 100, running=3), at=10.0), seed=0, now=10.0) == {0: 1, 1: 5, 2: 3}


def test_no_more_slots_go_than_runs_wait():
    assert moved(EVEN, heard(calls(1, 1, running=3), at=10.0), seed=0, now=10.0) == {0: 2, 1: 4, 2: 3}


def test_the_workers_of_a_queue_share_what_waits():
    known = heard(calls(1, 4, running=3, workers=4), at=10.0)
    assert moved(EVEN, known, seed=0, now=10.4) == {0: 2, 1: 4, 2: 3}


def test_a_slot_that_works_is_not_taken_away_from_a_shard_for_one_that_is_served():
    busy = {0: Place(slots=3, busy=3), 1: Place(slots=3, busy=3), 2: Place(slots=3, busy=2)}
    assert moved(busy, heard(calls(1, 9, running=3), at=100.0), seed=0, now=100.0) == {0: 3, 1: 4, 2: 2}
    full = {**busy, 2: Place(slots=3, busy=3)}
    assert moved(full, heard(calls(1, 9, running=3), at=100.0), seed=0, now=100.0) == {0: 3, 1: 3, 2: 3}


def test_who_calls_gives_nothing_away_while_it_idles_for_want_of_a_task():
    known = heard(calls(0, 5, running=1), calls(1, 5, running=1), at=10.0)
    assert moved({0: Place(slots=3), 1: Place(slots=3)}, known, seed=0, now=10.0) == {0: 3, 1: 3}


def test_what_has_just_been_moved_stays_for_five_seconds():
    fresh = {0: Place(slots=3, since=8.0), 1: Place(slots=3), 2: Place(slots=1)}
    known = heard(calls(1, 9, running=3), at=12.0)
    assert moved(fresh, known, seed=0, now=12.9) == {0: 3, 1: 3, 2: 1}
    assert moved(fresh, known, seed=0, now=13.0) == {0: 1, 1: 5, 2: 1}


def test_a_call_that_is_not_repeated_for_fifteen_seconds_is_over():
    known = heard(calls(1, 9, running=3), at=10.0)
    assert moved(EVEN, known, seed=0, now=24.9) != {0: 3, 1: 3, 2: 3}
    assert moved(EVEN, known, seed=0, now=25.0) == {0: 3, 1: 3, 2: 3}


def test_a_shard_that_was_just_left_is_not_gone_to():
    assert moved(EVEN, heard(calls(1, 9), at=10.0), seed=0, now=10.0, barred={1}) == {0: 3, 1: 3, 2: 3}


def test_many_workers_do_not_all_follow_a_call_at_once():
    known = heard(calls(1, 9, running=3, workers=101), at=10.0)
    followed = [
        sum(moved(EVEN, known, seed=seed, now=10.0 + after)[1] > 3 for seed in range(100)) for after in (0.5, 2.0, 4.0)
    ]
    assert followed == sorted(followed)
    assert 5 < followed[0] < 25 < followed[1] < 75 < followed[2] == 100


# --- fewer slots than shards -----------------------------------------------------------------------------------------


def test_an_idle_slot_follows_a_call_even_if_it_is_the_last_one_there():
    assert moved({0: Place(slots=1)}, heard(calls(2), at=10.0), seed=0, now=10.0) == {2: 1}


def test_a_slot_that_works_goes_after_half_a_minute_where_nobody_works():
    working = {0: Place(slots=1, busy=1, since=100.0)}
    known = heard(calls(0, 50, running=1), calls(1, 50), at=129.0)
    assert moved(working, known, seed=0, now=129.9) == {0: 1}
    assert moved(working, known, seed=0, now=130.0) == {1: 1}


def test_it_goes_where_nobody_has_worked_for_the_longest_time():
    working = {0: Place(slots=1, busy=1)}
    known = heard(calls(2, 9), at=97.0)
    known.hear(calls(1, 9), 98.0)
    known.hear(calls(2, 9, running=1), 99.0)
    known.hear(calls(2, 9), 100.0)
    assert moved(working, known, seed=0, now=101.0) == {1: 1}


def test_a_shard_where_somebody_works_must_wait_for_one_that_idles():
    working = {0: Place(slots=1, busy=1)}
    assert moved(working, heard(calls(1, 50, running=1), at=100.0), seed=0, now=100.0) == {0: 1}


# --- shards that are no more -----------------------------------------------------------------------------------------


def test_a_shard_beyond_the_number_is_served_while_it_calls_and_left_when_it_does_not():
    known = heard(Layout(shard=4, shards=2, queued=3), at=10.0, shards=2)
    assert moved({0: Place(slots=2), 1: Place(slots=2)}, known, seed=0, now=10.0) == {0: 1, 1: 2, 4: 1}
    known.hear(Layout(shard=4, shards=2), 20.0)
    assert moved({0: Place(slots=1), 1: Place(slots=2), 4: Place(slots=1)}, known, seed=0, now=20.0) == {0: 2, 1: 2}


def test_the_only_slot_of_a_worker_goes_to_a_shard_beyond_the_number_that_calls_and_comes_back():
    known = heard(Layout(shard=2, shards=1, queued=3), at=10.0, shards=1)
    assert moved({0: Place(slots=1)}, known, seed=0, now=10.0) == {2: 1}
    known.hear(Layout(shard=2, shards=1), 20.0)
    assert moved({2: Place(slots=1, since=10.0)}, known, seed=0, now=20.0) == {0: 1}


def test_what_is_left_over_goes_to_no_shard_that_is_just_being_left():
    """The session there ends, and would take the slot along."""
    empty = heard(Layout(shard=4, shards=2), at=20.0, shards=2)
    assert moved({4: Place(slots=1)}, empty, seed=0, now=20.0, barred={0}) == {1: 1}
    assert moved({4: Place(slots=1)}, empty, seed=0, now=20.0, barred={1}) == {0: 1}
    assert moved({4: Place(slots=1)}, empty, seed=0, now=20.0, barred={0, 1}) == {4: 1}


def test_the_only_slot_that_works_all_the_time_has_its_turn_in_a_shard_beyond_the_number():
    known = heard(Layout(shard=2, shards=1, queued=3), at=100.0, shards=1)
    assert moved({0: Place(slots=1, busy=1)}, known, seed=0, now=100.0) == {2: 1}


def test_the_only_slot_that_works_off_a_shard_beyond_the_number_has_its_turn_in_one_that_there_is():
    known = heard(Layout(shard=0, shards=1, queued=3), at=100.0, shards=1)
    known.hear(Layout(shard=2, shards=1, queued=9, running=1), 100.0)
    assert moved({2: Place(slots=1, busy=1)}, known, seed=0, now=100.0) == {0: 1}


# --- laws ------------------------------------------------------------------------------------------------------------


@dataclass
class World:
    """Workers and shards in steps of a second; a run takes `takes` seconds, and a shard calls as a dispatcher does."""

    shards: int
    workers: list[dict[int, Place]]
    queued: list[int]
    takes: int
    now: float = 0.0
    moves: list[tuple[int, float]] = field(default_factory=list)
    served: list[int] = field(init=False)
    ends: list[tuple[float, int, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.known = [Layouts(shards=self.shards) for _ in self.workers]
        self.called = [False] * self.shards
        self.served = [0] * self.shards

    def step(self) -> None:
        self.now += 1.0
        self._end()
        self._begin()
        self._call()
        for number, places in enumerate(self.workers):
            slots = moved(places, self.known[number], seed=number, now=self.now)
            if slots != {shard: place.slots for shard, place in places.items() if place.slots}:
                self.moves.append((number, self.now))
                self._move(number, slots)

    def _end(self) -> None:
        for end in [end for end in self.ends if end[0] <= self.now]:
            self.ends.remove(end)
            places, shard = self.workers[end[1]], end[2]
            places[shard] = Place(slots=places[shard].slots, busy=places[shard].busy - 1, since=places[shard].since)

    def _begin(self) -> None:
        for number, places in enumerate(self.workers):
            for shard, place in places.items():
                room = sum(each.slots for each in places.values()) - sum(each.busy for each in places.values())
                count = min(place.idle, self.queued[shard], room)
                self.queued[shard] -= count
                self.served[shard] += count
                self.ends += [(self.now + self.takes, number, shard)] * count
                places[shard] = Place(slots=place.slots, busy=place.busy + count, since=place.since)

    def _call(self) -> None:
        for shard in range(self.shards):
            if self.queued[shard] or self.called[shard]:
                there = [places[shard] for places in self.workers if shard in places and places[shard].slots]
                layout = Layout(
                    shard=shard, shards=self.shards, queued=self.queued[shard], workers=len(there),
                    running=sum(each.busy for each in there), free=sum(each.idle for each in there),
                )  # fmt: skip
                for known in self.known:
                    known.hear(layout, self.now)
                self.called[shard] = self.queued[shard] > 0

    def _move(self, number: int, slots: dict[int, int]) -> None:
        places = self.workers[number]
        for shard in sorted({*slots, *places}):
            was = places.get(shard, Place(slots=0, since=self.now))
            since = was.since if was.slots == slots.get(shard, 0) else self.now
            places[shard] = Place(slots=slots.get(shard, 0), busy=was.busy, since=since)


def world(shards: int, workers: int, slots: int, queued: list[int], takes: int) -> World:
    placed = [{s: Place(slots=n) for s, n in spread(slots, shards, seed).items()} for seed in range(workers)]
    return World(shards=shards, workers=placed, queued=queued[:shards], takes=takes)


@settings(max_examples=60, deadline=None)
@given(
    shards=st.integers(2, 6), workers=st.integers(1, 3), slots=st.integers(1, 4),
    queued=st.lists(st.integers(0, 400), min_size=6, max_size=6), takes=st.integers(1, 20),
)  # fmt: skip
def test_every_shard_where_runs_wait_gets_a_slot_and_no_worker_moves_all_the_time(
    shards, workers, slots, queued, takes
):
    seen = world(shards, workers, slots, queued, takes)
    wanting = [shard for shard in range(shards) if seen.queued[shard]]
    for _ in range(300):
        seen.step()
    assert [shard for shard in wanting if not seen.served[shard]] == []
    for number in range(workers):
        assert sum(who == number for who, _ in seen.moves) <= 300 / 5 * slots


@settings(max_examples=40, deadline=None)
@given(shards=st.integers(2, 6), workers=st.integers(1, 4), slots=st.integers(1, 4), shard=st.integers(0, 5))
def test_what_waits_in_one_shard_draws_all_slots_there_and_then_nothing_moves(shards, workers, slots, shard):
    """No slot comes and goes: the backlog of one shard is worked on with all slots that others do not keep."""
    queued = [0] * 6
    queued[shard % shards] = 10_000
    seen = world(shards, workers, slots, queued, takes=7)
    for _ in range(60):
        seen.step()
    moves = len(seen.moves)
    kept = workers * (shards - 1) if slots >= shards else 0
    assert sum(places[shard % shards].slots for places in seen.workers) == workers * slots - kept
    for _ in range(100):
        seen.step()
    assert len(seen.moves) == moves


@given(shards=st.integers(1, 64), slots=st.integers(1, 1000), seed=st.integers(0, 2**32))
def test_spreading_loses_no_slot_and_leaves_no_shard_out_while_there_are_enough(shards, slots, seed):
    counts = spread(slots, shards, seed)
    assert sum(counts.values()) == slots
    assert len(counts) == min(shards, slots)
    assert max(counts.values()) - min(counts.values()) <= 1
