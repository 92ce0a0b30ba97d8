"""Reruns and redrives are new runs of an old one, which stays as it ended."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler import fills
from schemas import codec, topics
from schemas.facts import Cause, CommandRejected, Outcome, RunCreated
from tests.scheduler.harness import Shell, at, definition

DAY = "2024-01-01T"
OLD = f"s.{DAY[:4]}0101T100100Z"


def ended(outcome: str = "dead_lettered", **more: Any) -> Shell:
    """Every minute; the run of 10:01 has ended like this, and it is 10:01:30."""
    shell = Shell(f"{DAY}10:00:10")
    shell.put(body=definition(**more))
    shell.until(f"{DAY}10:01:30")
    shell.finish(OLD, outcome)
    return shell


def whole(shell: Shell, run_id: str = OLD) -> dict[str, Any]:
    """The run as it was created, as a dead letter keeps it."""
    created: dict[str, Any] = codec.parse(codec.dump(shell.run(run_id)))
    return created


def ask(shell: Shell, kind: str = "RunRerun", of: str = OLD, **more: Any) -> tuple[int, Any]:
    """Ask for another run of one; the answer's status and body."""
    shell.send(kind, **{"run_id": of, "run": whole(shell, of), **more})
    return shell.answer().status, shell.answer().body


# --- a new run of the old one -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "rule"), [("RunRerun", "rerun"), ("RunRedrive", "redrive")])
def test_another_run_has_the_job_and_the_instant_of_the_old_one_and_names_it(kind: str, rule: str):
    shell = ended(labels={"team": "finance"})
    old = shell.run(OLD)
    assert ask(shell, kind, id="again") == (201, {
        "tenant": "acme", "name": "s", "version": 1, "run_id": "s.r-ce56634dae18ca54", "of": OLD, "cause": "rerun",
        "created_at": "2024-01-01T10:01:30Z", "deadline_at": "2024-01-08T10:01:30Z",
    })  # fmt: skip
    run = shell.last_run()
    assert (run.run_id, run.cause, run.of, run.rule) == ("s.r-ce56634dae18ca54", Cause.RERUN, OLD, rule)
    assert (run.nominal_time, run.interval_from) == (at(f"{DAY}10:01:00"), at(f"{DAY}10:00:00"))
    assert (run.job, run.labels, run.version) == (old.job, {"team": "finance"}, 1)
    assert [fact for fact in shell.to(topics.RUNS) if isinstance(fact, RunCreated)] == [old, run]


def test_a_rerun_goes_by_the_old_definition_unless_the_current_one_is_asked_for():
    shell = ended()
    body = definition(labels={"since": "two"})
    body["job"]["queue"], body["job"]["payload"] = "reports", {"of": "version 2"}
    shell.put(body=body)
    ask(shell)
    assert (shell.last_run().version, shell.last_run().job.queue, shell.last_run().labels) == (1, "default", {})
    ask(shell, definition="current")
    run = shell.last_run()
    assert (run.version, run.job.queue, run.labels) == (2, "reports", {"since": "two"})
    assert run.job.payload == {}, "the work is the old run's"


def test_another_payload_may_be_given():
    shell = ended()
    ask(shell, payload={"day": "2024-01-02"})
    assert shell.last_run().job.payload == {"day": "2024-01-02"}
    assert shell.run(OLD).job.payload == {}


def test_a_rerun_may_be_rerun():
    shell = ended()
    _, first = ask(shell)
    shell.finish(first["run_id"], "failed")
    _, second = ask(shell, of=first["run_id"])
    assert (second["of"], shell.last_run().nominal_time) == (first["run_id"], at(f"{DAY}10:01:00"))


def test_the_same_command_again_makes_no_second_run_and_hears_the_same():
    for kind in ("RunRerun", "RunRedrive"):
        shell = ended()
        first = ask(shell, kind, id="same")
        assert ask(shell, kind, id="same") == first
        assert len(shell.all(RunCreated)) == 2


