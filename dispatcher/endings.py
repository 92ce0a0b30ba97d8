"""What follows when an attempt ends: another attempt, now or later, or the run's one outcome.

The order of the questions is the policy:

    it succeeded                          succeeded
    someone asked the run to end          cancelled, however the attempt ended
    the run's deadline has passed, or
    that by which it had to begin         expired
    the attempt burns none                handed out again at once; quarantined when its workers died of it
    the job's rules refuse another try    failed
    attempts are left                     retry_wait
    the job has one attempt only          failed, or timed_out when it took too long: there was nothing to use up
    attempts are used up                  dead_lettered, with a dead letter
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, NamedTuple

import orjson

from dispatcher import backoff, breakers
from dispatcher.run import OpenRun, key_of
from dispatcher.shard import Shard
from schemas.facts import (
    AttemptFinished,
    AttemptOutcome,
    DeadLetter,
    ErrorInfo,
    Fact,
    Outcome,
    RetryPolicy,
    RunFinished,
    RunRetryScheduled,
)

RESULT_BYTES_MAX = 16 * 1024  # contract: a larger result belongs where it can be looked at, not into every log
ERROR_TYPE_MAX = 256
ERROR_MESSAGE_MAX = 4096
BLAME_MAX = 2.0  # two workers died that held nothing else, or twenty with nine others each
LOSSES_MAX = 3  # in any case: so many workers died in a row with the run begun
RETRY_AFTER_MAX = timedelta(days=7)  # what a worker may ask for at most; a run's deadline ends it before

COME_BACK = frozenset({"http:408", "http:425", "http:429"})  # of 4xx: the same request may succeed later

SPARED = frozenset({AttemptOutcome.INTERRUPTED, AttemptOutcome.LOST})  # the machinery's fault burns no attempt

_WORDS = {
    AttemptOutcome.TIMED_OUT: "the attempt took longer than its timeout",
    AttemptOutcome.LEASE_EXPIRED: "the worker did not report for as long as its lease",
    AttemptOutcome.LOST: "the worker lost the run",
    AttemptOutcome.INTERRUPTED: "the worker gave the run back",
    AttemptOutcome.CANCELLED: "the run was cancelled",
    AttemptOutcome.FAILED: "the attempt failed",
}


class Ending(NamedTuple):
    """How an attempt ends. `started_at` is given when the same decision says that it started.

    `with_worker`: its worker went, or fell silent, with all that it held.

    A named tuple because each attempt has one and it is made quickly.
    """

    outcome: AttemptOutcome
    at: datetime
    started_at: datetime | None = None
    result: Any = None
    error: ErrorInfo | None = None
    retry_after: timedelta | None = None
    with_worker: bool = False


def attempt_ended(shard: Shard, run: OpenRun, ending: Ending) -> list[Fact]:
    """The end of a leased run's attempt, and what follows from it."""
    started_at = run.attempt_started_at or ending.started_at
    blame = _blame(shard, run, ending, started_at)
    held = len(shard.workforce.of(run).leases) if ending.with_worker else 0
    finished = AttemptFinished(
        tenant=run.tenant, schedule=run.schedule, run_id=run.run_id, attempt=run.attempts, outcome=ending.outcome,
        worker=shard.workforce.of(run).record.worker, incarnation=run.incarnation, handout=run.lease_offset,
        handed_out_at=run.handed_out(), started_at=started_at, finished_at=ending.at,
        counted=ending.outcome not in SPARED, error=cut_error(ending.error), queue=shard.queue, shard=shard.number,
        blame=blame, held=held,
    )  # fmt: skip
    return [finished, *_consequence(shard, run, ending, blame)]


def finish(shard: Shard, run: OpenRun, outcome: Outcome, ending: Ending, *, reason: str = "") -> RunFinished:
    """The one outcome of a run."""
    body = shard.bodies.get(key_of(run))
    error = None if outcome is Outcome.SUCCEEDED else cut_error(ending.error)
    return RunFinished(
        tenant=run.tenant, schedule=run.schedule, run_id=run.run_id, version=body.version, cause=body.cause,
        outcome=outcome, attempts=run.attempts, created_at=body.created_at, finished_at=ending.at,
        nominal_time=body.nominal_time, started_at=run.started_at or ending.started_at,
        result=cut_result(ending.result) if outcome is Outcome.SUCCEEDED else None, error=error, of=body.of,
        labels=body.labels, reason=reason, queue=shard.queue, shard=shard.number,
    )  # fmt: skip


def cut_error(error: ErrorInfo | None) -> ErrorInfo | None:
    """An error within the lengths that events promise."""
    if error is None or (len(error.type) <= ERROR_TYPE_MAX and len(error.message) <= ERROR_MESSAGE_MAX):
        return error
    return ErrorInfo(type=error.type[:ERROR_TYPE_MAX], message=error.message[:ERROR_MESSAGE_MAX])


