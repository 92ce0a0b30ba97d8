"""Tenants of one lane share its hand-outs by their weights, and lanes share a queue; nobody starves."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from dispatcher.shares import AHEAD_MAX, COST, Share, Standing
from schemas.facts import RunCreated
from schemas.internal import HandOut, LimitsAdopted, QueueLimits
from tests.dispatcher.harness import T0, Bench, WorkerSim, job, run, succeeded

SECOND = timedelta(seconds=1)


def weighted(bench: Bench, weights: Mapping[str, int]) -> None:
    """The queue's definition gives its tenants these weights."""
    bench.happened(
        LimitsAdopted(queue=bench.queue, shard=0, offset=0, adopted_at=T0, limits=QueueLimits(weights=weights))
    )


def of_tenant(tenant: str, number: int, priority: str = "normal") -> RunCreated:
    return run(number, tenant=tenant, job=job(priority=priority))


def served(bench: Bench) -> list[str]:
    """The tenants of all hand-outs, in order."""
    return [item.run.tenant for item in bench.all(HandOut)]


def test_a_tenant_with_a_thousand_runs_does_not_delay_one_with_a_single_run():
    bench = Bench()
    for number in range(1000):
        bench.take(of_tenant("acme", number))
    bench.take(of_tenant("umbrella", 5000))
    WorkerSim(bench).report(slots=2)
    assert served(bench) == ["acme", "umbrella"]


def test_where_weights_are_equal_tenants_take_turns():
    bench = Bench()
    for number in range(9):
        for tenant in ("acme", "globex", "umbrella"):
            bench.take(of_tenant(tenant, number))
    WorkerSim(bench).report(slots=9)
    assert served(bench) == ["acme", "globex", "umbrella"] * 3


def test_weights_are_shares():
    """Three to one, and one to one for who is not named."""
    bench = Bench()
    weighted(bench, {"acme": 3})
    for number in range(100):
        for tenant in ("acme", "globex", "umbrella"):
            bench.take(of_tenant(tenant, number))
    WorkerSim(bench).report(slots=100)
    assert Counter(served(bench)) == {"acme": 60, "globex": 20, "umbrella": 20}


def test_where_nobody_competes_the_oldest_run_goes_first():
    bench = Bench()
    worker = WorkerSim(bench)
    for second in range(6):
        bench.at(second)
        bench.give(run(second, at=bench.now, tenant=("acme", "umbrella", "acme")[second % 3]))
    worker.report(slots=1)
    facts = worker.inbox_records()
    while len(facts) < 6:
        worker.report(slots=1, started=facts[-1:], finished=[succeeded(facts[-1])])
        facts = worker.inbox_records()
    assert [item.run.run_id for item in facts[:2]] == ["nightly.0", "nightly.1"]


def test_who_was_away_saves_nothing_up():
    """Umbrella has nothing for a hundred hand-outs; then it has every second one, and not a hundred in a row."""
    bench = Bench()
    worker = WorkerSim(bench)
    for number in range(300):
        bench.take(of_tenant("acme", number))
    worker.report(slots=100)
    for number in range(50):
        bench.take(of_tenant("umbrella", 1000 + number))
    worker.report(slots=20, held=worker.inbox_records())
    assert Counter(served(bench)[100:]) == {"acme": 10, "umbrella": 10}


def test_a_tenant_whose_task_nobody_has_is_passed_over_and_saves_nothing_up():
    bench = Bench()
    other = {"type": "task", "name": "other"}
    for number in range(40):
        bench.take(run(number, tenant="umbrella", job=job(target=other)))
        bench.take(of_tenant("acme", number))
    worker = WorkerSim(bench)
    worker.report(slots=10)
    assert served(bench) == ["acme"] * 10
    able = WorkerSim(bench, "w2", tasks=["other", *worker.tasks])
    able.report(slots=10)
    # One in advance, and one because of two that stand alike the older run goes first; not ten.
    assert served(bench)[10:] == ["umbrella", "umbrella", "acme"] + ["umbrella", "acme"] * 3 + ["umbrella"]


def test_shares_are_kept_when_another_owner_goes_on():
    bench = Bench()
    for number in range(20):
        for tenant in ("acme", "globex", "umbrella"):
            bench.take(of_tenant(tenant, number))
    worker = WorkerSim(bench)
    worker.report(slots=1)
    for _ in range(8):
        bench.take_over()
        bench.later(0)
        worker.report(slots=1, held=worker.inbox_records())
    assert served(bench) == ["acme", "globex", "umbrella"] * 3