def test_who_follows_the_schedule_is_told_of_the_rerun_too():
    shell = ended("failed")
    shell.put("b", {"after": [{"schedule": "s", "mode": "run"}], "job": definition()["job"]})
    shell.deliver()
    _, again = ask(shell)
    shell.finish(again["run_id"])
    shell.deliver()
    shell.settle()
    assert shell.created("b") == [f"after {again['run_id']}"]


# --- what it leaves alone -----------------------------------------------------------------------------------------


def test_reruns_neither_block_occurrences_nor_use_up_max_runs_nor_count_as_failures_in_a_row():
    shell = ended("failed", trigger={"max_runs": 2}, pause_on_failure=2)
    _, again = ask(shell)
    shell.finish(again["run_id"], "failed")
    ask(shell)
    shell.until(f"{DAY}10:05:00")
    assert shell.created() == ["10:01", "10:01@10:01:30", "10:01@10:01:30", "10:02"]
    assert shell.skipped() == []
    assert (shell.schedule().active, shell.schedule().open_runs, shell.schedule().paused) == (1, 2, False)
    shell.reload()


def test_a_backfill_of_failed_occurrences_sees_how_the_rerun_ended():
    for outcome, fate in (("succeeded", "succeeded"), ("failed", "failed")):
        shell = ended("failed")
        _, again = ask(shell)
        assert fills.look_up(shell.schedule().rows, 1704103260) == ""
        shell.finish(again["run_id"], outcome)
        shell.until(f"{DAY}10:02:30")
        assert fills.look_up(shell.schedule().rows, 1704103260) == fate
        shell.send("BackfillStart", **{"from": f"{DAY}10:01:00Z", "to": f"{DAY}10:02:00Z", "reprocess": "failed"})
        shell.settle()
        made = [run.of for run in shell.all(RunCreated) if run.cause is Cause.BACKFILL]
        assert made == ([] if fate == "succeeded" else [OLD])


def test_a_rerun_is_asked_after_and_cancelled_as_every_run_is():
    shell = ended()
    _, again = ask(shell)
    facts = shell.send("RunCancel", run_id=again["run_id"], by="ann")
    assert [type(fact).__name__ for fact in facts] == ["RunCancelRequested"]


def test_what_the_rows_keep_of_reruns_is_forgotten_with_the_history():
    shell = Shell(f"{DAY}10:00:10")
    shell.put(body=definition("0 12 * * *"))
    shell.until(f"{DAY}12:00:30")
    old = shell.last_run()
    shell.finish(old)
    _, again = ask(shell, "RunRedrive", of=old.run_id)
    shell.finish(again["run_id"])
    shell.send("ScheduleDelete")
    shell.until("2024-03-01T00:00:00")
    shell.reload()
    rows = shell.schedule().rows
    assert [row for row, _ in rows.scan() if row[:2] in {b"h/", b"c/", b"d/", b"r/"}] == []


# --- what is refused ----------------------------------------------------------------------------------------------


def refused(shell: Shell) -> tuple[int, str, str]:
    """The last refusal: status, reason, and the field."""
    rejection = [fact for fact in shell.facts if isinstance(fact, CommandRejected)][-1]
    return shell.answer().status, rejection.reason, rejection.faults[0].pointer


def test_a_run_that_is_open_is_not_run_beside_itself():
    shell = Shell(f"{DAY}10:00:10")
    shell.put()
    shell.until(f"{DAY}10:01:30")
    for kind in ("RunRerun", "RunRedrive"):
        status, body = ask(shell, kind)
        assert (status, body["state"], refused(shell)) == (409, "open", (409, "run_open", "/data/run_id"))
    assert len(shell.all(RunCreated)) == 1


