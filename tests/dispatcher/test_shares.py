"""Tenants of one lane share its hand-outs by their weights, and lanes share a queue; nobody starves."""

from collections import Counter
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from dispatcher.shares import AHEAD_MAX, Share, Standing
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
    """Umbrella has nothing while acme uses a hundred slots for a minute; then it has every second one, and not all."""
    bench = Bench()
    worker = WorkerSim(bench)
    for number in range(300):
        bench.take(of_tenant("acme", number))
    worker.report(slots=100)
    mine = worker.inbox_records()
    for second in range(5, 65, 5):
        bench.at(second)
        worker.report(slots=0, held=mine, started=mine)
    worker.report(slots=0, finished=[succeeded(item) for item in mine])
    for number in range(50):
        bench.take(of_tenant("umbrella", 1000 + number))
    worker.report(slots=20)
    assert Counter(served(bench)[100:]) == {"acme": 10, "umbrella": 10}


def test_who_holds_no_slot_is_next_until_he_holds_as_many_as_the_others():
    bench = Bench()
    worker = WorkerSim(bench)
    for number in range(300):
        bench.take(of_tenant("acme", number))
    worker.report(slots=10)
    for number in range(50):
        bench.take(of_tenant("umbrella", 1000 + number))
    worker.report(slots=14, held=worker.inbox_records())
    assert Counter(served(bench)[10:]) == {"acme": 2, "umbrella": 12}


def test_one_whose_runs_hang_holds_its_share_of_the_slots_and_no_more_while_others_wait():
    """Twenty slots, twenty tenants that always have work; the runs of one never end by themselves."""
    bench = Bench()
    worker = WorkerSim(bench)
    names = ["hangs", *(f"t{number}" for number in range(19))]
    for number in range(400):
        for name in names:
            bench.take(of_tenant(name, number))
    held: list[HandOut] = []
    worker.report(slots=20)
    for second in range(1, 60):
        bench.at(second)
        mine = [item for item in worker.inbox_records() if item.offset > (held[-1].offset if held else -1)]
        held = [*(item for item in held if item.run.tenant == "hangs"), *mine]
        hanging = [item for item in held if item.run.tenant == "hangs"]
        assert len(hanging) <= 1
        over = [item for item in held if item.run.tenant != "hangs"]
        worker.report(
            slots=20 - len(hanging), held=hanging, started=held, finished=[succeeded(item) for item in over]
        )  # fmt: skip
    given_ = Counter(served(bench))
    assert given_["hangs"] == 1
    assert {given_[name] for name in names[1:]} <= {57, 58, 59, 60, 61, 62, 63}


def test_where_slots_are_few_what_counts_is_how_long_each_held_them():
    """One slot; acme's runs take nine seconds, umbrella's one: nine of those for each of these."""
    bench = Bench()
    worker = WorkerSim(bench)
    for number in range(100):
        bench.take(of_tenant("acme", number))
        bench.take(of_tenant("umbrella", 1000 + number))
    used = at_work(bench, worker, 1, {"acme": 9.0, "umbrella": 1.0}, until=200)
    assert abs(used["acme"] - used["umbrella"]) <= 10


def test_alone_a_tenant_has_all_there_is_and_owes_nothing_for_it():
    bench = Bench()
    worker = WorkerSim(bench)
    for number in range(30):
        bench.take(of_tenant("acme", number))
    worker.report(slots=30)
    mine = worker.inbox_records()
    assert len(mine) == 30
    for second in range(5, 65, 5):
        bench.at(second)
        worker.report(slots=0, held=mine, started=mine)
    worker.report(slots=0, finished=[succeeded(item) for item in mine])
    for number in range(30, 34):
        bench.take(of_tenant("acme", number))
        bench.take(of_tenant("umbrella", 1000 + number))
    worker.report(slots=4)
    assert served(bench)[30:] == ["acme", "umbrella", "acme", "umbrella"]