def test_a_lane_in_which_nobody_waits_is_remembered_by_nothing():
    bench = Bench()
    bench.take(of_tenant("acme", 1))
    bench.take(of_tenant("umbrella", 2))
    worker = WorkerSim(bench)
    worker.report(slots=1)
    bench.save()
    assert [row for row in bench.rows.rows if row.startswith(b"f/")] == [b"f/normal"]
    worker.report(slots=1, held=worker.inbox_records())
    bench.save()
    assert [row for row in bench.rows.rows if row.startswith(b"f/")] == []


def test_no_lane_starves_whatever_the_others_have_and_each_has_its_share():
    """Of sixteen hand-outs in a row eleven are critical's, four normal's and one bulk's, however many tenants."""
    bench = Bench()
    for number in range(48):
        for priority in ("bulk", "normal", "critical"):
            for tenant in ("acme", "umbrella"):
                bench.take(run(number, tenant=tenant, schedule=priority, run_id=f"{priority}.{number}",
                               job=job(priority=priority)))  # fmt: skip
    WorkerSim(bench).report(slots=48)
    lanes = [item.run.job.priority for item in bench.all(HandOut)]
    for start in range(32):
        assert Counter(lanes[start : start + 16]) == {"critical": 11, "normal": 4, "bulk": 1}


tenants = st.sampled_from(["a", "b", "c", "d"])


@given(
    weights=st.dictionaries(tenants, st.integers(1, 7)),
    arrivals=st.lists(st.tuples(tenants, st.integers(1, 30)), min_size=1, max_size=12),
    slots=st.lists(st.integers(1, 40), min_size=1, max_size=12),
)
@settings(max_examples=60)
def test_over_any_busy_stretch_shares_are_the_weights_but_for_one_hand_out_each(weights, arrivals, slots):
    """Cut as it may be into steps and takeovers, and whoever comes when: for every two who both had runs waiting."""
    bench = Bench()
    weighted(bench, weights)
    worker = WorkerSim(bench)
    number = 0
    waiting: Counter[str] = Counter()
    busy: list[tuple[str, frozenset[str]]] = []  # who was served, and who had runs waiting then
    for turn in range(max(len(arrivals), len(slots))):
        tenant, count = arrivals[turn % len(arrivals)]
        for _ in range(count if turn < len(arrivals) else 0):
            number += 1
            waiting[tenant] += 1
            bench.take(of_tenant(tenant, number))
        before = len(bench.all(HandOut))
        worker.report(slots=slots[turn % len(slots)], held=worker.inbox_records())
        for served_tenant in served(bench)[before:]:
            busy.append((served_tenant, frozenset(name for name, left in waiting.items() if left)))
            waiting[served_tenant] -= 1
        if turn % 3 == 2:
            bench.take_over()
            bench.later(0)
    for one, other in ((one, other) for one in "abcd" for other in "abcd" if one < other):
        for stretch in stretches(busy, one, other):
            assert_fair(stretch, one, other, weights.get(one, 1), weights.get(other, 1))


def stretches(busy: Sequence[tuple[str, frozenset[str]]], one: str, other: str) -> Iterator[list[str]]:
    """The hand-outs of each stretch in which both always had runs waiting."""
    stretch: list[str] = []
    for tenant, had in (*busy, ("", frozenset())):
        if one in had and other in had:
            stretch.append(tenant)
        elif stretch:
            yield stretch
            stretch = []


def assert_fair(stretch: Sequence[str], one: str, other: str, weight: int, other_weight: int) -> None:
    for start in range(len(stretch)):
        given_ = Counter[str]()
        for tenant in stretch[start:]:
            given_[tenant] += 1
            difference = abs(given_[one] / weight - given_[other] / other_weight)
            assert difference <= 1 / weight + 1 / other_weight + 1e-6


def test_a_lane_remembers_so_many_tenants_and_forgives_who_is_next():
    share = Share(Standing())
    for number in range(AHEAD_MAX + 1):
        share.serve(f"t{number}", 1 + number % 2)
    assert len(share.ahead) == AHEAD_MAX
    assert sorted(set(share.ahead.values())) == [COST // 2, COST]
    assert share.standing() == Share(share.standing()).standing()
