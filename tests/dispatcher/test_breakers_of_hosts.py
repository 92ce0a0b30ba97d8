"""A host that does not answer is held for all jobs that call it."""

from dataclasses import replace

import pytest

from dispatcher import breakers
from schemas.facts import (
    AttemptFinished,
    AttemptOutcome,
    RunDeferred,
)
from schemas.internal import HandOut
from tests.dispatcher.breaking import POLICY, SECOND, caller, fail, handed, to_host, told
from tests.dispatcher.harness import (
    Bench,
    of,
    run,
    succeeded,
)


@pytest.mark.parametrize("type_", ["http:503", "http:429", "http:timeout", "http:unreachable", "http:broken"])
def test_a_host_that_is_not_well_holds_all_jobs_that_call_it_and_no_others(type_):
    bench = Bench()
    worker = caller(bench)
    facts = fail(bench, worker, [to_host(number) for number in range(3)], type_)
    assert [name for name, *_ in told(facts)] == ["host:api.example.com"]
    assert handed(bench.give(to_host(4, "https://API.example.com/other"))) == []
    assert handed(bench.give(to_host(5, "https://api.example.com:8443/hook"))) == ["nightly.5"]
    assert handed(bench.give(to_host(6, "https://elsewhere.example.com/"))) == ["nightly.6"]


@pytest.mark.parametrize("type_", ["http:404", "http:busy", "http:refused", "ValueError"])
def test_a_host_that_refuses_a_request_or_was_not_asked_is_not_held(type_):
    bench = Bench()
    assert told(fail(bench, caller(bench), [to_host(number) for number in range(9)], type_)) == []


def test_a_run_behind_its_jobs_breaker_is_still_held_by_its_host_when_that_one_closes():
    bench = Bench()
    worker = caller(bench)
    given = replace(to_host(0).job, name="send", breaker=replace(POLICY, wait=10 * SECOND))
    runs = [run(number, job=given) for number in range(3)]
    facts = fail(bench, worker, runs, "http:503")
    assert [name for name, *_ in told(facts)] == ["job:send", "host:api.example.com"]
    bench.give(run(7, job=given))
    worker.report(slots=9)
    facts = bench.at(10)
    assert told(facts) == [("job:send", "half_open", "waited", 10.0)]
    assert [(each.run_id, each.breaker) for each in of(facts, RunDeferred)] == [("nightly.7", "host:api.example.com")]
    bench.at(20)
    worker.report(slots=9)
    (probe,) = of(bench.at(30), HandOut)
    facts = worker.report(slots=9, started=[probe], finished=[succeeded(probe)])
    assert [(name, state) for name, state, _, _ in told(facts)] == [
        ("host:api.example.com", "closed"), ("job:send", "closed"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://api.example.com/x", "host:api.example.com"),
        ("http://API.Example.com:80/", "host:api.example.com:80"),
        ("https://[::1]:9/", "host:::1:9"),
        ("https://api.example.com:port/", ""),
        ("nonsense", ""),
        ("https:///x", ""),
    ],
)
def test_a_hosts_breaker_is_named_by_host_and_port(url, name):
    assert breakers.host_of(to_host(1, url)) == name


def test_what_is_counted_of_a_host_that_hangs_is_the_attempt_that_took_too_long():
    bench = Bench()
    worker = caller(bench)
    given = replace(to_host(0).job, timeout=20 * SECOND, lease=60 * SECOND)
    for number in range(3):
        bench.take(run(number, job=given))
    mine = of(worker.report(slots=3), HandOut)
    worker.report(slots=0, started=mine, held=mine)
    facts = bench.at(20)
    assert {each.outcome for each in of(facts, AttemptFinished)} == {AttemptOutcome.TIMED_OUT}
    assert [name for name, *_ in told(facts)] == ["host:api.example.com"]