def test_a_run_whose_outcome_is_read_and_waits_for_its_turn_is_over():
    shell = Shell(f"{DAY}10:00:10")
    shell.put(body=definition(pause_on_failure=3))
    shell.until(f"{DAY}10:01:30")
    shell.finish(OLD, "failed")
    assert [held.run_id for held in shell.schedule().held] == [OLD]
    assert ask(shell)[0] == 201


def test_an_outcome_that_the_owner_has_not_read_yet_may_stand_in_the_command():
    shell = Shell(f"{DAY}10:00:10")
    shell.put()
    shell.until(f"{DAY}10:01:30")
    status, again = ask(shell, "RunRedrive", outcome="dead_lettered")
    assert (status, shell.schedule().open_runs) == (201, 2)
    shell.finish(OLD, "dead_lettered")
    assert fills.look_up(shell.schedule().rows, 1704103260) == "", "the rerun is what the occurrence comes to"
    shell.finish(again["run_id"])
    assert (shell.schedule().open_runs, shell.schedule().active) == (0, 0)


def test_a_dead_letter_is_redriven_once_and_the_answer_names_the_run_that_it_became():
    shell = ended()
    _, first = ask(shell, "RunRedrive")
    status, body = ask(shell, "RunRedrive")
    assert (status, body["redriven_as"]) == (409, first["run_id"])
    assert refused(shell) == (409, "already_redriven", "/data/run_id")
    shell.finish(first["run_id"], "dead_lettered")
    assert ask(shell, "RunRedrive")[0] == 409, "whatever became of it"
    assert ask(shell, "RunRedrive", of=first["run_id"])[0] == 201, "that one is a dead letter of its own"
    assert ask(shell, "RunRerun")[0] == 201, "and who wants the old one again says so"


def test_a_refused_redrive_is_no_redrive():
    shell = Shell(f"{DAY}10:00:10")
    shell.put()
    shell.until(f"{DAY}10:01:30")
    assert ask(shell, "RunRedrive")[0] == 409
    shell.finish(OLD, "dead_lettered")
    assert ask(shell, "RunRedrive")[0] == 201


def test_without_the_schedule_or_the_job_of_the_current_definition_there_is_no_rerun():
    shell = ended()
    shell.put(body=definition() | {"job": "nobody"})
    ask(shell, definition="current")
    assert refused(shell) == (409, "no_job", "/data/definition")
    assert ask(shell)[0] == 201
    shell.send("ScheduleDelete")
    ask(shell)
    assert refused(shell) == (404, "not_found", "/data/name")


@pytest.mark.parametrize(
    ("kind", "change", "pointer", "reason"),
    [
        ("RunRerun", {"run": None}, "/data/run", "type"),
        ("RunRerun", {"run": {}}, "/data/run/cause", "missing"),
        ("RunRerun", {"run_id": "s.20240101T100200Z"}, "/data/run", "wrong_run"),
        ("RunRerun", {"run_id": "t.20240101T100100Z"}, "/data/run_id", "wrong_schedule"),
        ("RunRerun", {"definition": "newest"}, "/data/definition", "unknown_value"),
        ("RunRedrive", {"outcome": "failed"}, "/data/outcome", "not_dead_lettered"),
        ("RunRerun", {"payload": {"big": "x" * 70_000}}, "/data/payload", "too_large"),
    ],
)  # fmt: skip
def test_a_command_that_brings_no_run_or_another_one_is_refused(
    kind: str, change: dict[str, Any], pointer: str, reason: str
):
    shell = ended()
    ask(shell, kind, **change)
    rejection = [fact for fact in shell.facts if isinstance(fact, CommandRejected)][-1]
    assert (rejection.faults[0].pointer, rejection.faults[0].code) == (pointer, reason)
    assert len(shell.all(RunCreated)) == 1


def test_outcomes_are_the_words_of_the_contract():
    shell = ended()
    ask(shell, outcome="perished")
    assert refused(shell)[2] == "/data/outcome"
    assert {outcome.value for outcome in Outcome} >= {"dead_lettered"}
