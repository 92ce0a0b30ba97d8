"""Runs whose job or host fails, and what became of their breakers."""

from datetime import timedelta
from typing import Any

from schemas.facts import (
    BreakerChanged,
    BreakerPolicy,
    RunCreated,
)
from schemas.internal import HandOut
from tests.dispatcher.catalog import Catalog
from tests.dispatcher.harness import (
    T0,
    Bench,
    WorkerSim,
    failed,
    job,
    of,
    retry,
    run,
)

SECOND = timedelta(seconds=1)
POLICY = BreakerPolicy(
    failures=3, percent=50, window=timedelta(minutes=1), wait=timedelta(seconds=30), probes=1
)  # fmt: skip


def of_job(number: int, name: str = "send", *, policy: BreakerPolicy = POLICY, **given: Any) -> RunCreated:
    """A run of a registered job that is tried once."""
    return run(number, job=job(name=name, breaker=policy, retry=retry(max_attempts=1)), **given)


def to_host(number: int, url: str = "https://api.example.com/hook", **given: Any) -> RunCreated:
    """A run that calls a host, of a job whose own breaker never opens."""
    target = {"type": "http", "url": url, "method": "POST"}
    return run(number, job=job(name=f"call-{number}", target=target, retry=retry(max_attempts=1)), **given)


def told(facts: Any) -> list[tuple[str, str, str, float]]:
    """What changed: breaker, state, reason, at."""
    changes = of(facts, BreakerChanged)
    return [(each.breaker, each.state, each.reason, (each.changed_at - T0).total_seconds()) for each in changes]


def handed(facts: Any) -> list[str]:
    return [each.run.run_id for each in of(facts, HandOut)]


def fail(bench: Bench, worker: WorkerSim, runs: list[RunCreated], type_: str = "ValueError") -> list[Any]:
    """The runs are handed out and fail, all in one report."""
    for each in runs:
        bench.take(each)
    mine = of(worker.report(slots=len(runs)), HandOut)
    return worker.report(slots=9, started=mine, finished=[failed(item, type_) for item in mine])


# --- probing ------------------------------------------------------------------------------------------------------


def opened(bench: Bench, worker: WorkerSim, waiting: int = 3, policy: BreakerPolicy = POLICY) -> None:
    """It has opened, and so many wait behind it."""
    fail(bench, worker, [of_job(number, policy=policy) for number in range(policy.failures)])
    for number in range(100, 100 + waiting):
        bench.give(of_job(number, policy=policy))


# --- hosts --------------------------------------------------------------------------------------------------------


AT_THREE = {"quota": {"queues": {"*": {"breaker": {
    "failures": 3, "share": "50%", "window": "PT1M", "wait": "PT30S", "probes": 1,
}}}}}  # fmt: skip


def caller(bench: Bench) -> WorkerSim:
    Catalog(bench).put("tenant", "acme", AT_THREE)
    return WorkerSim(bench, tasks=("http:",))
