"""I14: the answer to a cancel is true.

In the order of the dispatcher's decisions, told

    cancelled_before_dispatch     no hand-out before it nor ever after, user code never ran, the outcome is `cancelled`
    cancelled_between_attempts    a hand-out before it and none after, the outcome is `cancelled`
    cancel_requested              a hand-out before it and none after
    already_finished              an outcome before it; the one that is named, where one is

A scheduler that answers `already_finished` has read an outcome; one that knows no run of that name has created none
before. A command that comes again is told what it was told at first, whatever was created since. What the caller of the
API was told is one of the answers in the log.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from schemas import topics
from simulation.checkers.reading import DISPATCHER, SCHEDULER, Fact, events, facts
from simulation.evidence import Evidence, Violation
from simulation.history import OK

ID = "I14"
CANCELLED = {"cancelled_before_dispatch", "cancelled_between_attempts"}
STATES = CANCELLED | {"cancel_requested", "already_finished"}
RUN = tuple[str, str]


@dataclass(slots=True)
class _Run:
    """What the dispatcher has decided of a run so far, and what it has told."""

    handouts: int = 0
    outcome: str | None = None
    told: list[tuple[str, Fact]] = field(default_factory=list)


def observed(evidence: Evidence) -> int:
    """How many cancels were answered."""
    return sum(1 for role in (SCHEDULER, DISPATCHER) for _ in _answers(facts(evidence, role)))


def check(evidence: Evidence) -> Iterator[Violation]:
    """Every answer that was not true, or that became untrue."""
    runs: dict[RUN, _Run] = {}
    for fact in facts(evidence, DISPATCHER):
        yield from _decided(runs, fact)
    for run in runs.values():
        yield from _kept(run)
    ran = {(execution.tenant, execution.run_id): execution for execution in evidence.executions}
    for key, run in runs.items():
        if key in ran and any(state == "cancelled_before_dispatch" for state, _ in run.told):
            what = f"{key[0]}: run {key[1]} ran on {ran[key].worker}, and was told to be cancelled before its hand-out"
            yield Violation(invariant=ID, what=what, where=run.told[0][1].place)
    yield from _schedulers(evidence)
    yield from _callers(evidence)


def _decided(runs: dict[RUN, _Run], fact: Fact) -> Iterator[Violation]:
    if fact.type == "run.handed_out":
        run = runs.setdefault((fact.data["run"]["tenant"], fact.data["run"]["run_id"]), _Run())
        run.handouts += 1
        for state, _ in run.told:
            if state != "already_finished":
                what = f"run {fact.data['run']['run_id']} is handed out, and its canceller was told {state}"
                yield Violation(invariant=ID, what=what, where=fact.place)
    elif fact.type == "run.finished":
        run = runs.setdefault((fact.data["tenant"], fact.data["run_id"]), _Run())
        run.outcome = run.outcome or fact.data["outcome"]
    elif (answer := _state(fact)) is not None:
        body = fact.data["body"]
        run = runs.setdefault((body["tenant"], body["run_id"]), _Run())
        run.told.append((answer, fact))
        yield from _true(run, answer, fact)


def _true(run: _Run, state: str, fact: Fact) -> Iterator[Violation]:
    """Whether an answer was true when it was given."""
    untrue = {
        "cancelled_before_dispatch": run.handouts > 0,
        "cancelled_between_attempts": run.handouts == 0,
        "cancel_requested": run.handouts == 0 or run.outcome is not None,
        "already_finished": run.outcome is None or fact.data["body"].get("outcome", run.outcome) != run.outcome,
    }
    if untrue[state]:
        what = f"{_named(fact)}: told {state}, with {run.handouts} hand-outs and the outcome {run.outcome}"
        yield Violation(invariant=ID, what=what, where=fact.place)


def _kept(run: _Run) -> Iterator[Violation]:
    """Whether what was said of the outcome came to be."""
    for state, fact in run.told:
        if state in CANCELLED and run.outcome != "cancelled":
            what = f"{_named(fact)}: told {state}, and its outcome is {run.outcome}"
            yield Violation(invariant=ID, what=what, where=fact.place)


def _schedulers(evidence: Evidence) -> Iterator[Violation]:
    ended = {
        (event.data["tenant"], event.data["run_id"])
        for event in events(evidence, topics.RUN_OUTCOMES)
        if event.type == "run.finished"
    }
    created: set[RUN] = set()
    told_before: set[tuple[RUN, str]] = set()  # of runs that there were not, and by which commands they were asked for
    for fact in facts(evidence, SCHEDULER):
        if fact.type == "run.created":
            created.add((fact.data["tenant"], fact.data["run_id"]))
        elif fact.type == "command.answered":
            body = fact.data["body"]
            run = (str(body.get("tenant")), str(body.get("run_id")))
            if body.get("state") == "already_finished" and run not in ended:
                what = f"{_named(fact)}: told already_finished, and there is no outcome"
                yield Violation(invariant=ID, what=what, where=fact.place)
            if body.get("reason") == "not_found" and "run_id" in body:
                asked = run, fact.data["command_id"]
                if run not in created:
                    told_before.add(asked)
                elif asked not in told_before:
                    what = f"{_named(fact)}: told that there is none, and there is"
                    yield Violation(invariant=ID, what=what, where=fact.place)


def _callers(evidence: Evidence) -> Iterator[Violation]:
    told: dict[str, set[str]] = {}
    for role in (SCHEDULER, DISPATCHER):
        for fact, state in _answers(facts(evidence, role)):
            told.setdefault(fact.data["command_id"], set()).add(state)
    for call in evidence.history:
        heard = call.answer.get("state")
        if call.kind == "run.cancel" and call.result == OK and heard not in told.get(call.command_id, set()):
            what = f"was told {heard}; the log says {sorted(told.get(call.command_id, ()))}"
            yield Violation(invariant=ID, what=what, where=f"call {call.number}, {call.kind}")


def _answers(said: list[Fact]) -> Iterator[tuple[Fact, str]]:
    for fact in said:
        state = _state(fact)
        if state is not None:
            yield fact, state


def _state(fact: Fact) -> str | None:
    """What an answer to a cancel says of its run; None for any other fact."""
    if fact.type != "command.answered" or "run_id" not in fact.data["body"]:
        return None
    state = fact.data["body"].get("state")
    return state if state in STATES else None


def _named(fact: Fact) -> str:
    body = fact.data["body"]
    return f"{body.get('tenant')}: run {body.get('run_id')}"