def cut_result(result: Any) -> Any:
    """The result, or a mark in its place when it is too large: the run has succeeded all the same."""
    if result is None:
        return None
    size = len(orjson.dumps(result))
    return result if size <= RESULT_BYTES_MAX else {"truncated": True, "bytes": size, "bytes_max": RESULT_BYTES_MAX}


def is_refused(policy: RetryPolicy, error: ErrorInfo | None) -> bool:
    """Whether this error is never tried again: by the job's rules, or because HTTP says that the request was wrong."""
    return error is not None and any(_matches(rule, error.type) for rule in (*policy.never_on, "http:4xx"))


def _matches(rule: str, error_type: str) -> bool:
    """`ValueError` matches itself; `http:4xx` every `http:4` with two digits behind it that does not say: later."""
    if error_type in COME_BACK:
        return rule == error_type
    if rule.startswith("http:") and rule.endswith("xx"):
        return error_type.startswith(rule[:-2]) and len(error_type) == len(rule) and error_type[-2:].isdigit()
    return rule == error_type


def _blame(shard: Shard, run: OpenRun, ending: Ending, started_at: datetime | None) -> float:
    """The run's share in the loss of its worker.

    Any run that the worker held may have been what it died of, also one of which nobody heard that it began; but
    where suspects were aboard it was one of them. What a living worker lost is the fault of what had begun there.
    """
    held = shard.workforce.of(run).leases.values()
    if ending.with_worker:
        suspects = shard.breakers.suspects_with(run.incarnation)
        return breakers.share(suspects or len(held)) if shard.breakers.tries(run) or not suspects else 0.0
    if ending.outcome is not AttemptOutcome.LOST or started_at is None:
        return 0.0
    return breakers.share(sum(1 for each in held if each.attempt_started_at is not None))


def _is_poison(run: OpenRun, blame: float, *, has_begun: bool) -> bool:
    return blame > 0 and (run.losses + has_begun >= LOSSES_MAX or round(run.blame + blame, 6) >= BLAME_MAX)


def _consequence(shard: Shard, run: OpenRun, ending: Ending, blame: float) -> list[Fact]:
    if ending.outcome is AttemptOutcome.SUCCEEDED:
        return [finish(shard, run, Outcome.SUCCEEDED, ending)]
    said = _with_words(ending)
    if run.cancel_requested or ending.outcome is AttemptOutcome.CANCELLED:
        return [finish(shard, run, Outcome.CANCELLED, ending)]
    if reason := run.expired_by(ending.at, begun=ending.started_at is not None):
        return [finish(shard, run, Outcome.EXPIRED, said, reason=reason)]
    if ending.outcome in SPARED:
        has_begun = (run.attempt_started_at or ending.started_at) is not None
        is_poison = _is_poison(run, blame, has_begun=has_begun)
        return _give_up(shard, run, said, reason="quarantined") if is_poison else []
    policy = shard.bodies.get(key_of(run)).job.retry
    if is_refused(policy, ending.error):
        return [finish(shard, run, Outcome.FAILED, said, reason="never_on")]
    used = run.used + 1
    if used < policy.max_attempts:
        return [_retry(shard, run, policy, used, ending)]
    if policy.max_attempts == 1:
        outcome = Outcome.TIMED_OUT if ending.outcome is AttemptOutcome.TIMED_OUT else Outcome.FAILED
        return [finish(shard, run, outcome, said)]
    return _give_up(shard, run, said, reason="attempts_used_up")


def _retry(shard: Shard, run: OpenRun, policy: RetryPolicy, used: int, ending: Ending) -> Fact:
    """The next attempt: after its backoff, and not before the worker asked for."""
    asked_for = min(ending.retry_after or timedelta(), RETRY_AFTER_MAX)
    return RunRetryScheduled(
        tenant=run.tenant, schedule=run.schedule, run_id=run.run_id, attempt=run.attempts + 1,
        retry_at=ending.at + max(backoff.delay(policy, used, run.run_id), asked_for), decided_at=ending.at,
        error=cut_error(ending.error), queue=shard.queue, shard=shard.number,
    )  # fmt: skip


def _give_up(shard: Shard, run: OpenRun, ending: Ending, *, reason: str) -> list[Fact]:
    letter = DeadLetter(
        tenant=run.tenant, schedule=run.schedule, run_id=run.run_id, run=shard.bodies.get(key_of(run)),
        attempts=run.attempts, finished_at=ending.at, error=cut_error(ending.error), reason=reason,
    )  # fmt: skip
    return [letter, finish(shard, run, Outcome.DEAD_LETTERED, ending, reason=reason)]


def _with_words(ending: Ending) -> Ending:
    """An ending that always has an error to show."""
    if ending.error is not None:
        return ending
    error = ErrorInfo(type=ending.outcome.value, message=_WORDS[ending.outcome])
    return Ending(outcome=ending.outcome, at=ending.at, started_at=ending.started_at, error=error)
