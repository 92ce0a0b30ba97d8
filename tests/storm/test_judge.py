"""What the judge of a storm over workers finds."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.storm import executions
from tests.storm.executions import Execution, Write
from tests.storm.judge import Attempt, Counts, Duplicate, Evidence, Finish, Freeze, Key, Kill, counts, faults

DONE = Execution(
    line="worker-0.7.jsonl:1", worker="worker-0", pid=7, run="a", attempt=1, token=4, begun=100.0, ended=103.0,
    outcome="succeeded",
)  # fmt: skip
FIRST = replace(DONE, line="worker-1.8.jsonl:1", worker="worker-1", pid=8, run="b", token=5)
SECOND = replace(DONE, line="worker-0.7.jsonl:3", run="b", attempt=2, token=9, begun=120.0, ended=123.0)
LATE = Duplicate(run="b", token=5, reported="succeeded")
# Run a went well. Run b was taken from a worker that stood still; another did it, and the first reported too late.
GOOD = Evidence(
    created=["a", "b"],
    finishes=[Finish(run="a", outcome="succeeded"), Finish(run="b", outcome="succeeded")],
    attempts={
        Key("a", 1, 4): Attempt(outcome="succeeded", started_at=100.5, worker="worker-0"),
        Key("b", 1, 5): Attempt(outcome="lease_expired", started_at=100.5, worker="worker-1"),
        Key("b", 2, 9): Attempt(outcome="succeeded", started_at=120.5, worker="worker-0"),
    },
    duplicates=[LATE],
    executions=[DONE, FIRST, SECOND],
    freezes=[Freeze(worker="worker-1", pid=8, since=101.0, until=122.0)],
    writes=[
        Write(run="a", token=4, accepted=True),
        Write(run="b", token=5, accepted=True),
        Write(run="b", token=9, accepted=True),
        Write(run="b", token=5, accepted=False),
        Write(run="b", token=9, accepted=True),
    ],
)
_FIRST = "worker-1.8.jsonl:1: run b, attempt 1, token 5, succeeded"
UNEXPLAINED = [f"{_FIRST}: lease_expired, nobody reported it, and its worker was not killed"]


def with_attempt(key: Key, attempt: Attempt | None) -> Evidence:
    attempts = {**GOOD.attempts, key: attempt}
    return replace(GOOD, attempts={key: each for key, each in attempts.items() if each is not None})


def with_first(execution: Execution, **changed: Any) -> Evidence:
    return replace(GOOD, executions=[DONE, execution, SECOND], duplicates=[], **changed)


def test_where_each_execution_is_explained_nothing_is_wrong():
    assert faults(GOOD) == []


def test_all_that_was_seen_is_counted():
    assert counts(GOOD) == Counts(
        runs=2, executions=3, kills=0, freezes=1, explained={"reported late": 1, "succeeded": 2},
        attempts={"lease_expired": 1, "succeeded": 2}, outcomes={"succeeded": 2}, duplicates=1, late_successes=0,
        writes=5, stale_refused=1,
    )  # fmt: skip


# --- runs ---


def test_a_run_without_an_outcome_is_found():
    assert faults(replace(GOOD, finishes=GOOD.finishes[:1])) == ["run b has no outcome"]


def test_a_run_with_two_outcomes_is_found():
    twice = [*GOOD.finishes, Finish(run="a", outcome="failed")]
    assert faults(replace(GOOD, finishes=twice)) == ["run a has 2 outcomes"]


def test_an_outcome_of_a_run_that_nobody_created_is_found():
    more = [*GOOD.finishes, Finish(run="c", outcome="expired")]
    assert faults(replace(GOOD, finishes=more)) == ["run c has an outcome and was never created"]


# --- executions ---


def test_an_execution_that_the_topics_do_not_know_is_found():
    assert faults(with_attempt(Key("b", 1, 5), None)) == [
        "worker-1.8.jsonl:1: run b, attempt 1, token 5, succeeded: the topics know of no such attempt"
    ]


@pytest.mark.parametrize("key", [Key("a", 2, 4), Key("a", 1, 3)])
def test_an_execution_under_another_attempt_or_token_than_the_topics_say_is_found(key):
    evidence = replace(GOOD, attempts={**with_attempt(Key("a", 1, 4), None).attempts, key: Attempt(outcome="lost")})
    assert faults(evidence) == [
        "worker-0.7.jsonl:1: run a, attempt 1, token 4, succeeded: the topics know of no such attempt"
    ]


def test_an_execution_whose_attempt_never_ended_is_found():
    assert faults(with_attempt(Key("a", 1, 4), Attempt(started_at=100.5, worker="worker-1"))) == [
        "worker-0.7.jsonl:1: run a, attempt 1, token 4, succeeded: the topics do not say how the attempt ended"
    ]


@pytest.mark.parametrize(("outcome", "said"), [("failed", "failed"), ("stopped", "stopped"), ("", "never ended")])
def test_an_execution_that_the_topics_call_something_else_is_found(outcome, said):
    other = replace(DONE, outcome=outcome, ended=103.0 if outcome else None)
    assert faults(replace(GOOD, executions=[other, FIRST, SECOND])) == [
        f"worker-0.7.jsonl:1: run a, attempt 1, token 4, {said}: the topics call it succeeded"
    ]


def test_a_result_that_nobody_reported_is_found():
    assert faults(replace(GOOD, duplicates=[])) == UNEXPLAINED


@pytest.mark.parametrize(
    "other", [replace(LATE, token=9), replace(LATE, run="a"), replace(LATE, reported="failed")]
)  # fmt: skip
def test_the_duplicate_of_another_hand_out_or_of_another_end_explains_nothing(other):
    assert faults(replace(GOOD, duplicates=[other])) == UNEXPLAINED


def test_a_call_that_was_interrupted_when_its_hand_out_was_taken_back_says_nothing_and_is_explained():
    assert faults(with_first(replace(FIRST, outcome="stopped"))) == []


def test_a_call_that_never_ended_is_explained_by_a_kill_of_its_process_and_by_nothing_else():
    never = replace(FIRST, ended=None, outcome="")
    kill = Kill(worker="worker-1", pid=8, at=101.0)
    assert faults(with_first(never, kills=[kill])) == []
    said = (
        "worker-1.8.jsonl:1: run b, attempt 1, token 5, never ended: lease_expired, nobody reported it, and its worker "
    )
    for other in (replace(kill, pid=9), replace(kill, worker="worker-0"), replace(kill, at=99.0)):
        assert faults(with_first(never, kills=[other])) == [said + "was not killed"]


def test_a_result_is_excused_by_a_kill_so_soon_behind_it_that_it_cannot_have_been_reported():
    assert faults(with_first(FIRST, kills=[Kill(worker="worker-1", pid=8, at=113.0)], freezes=[])) == []
    assert faults(with_first(FIRST, kills=[Kill(worker="worker-1", pid=8, at=113.5)], freezes=[])) == UNEXPLAINED


def test_the_time_in_which_a_worker_stood_still_is_none_in_which_it_could_have_reported():
    standing = [Freeze(worker="worker-1", pid=8, since=102.0, until=133.0)]
    kill = Kill(worker="worker-1", pid=8, at=140.0)
    assert faults(with_first(FIRST, kills=[kill], freezes=standing)) == []
    others = [replace(standing[0], worker="worker-0")]
    assert faults(with_first(FIRST, kills=[kill], freezes=others)) == UNEXPLAINED


def test_a_late_success_that_became_the_outcome_of_its_run_is_explained():
    attempts = {key: each for key, each in GOOD.attempts.items() if key != Key("b", 2, 9)}
    late = Finish(run="b", outcome="succeeded", reason="late_report")
    evidence = Evidence(
        created=["a", "b"], finishes=[GOOD.finishes[0], late], attempts=attempts, executions=[DONE, FIRST]
    )
    assert (faults(evidence), counts(evidence).late_successes) == ([], 1)


def test_a_late_success_can_only_have_been_that_of_the_last_hand_out():
    late = Finish(run="b", outcome="succeeded", reason="late_report")
    assert faults(replace(GOOD, finishes=[GOOD.finishes[0], late], duplicates=[])) == UNEXPLAINED


def test_a_hand_out_that_was_called_twice_is_found():
    again = replace(DONE, line="worker-1.8.jsonl:9", worker="worker-1", pid=8)
    assert faults(replace(GOOD, executions=[*GOOD.executions, again])) == [
        "worker-0.7.jsonl:1, worker-1.8.jsonl:9: run a was called 2 times with token 4"
    ]


# --- attempts ---


def test_a_success_that_no_ledger_knows_is_found():
    assert faults(replace(GOOD, executions=[FIRST, SECOND])) == [
        "run a, attempt 1, token 4: the topics call it succeeded, no ledger knows it"
    ]


def test_an_attempt_that_is_said_to_have_begun_and_that_no_ledger_knows_is_found():
    assert faults(replace(GOOD, executions=[DONE, SECOND])) == [
        "run b, attempt 1, token 5: the topics call it begun, no ledger knows it"
    ]


def test_one_whose_worker_was_killed_before_its_task_could_note_anything_may_be_called_begun():
    unnoted = replace(GOOD, executions=[DONE, SECOND], duplicates=[])
    kill = Kill(worker="worker-1", pid=8, at=110.5)
    assert faults(replace(unnoted, kills=[kill])) == []
    begun = ["run b, attempt 1, token 5: the topics call it begun, no ledger knows it"]
    assert faults(replace(unnoted, kills=[replace(kill, at=110.6)])) == begun
    assert faults(replace(unnoted, kills=[replace(kill, at=90.4)])) == begun
    assert faults(replace(unnoted, kills=[replace(kill, worker="worker-0")])) == begun


def test_a_success_is_not_excused_by_a_kill():
    kill = Kill(worker="worker-0", pid=7, at=100.5)
    assert faults(replace(GOOD, executions=[FIRST, SECOND], kills=[kill])) == [
        "run a, attempt 1, token 4: the topics call it succeeded, no ledger knows it"
    ]


def test_a_hand_out_that_was_lost_before_it_began_needs_no_execution():
    assert faults(with_attempt(Key("b", 1, 6), Attempt(outcome="lost"))) == []


# --- the user's database ---


def test_a_stale_write_that_was_taken_is_found():
    taken = [replace(each, accepted=True) for each in GOOD.writes]
    assert faults(replace(GOOD, writes=taken)) == ["run b: a write with token 5 was taken behind one with 9"]


def test_the_database_takes_what_has_the_largest_token_and_refuses_what_has_a_smaller_one(tmp_path: Path):
    path = tmp_path / "user.sqlite"
    executions.create_database(path)
    taken = [
        executions.write(path, run="b", token=token, step="done") for token in (5, 9, 5, 9)
    ]  # fmt: skip
    assert taken == [True, True, False, True]
    assert executions.writes(path) == list(GOOD.writes[1:])


# --- the ledger ---


def test_what_a_process_notes_is_read_again_also_of_a_call_that_never_ended(tmp_path: Path):
    (tmp_path / "worker-0.7.jsonl").write_text(
        '{"run":"a","token":4,"attempt":1,"begun":100.0}\n'
        '{"run":"b","token":5,"attempt":2,"begun":101.0}\n'
        '{"run":"a","token":4,"outcome":"failed","ended":103.0}\n',
        encoding="utf-8",
    )
    assert executions.executions(tmp_path) == [
        replace(DONE, outcome="failed"),
        replace(DONE, line="worker-0.7.jsonl:2", run="b", attempt=2, token=5, begun=101.0, ended=None, outcome=""),
    ]


def test_a_ledger_notes_how_a_call_ended(tmp_path: Path):
    ledger = executions.Ledger(tmp_path, "worker-3")
    with ledger.execution(run="a", attempt=1, token=4):
        pass
    with pytest.raises(ValueError, match="wrong"), ledger.execution(run="b", attempt=1, token=5):
        raise ValueError("wrong")
    found = executions.executions(tmp_path)
    assert [(each.worker, each.run, each.outcome) for each in found] == [
        ("worker-3", "a", "succeeded"),
        ("worker-3", "b", "failed"),
    ]
