"""Judges a storm over workers: what the topics say, against what the tasks noted of themselves.

Pure: evidence in, faults out. It knows nothing of how a dispatcher decides. Each execution must be explained:

    the topics say          the ledger may say
    ----------------------  ---------------------------------------------------------------------------------------
    succeeded, failed       the same, and nothing else
    taken back (lost,       stopped: it was interrupted, and said nothing because it was told not to
    lease_expired,          succeeded or failed: reported too late (`attempt.duplicate`, or the run's own success, if
    timed_out, interrupted) nobody had been given the run), or its worker was killed before it could say so
                            nothing: its worker was killed while it ran

and what the topics call begun must have begun, unless its worker was killed between that word and the task's own.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tests.storm.executions import Execution, Write

SAID = frozenset({"succeeded", "failed"})  # what only a task that came to its end can have led to
WORDLESS_SECONDS_MAX = 10.0  # awake between the end of a task and the kill: later it would have been said
BEGINNING_SECONDS_MAX = 10.0  # between the kill and the owner's reading that a task begins, whichever was first


class Key(NamedTuple):
    """A hand-out: `token` is its fencing token."""

    run: str
    attempt: int
    token: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """What the topics say of a hand-out. `outcome` is empty as long as they do not say how it ended, and `started_at`,
    seconds of the wall clock at which `worker` was read to begin, is None as long as they do not say that.
    """

    outcome: str = ""
    started_at: float | None = None
    worker: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finish:
    """An outcome of a run."""

    run: str
    outcome: str
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Duplicate:
    """A report that came when its hand-out no longer counted."""

    run: str
    token: int
    reported: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """A worker that was ended without a word; instants in seconds of the wall clock."""

    worker: str
    pid: int
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Freeze:
    """A worker that stood still."""

    worker: str
    pid: int
    since: float
    until: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """All there is to judge by. Facts that the log holds twice, under the same id, are given once."""

    created: Sequence[str] = ()
    finishes: Sequence[Finish] = ()
    attempts: Mapping[Key, Attempt] = field(default_factory=dict)
    duplicates: Sequence[Duplicate] = ()
    executions: Sequence[Execution] = ()
    kills: Sequence[Kill] = ()
    freezes: Sequence[Freeze] = ()
    writes: Sequence[Write] = ()


class Counts(NamedTuple):
    """How much there was to judge: what observed nothing has proved nothing."""

    runs: int
    executions: int
    kills: int
    freezes: int
    explained: Mapping[str, int]  # executions by what explains them
    attempts: Mapping[str, int]  # by their end
    outcomes: Mapping[str, int]
    duplicates: int
    late_successes: int
    writes: int
    stale_refused: int


def faults(evidence: Evidence) -> list[str]:
    """All that must not be, each with the line or the run that it is about."""
    return [
        *_of_outcomes(evidence),
        *(why for _, why in _explained(evidence) if why),
        *_called_twice(evidence.executions),
        *_of_attempts(evidence),
        *_of_writes(evidence.writes),
    ]


def counts(evidence: Evidence) -> Counts:
    """How much there was."""
    return Counts(
        runs=len(set(evidence.created)),
        executions=len(evidence.executions),
        kills=len(evidence.kills),
        freezes=len(evidence.freezes),
        explained=_sorted(explanation for explanation, _ in _explained(evidence)),
        attempts=_sorted(attempt.outcome for attempt in evidence.attempts.values()),
        outcomes=_sorted(finish.outcome for finish in evidence.finishes),
        duplicates=len(evidence.duplicates),
        late_successes=sum(finish.reason == "late_report" for finish in evidence.finishes),
        writes=len(evidence.writes),
        stale_refused=sum(not write.accepted for write in evidence.writes),
    )


def _sorted(names: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(names).items()))


def _of_outcomes(evidence: Evidence) -> Iterator[str]:
    ended = Counter(finish.run for finish in evidence.finishes)
    created = set(evidence.created)
    yield from (f"run {run} has no outcome" for run in sorted(created - ended.keys()))
    yield from (f"run {run} has {count} outcomes" for run, count in sorted(ended.items()) if count > 1)
    yield from (f"run {run} has an outcome and was never created" for run in sorted(ended.keys() - created))


def _explained(evidence: Evidence) -> Iterator[tuple[str, str]]:
    """Of each execution what explains it, and what is wrong with it, of which one is empty."""
    told = {(each.run, each.token, each.reported) for each in evidence.duplicates}
    last = _last_tokens(evidence.attempts)
    late = {
        (each.run, last.get(each.run, -1), "succeeded") for each in evidence.finishes if each.reason == "late_report"
    }
    for each in evidence.executions:
        attempt = evidence.attempts.get(Key(each.run, each.attempt, each.token))
        word = (each.run, each.token, each.outcome)
        if attempt is None:
            yield "", f"{_named(each)}: the topics know of no such attempt"
        elif attempt.outcome == "":
            yield "", f"{_named(each)}: the topics do not say how the attempt ended"
        elif attempt.outcome in SAID:
            wrong = "" if each.outcome == attempt.outcome else f"{_named(each)}: the topics call it {attempt.outcome}"
            yield ("" if wrong else attempt.outcome), wrong
        elif each.outcome == "stopped":
            yield "stopped", ""
        elif word in told or word in late:
            yield "reported late", ""
        elif _died_without_a_word(each, evidence):
            yield "died without a word", ""
        else:
            yield "", f"{_named(each)}: {attempt.outcome}, nobody reported it, and its worker was not killed"


def _named(execution: Execution) -> str:
    ended = execution.outcome or "never ended"
    return f"{execution.line}: run {execution.run}, attempt {execution.attempt}, token {execution.token}, {ended}"


def _last_tokens(attempts: Iterable[Key]) -> dict[str, int]:
    last: dict[str, int] = {}
    for key in attempts:
        last[key.run] = max(key.token, last.get(key.run, -1))
    return last


def _died_without_a_word(execution: Execution, evidence: Evidence) -> bool:
    """Whether its process was killed while it ran, or so soon behind its end that nobody can have heard of it."""
    kill = next((each for each in evidence.kills if (each.worker, each.pid) == (execution.worker, execution.pid)), None)
    if kill is None or kill.at < execution.begun:
        return False
    if execution.ended is None:
        return True
    frozen = sum(
        max(0.0, min(each.until, kill.at) - max(each.since, execution.ended))
        for each in evidence.freezes
        if (each.worker, each.pid) == (execution.worker, execution.pid)
    )
    return kill.at - execution.ended - frozen <= WORDLESS_SECONDS_MAX


def _called_twice(executions: Iterable[Execution]) -> Iterator[str]:
    """A hand-out is one call: two attempts of a run have two hand-outs."""
    lines: dict[tuple[str, int], list[str]] = defaultdict(list)
    for each in executions:
        lines[each.run, each.token].append(each.line)
    for (run, token), where in sorted(lines.items()):
        if len(where) > 1:
            yield f"{', '.join(where)}: run {run} was called {len(where)} times with token {token}"


def _of_attempts(evidence: Evidence) -> Iterator[str]:
    noted = {Key(each.run, each.attempt, each.token) for each in evidence.executions}
    for key, attempt in sorted(evidence.attempts.items()):
        if key in noted or _died_at_its_beginning(attempt, evidence.kills):
            continue
        if attempt.started_at is not None or attempt.outcome in SAID:
            said = attempt.outcome if attempt.outcome in SAID else "begun"
            named = f"run {key.run}, attempt {key.attempt}, token {key.token}"
            yield f"{named}: the topics call it {said}, no ledger knows it"


def _died_at_its_beginning(attempt: Attempt, kills: Iterable[Kill]) -> bool:
    """Whether its worker was killed when it had said that the task begins, and the task had noted nothing yet."""
    if attempt.started_at is None or attempt.outcome in SAID:
        return False
    began = attempt.started_at
    return any(each.worker == attempt.worker and abs(each.at - began) <= BEGINNING_SECONDS_MAX for each in kills)


def _of_writes(writes: Iterable[Write]) -> Iterator[str]:
    """A stale write: accepted with a lower token behind a higher one."""
    newest: dict[str, int] = {}
    for each in writes:
        if not each.accepted:
            continue
        if each.token < newest.get(each.run, each.token):
            yield f"run {each.run}: a write with token {each.token} was taken behind one with {newest[each.run]}"
        newest[each.run] = max(each.token, newest.get(each.run, each.token))
