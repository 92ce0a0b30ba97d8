"""`jitter`: each occurrence has its own place behind its nominal instant, before the next one, and always the same."""

from datetime import timedelta
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from node.audit import jitter as audited
from scheduler import plan, preview
from schemas import definitions
from schemas.facts import OccurrenceSkipped, RunCreated
from tests.scheduler.harness import Shell, at, definition

WEEK = 604_800
# The places of `acme/s`, written down once: they must never change.
MIDNIGHT, ONE = "00:06:34.418", "01:05:58.769"


def jittered(expression: str = "0 * * * *", jitter: str = "PT10M", **more: Any) -> dict[str, Any]:
    return definition(expression, trigger={"jitter": jitter}, overlap={"policy": "allow_all"}, **more)


def compiled(key: str = "acme/s", **trigger: Any) -> plan.Plan:
    document = {"trigger": {"timezone": "UTC", **trigger}, "job": {"target": {"type": "task", "name": "t"}}}
    model, _ = definitions.read_schedule(document, strict=True)
    return plan.of_schedule(model, key, anchor=0)


def shell_with(body: dict[str, Any]) -> Shell:
    shell = Shell("2023-12-31T23:30:00")
    shell.put(body=body)
    return shell


def test_an_occurrence_is_due_behind_its_nominal_instant_and_its_deadline_counts_from_there():
    shell = shell_with(jittered())
    shell.until("2024-01-01T02:00:00")
    assert shell.created() == [f"00:00@{MIDNIGHT}", f"01:00@{ONE}"]
    assert shell.skipped() == []
    run = shell.all(RunCreated)[0]
    assert run.run_id == "s.20240101T000000Z"
    assert run.due_at == run.created_at == at(f"2024-01-01T{MIDNIGHT}")
    assert run.deadline_at == at(f"2024-01-08T{MIDNIGHT}")


def test_a_process_that_is_started_anew_finds_the_same_place():
    shell = shell_with(jittered())
    shell.until("2024-01-01T00:05:00")
    shell.reload()
    shell.until("2024-01-01T00:30:00")
    assert shell.created() == [f"00:00@{MIDNIGHT}"]


def test_lateness_is_measured_from_there():
    shell = shell_with(jittered(catch_up={"policy": "skip"}))
    shell.sleep_until("2024-01-01T00:07:30")
    shell.until("2024-01-01T00:30:00")
    assert shell.created() == ["00:00@00:07:30"]
    assert shell.skipped() == []


def test_what_was_missed_does_not_take_along_what_still_waits_for_its_jitter():
    shell = shell_with(jittered("*/30 * * * *", "PT29M", catch_up={"policy": "skip"}))
    shell.sleep_until("2024-01-01T01:01:30")  # that of 01:00 is due at 01:00:58.769
    shell.until("2024-01-01T01:29:59")
    assert shell.created() == ["01:00@01:01:30"]
    assert shell.skipped() == ["00:00..00:30 x2 catch_up"]


def test_a_pause_before_it_is_due_skips_it():
    shell = shell_with(jittered())
    shell.until("2024-01-01T00:05:00")
    shell.send("SchedulePause")
    shell.until("2024-01-01T00:30:00")
    assert shell.created() == []
    assert shell.skipped() == ["00:00 paused"]
    assert shell.all(OccurrenceSkipped)[0].detail == "before its jitter was over"


def test_a_new_version_before_it_is_due_hastens_it_so_that_nothing_waits_behind_it():
    shell = shell_with(jittered())
    shell.until("2024-01-01T00:05:00")
    shell.put(body=definition(overlap={"policy": "allow_all"}))
    shell.until("2024-01-01T00:07:30")
    assert shell.created() == ["00:00@00:05", "00:06", "00:07"]


def test_a_weekly_job_in_a_process_that_is_started_anew_every_day_has_each_of_its_runs():
    shell = Shell("2024-01-06T12:00:00")
    shell.put(body=jittered("0 0 * * 0", "PT259200S"))
    for day in range(56):
        shell.until(at("2024-01-06T12:00:00") + timedelta(days=day))
        shell.reload()
    runs = shell.all(RunCreated)
    assert len({run.run_id for run in runs}) == len(runs) == 8
    assert all(
        timedelta(0) <= run.created_at - run.nominal_time < timedelta(days=3) for run in runs if run.nominal_time
    )


