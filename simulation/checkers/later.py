"""What a failed attempt says of another one is heeded: a part of I20.

- Whoever asked not to be called again before so long is not.
- What the job's rules refuse, and what HTTP calls the caller's own mistake, is not tried again; nothing else is given
  up for that reason.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from schemas import topics
from simulation.checkers.marks import duration
from simulation.checkers.reading import DISPATCHER, Data, Fact, events, facts, instant
from simulation.evidence import Evidence, Violation

ID = "I20"
RUN = tuple[str, str]  # tenant, run id
MISTAKE = "http:4xx"  # for every job
COME_BACK = frozenset({"http:408", "http:425", "http:429"})  # the same may succeed later, unless a job names it
STATUS_DIGITS = 3


@dataclass(slots=True)
class _Run:
    """A run, its newest lease, and the end of its last attempt."""

    retry: Data
    lease: str
    failed: Fact | None = None


def check(evidence: Evidence) -> Iterator[Violation]:
    """Every run that was tried again too early, or in vain, or not at all."""
    asked = _asked(evidence)
    runs: dict[RUN, _Run] = {}
    for fact in facts(evidence, DISPATCHER):
        if fact.type == "run.handed_out":
            run = fact.data["run"]
            runs[run["tenant"], run["run_id"]] = _Run(run["job"].get("retry", {}), fact.data["lease"])
            continue
        known = runs.get((fact.data.get("tenant", ""), fact.data.get("run_id", "")))
        if known is None:
            continue
        match fact.type:
            case "attempt.finished":
                known.failed = fact if fact.data["outcome"] == "failed" else None
            case "run.retry_scheduled" if known.failed is not None:
                yield from _again(known, known.failed, fact, asked)
            case "run.finished" if fact.data.get("reason") == "never_on":
                error = _error(fact.data)
                if not _is_refused(known, error):
                    yield _violation(fact, f"is given up for {error}, which nobody refuses")


def _again(run: _Run, failed: Fact, fact: Fact, asked: dict[str, timedelta]) -> Iterator[Violation]:
    error = _error(failed.data)
    if _is_refused(run, error):
        yield _violation(fact, f"is tried again after {error}, which is refused")
    not_before = instant(failed.data["finished_at"]) + asked.get(run.lease, timedelta(0))
    if instant(fact.data["retry_at"]) < not_before:
        yield _violation(fact, f"is tried again at {fact.data['retry_at']}, and asked for {not_before:%H:%M:%S.%f}")


def _asked(evidence: Evidence) -> dict[str, timedelta]:
    """By lease, how long its holder said is to be waited."""
    found: dict[str, timedelta] = {}
    for event in events(evidence, topics.ATTEMPTS):
        if event.type == "worker.report":
            for entry in event.data.get("finished", ()):
                if entry.get("retry_after"):
                    found.setdefault(entry["lease"], duration(entry["retry_after"]))
    return found


def _is_refused(run: _Run, error: str) -> bool:
    rules = set(run.retry.get("never_on", ()))
    if error in COME_BACK or not error.startswith("http:"):
        return error in rules
    status = error.removeprefix("http:")
    classes = {f"http:{status[:1]}xx"} if len(status) == STATUS_DIGITS and status.isdigit() else set()
    return bool((rules | {MISTAKE}) & (classes | {error}))


def _error(data: Data) -> str:
    return str((data.get("error") or {}).get("type", ""))


def _violation(fact: Fact, what: str) -> Violation:
    run = f"{fact.data['tenant']}: run {fact.data['run_id']}"
    return Violation(invariant=ID, what=f"{run} {what}", where=fact.place)
