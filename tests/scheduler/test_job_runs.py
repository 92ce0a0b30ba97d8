"""A registered job is run by itself: a run of no schedule, with all that runs have."""

from __future__ import annotations

from typing import Any

from schemas import codec, topics
from schemas.facts import Cause, CommandRejected, RunCancelRequested, RunCreated
from schemas.internal import RunInquired
from tests.scheduler.harness import Shell, definition
from tests.scheduler.test_forwarding import FOUR, arrive, sent_on

NOW = "2024-01-01T10:00:10"
OWNER = "_send-report"
ID = "_send-report.m-c87c541a32eef053"  # SHA-256 over acme, _send-report, manual, test, once and nothing


def registered(**job: Any) -> Shell:
    """The job send-report is registered, in two versions."""
    shell = Shell(NOW)
    for queue in ("first", "reports"):
        body = {"queue": queue, "target": {"type": "task", "name": "reports.send"}, "payload": {"day": "monday"}, **job}
        shell.send("JobPut", name="send-report", definition=body)
        shell.catalog()
    return shell


def ask(shell: Shell, **more: Any) -> tuple[int, Any]:
    """Ask for a run; the answer's status and body."""
    shell.send("JobRun", **{"name": "send-report", "id": "once", **more})
    return shell.answer().status, shell.answer().body


def test_a_job_is_run_once_as_it_stands():
    shell = registered()
    assert ask(shell) == (201, {
        "tenant": "acme", "name": "send-report", "version": 2, "run_id": ID, "cause": "manual",
        "created_at": "2024-01-01T10:00:10Z", "deadline_at": "2024-01-08T10:00:10Z",
    })  # fmt: skip
    run = shell.last_run(OWNER)
    assert (run.schedule, run.run_id, run.cause, run.rule, run.nominal_time) == (OWNER, ID, Cause.MANUAL, "job", None)
    assert (run.job.name, run.job.version, run.job.queue, run.job.payload) == (
        "send-report", 2, "reports", {"day": "monday"}
    )  # fmt: skip
    assert shell.to(topics.RUNS) == [run]
    assert shell.to(topics.RUN_EVENTS)[-1] == run


def test_the_same_command_again_is_the_same_run():
    shell = registered()
    first = ask(shell)
    assert ask(shell) == first
    assert len(shell.all(RunCreated, OWNER)) == 1
    assert ask(shell, id="twice")[1]["run_id"] != ID


def test_a_payload_that_is_given_takes_the_place_of_the_jobs():
    shell = registered()
    ask(shell, payload={"day": "tuesday"})
    assert shell.last_run(OWNER).job.payload == {"day": "tuesday"}


def test_names_in_the_jobs_payload_are_filled_in_as_of_now():
    shell = registered(payload={"day": "{{ nominal_date }}", "of": "{{ tenant }}/{{ schedule }}", "id": "{{ run_id }}"})
    ask(shell)
    assert shell.last_run(OWNER).job.payload == {"day": "2024-01-01", "of": "acme/send-report", "id": ID}


def test_a_job_that_nobody_registered_cannot_be_run():
    shell = Shell(NOW)
    status, body = ask(shell)
    assert (status, body["reason"], body["detail"]) == (404, "not_found", "there is no job acme/send-report")
    assert shell.all(CommandRejected)[-1].name == "send-report"
    assert shell.all(RunCreated, OWNER) == []


def test_a_deleted_job_cannot_be_run_and_its_open_run_goes_on():
    shell = registered()
    ask(shell)
    shell.send("JobDelete", name="send-report")
    shell.catalog()
    assert ask(shell, id="twice")[0] == 404
    assert shell.send("RunCancel", name=OWNER, run_id=ID) != []


def test_with_overlap_skip_there_is_none_while_another_is_open():
    shell = registered()
    ask(shell)
    status, body = ask(shell, id="twice", overlap="skip")
    assert (status, body["reason"]) == (409, "overlap")
    shell.finish(ID)
    assert ask(shell, id="three", overlap="skip")[0] == 201


def test_a_schedule_of_the_same_name_has_nothing_to_do_with_it():
    shell = registered()
    shell.put("send-report", definition("0 * * * *", overlap={"policy": "skip"}))
    ask(shell)
    shell.until("2024-01-01T11:00:10")
    assert [run.cause for run in shell.all(RunCreated, OWNER)] == [Cause.MANUAL]
    assert [run.cause for run in shell.all(RunCreated, "send-report")] == [Cause.SCHEDULE]
    assert ask(shell, id="twice", overlap="skip")[0] == 409, "its own run is open"


def test_a_run_without_an_outcome_is_asked_after_until_it_has_one():
    shell = registered()
    ask(shell)
    shell.until("2024-01-01T10:10:10")
    assert [fact.run.run_id for fact in shell.all(RunInquired)] == [ID]
    shell.reload()
    shell.finish(ID)
    shell.until("2024-01-01T16:00:00")
    assert len(shell.all(RunInquired)) == 1


def test_it_is_cancelled_rerun_and_redriven_like_any_other():
    shell = registered()
    ask(shell)
    shell.send("RunCancel", name=OWNER, run_id=ID)
    request = shell.all(RunCancelRequested, OWNER)[-1]
    assert (request.schedule, request.run_id, request.queue) == (OWNER, ID, "reports")
    whole = codec.parse(codec.dump(shell.last_run(OWNER)))
    shell.finish(ID, "dead_lettered")
    for kind, given, wanted in (
        ("RunRerun", {}, "reports"), ("RunRedrive", {}, "reports"), ("RunRerun", {"definition": "current"}, "other"),
    ):  # fmt: skip
        if given:
            shell.send("JobPut", name="send-report", definition={"queue": "other", "target": whole["job"]["target"]})
            shell.catalog()
        shell.send(kind, name=OWNER, run_id=ID, run=whole, **given)
        assert shell.answer().status == 201, shell.answer().body
        again = shell.last_run(OWNER)
        assert (again.of, again.schedule, again.job.queue, again.cause) == (ID, OWNER, wanted, Cause.RERUN)
    assert shell.last_run(OWNER).version == 3
    shell.send("RunRedrive", name=OWNER, run_id=ID, run=whole)
    assert shell.answer().body["reason"] == "already_redriven"


def test_the_command_is_its_owners_wherever_it_was_published():
    """acme/mail belongs to partition 3 of four and acme/_mail to 2: who published it with the job's name is served."""
    elsewhere, owner = Shell(NOW, layout=FOUR, number=3), Shell(NOW, layout=FOUR, number=2)
    elsewhere.send("JobRun", name="mail", id="once")
    output = sent_on(elsewhere)
    assert output.key == "acme/_mail"
    arrive(owner, output)
    assert owner.answer().body["reason"] == "not_found", "its owner decided, and has adopted no job"


def test_behind_the_put_of_its_job_it_waits_for_the_catalog():
    shell = Shell(NOW)
    shell.send("JobPut", name="send-report", definition={"target": {"type": "task", "name": "t"}})
    shell.send("JobRun", name="send-report", id="once", after_catalog="scheduler-0-7")
    assert shell.all(RunCreated, OWNER) == []
    shell.catalog("scheduler-0-7")
    shell.until("2024-01-01T10:00:11")
    assert [run.job.target["name"] for run in shell.all(RunCreated, OWNER)] == ["t"]


def test_no_schedule_can_have_the_name():
    shell = Shell(NOW)
    shell.put(OWNER)
    assert shell.all(CommandRejected)[-1].faults[0].pointer == "/data/name"