def test_what_people_are_told():
    shell = shell_with(jittered())
    assert shell.answer().body["words"] == "Every hour, UTC, each up to PT10M later"
    told = preview.preview(
        jittered(), from_=at("2024-01-01T00:00:00"), to=at("2024-01-01T01:00:00"), limit=5,
        now=at("2023-12-31T00:00:00"), tenant="acme", name="s",
    )  # fmt: skip
    assert told["occurrences"] == [
        {
            "nominal_time": "2024-01-01T00:00:00Z",
            "local_time": "2024-01-01T00:00:00+00:00",
            "due_at": f"2024-01-01T{MIDNIGHT}Z",
            "note": f"due at 2024-01-01T{MIDNIGHT}Z by its jitter",
        }
    ]


TRIGGERS = st.sampled_from(
    [{"cron": "*/7 * * * *"}, {"cron": "* * * * * *"}, {"every": "PT90S"}, {"cron": ["0 * * * *", "59 * * * *"]}]
)


@given(TRIGGERS, st.integers(1, 10_000), st.integers(0, WEEK), st.text("abc", min_size=1, max_size=3))
def test_no_place_is_before_its_nominal_instant_past_the_jitter_or_past_the_next_one(trigger, jitter, after, name):
    ready = compiled(f"acme/{name}", jitter=f"{jitter}s", **trigger)
    nominal = ready.trigger.next_after(after)
    assert nominal is not None
    following = ready.trigger.next_after(nominal)
    assert following is not None
    assert nominal * 1000 <= ready.due_ms(nominal) < min(following, nominal + jitter) * 1000
    document = {"trigger": {**trigger, "jitter": f"PT{jitter}S", "timezone": "UTC", "anchor": "1970-01-01T00:00:00Z",
                            "gap_policy": "shift", "fold_policy": "first"}}  # fmt: skip
    assert audited.due_ms(document, f"acme/{name}", nominal) == ready.due_ms(nominal)


def test_places_are_spread():
    ready = compiled(cron="* * * * *", jitter="60s")
    places = sorted(ready.due_ms(minute * 60) % 60_000 for minute in range(600))
    assert places[0] < 1_000
    assert places[-1] >= 59_000
    assert all(after - before < 1_500 for before, after in pairwise(places))


def test_b_o10_a_weekly_run_with_a_large_delay_comes_once_a_week_however_often_its_process_restarts():
    """Up to three days behind Sunday's midnight, restarted every noon for eight weeks: eight runs, at their places."""
    shell = Shell("2026-01-01T12:00:00")
    shell.put(body=jittered("0 0 * * 0", "PT259200S"))
    for day in range(1, 60):
        shell.until(at("2026-01-01T12:00:00") + timedelta(days=day))
        shell.reload()
    runs = [run for run in shell.all(RunCreated) if run.due_at < at("2026-02-28T00:00:00")]
    nominals = [run.nominal_time for run in runs if run.nominal_time is not None]
    assert nominals == [
        at("2026-01-04T00:00:00"),
        at("2026-01-11T00:00:00"),
        at("2026-01-18T00:00:00"),
        at("2026-01-25T00:00:00"),
        at("2026-02-01T00:00:00"),
        at("2026-02-08T00:00:00"),
        at("2026-02-15T00:00:00"),
        at("2026-02-22T00:00:00"),
    ]
    delays = [run.created_at - nominal for run, nominal in zip(runs, nominals, strict=True)]
    assert all(timedelta(0) <= delay <= timedelta(seconds=259_200) for delay in delays)
    undisturbed = compiled(cron="0 0 * * 0", jitter="PT259200S")
    assert [run.created_at.timestamp() * 1000 for run in runs] == [
        undisturbed.due_ms(int(nominal.timestamp())) for nominal in nominals
    ]
