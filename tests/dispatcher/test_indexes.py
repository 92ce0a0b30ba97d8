"""The indexes of a shard against the simplest thing that does the same."""

from datetime import datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from dispatcher.ordered import CUT_AT, SortedQueue
from dispatcher.pools import Pools
from dispatcher.timers import Timers
from tests.dispatcher.harness import T0


@given(st.lists(st.tuples(st.sampled_from(["add", "remove", "head"]), st.integers(0, 40))))
def test_a_sorted_queue_is_a_sorted_list(steps):
    queue: SortedQueue[tuple[int, str]] = SortedQueue()
    model: list[tuple[int, str]] = []
    for step, number in steps:
        entry = (number, "x")
        if step == "add" and entry not in model:
            queue.add(entry)
            model = sorted([*model, entry])
        elif step == "remove":
            assert queue.discard(entry) is (entry in model)
            model = [other for other in model if other != entry]
        elif step == "head" and model:
            assert queue.first() == model[0]
            queue.remove(model.pop(0))
        assert list(queue) == model
        assert len(queue) == len(model)


def test_a_sorted_queue_does_not_keep_what_was_taken():
    queue: SortedQueue[tuple[int, str]] = SortedQueue()
    for number in range(10 * CUT_AT):
        queue.add((number, "x"))
    for number in range(9 * CUT_AT):
        queue.remove((number, "x"))
    assert len(queue._entries) <= 2 * CUT_AT
    assert queue.first() == (9 * CUT_AT, "x")


def at(number: int) -> datetime:
    return T0 + timedelta(seconds=number)


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("set"), st.integers(0, 8), st.integers(0, 100)),
            st.tuples(st.just("unset"), st.integers(0, 8), st.integers(0, 1)),
            st.tuples(st.just("ask"), st.just(0), st.just(0)),
        ),
        max_size=200,
    )
)
def test_the_first_timer_is_the_smallest_true_instant(steps):
    truth: dict[str, datetime] = {}
    timers: Timers[str] = Timers(truth.get)
    for step, key, number in steps:
        name = f"k{key}"
        if step == "set":
            truth[name] = at(number)
            timers.not_before(name, truth[name])
        elif step == "unset":
            truth.pop(name, None)
            if number % 2:
                timers.drop(name)
        first = timers.first()
        assert (None if first is None else first[0]) == min(truth.values(), default=None)
        assert first is None or truth[first[1]] == first[0]


def test_a_timer_that_is_put_off_costs_nothing_until_its_old_instant_comes_up():
    asked: list[str] = []
    truth = {f"k{number}": at(number) for number in range(1000)}

    def due_at(key: str) -> datetime:
        asked.append(key)
        return truth[key]

    timers: Timers[str] = Timers(due_at)
    for key, instant in truth.items():
        timers.not_before(key, instant)
    truth |= {key: instant + timedelta(hours=1) for key, instant in truth.items() if key != "k5"}
    assert timers.first() == (at(5), "k5")
    assert asked == ["k0", "k1", "k2", "k3", "k4", "k5"]


def test_timers_keep_no_more_than_twice_what_is_open():
    truth: dict[str, datetime] = {}
    timers: Timers[str] = Timers(truth.get)
    for number in range(10_000):
        truth[f"k{number}"] = at(10_000 - number)
        timers.not_before(f"k{number}", truth[f"k{number}"])
        if number >= 10:
            timers.drop(f"k{number - 10}")
            del truth[f"k{number - 10}"]
        assert len(timers._line) + len(timers._heap) <= 2 * 11 + 64 + 1
    assert len(timers) == 10


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 3), st.sampled_from([("a",), ("a", "b"), ("b", "c")]))))
def test_pools_find_the_workers_that_have_a_task_the_freest_first(steps):
    able: list[str] = []
    pools = Pools(able.append)
    model: dict[int, tuple[tuple[str, ...], tuple[int, str]]] = {}
    for number, free, tasks in steps:
        if number in model:
            pools.remove(*model.pop(number))
        if free:
            model[number] = (tasks, (-free, f"w{number}"))
            before = {task for task in "abc" if pools.is_able(task)}
            pools.add(*model[number])
            assert set(able) == set(tasks) - before
            able.clear()
        for task in "abc":
            expected = sorted(offer for tasks, offer in model.values() if task in tasks)
            assert sorted(offer for _, pool in pools.of(task) for offer in pool) == expected
            assert pools.is_able(task) is bool(expected)
