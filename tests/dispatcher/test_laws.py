"""Laws: whatever is reported, in whatever order, late, twice or forged, nothing is lost and nothing counts twice."""

from collections import Counter
from dataclasses import replace
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from dispatcher.breakers import DEFAULT
from runtime.machine import Wakeup
from schemas.facts import (
    AttemptFinished,
    AttemptStarted,
    BreakerChanged,
    BreakerReason,
    BreakerState,
    Concurrency,
    Outcome,
    RunCreated,
    RunFinished,
)
from schemas.internal import (
    BreakerResetRequested,
    CommandAnswered,
    FinishedLease,
    HandOut,
    LimitsAdopted,
    QueueLimits,
    TenantLimits,
    WorkerReport,
)
from tests.dispatcher.harness import T0, Bench, WorkerSim, cancel, inquiry, job, of, retry, run, succeeded

RUNS = 6
WORKERS = ("a", "b")
TENANTS = ("acme", "umbrella")
OUTCOMES = ("succeeded", "succeeded", "failed", "cancelled", "interrupted")

LIMITS = (
    None, QueueLimits(), QueueLimits(weights={"acme": 3}, rate="30/m"), QueueLimits(rate="1/s", paused_at=T0),
    QueueLimits(shards=2),
)  # fmt: skip
TENANT_LIMITS = (
    TenantLimits(), TenantLimits(running=1), TenantLimits(rate="6/m"), TenantLimits(running=2, queued=1, rate="1/s"),
    TenantLimits(paused_at=T0), TenantLimits(running=1, paused_at=T0),
)  # fmt: skip

picks = st.lists(st.integers(0, 50), max_size=3)
actions = st.one_of(
    st.tuples(st.just("create"), st.integers(0, RUNS - 1)),
    st.tuples(st.just("inquire"), st.integers(0, RUNS - 1)),
    st.tuples(st.just("cancel"), st.integers(0, RUNS - 1)),
    st.tuples(st.just("later"), st.sampled_from([0.5, 2.0, 6.0, 16.0, 31.0, 200.0])),
    st.tuples(st.just("unread"), st.sampled_from([0.5, 16.0, 31.0])),
    st.tuples(st.just("honest"), st.sampled_from(WORKERS), st.integers(0, 2)),
    st.tuples(st.just("wild"), st.sampled_from(WORKERS), st.integers(0, 3), picks, picks, picks, st.integers(0, 4)),
    st.tuples(st.just("again"), st.integers(0, 50)),
    st.tuples(st.just("forge"), st.sampled_from(WORKERS), st.integers(0, 50)),
    st.tuples(st.just("limit"), st.sampled_from(LIMITS), st.sampled_from(TENANTS), st.sampled_from(TENANT_LIMITS)),
    st.tuples(st.just("reset"), st.sampled_from(TENANTS)),
    st.tuples(st.just("reborn"), st.sampled_from(WORKERS), st.booleans()),
    st.tuples(
        st.just("save"),
    ),
    st.tuples(
        st.just("take_over"),
    ),
)


