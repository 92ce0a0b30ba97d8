"""The retry budget of a schedule: over ten minutes, retries are at most a share of its first attempts.

A schedule whose runs all fail would else send several times its usual load at what already fails. Ten retries are
always allowed, so that schedules with few runs are not held at all. Beyond it retries wait, which is said of them.

Minutes are counted, the last ten of them. First attempts are counted only of runs that can come so often that their
share is more than what is allowed anyway: every twelve seconds for a fifth, every minute for as many retries as runs.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache

from schemas.facts import Cause, RunCreated
from schemas.frozen import frozen

MINUTES = 10
RETRIES_MIN = 10  # in any ten minutes
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MINUTE = timedelta(minutes=1)
WINDOW = MINUTES * _MINUTE
_NOTHING = (0,) * MINUTES


@frozen
class Budget:
    """First attempts and retries of a schedule, minute by minute; `minute` is the last one, since 1970."""

    subject: str
    minute: int
    percent: int
    firsts: tuple[int, ...] = _NOTHING
    retries: tuple[int, ...] = _NOTHING


def counts(run: RunCreated) -> bool:
    """Whether the first attempt of a run is counted."""
    if run.cause is not Cause.SCHEDULE:
        return True
    if run.nominal_time is None or run.interval_from is None:
        return False  # the first one of its schedule
    return (run.nominal_time - run.interval_from) * RETRIES_MIN < WINDOW * run.job.retry.budget_percent / 100


@lru_cache(maxsize=16)  # a batch asks for one instant, thousands of times
def minute_of(instant: datetime) -> int:
    """The minute that an instant is in."""
    return (instant - _EPOCH) // _MINUTE


def noted(budget: Budget, at: datetime, *, firsts: int = 0, retries: int = 0) -> Budget:
    """The budget with one hand-out more."""
    minute = max(minute_of(at), budget.minute)
    gone = minute - budget.minute
    return Budget(
        subject=budget.subject, minute=minute, percent=budget.percent,
        firsts=_with(budget.firsts, gone, firsts) if gone or firsts else budget.firsts,
        retries=_with(budget.retries, gone, retries) if gone or retries else budget.retries,
    )  # fmt: skip


def opens_at(budget: Budget) -> datetime:
    """From when a retry may be handed out: the beginning of the first minute that has room for it."""
    gone = next(gone for gone in range(MINUTES + 1) if _has_room(budget, gone))
    return _EPOCH + (budget.minute + gone) * _MINUTE


def used(budget: Budget, at: datetime) -> float:
    """Retries of the last ten minutes over those that are allowed; from 1.0 on, the next one waits."""
    gone = min(max(minute_of(at) - budget.minute, 0), MINUTES)
    return sum(budget.retries[gone:]) / _allowed(budget, gone)


def is_over(budget: Budget, at: datetime) -> bool:
    """Whether nothing that it counts is in the window any longer."""
    return minute_of(at) - budget.minute >= MINUTES


def _has_room(budget: Budget, gone: int) -> bool:
    return sum(budget.retries[gone:]) < _allowed(budget, gone)


def _allowed(budget: Budget, gone: int) -> int:
    return max(RETRIES_MIN, sum(budget.firsts[gone:]) * budget.percent // 100)


def _with(minutes: tuple[int, ...], gone: int, more: int) -> tuple[int, ...]:
    """The last ten minutes, `gone` minutes later; the oldest first."""
    kept = (*minutes, *_NOTHING)[min(gone, MINUTES) :][:MINUTES] if gone else minutes
    return (*kept[:-1], kept[-1] + more)
