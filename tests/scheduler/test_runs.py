"""What a run carries, runs that someone asked for, and how runs are asked to stop."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from schemas import identity, topics
from schemas.facts import Cause, CommandRejected, OccurrenceSkipped, RunCancelRequested, RunCreated
from schemas.internal import CommandAnswered, RunInquired
from tests.scheduler.harness import Shell, at, definition

ANY: dict[str, Any] = {"overlap": {"policy": "allow_all"}}


def with_payload(payload: dict[str, Any], cron: str = "30 1 * * *", **trigger: Any) -> dict[str, Any]:
    return definition(cron, trigger=trigger) | {"job": {"target": {"type": "task", "name": "t"}, "payload": payload}}


# --- what a run carries -------------------------------------------------------------------------------------------


def test_a_run_carries_everything_a_worker_needs_to_know():
    shell = Shell("2024-01-01T10:00:10")
    shell.put(body=definition("*/5 * * * *", labels={"team": "finance"}))
    shell.until("2024-01-01T10:05:00")
    run = shell.last_run()
    assert run.run_id == "s.20240101T100500Z"
    assert (run.version, run.cause, run.shard, run.labels) == (1, Cause.SCHEDULE, 0, {"team": "finance"})
    assert (run.nominal_time, run.due_at, run.created_at) == (at("2024-01-01T10:05:00"),) * 3
    assert run.interval_from == at("2024-01-01T10:00:00"), "as the trigger would have had it before the first one"
    assert run.deadline_at == at("2024-01-08T10:05:00")
    assert (run.rule, run.tz_version) == ("cron */5 * * * * UTC", "2026f")
    assert (run.job.queue, run.job.target, run.job.name) == ("default", {"type": "task", "name": "t"}, None)


def test_a_run_says_by_when_it_has_to_begin_counted_from_when_it_is_due():
    shell = Shell("2024-01-01T10:00:10")
    job = {"target": {"type": "task", "name": "t"}, "start_within": "10m"}
    shell.put(body={"trigger": {"cron": "*/5 * * * *"}, "job": job})
    assert shell.answer().body["words"].endswith("; begun within PT10M or not at all")
    shell.until("2024-01-01T10:05:02")
    run = shell.last_run()
    assert (run.start_by_at, run.job.start_within) == (at("2024-01-01T10:15:00"), timedelta(minutes=10))


def test_a_run_by_hand_has_to_begin_from_when_it_was_made():
    shell = Shell("2024-01-01T10:00:10")
    job = {"target": {"type": "task", "name": "t"}, "start_within": "PT90S"}
    shell.put(body={"trigger": {"cron": "@daily"}, "job": job})
    shell.send("ScheduleTrigger")
    assert shell.last_run().start_by_at == at("2024-01-01T10:01:40")
    assert shell.answer().body["start_by_at"] == "2024-01-01T10:01:40Z"


def test_what_is_caught_up_has_to_begin_from_when_it_was_made():
    shell = Shell("2024-01-01T10:00:10")
    job = {"target": {"type": "task", "name": "t"}, "start_within": "PT5M"}
    shell.put(body={"trigger": {"cron": "0 * * * *"}, "job": job})
    shell.until("2024-01-01T10:05:00")
    shell.sleep_until("2024-01-01T11:30:00")
    shell.settle()
    run = shell.last_run()
    assert (run.cause, run.nominal_time) == (Cause.CATCH_UP, at("2024-01-01T11:00:00"))
    assert run.start_by_at == run.created_at + timedelta(minutes=5)


def test_a_run_that_may_begin_at_any_time_says_none():
    shell = Shell("2024-01-01T10:00:10")
    shell.put()
    shell.until("2024-01-01T10:01:00")
    assert (shell.last_run().start_by_at, shell.last_run().job.start_within) == (None, None)


def test_the_data_interval_begins_at_the_occurrence_before_whatever_was_decided_about_it():
    shell = Shell("2024-01-01T10:00:10")
    shell.put()
    shell.until("2024-01-01T10:02:30")  # 10:02 is skipped: 10:01 is active
    shell.finish(shell.last_run())
    shell.until("2024-01-01T10:03:00")
    assert shell.last_run().interval_from == at("2024-01-01T10:02:00")


def test_a_run_goes_to_its_queues_shard_and_into_the_story():
    shell = Shell("2024-01-01T10:00:10", layout=topics.Layout(schedule=1, shard=4))
    body = definition()
    body["job"]["queue"] = "reports"
    shell.put(body=body)
    shell.until("2024-01-01T10:01:00")
    outputs = [output for output in shell.outputs if isinstance(output.fact, RunCreated)]
    assert [(output.topic, output.key, output.partition) for output in outputs] == [
        (topics.RUNS, "s.20240101T100100Z", identity.partition_of("reports", 4)),
        (topics.RUN_EVENTS, "acme/s", None),
    ]


def test_the_payload_is_filled_in_from_a_fixed_set_of_names_with_the_date_of_the_schedules_zone():
    shell = Shell("2024-01-01T12:00:00")
    names = {name: f"{{{{ {name} }}}}" for name in ("nominal_time", "nominal_date", "interval_from", "tenant")}
    payload = {**names, "list": ["{{run_id}}", {"x": "a {{ schedule }} b {{schedule}}"}], "n": 7, "plain": "{x}"}
    shell.put(body=with_payload(payload, timezone="Asia/Tokyo"))
    shell.until("2024-01-01T16:30:00")
    assert shell.last_run().job.payload == {
        "nominal_time": "2024-01-01T16:30:00Z",
        "nominal_date": "2024-01-02",
        "interval_from": "2023-12-31T16:30:00Z",
        "tenant": "acme",
        "list": ["s.20240101T163000Z", {"x": "a s b s"}],
        "n": 7,
        "plain": "{x}",
    }


def test_runs_of_one_version_share_a_job_that_is_not_filled_in():
    shell = Shell("2024-01-01T10:00:10")
    shell.put(body=definition(**ANY))
    shell.until("2024-01-01T10:02:00")
    one, other = shell.all(RunCreated)
    assert one.job is other.job


def test_a_rule_says_what_the_trigger_is():
    shell = Shell("2024-01-01T10:00:10")
    job = {"target": {"type": "task", "name": "t"}}
    shell.put("zoned", body=definition("0 12 * * *", trigger={"timezone": "Europe/Berlin"}))
    shell.put("interval", body={"trigger": {"every": "90m"}, "job": job})
    shell.put("single", body={"trigger": {"at": ["2024-01-01T12:00:00Z"]}, "job": job})
    shell.until("2024-01-01T12:00:00")
    assert {name: shell.last_run(name).rule for name in ("zoned", "interval", "single")} == {
        "zoned": "cron 0 12 * * * Europe/Berlin",
        "interval": "every PT1H30M from 2024-01-01T10:00:10Z",
        "single": "at",
    }


# --- registered jobs ----------------------------------------------------------------------------------------------


def registered(shell: Shell, **job: Any) -> None:
    shell.send("JobPut", name="j", definition={"target": {"type": "task", "name": "t"}, **job})
    shell.catalog()


def test_a_run_is_made_from_the_job_as_it_is_when_the_run_is_created():
    shell = Shell("2024-01-01T10:00:10")
    registered(shell)
    shell.put(body={"trigger": {"cron": "* * * * *"}, "job": "j", **ANY})
    assert shell.answer().body["warnings"] == []
    shell.until("2024-01-01T10:01:00")
    registered(shell, queue="other")
    shell.until("2024-01-01T10:02:00")
    runs = [(run.job.name, run.job.version, run.job.queue) for run in shell.all(RunCreated)]
    assert runs == [("j", 1, "default"), ("j", 2, "other")]


def test_without_its_job_an_occurrence_is_skipped_and_runs_again_once_there_is_one():
    shell = Shell("2024-01-01T10:00:10")
    shell.put(body={"trigger": {"cron": "* * * * *"}, "job": "j", **ANY})
    shell.until("2024-01-01T10:01:30")
    registered(shell)
    shell.until("2024-01-01T10:02:30")
    shell.send("JobDelete", name="j")
    shell.catalog()
    shell.until("2024-01-01T10:03:30")
    assert shell.skipped() == ["10:01 no_job", "10:03 no_job"]
    assert shell.all(OccurrenceSkipped)[0].detail == "there is no job j"
    assert shell.created() == ["10:02"]


def test_a_job_of_another_tenant_is_no_job():
    shell = Shell("2024-01-01T10:00:10")
    shell.send("JobPut", name="j", tenant="other", definition={"target": {"type": "task", "name": "t"}})
    shell.catalog()
    shell.put(body={"trigger": {"cron": "* * * * *"}, "job": "j"})
    shell.until("2024-01-01T10:01:30")
    assert shell.skipped() == ["10:01 no_job"]


# --- by hand ------------------------------------------------------------------------------------------------------


def test_a_trigger_makes_a_run_now_also_of_a_paused_schedule():
    shell = Shell("2024-01-01T10:00:10")
    shell.put()
    shell.send("SchedulePause")
    shell.send("ScheduleTrigger")
    run = shell.last_run()
    assert (run.cause, run.nominal_time, run.due_at) == (Cause.MANUAL, None, at("2024-01-01T10:00:10"))
    assert run.run_id == identity.manual_run_id("acme", "s", "test", "c3")
    assert (run.deadline_at, run.command_id) == (at("2024-01-08T10:00:10"), "c3")
    assert (shell.answer().status, shell.answer().body["run_id"]) == (201, run.run_id)


def test_a_trigger_may_bring_its_own_payload_which_is_taken_as_it_is():
    shell = Shell("2024-01-01T10:00:10")
    shell.put(body=with_payload({"day": "{{ nominal_date }}"}))
    shell.send("ScheduleTrigger")
    assert shell.last_run().job.payload == {"day": "2024-01-01"}
    shell.send("ScheduleTrigger", payload={"day": "{{ whatever }}"})
    assert shell.last_run().job.payload == {"day": "{{ whatever }}"}


def test_a_trigger_that_must_not_overlap_is_refused_while_a_run_is_open():
    shell = Shell("2024-01-01T10:00:10")
    shell.put()
    shell.until("2024-01-01T10:01:00")
    shell.send("ScheduleTrigger", overlap="skip")
    assert (shell.answer().status, shell.answer().body["reason"]) == (409, "overlap")
    assert shell.answer().body["blocked_by"] == "s.20240101T100100Z"
    shell.finish(shell.last_run())
    shell.send("ScheduleTrigger", overlap="skip")
    assert shell.answer().status == 201
    shell.send("ScheduleTrigger", overlap="skip")
    assert shell.answer().body["blocked_by"] == shell.last_run().run_id


def test_a_trigger_of_a_schedule_without_its_job_is_refused():
    shell = Shell()
    shell.put(body={"trigger": {"cron": "* * * * *"}, "job": "j"})
    shell.send("ScheduleTrigger")
    assert (shell.answer().status, shell.answer().body["reason"]) == (409, "no_job")


# --- cancel -------------------------------------------------------------------------------------------------------


def test_a_cancel_is_written_behind_the_run_and_answered_by_whoever_has_it():
    shell = Shell("2024-01-01T10:00:10", layout=topics.Layout(schedule=1, shard=4))
    shell.put()
    shell.until("2024-01-01T10:01:00")
    facts = shell.send("RunCancel", run_id="s.20240101T100100Z", by="ann", note="wrong day", reply_to=5)
    (request,) = facts
    assert isinstance(request, RunCancelRequested)
    assert (request.queue, request.shard, request.by, request.note) == ("default", 0, "ann", "wrong day")
    assert (request.reply_to, request.command_id) == (5, "c2")
    to = {output.topic: (output.key, output.partition) for output in shell.outputs if output.fact is request}
    assert to == {
        topics.RUNS: ("s.20240101T100100Z", identity.partition_of("default", 4)),
        topics.RUN_EVENTS: ("acme/s", None),
    }


def test_a_cancel_that_comes_again_is_written_again_as_the_dispatcher_knows_it():
    shell = Shell("2024-01-01T10:00:10")
    shell.put()
    shell.until("2024-01-01T10:01:00")
    for _ in range(2):
        (fact,) = shell.send("RunCancel", run_id="s.20240101T100100Z", id="same")
        assert isinstance(fact, RunCancelRequested)


def test_a_cancel_of_a_finished_run_is_answered_at_once():
    shell = Shell("2024-01-01T10:00:10")
    shell.put()
    shell.until("2024-01-01T10:01:00")
    shell.send("ScheduleTrigger")
    for run in shell.all(RunCreated):
        shell.finish(run)
        shell.send("RunCancel", run_id=run.run_id)
        assert (shell.answer().status, shell.answer().body["state"]) == (200, "already_finished")


@pytest.mark.parametrize(
    "run_id", ["s.20240101T100200Z", "s.20240101T100100Z", "s.m-0123456789abcdef", "s.nonsense", "s.20240101T095900Z"]
)
def test_a_cancel_of_a_run_that_never_was_is_refused(run_id):
    shell = Shell("2024-01-01T10:00:10")
    shell.put()
    shell.send("SchedulePause")
    shell.until("2024-01-01T10:01:30")  # 10:01 was skipped, 10:02 is to come
    shell.send("RunCancel", run_id=run_id)
    assert (shell.answer().status, shell.answer().body["reason"]) == (404, "not_found")


def test_a_cancel_of_an_instant_between_two_finished_runs_is_refused():
    shell = Shell("2024-01-01T10:00:10")
    shell.put(body=definition("*/2 * * * *"))
    for minute in (2, 4, 6):
        shell.until(f"2024-01-01T10:0{minute}:00")
        shell.finish(shell.last_run())
    told = {}
    for minute in range(2, 7):
        shell.send("RunCancel", run_id=f"s.20240101T100{minute}00Z")
        told[minute] = shell.answer().status
    assert told == {2: 200, 3: 404, 4: 200, 5: 404, 6: 200}


def test_a_run_of_long_ago_is_finished():
    shell = Shell("2024-01-01T10:00:10")
    shell.put(body=definition("0 0 1 * *"))
    shell.until("2024-02-01T00:01:00")
    shell.finish(shell.last_run())
    shell.until("2024-06-01T10:00:00")
    shell.send("RunCancel", run_id="s.20240201T000000Z")
    assert (shell.answer().status, shell.answer().body["state"]) == (200, "already_finished")


def test_a_cancel_names_a_run_of_its_schedule():
    shell = Shell()
    shell.put()
    shell.send("RunCancel", run_id="t.20240101T100100Z")
    assert shell.all(CommandRejected)[0].faults[0].pointer == "/data/run_id"


def test_deleting_with_runs_cancel_asks_every_open_run_to_stop_a_page_at_a_time():
    shell = Shell("2024-01-01T10:00:00.500")
    shell.put(body=definition("* * * * * *", **ANY))
    shell.until("2024-01-01T10:02:30")
    shell.send("ScheduleDelete", runs="cancel", by="ann")
    assert shell.all(RunCancelRequested) == [], "a step is small: the asking follows"
    shell.settle()
    requests = shell.all(RunCancelRequested)
    assert [request.run_id for request in requests] == [run.run_id for run in shell.all(RunCreated)]
    assert {(request.by, request.reply_to) for request in requests} == {("ann", None)}
    assert shell.schedule().cancelling is None


def test_deleting_with_runs_cancel_leaves_the_runs_of_its_successor_alone():
    shell = Shell("2024-01-01T10:00:10")
    shell.put(body=definition(**ANY))
    shell.until("2024-01-01T10:01:30")
    shell.send("ScheduleDelete", runs="cancel")
    shell.sleep_until("2024-01-01T10:01:40")
    shell.put(body=definition(**ANY))
    shell.send("ScheduleTrigger")
    shell.settle()
    assert [request.run_id for request in shell.all(RunCancelRequested)] == ["s.20240101T100100Z"]


# --- inquiries ----------------------------------------------------------------------------------------------------


def inquiries(shell: Shell) -> list[str]:
    return [f"{fact.run.run_id} {fact.inquired_at:%H:%M}" for fact in shell.facts if isinstance(fact, RunInquired)]


def test_a_run_without_outcome_is_asked_after_with_growing_patience():
    shell = Shell("2024-01-01T10:00:10")
    shell.put(body=definition("0 11 1 1 *"))
    shell.until("2024-01-02T12:00:00")
    assert inquiries(shell) == [
        f"s.20240101T110000Z {clock}"
        for clock in ("11:10", "11:30", "12:10", "13:30", "16:10", "21:30", "03:30", "09:30")
    ]


def test_an_inquiry_carries_the_whole_run_to_where_the_run_went():
    shell = Shell("2024-01-01T10:00:10", layout=topics.Layout(schedule=1, shard=4))
    shell.put(body=definition("0 11 1 1 *"))
    shell.until("2024-01-01T11:05:00")
    shell.reload()
    shell.until("2024-01-01T11:15:00")
    (output,) = [output for output in shell.outputs if isinstance(output.fact, RunInquired)]
    assert isinstance(output.fact, RunInquired)
    assert output.fact.run == shell.last_run()
    assert (output.topic, output.partition) == (topics.RUNS, identity.partition_of("default", 4))


def test_a_run_with_an_outcome_is_not_asked_after():
    shell = Shell("2024-01-01T10:00:10")
    shell.put(body=definition("0 11 1 1 *"))
    shell.until("2024-01-01T11:05:00")
    shell.finish(shell.last_run())
    shell.until("2024-01-02T11:05:00")
    assert inquiries(shell) == []
    assert shell.schedule().inquiry.at_ms is None


def test_many_open_runs_are_asked_after_a_page_at_a_time_each_once():
    shell = Shell("2024-01-01T10:00:00.500")
    shell.put(body=definition("* * * * * *", **ANY))
    shell.until("2024-01-01T10:03:20.500")
    shell.send("SchedulePause")
    shell.until("2024-01-01T10:14:30")
    asked = [fact.run.run_id for fact in shell.facts if isinstance(fact, RunInquired)]
    assert asked == [run.run_id for run in shell.all(RunCreated)]


def test_an_answer_to_an_inquiry_settles_the_run():
    shell = Shell("2024-01-01T10:00:10")
    shell.put(body=definition("0 11 1 1 *"))
    shell.until("2024-01-01T11:15:00")
    shell.finish(shell.last_run(), "expired")
    assert (shell.schedule().open_runs, shell.schedule().active) == (0, 0)
    assert shell.schedule().segments[-1].outcome == "expired"


def test_answers_go_to_the_node_that_asked():
    shell = Shell()
    shell.put(reply_to=11)
    (output,) = [output for output in shell.outputs if isinstance(output.fact, CommandAnswered)]
    assert (output.topic, output.key, output.partition) == (topics.REPLIES, "c1", 11)
