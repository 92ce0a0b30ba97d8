"""I6: a run has at most one live lease, and only its newest one can change it.

In the order of the dispatcher's decisions: a run is handed out only while no lease of it is live; an attempt starts and
ends under the live lease; a run never ends while a lease is live (its attempt ends first). Hand-outs of a shard are
numbered upwards. A success counts when it is the newest lease's: the result that a run ends with is one that user code
gave back under the newest hand-out.

User code runs at most once under a lease, as the incarnation that was handed it; a later lease has a higher fencing
token; and who runs a run that another may have begun is told so. No attempt ends by what nobody said (see `said`), and
who takes the name of another leaves it nothing (see `names`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import orjson

from simulation.checkers import names, said
from simulation.checkers.reading import DISPATCHER, Data, Fact, facts
from simulation.evidence import Evidence, Execution, Violation

ID = "I6"
RUN = tuple[str, str]  # tenant, run id


@dataclass(slots=True)
class _Run:
    """A run as its leases tell it."""

    live: int | None = None
    handouts: list[Data] = field(default_factory=list)


def observed(evidence: Evidence) -> int:
    """How many hand-outs and executions were looked at."""
    return sum(fact.type == "run.handed_out" for fact in facts(evidence, DISPATCHER)) + len(evidence.executions)


def check(evidence: Evidence) -> Iterator[Violation]:
    """Every lease beside another, and every word of an old one that counted."""
    runs: dict[RUN, _Run] = {}
    newest: dict[tuple[Any, ...], int] = {}
    results = {_text(execution.result): execution.lease for execution in evidence.executions if execution.result}
    for fact in facts(evidence, DISPATCHER):
        match fact.type:
            case "run.handed_out":
                shard = (fact.place.partition, fact.data["run"]["job"]["queue"], fact.data["shard"])
                yield from _numbered(fact, newest.get(shard, -1))
                newest[shard] = fact.data["offset"]
                yield from _handed_out(runs.setdefault(_run_of(fact.data["run"]), _Run()), fact)
            case "attempt.started" | "attempt.finished":
                yield from _attempt(runs.setdefault(_run_of(fact.data), _Run()), fact)
            case "run.finished" if not fact.data.get("repeat"):
                yield from _finished(runs.setdefault(_run_of(fact.data), _Run()), fact, results)
    yield from _executions(evidence.executions, runs)
    yield from said.check(evidence)
    yield from names.check(evidence)


def _numbered(fact: Fact, newest: int) -> Iterator[Violation]:
    if fact.data["offset"] <= newest:
        what = f"hand-out {fact.data['offset']} of the shard after {newest}"
        yield Violation(invariant=ID, what=what, where=fact.place)


def _handed_out(run: _Run, fact: Fact) -> Iterator[Violation]:
    if run.live is not None:
        what = f"{_named(fact.data['run'])} is handed out as {fact.data['offset']} while lease {run.live} is live"
        yield Violation(invariant=ID, what=what, where=fact.place)
    run.live = fact.data["offset"]
    run.handouts.append(fact.data)


def _attempt(run: _Run, fact: Fact) -> Iterator[Violation]:
    if fact.data["handout"] != run.live:
        what = f"{fact.type} of {_named(fact.data)} under lease {fact.data['handout']}, when {run.live} is live"
        yield Violation(invariant=ID, what=what, where=fact.place)
    elif fact.type == "attempt.finished":
        run.live = None


def _finished(run: _Run, fact: Fact, results: dict[str, str]) -> Iterator[Violation]:
    if run.live is not None:
        what = f"{_named(fact.data)} ends {fact.data['outcome']} while lease {run.live} is live"
        yield Violation(invariant=ID, what=what, where=fact.place)
    lease = results.get(_text(fact.data.get("result")))
    if lease is not None and run.handouts and lease != run.handouts[-1]["lease"]:
        what = f"{_named(fact.data)} ends with the result of lease {lease}, and was handed out again since"
        yield Violation(invariant=ID, what=what, where=fact.place)


def _executions(executions: tuple[Execution, ...], runs: dict[RUN, _Run]) -> Iterator[Violation]:
    begun: dict[str, Execution] = {}
    before: dict[RUN, list[Execution]] = {}
    for execution in sorted(executions, key=lambda item: item.started_at):
        key, where = (execution.tenant, execution.run_id), f"{execution.worker} at {execution.started_at:%H:%M:%S.%f}"
        if (first := begun.setdefault(execution.lease, execution)) is not execution:
            what = f"runs {execution.run_id} under lease {execution.lease} again: {first.worker} did"
            yield Violation(invariant=ID, what=what, where=where)
        yield from _as_handed_out(execution, runs.get(key, _Run()), where)
        yield from _told(execution, before.setdefault(key, []), where)
        before[key].append(execution)


def _as_handed_out(execution: Execution, run: _Run, where: str) -> Iterator[Violation]:
    handout = next((each for each in run.handouts if each["lease"] == execution.lease), None)
    if handout is None:
        what = f"runs {execution.run_id} under lease {execution.lease}, which nobody gave it"
        yield Violation(invariant=ID, what=what, where=where)
    elif (handout["incarnation"], handout["attempt"]) != (execution.incarnation, execution.attempt):
        what = (
            f"runs {execution.run_id} attempt {execution.attempt} as {execution.incarnation}; attempt "
            f"{handout['attempt']} was given to {handout['incarnation']}"
        )
        yield Violation(invariant=ID, what=what, where=where)


def _told(execution: Execution, before: list[Execution], where: str) -> Iterator[Violation]:
    """What an execution knows of those before it. Tokens are compared as text of one length (contract: they grow)."""
    for other in before:
        if other.attempt < execution.attempt and not _token(other) < _token(execution):
            what = f"fencing token {execution.fencing_token} of {execution.run_id} is not above {other.fencing_token}"
            yield Violation(invariant=ID, what=what, where=where)
    if before and not execution.may_have_run and min(each.attempt for each in before) < execution.attempt:
        what = f"runs {execution.run_id} attempt {execution.attempt} and is not told that it may have run before"
        yield Violation(invariant=ID, what=what, where=where)


def _token(execution: Execution) -> tuple[int, str]:
    return len(execution.fencing_token), execution.fencing_token


def _text(result: Any) -> str:
    return orjson.dumps(result, option=orjson.OPT_SORT_KEYS).decode()


def _run_of(data: Data) -> RUN:
    return data["tenant"], data["run_id"]


def _named(data: Data) -> str:
    return f"{data['tenant']}: run {data['run_id']}"
