"""Two tenants of one queue may call schedules alike: their runs have one id, and have nothing else in common."""

from dataclasses import replace

from schemas.facts import Outcome, RunCreated, RunFinished
from schemas.internal import CommandAnswered, HandOut
from tests.dispatcher.harness import Bench, WorkerSim, cancel, failed, inquiry, of, only, run, succeeded


def theirs(number: int = 1, **given):
    return run(number, tenant="umbrella", **given)


def test_both_runs_are_taken_handed_out_and_finished():
    bench = Bench()
    worker = WorkerSim(bench)
    worker.report(slots=2)
    ours, their = only(bench.give(run()), HandOut), only(bench.give(theirs()), HandOut)
    assert (ours.run.tenant, their.run.tenant) == ("acme", "umbrella")
    refused = replace(failed(their), outcome="failed")
    facts = worker.report(slots=2, started=[ours, their], finished=[succeeded(ours), refused])
    assert [(fact.tenant, fact.outcome) for fact in of(facts, RunFinished)] == [("acme", Outcome.SUCCEEDED)]
    assert [entry.tenant for entry in bench.state.runs.values()] == ["umbrella"]


def test_a_run_is_not_known_because_anothers_has_ended():
    bench = Bench()
    bench.give(run())
    bench.give(cancel())
    assert of(bench.give(theirs()), RunCreated) == [theirs()]


def test_a_cancel_ends_the_run_of_its_own_tenant():
    bench = Bench()
    bench.give(run())
    bench.give(theirs())
    facts = bench.give(replace(cancel(), tenant="umbrella"))
    assert [(fact.tenant, fact.outcome) for fact in of(facts, RunFinished)] == [("umbrella", Outcome.CANCELLED)]
    assert only(facts, CommandAnswered).body["state"] == "cancelled_before_dispatch"
    assert [entry.tenant for entry in bench.state.runs.values()] == ["acme"]


def test_an_inquiry_is_never_answered_with_the_outcome_of_anothers_run():
    bench = Bench()
    bench.give(run())
    bench.give(cancel())
    assert of(bench.give(inquiry(theirs())), RunFinished) == []
    assert [entry.tenant for entry in bench.state.runs.values()] == ["umbrella"]


def test_both_runs_outlive_a_restart():
    bench = Bench()
    bench.give(run())
    bench.give(theirs())
    bench.take_over()
    assert sorted(entry.tenant for entry in bench.state.runs.values()) == ["acme", "umbrella"]
    assert sorted(row for row in bench.rows.rows if row.startswith(b"r/")) == [
        b"r/acme/nightly.1",
        b"r/umbrella/nightly.1",
    ]


def test_a_row_that_an_older_version_named_by_the_id_alone_is_taken_over():
    bench = Bench()
    bench.give(run())
    bench.save()
    bench.rows.rows[b"r/nightly.1"] = bench.rows.rows.pop(b"r/acme/nightly.1")
    bench.take_over()
    bench.give(cancel())
    bench.save()
    assert [row for row in bench.rows.rows if row.startswith(b"r/")] == []
    assert bench.state.runs == {}
