"""What `/metrics` says of a line that works: each test drives both roles and reads the figures that come of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from runtime.logs.simulated import SimulatedLog
from runtime.telemetry import OTHER, Bounded, Metric, Telemetry
from schemas import topics
from simulation.clock import ManualClock
from simulation.line import Line, fail

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
TASK = {"type": "task", "name": "work"}


@pytest.fixture
def line() -> Line:
    """One partition of each role, at noon."""
    clock = ManualClock(NOON)
    return Line(SimulatedLog(1, clock), clock, layout=topics.Layout(schedule=1, shard=1))


def put(line: Line, name: str = "minutely", *, tenant: str = "acme", cron: str = "* * * * *", **more: Any) -> None:
    job = {"queue": "default", "target": TASK, **more.pop("job", {})}
    trigger = {"cron": cron, **more.pop("trigger", {})}
    definition = {"trigger": trigger, "job": job, **more}
    line.command("schedule.put", {"tenant": tenant, "name": name, "definition": definition})
    line.settle()


def figures(line: Line, name: str) -> dict[str, float]:
    """The series of a metric as they are scraped: labels as they are written, without role and partition."""
    found = {}
    for row in generate_latest(line.telemetry.registry).decode().splitlines():
        series, _, value = row.rpartition(" ")
        if series.partition("{")[0] == f"tidewheel_{name}":
            labels = series.partition("{")[2].rstrip("}").split(",")
            found[",".join(label for label in labels if label[:4] not in {"role", "part"})] = float(value)
    return found


def test_runs_are_counted_by_tenant_and_cause_and_so_are_their_outcomes(line):
    put(line)
    line.worker()
    line.advance(timedelta(minutes=3))
    assert figures(line, "runs_created_total") == {'cause="schedule",tenant="acme"': 3}
    assert figures(line, "runs_finished_total") == {'outcome="succeeded",tenant="acme"': 3}
    assert figures(line, "attempts_finished_total") == {'outcome="succeeded",queue="default"': 3}


def test_the_scheduling_delay_is_from_when_an_occurrence_was_due(line):
    """The clock moves by seven seconds: of 12:01, 12:02 and 12:03 the first looks come 3, 6 and 2 seconds late."""
    put(line, overlap={"policy": "allow_all"})
    line.advance(timedelta(seconds=182), step=timedelta(seconds=7))
    assert figures(line, "scheduling_delay_seconds_count") == {"": 3}
    assert figures(line, "scheduling_delay_seconds_sum") == {"": 3 + 6 + 2}


def test_a_run_that_waited_for_another_one_to_end_is_no_delay_of_the_scheduler(line):
    """Due at 12:02 while the run of 12:01 is at work until 12:02:30."""
    put(line, overlap={"policy": "buffer_one"})
    line.worker(lambda handout: None)
    line.advance(timedelta(minutes=2))
    assert figures(line, "occurrences_deferred_total") == {'reason="buffered",tenant="acme"': 1}
    (worker,) = line.workers
    worker.task = fail
    line.advance(timedelta(seconds=30))
    assert figures(line, "scheduling_delay_seconds_count") == {"": 1}


def test_skipped_occurrences_are_counted_one_by_one_also_where_they_are_one_record(line):
    put(line, "quick", cron="* * * * * *", trigger={"exclude": {"cron": ["* 1 12 * * *"]}})
    line.advance(timedelta(minutes=3))
    assert figures(line, "occurrences_skipped_total")['reason="excluded",tenant="acme"'] == 60


def test_what_waits_and_what_runs_is_told_by_queue_and_tenant(line):
    put(line, "a", tenant="acme", overlap={"policy": "allow_all"})
    put(line, "b", tenant="beta", overlap={"policy": "allow_all"})
    line.advance(timedelta(minutes=3, seconds=10))
    assert figures(line, "runs_queued") == {'queue="default",tenant="acme"': 3, 'queue="default",tenant="beta"': 3}
    assert figures(line, "runs_running") == {}
    assert figures(line, "workers") == {'queue="default"': 0}
    assert figures(line, "queue_head_wait_seconds") == {'queue="default"': pytest.approx(130, abs=5)}


def test_runs_with_a_worker_are_running_and_its_slots_are_taken(line):
    put(line, overlap={"policy": "allow_all"})
    line.worker(lambda handout: None, slots=2)
    line.advance(timedelta(minutes=3, seconds=10))
    assert figures(line, "runs_running") == {'queue="default",tenant="acme"': 2}
    assert figures(line, "runs_queued") == {'queue="default",tenant="acme"': 1}
    assert figures(line, "workers") == {'queue="default"': 1}
    assert figures(line, "worker_slots_free") == {'queue="default"': 0}


def test_what_is_over_is_zero_and_not_what_it_was(line):
    put(line)
    line.advance(timedelta(minutes=1, seconds=10))
    assert figures(line, "runs_queued") == {'queue="default",tenant="acme"': 1}
    line.worker()
    line.advance(timedelta(seconds=20))
    assert figures(line, "runs_queued") == {'queue="default",tenant="acme"': 0}
    assert figures(line, "queue_head_wait_seconds") == {'queue="default"': 0}


def test_a_new_owner_tells_of_what_its_predecessor_left_waiting(line):
    put(line, overlap={"policy": "allow_all"})
    line.advance(timedelta(minutes=2, seconds=10))
    for processor in line.processors:
        processor.close()
    assert figures(line, "runs_queued") == {}
    line.stores.clear()
    line.start()
    line.settle()
    assert figures(line, "runs_queued") == {'queue="default",tenant="acme"': 2}


def test_a_run_is_handed_out_so_long_after_it_was_due(line):
    put(line, job={"priority": "critical"})
    line.advance(timedelta(seconds=100))
    line.worker()
    line.settle()
    assert figures(line, "run_wait_seconds_count") == {'lane="critical",queue="default"': 1}
    assert figures(line, "run_wait_seconds_sum") == {'lane="critical",queue="default"': 40}
    assert figures(line, "start_seconds_count") == {'queue="default"': 1}


def test_retries_and_their_budget(line):
    put(line, job={"retry": {"max_attempts": 4, "initial": "PT1S", "factor": 1, "jitter": "none"}})
    line.worker(fail)
    line.advance(timedelta(seconds=75))
    assert figures(line, "retries_scheduled_total") == {'queue="default"': 3}
    assert figures(line, "retry_budget_used_ratio") == {'queue="default"': 0.3}
    assert figures(line, "attempts_finished_total") == {'outcome="failed",queue="default"': 4}
    assert figures(line, "runs_finished_total") == {'outcome="dead_lettered",tenant="acme"': 1}


def test_a_silent_worker_is_counted_as_a_lease_that_ran_out(line):
    put(line)
    line.worker(lambda handout: None)
    line.advance(timedelta(seconds=65))
    line.workers.clear()
    line.advance(timedelta(seconds=60))
    assert figures(line, "attempts_finished_total") == {'outcome="lease_expired",queue="default"': 1}
    assert figures(line, "workers") == {'queue="default"': 0}


def test_a_run_that_nobody_can_take_is_deferred_and_why(line):
    put(line)
    line.advance(timedelta(seconds=80))
    assert figures(line, "runs_deferred_total") == {'queue="default",reason="no_worker"': 1}


def test_a_refused_command_is_counted_by_its_reason(line):
    line.command("schedule.pause", {"tenant": "acme", "name": "nobody"})
    line.settle()
    assert sum(figures(line, "commands_rejected_total").values()) == 1


def test_a_paused_queue_says_so(line):
    line.command(
        "queue.put", {"tenant": "_", "name": "default", "definition": {"paused": {"note": "the database moves"}}}
    )
    put(line)
    line.worker()
    line.advance(timedelta(seconds=80))
    assert figures(line, "queue_paused") == {'queue="default"': 1}
    assert figures(line, "runs_queued") == {'queue="default",tenant="acme"': 1}


def test_an_owner_says_up_to_where_it_has_decided_everything(line):
    put(line)
    line.advance(timedelta(minutes=1))
    told = {
        row.labels["role"]: row.value for row in samples(line.telemetry.registry, "decided_until_timestamp_seconds")
    }
    assert told["scheduler"] == datetime(2026, 3, 2, 12, 1, tzinfo=UTC).timestamp()


def test_what_an_outage_left_is_no_delay_and_the_turns_of_what_is_caught_up_are_counted(line):
    """Ten minutes during which nobody looks; the last one is late only."""
    put(line, catch_up={"policy": "all", "rate": "1/m"}, overlap={"policy": "allow_all"})
    line.clock.advance(timedelta(minutes=10))
    line.settle()
    assert figures(line, "recovering") == {"": 0}
    assert figures(line, "occurrences_deferred_total") == {'reason="paced",tenant="acme"': 7}
    assert figures(line, "runs_created_total") == {
        'cause="catch_up",tenant="acme"': 1, 'cause="schedule",tenant="acme"': 2,
    }  # fmt: skip
    assert figures(line, "scheduling_delay_seconds_sum") == {"": 60}


def left(line: Line) -> dict[str, float]:
    return figures(line, "catch_up_occurrences_left")


def test_what_is_still_to_be_caught_up_is_counted_and_becomes_less_with_each_turn(line):
    """Seven of ten minutes wait for turns, one a minute; a pause drops those whose turn has not come."""
    put(line, catch_up={"policy": "all", "rate": "1/m"}, overlap={"policy": "allow_all"})
    assert left(line) == {'reason="paced"': 0, 'reason="frozen"': 0}
    line.clock.advance(timedelta(minutes=10))
    line.settle()
    assert left(line) == {'reason="paced"': 7, 'reason="frozen"': 0}
    line.advance(timedelta(minutes=3))
    assert left(line) == {'reason="paced"': 4, 'reason="frozen"': 0}
    line.command("schedule.pause", {"tenant": "acme", "name": "minutely"})
    line.advance(timedelta(seconds=10))
    assert left(line) == {'reason="paced"': 0, 'reason="frozen"': 0}


def test_a_new_owner_counts_what_its_predecessor_had_not_caught_up(line):
    put(line, catch_up={"policy": "all", "rate": "1/m"}, overlap={"policy": "allow_all"})
    line.clock.advance(timedelta(minutes=10))
    line.settle()
    for processor in line.processors:
        processor.close()
    assert left(line) == {}
    line.stores.clear()
    line.start()
    line.settle()
    assert left(line) == {'reason="paced"': 7, 'reason="frozen"': 0}


def test_what_a_freeze_holds_is_counted_apart(line):
    window = {"from": "2026-03-02T12:00:30Z", "to": "2026-03-02T12:05:00Z", "action": "defer"}
    line.command("tenant.put", {"tenant": "acme", "name": "_", "definition": {"freezes": [window]}})
    put(line, catch_up={"policy": "all", "rate": "1/s"}, overlap={"policy": "allow_all"})
    line.advance(timedelta(minutes=3, seconds=10))
    assert left(line) == {'reason="paced"': 0, 'reason="frozen"': 3}


def test_names_beyond_the_bound_are_counted_together_and_for_good():
    """A tenant's name may be anybody's invention; a series for each would have no end."""
    bounded = Bounded({"tenant": 2})
    assert [bounded("tenant", name) for name in ("a", "b", "c", "a", "d")] == ["a", "b", OTHER, "a", OTHER]


def test_labels_whose_values_are_ours_are_not_bounded():
    assert Bounded({"tenant": 0})("outcome", "succeeded") == "succeeded"


def test_a_hundred_and_one_tenants_are_a_hundred_series_and_the_others():
    telemetry = Telemetry(CollectorRegistry())
    for number in range(103):
        labels = {"tenant": telemetry.bounded("tenant", f"t-{number}"), "cause": "schedule"}
        telemetry.count(Metric.RUNS_CREATED, labels)
    rows = samples(telemetry.registry, "runs_created_total")
    assert len(rows) == 101
    assert [row.value for row in rows if row.labels["tenant"] == OTHER] == [3]


def samples(registry: CollectorRegistry, name: str) -> list[Any]:
    found = [sample for family in registry.collect() for sample in family.samples]
    return [sample for sample in found if sample.name == f"tidewheel_{name}"]