class World:
    """A shard, two worker names, and everything that was ever said."""

    def __init__(self) -> None:
        self.bench = Bench()
        self.workers = {name: WorkerSim(self.bench, name) for name in WORKERS}
        self.births = 0
        self.reports: list[WorkerReport] = []
        self.looked_at = 0
        self.live: dict[str, HandOut] = {}
        self.over: dict[str, RunFinished] = {}
        self.last_offset = -1
        self.catalog_offset = -1
        self.limits: dict[str, TenantLimits] = {}
        self.queue = QueueLimits()
        # How each stands, the last hand-out before it came to that, and how many may be tried.
        self.breakers: dict[tuple[str, str], tuple[BreakerState, int, int]] = {}
        self.suspects: set[tuple[str, str]] = set()

    def do(self, action) -> None:
        getattr(self, action[0])(*action[1:])
        self.judge()
        assert self.bench.core.wakeup(self.bench.reloaded()) == self.bench.wakeup()

    # --- what happens ----------------------------------------------------------------------------------------------

    def create(self, number: int) -> None:
        self.bench.give(self.created(number))

    def inquire(self, number: int) -> None:
        self.bench.give(inquiry(self.created(number)))

    def created(self, number: int) -> RunCreated:
        policy = retry(max_attempts=1 + number % 3, never_on=("Never",))
        priority = ("critical", "normal", "bulk")[number % 3]
        limit = Concurrency(key="db", limit=1 + number % 2) if number % 2 else None
        breaker = replace(DEFAULT, failures=1 + number % 2, percent=1, wait=timedelta(seconds=5))
        given = job(
            name=f"job-{number % 2}", retry=policy, timeout=job().lease * 4, priority=priority, concurrency=limit,
            breaker=breaker,
        )  # fmt: skip
        return run(number, tenant=TENANTS[number % 3 == 1], job=given)

    def cancel(self, number: int) -> None:
        self.bench.give(replace(cancel(f"nightly.{number}"), tenant=TENANTS[number % 3 == 1]))

    def limit(self, queue: QueueLimits | None, tenant: str, limits: TenantLimits) -> None:
        self.catalog_offset += 1
        self.limits[tenant] = limits
        self.queue = queue or self.queue
        fact = LimitsAdopted(
            queue=self.bench.queue, shard=0, offset=self.catalog_offset, adopted_at=self.bench.now, limits=queue,
            tenants={tenant: limits},
        )  # fmt: skip
        self.bench.happened(fact)
        self.bench.wake()

    def reset(self, tenant: str) -> None:
        at = self.bench.now
        self.bench.give(BreakerResetRequested(tenant=tenant, queue=self.bench.queue, shard=0, requested_at=at))

    def later(self, seconds: float) -> None:
        self.bench.later(seconds)

    def unread(self, seconds: float) -> None:
        self.bench.later(seconds, read=False)

    def honest(self, name: str, slots: int) -> None:
        """A worker that holds what it was given, has begun it, and finishes the first of it."""
        worker = self.workers[name]
        mine = [item for item in self.live.values() if item.incarnation == worker.incarnation]
        self.say(worker.said(slots=slots, held=mine[1:], started=mine, finished=[succeeded(i) for i in mine[:1]]))

    def wild(self, name: str, slots: int, held, started, finished, outcome: int) -> None:
        """A worker that says anything of any hand-out that ever was, its own or another's."""
        worker = self.workers[name]
        known = self.bench.all(HandOut)
        words = [FinishedLease(lease=item.lease, outcome=OUTCOMES[outcome]) for item in _chosen(known, finished)]
        report = worker.said(
            slots=slots, held=_chosen(known, held), started=_chosen(known, started), finished=words,
            draining=slots == 3,
        )  # fmt: skip
        self.say(report)

    def again(self, index: int) -> None:
        """A record is delivered once more, long after others."""
        if self.reports:
            self.bench.give(self.reports[index % len(self.reports)])

    def forge(self, name: str, index: int) -> None:
        known = self.bench.all(HandOut)
        if known:
            lease = known[index % len(known)].lease[:-4] + "0000"
            words = [FinishedLease(lease=lease, outcome="succeeded", result="forged")]
            report = self.workers[name].said(slots=0, finished=words)
            self.say(replace(report, started=(lease,), held=(lease,)))

    def reborn(self, name: str, drained: bool) -> None:
        if drained:
            self.say(self.workers[name].said(slots=0, draining=True))
        self.births += 1
        self.workers[name] = WorkerSim(self.bench, name, incarnation=f"{name}-{self.births}")
        self.say(self.workers[name].said(slots=1))

    def save(self) -> None:
        self.bench.save()

    def take_over(self) -> None:
        self.bench.take_over()
        self.bench.later(0)

    def say(self, report: WorkerReport) -> None:
        self.reports.append(report)
        self.bench.give(report)

    # --- what must hold ---------------------------------------------------------------------------------------------

    def judge(self) -> None:
        fresh = self.bench.facts[self.looked_at :]
        self.looked_at = len(self.bench.facts)
        for fact in fresh:
            self.judge_fact(fact)
        open_runs = self.bench.state.runs.values()
        assert set(self.live) == {entry.run_id for entry in open_runs if entry.is_leased}
        created = {fact.run_id for fact in self.bench.all(RunCreated)}
        assert created <= self.over.keys() | {entry.run_id for entry in open_runs}, "a run is lost"
        assert self.over.keys().isdisjoint(entry.run_id for entry in open_runs)

    def judge_fact(self, fact) -> None:
        run_id = fact.run.run_id if isinstance(fact, HandOut) else getattr(fact, "run_id", "")
        if isinstance(fact, HandOut):
            assert run_id not in self.live, "two live leases of one run (I6)"
            assert fact.offset > self.last_offset, "an offset went back"
            self.last_offset = fact.offset
            self.live[run_id] = fact
            self.judge_limits(fact)
            self.judge_breaker(fact)
        if isinstance(fact, BreakerChanged):
            state, before, probes = self.breakers.get((fact.tenant, fact.breaker), (BreakerState.CLOSED, -1, 0))
            again = state is fact.state is BreakerState.HALF_OPEN
            stands = (fact.state, before, probes + 1) if again else (fact.state, self.last_offset, 1)
            self.breakers[fact.tenant, fact.breaker] = stands
            if fact.reason is BreakerReason.LOSSES:
                self.suspects.add((fact.tenant, fact.breaker))
            if fact.state is BreakerState.CLOSED:
                self.suspects.discard((fact.tenant, fact.breaker))
            if (fact.tenant, fact.breaker) in self.suspects:
                assert not again, "another one of a suspect is let go while one is out"
        if isinstance(fact, AttemptFinished):
            assert fact.handout == self.live.pop(run_id).offset
        if isinstance(fact, AttemptStarted):
            assert fact.handout == self.live[run_id].offset
        if isinstance(fact, RunFinished) and not fact.repeat:
            assert run_id not in self.over, "two terminal outcomes (I7)"
            assert run_id not in self.live
            self.over[run_id] = fact
            assert fact.result != "forged"
        if isinstance(fact, HandOut | AttemptStarted):
            assert run_id not in self.over, "a terminal run came back (I7)"

    def judge_limits(self, fact: HandOut) -> None:
        """By what is live, counted anew: no quota and no key has more than it may."""
        mine = [item.run for item in self.live.values() if item.run.tenant == fact.run.tenant]
        running = self.limits.get(fact.run.tenant, TenantLimits()).running
        assert running is None or len(mine) <= running, "a quota is exceeded"
        assert self.queue.paused_at is None, "the queue is paused"
        assert self.limits.get(fact.run.tenant, TenantLimits()).paused_at is None, "the tenant is paused"
        if fact.run.job.concurrency is not None:
            limits = [item.job.concurrency for item in mine if item.job.concurrency is not None]
            assert len(limits) <= min(item.limit for item in limits), "a concurrency key is exceeded"

    def judge_breaker(self, fact: HandOut) -> None:
        """By what is live, counted anew: nothing of an open breaker goes, of a half-open one as many as it was let."""
        tenant, name = fact.run.tenant, fact.run.job.name
        state, before, probes = self.breakers.get((tenant, f"job:{name}"), (BreakerState.CLOSED, -1, 0))
        assert state is not BreakerState.OPEN, "its breaker is open"
        tried = [item for item in self.live.values() if (item.run.tenant, item.run.job.name) == (tenant, name)]
        assert state is BreakerState.CLOSED or sum(item.offset > before for item in tried) <= probes, "a probe too many"

    def judge_all(self) -> None:
        facts = self.bench.facts
        begun = Counter(fact.handout for fact in of(facts, AttemptStarted))
        assert set(begun.values()) <= {1}
        running = sum(
            entry.attempt_started_at is not None for entry in self.bench.state.runs.values() if entry.is_leased
        )
        ended = [fact for fact in of(facts, AttemptFinished) if fact.started_at is not None]
        assert len(begun) - len(ended) == running
        for answer in of(facts, CommandAnswered):
            if answer.body["state"] == "cancelled_before_dispatch":
                assert answer.body["run_id"] not in {fact.run.run_id for fact in of(facts, HandOut)}, "I14"
        self.bench.save()
        refolded = self.bench.refolded()
        assert refolded.rows == self.bench.rows.rows, "state is not the fold of its facts (I4)"

    def drain(self) -> None:
        """Faults are over, pauses too: good workers finish everything."""
        for tenant in TENANTS:
            self.limit(replace(self.queue, paused_at=None), tenant, self.limits.get(tenant, TenantLimits()))
            self.limit(None, tenant, replace(self.limits[tenant], paused_at=None))
        self.bench.later(0)
        for turn in range(400):
            if not self.bench.state.runs:
                return
            for name in WORKERS:
                self.honest(name, 3)
                self.judge()
            self.bench.later(5.0 if turn % 2 else 0.5)
            self.judge()
        raise AssertionError(f"never done: {self.bench.state.runs}")


def _chosen(known: list[HandOut], indexes) -> list[HandOut]:
    return [known[index % len(known)] for index in indexes] if known else []


@given(st.lists(actions, max_size=40))
@settings(max_examples=60)
def test_no_report_whatever_gives_two_outcomes_or_two_leases_or_loses_a_run(story):
    world = World()
    for action in story:
        world.do(action)
    world.judge_all()
    world.drain()
    world.judge_all()
    assert world.bench.state.leases == {}
    assert {fact.outcome for fact in world.over.values()} <= set(Outcome)


@given(st.lists(actions, max_size=25), st.lists(st.booleans(), min_size=25, max_size=25))
@settings(max_examples=30)
def test_how_batches_were_cut_makes_no_difference_to_what_is_stored(story, saves):
    world = World()
    for action, cut in zip(story, saves, strict=False):
        world.do(action)
        if cut:
            world.bench.save()
    world.bench.save()
    assert world.bench.refolded().rows == world.bench.rows.rows


def test_a_shard_without_anything_wants_nothing():
    assert Bench().wakeup() == Wakeup()