def at_work(
    bench: Bench, worker: WorkerSim, slots: int, seconds: Mapping[str, float], *, until: float
) -> dict[str, float]:  # fmt: skip
    """A worker that takes what it is given, for as long as each tenant's runs take; slot seconds of each so far."""
    ends: dict[str, float] = {}
    held: dict[str, HandOut] = {}
    used: dict[str, float] = dict.fromkeys(seconds, 0.0)
    now = 0.0
    report: dict[str, Any] = {}
    while True:
        worker.report(slots=slots - len(held), held=list(held.values()), **report)
        fresh = [item for item in worker.inbox_records() if item.lease not in ends]
        for item in fresh:
            held[item.lease], ends[item.lease] = item, now + seconds[item.run.tenant]
        after = min([now + 5.0, *(ends[lease] for lease in held)])
        if after > until:
            return used
        for item in held.values():
            used[item.run.tenant] += after - now
        now = after
        bench.at(now)
        over = [held.pop(lease) for lease in list(held) if ends[lease] <= now]
        report = {"started": fresh, "finished": [succeeded(item) for item in over]}


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
    assert served(bench)[10:] == ["umbrella"] * 10  # it holds none, and acme ten
    mine = worker.inbox_records()
    worker.report(slots=0, started=mine, finished=[succeeded(item) for item in mine])
    theirs = able.inbox_records()
    able.report(slots=10, started=theirs, finished=[succeeded(item) for item in theirs])
    assert Counter(served(bench)[20:]) == {"acme": 5, "umbrella": 5}


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
@settings(max_examples=20)
def test_nobody_is_given_a_slot_while_one_who_waits_holds_fewer_over_his_weight(weights, arrivals, slots):
    """Cut as it may be into steps and takeovers, and whoever comes when; a tenth of a slot for each hundred given."""
    bench = Bench()
    weighted(bench, weights)
    worker = WorkerSim(bench)
    number = 0
    waiting: Counter[str] = Counter()
    holds: Counter[str] = Counter()
    for turn in range(max(len(arrivals), len(slots))):
        tenant, count = arrivals[turn % len(arrivals)]
        for _ in range(count if turn < len(arrivals) else 0):
            number += 1
            waiting[tenant] += 1
            bench.take(of_tenant(tenant, number))
        before = len(bench.all(HandOut))
        worker.report(slots=slots[turn % len(slots)], held=worker.inbox_records())
        for given_to in served(bench)[before:]:
            mine = holds[given_to] / weights.get(given_to, 1)
            assert all(
                mine <= holds[other] / weights.get(other, 1) + 0.1 * (1 + before // 100)
                for other, left in waiting.items()
                if left
            )
            waiting[given_to] -= 1
            holds[given_to] += 1
        if turn % 3 == 2:
            bench.take_over()
            bench.later(0)


@given(
    weights=st.dictionaries(tenants, st.integers(1, 4)),
    seconds=st.fixed_dictionaries({name: st.sampled_from([1.0, 3.0, 8.0, 20.0]) for name in "abc"}),
    slots=st.integers(1, 5),
)
@settings(max_examples=12, deadline=None)
def test_slot_time_of_tenants_that_always_wait_is_as_their_weights_but_for_a_constant(weights, seconds, slots):
    """However long the runs of each take: 5 s, and those between two charges, for each slot of the one that has less;
    and the last runs of the one that has more."""
    bench = Bench()
    weighted(bench, weights)
    worker = WorkerSim(bench)
    for number in range(900):
        bench.take(of_tenant("abc"[number % 3], number))
    used = at_work(bench, worker, slots, seconds, until=60)
    for one, other in ((one, other) for one in "abc" for other in "abc" if one != other):
        more, less = used[one] / weights.get(one, 1), used[other] / weights.get(other, 1)
        assert more - less <= slots * (10 / weights.get(other, 1) + seconds[one] / weights.get(one, 1))


def test_where_nobody_competes_nobody_else_at_work_is_looked_at():
    """However many tenants have runs with workers: else each hand-out cost as much as there are."""
    asked: list[str] = []

    def weight(tenant: str) -> int:
        asked.append(tenant)
        return 1

    share = Share(Standing(), weight)
    for number in range(1000):
        share.serve(f"tenant-{number}")
    share.begin_anew()
    asked.clear()
    for _ in range(10):
        share.serve("acme")
        share.begin_anew()
    assert set(asked) == {"acme"}


def test_a_lane_remembers_so_many_tenants_and_forgives_who_is_next():
    share = Share(Standing(), lambda tenant: 1 + int(tenant[1:]) % 2)
    for number in range(AHEAD_MAX + 1):
        share.serve(f"t{number}")
        share.charge(f"t{number}", SECOND)
    assert len(share.ahead) == AHEAD_MAX
    assert sorted(set(share.ahead.values())) == [500_500, 1_000_000, 1_001_000]  # t0 was forgiven when it was charged
    assert share.standing() == Share(share.standing(), lambda _: 1).standing()
