"""A cancel against everything that may happen to its run, through both cores: each interleaving, an honest answer.

The wish is published, the scheduler passes it on or answers, the dispatcher reads it behind the run, and the outcome
comes back to the scheduler: at every one of these steps the run may be somewhere else.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import Any

import pytest

from schemas.facts import AttemptFinished, AttemptStarted, Outcome, RunCancelRequested, RunCreated, RunFinished
from schemas.internal import CommandAnswered, FinishedLease, HandOut, LeaseNotice
from tests.dispatcher.harness import QUEUE, T0, TASK, Bench, WorkerSim, ended, failed, of, only, succeeded
from tests.scheduler.harness import Shell

JOB = {
    "queue": QUEUE,
    "target": {"type": "task", "name": TASK},
    "timeout": "PT1H",
    "lease": "PT2H",
    "retry": {"max_attempts": 2, "initial": "PT1S", "jitter": "none"},
}
HONEST = {"cancelled_before_dispatch", "cancelled_between_attempts", "cancel_requested", "already_finished"}


class Line:
    """One schedule with one run, one shard, one worker. A step that cannot happen yet does nothing."""

    def __init__(self) -> None:
        self.shell = Shell(T0.replace(tzinfo=None).isoformat())
        self.shell.put(body={"trigger": {"every": "PT1H"}, "job": JOB})
        self.shell.send("ScheduleTrigger")
        self.bench = Bench()
        self.worker = WorkerSim(self.bench)
        self.bench.give(self.shell.all(RunCreated)[0])
        self.run_id = self.shell.all(RunCreated)[0].run_id
        self.passed: list[RunCancelRequested] = []
        self.asked_at = -1  # how much the dispatcher had decided when it read the wish
        self.told = 0

    def do(self, step: str) -> None:
        match step:
            case "wish":
                facts = self.shell.send("RunCancel", run_id=self.run_id, id="wish")
                self.passed += [fact for fact in facts if isinstance(fact, RunCancelRequested)]
            case "passed on":
                self.pass_on()
            case "hand-out":
                self.report(slots=0 if self.live() else 1)
            case "start":
                self.report(slots=0, started=self.live())
            case "failure":
                self.report(slots=0, finished=[failed(item) for item in self.live()])
            case "retry":
                self.bench.later(5)
            case "end":
                self.report(slots=0, finished=[succeeded(item) for item in self.live()])
            case "timeout":
                self.bench.later(2 * 3600)
            case "told":
                self.tell()

    def pass_on(self) -> None:
        for request in self.passed:
            self.asked_at = len(self.bench.facts)
            self.bench.give(request)
        self.passed = []

    def tell(self) -> None:
        finished = self.bench.all(RunFinished)
        self.shell.now = max(self.shell.now, self.bench.now)
        for fact in finished[self.told :]:
            self.shell.finish(fact.run_id, fact.outcome)
        self.told = len(finished)

    def drain(self) -> None:
        """Everything is delivered, and the worker does as it is told."""
        self.pass_on()
        for _ in range(4):
            asked = {lease for fact in self.bench.all(LeaseNotice) for lease in fact.cancelled}
            words = [ended(item, "cancelled") if item.lease in asked else succeeded(item) for item in self.live()]
            self.report(slots=1, started=self.live(), finished=words)
            self.bench.later(60)
        self.tell()

    def report(self, *, slots: int, started: Sequence[HandOut] = (), finished: Sequence[FinishedLease] = ()) -> None:
        done = {entry.lease for entry in finished}
        held = [item for item in self.live() if item.lease not in done]
        self.worker.report(slots=slots, held=held, started=started, finished=finished)

    def live(self) -> list[HandOut]:
        leases = {open_run.lease for open_run in self.bench.state.runs.values() if open_run.is_leased}
        return [item for item in self.worker.inbox_records() if item.lease in leases]

    def answers(self) -> list[CommandAnswered]:
        """Of either side: one wish has one answer."""
        said = [*self.shell.facts, *self.bench.facts]
        return [fact for fact in said if isinstance(fact, CommandAnswered) and fact.command_id == "wish"]


def lived(order: Sequence[str]) -> Line:
    line = Line()
    for step in order:
        line.do(step)
    line.drain()
    return line


def judge(line: Line) -> str:
    """The one outcome, and an answer that the log bears out."""
    (answer,) = line.answers()
    finished = only(line.bench.facts, RunFinished)
    state: str = answer.body["state"]
    assert state in HONEST
    before, after = line.bench.facts[: line.asked_at], line.bench.facts[line.asked_at :]
    if state == "already_finished":
        assert answer.body.get("outcome", finished.outcome) == finished.outcome
        assert line.asked_at < 0 or of(before, RunFinished)
        return state
    assert of(after, HandOut) == [], "nothing begins behind the answer"
    if state == "cancelled_before_dispatch":
        assert of(line.bench.facts, HandOut) + of(line.bench.facts, AttemptStarted) == []
    if state == "cancelled_between_attempts":
        assert of(before, AttemptFinished)
    expected = {Outcome.CANCELLED, Outcome.SUCCEEDED} if state == "cancel_requested" else {Outcome.CANCELLED}
    assert finished.outcome in expected
    return state


def interleavings(steps: Sequence[str]) -> list[tuple[str, ...]]:
    """The orders in which these can come: nothing is passed on before it was wished."""
    return [order for order in permutations(steps) if order.index("wish") < order.index("passed on")]


LIVES: dict[str, tuple[str, ...]] = {
    "hand-out, start and completion": ("hand-out", "start", "end", "told"),
    "a failure and its retry": ("hand-out", "failure", "retry"),
    "a timeout": ("hand-out", "start", "timeout"),
    "a timeout and a completion at once": ("hand-out", "timeout", "end"),
}


@pytest.mark.parametrize("life", LIVES)
def test_in_every_interleaving_there_is_one_outcome_and_one_answer_that_the_log_bears_out(life):
    orders = interleavings(("wish", "passed on", *LIVES[life]))
    assert len(orders) in {60, 360}
    for order in orders:
        line = lived(order)
        told = f"{' → '.join(order)}: {[type(fact).__name__ for fact in line.bench.facts]}"
        assert judge(line) in HONEST, told
        assert line.shell.schedule().open_runs == 0, told


def test_the_interleavings_reach_every_answer():
    orders = (order for life in LIVES.values() for order in interleavings(("wish", "passed on", *life))[::7])
    reached = {judge(lived(order)) for order in orders}
    assert reached == HONEST


@pytest.mark.parametrize(
    ("order", "answer"),
    [
        (["wish", "passed on", "hand-out"], {"state": "cancelled_before_dispatch", "attempts": 0}),
        (["hand-out", "wish", "passed on", "start", "end"], {"state": "cancel_requested", "attempt": 1}),
        (["hand-out", "wish", "start", "end", "passed on"], {"state": "already_finished", "outcome": "succeeded"}),
        (["hand-out", "failure", "wish", "passed on"], {"state": "cancelled_between_attempts", "attempts": 1}),
        (["hand-out", "start", "end", "told", "wish"], {"state": "already_finished"}),
        (["hand-out", "start", "end", "wish", "told", "passed on"], {"state": "already_finished", "attempts": 1}),
    ],
)
def test_what_was_true_when_the_wish_was_read_is_what_is_said(order: list[str], answer: dict[str, Any]):
    line = lived(order)
    body = dict(line.answers()[0].body)
    assert {name: body[name] for name in answer} == answer
    judge(line)
