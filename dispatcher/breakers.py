"""When runs of a job, or calls of a host, are held because too many of them fail.

A breaker belongs to a tenant in a shard: one for each job (or schedule whose job has no name), one for each host that
its HTTP targets name. It is closed, and counts what fails; open, and nothing of it is handed out; then half open: a
few runs go, and the first of them that ends settles it. Where they take long, another one goes each time they have
been out for as long as its wait, which doubles too: one run that hangs holds no others for hours.

    closed ──too many fail──▶ open ──its wait is over──▶ half open ──one succeeds──▶ closed
                               ▲                            │
                               └──one fails: twice as long──┘

Attempts are counted in sixths of the window. Nothing is counted before the first failure and once none is left in the
window, so a job that does not fail costs no row. Who was handed out before the last change says nothing about
what came after it.

A job whose runs take their workers down does not fail: nobody is left to say so. What tells is a *loss*, a worker that
went with all it held, and of all that it held each may have been the cause. So a job is a *suspect* when workers were
lost with runs of it one after another: each run handed out since the loss before, and no other since that its worker
lived through. Losses at the same time are one, however many workers a rack has. Aboard is also what ended by time since
the worker was heard of last, and what would end only later: else a job with a short timeout, or a long lease, would
leave others to answer for it. A suspect's breaker is half open: one run at a time, no two suspects on one worker if
there are others. The next loss is the suspect's that was aboard, and opens the breaker; a run that its worker lives
through, to its end or for as long as the wait, closes it. Where the owner ends it, since it took too long, that says
nothing of the worker: no other run of the suspect goes until the worker is heard of again without it, or missed.

    closed ──losses in a row──▶ half open, suspect ──survived──▶ closed
                                   ▲          │
                                   └── open ◀─┘ lost with its worker: twice as long
"""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import NamedTuple
from urllib.parse import urlsplit

from schemas.facts import (
    AttemptFinished,
    AttemptOutcome,
    BreakerChanged,
    BreakerPolicy,
    BreakerReason,
    BreakerState,
    ErrorInfo,
    RunCreated,
)
from schemas.frozen import frozen

DEFAULT = BreakerPolicy(
    failures=20, percent=50, window=timedelta(minutes=1), wait=timedelta(seconds=30), probes=1
)  # what a definition says that gives part of one
SLOTS = 6  # parts of a window: what is counted is at most a sixth older or younger than it says
WAIT_MAX = timedelta(minutes=10)  # unless the wait itself is longer: by then somebody looks at it anyway
UNPROVEN = timedelta(days=1)  # a half-open breaker of which no probe has ended for so long holds nobody any more
REMEMBERED = timedelta(hours=1)  # the longest window there may be: an older count is none
SUSPECT_AT = 2  # losses in a row: one is bad luck of everybody aboard, and a rack's end is one
GUILTY_AT = 1.0  # a suspect was alone among suspects when its worker went, or so often one of two, of three
MESSAGE_MAX = 256
NAME_MAX = 300
_LIVED = frozenset({AttemptOutcome.SUCCEEDED, AttemptOutcome.FAILED})  # said by a worker that was there to say it
EXPIRED = frozenset({"deadline", "start_within"})  # what ends an attempt for what it had to wait before
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NOTHING = (0,) * SLOTS

# What a caller can say of a host: it is not well, or it has answered. Anything else says nothing of it.
_UNWELL = frozenset({"http:timeout", "http:unreachable", "http:broken", "http:408", "http:425", "http:429"})


@frozen
class Breaker:
    """How a breaker stands. `since` is when it was last closed; `opened` counts how often it opened since then."""

    tenant: str
    name: str
    policy: BreakerPolicy
    noted_at: datetime
    state: BreakerState = BreakerState.CLOSED
    changed_at: datetime | None = None
    since: datetime | None = None
    until: datetime | None = None
    opened: int = 0
    failures: tuple[int, ...] = _NOTHING  # the oldest sixth first; the last one is that of `noted_at`
    others: tuple[int, ...] = _NOTHING
    probe_failed: bool | None = None  # how the first probe ended
    probes_more: int = 0  # that may be out beside those of its policy, since those take long
    run_id: str = ""
    error: ErrorInfo | None = None
    losses: int = 0  # workers lost in a row with runs of it
    lost_from: int = -1  # hand-outs from this offset on may be of the next loss, or say that there is none
    suspect: bool = False
    blame: float = 0.0  # of a suspect that is half open


@frozen
class Aboard:
    """A run that a worker held, or had held since it was heard of last, as its breaker has to know it."""

    tenant: str
    breaker: str
    run_id: str
    handout: int
    handed_out_at: datetime
    outcome: AttemptOutcome = AttemptOutcome.LOST
    policy: BreakerPolicy | None = None  # that its job gives
    begun: bool = False  # as far as anybody heard


class Change(NamedTuple):
    """What becomes of a breaker, and when."""

    state: BreakerState
    reason: BreakerReason
    until: datetime | None = None


SURVIVED = Change(BreakerState.CLOSED, BreakerReason.SURVIVED)


def name_of(run: RunCreated) -> str:
    """The breaker of a run's job; empty for a job without a name, whose breaker is its schedule's."""
    return "" if run.job.name is None else f"job:{run.job.name}"


def host_of(run: RunCreated) -> str:
    """The breaker of the host that a run calls; empty where it calls none, or none that can be read."""
    target = run.job.target
    if target.get("type") != "http":
        return ""
    try:
        parts = urlsplit(str(target.get("url", "")))
        host, port = parts.hostname, parts.port
    except ValueError:
        return ""
    return f"host:{host}{f':{port}' if port else ''}"[:NAME_MAX] if host else ""


def says(fact: AttemptFinished) -> bool | None:
    """Whether an attempt failed, for the breaker of its job; None when its end says nothing of the job."""
    if fact.outcome is AttemptOutcome.SUCCEEDED:
        return False
    if fact.outcome is AttemptOutcome.TIMED_OUT:
        return None if fact.error is not None and fact.error.type in EXPIRED else True
    return True if fact.outcome is AttemptOutcome.FAILED else None


def says_of_host(fact: AttemptFinished) -> bool | None:
    """The same of the host that it called: one that refuses a request is well."""
    failed = says(fact)
    if not failed or fact.outcome is AttemptOutcome.TIMED_OUT:
        return failed
    type_ = "" if fact.error is None else fact.error.type
    if type_ in _UNWELL or (type_.startswith("http:5") and len(type_) == len("http:500")):
        return True
    return False if type_.startswith("http:4") else None


def noted(known: Breaker | None, fact: AttemptFinished, name: str, policy: BreakerPolicy, *, failed: bool) -> Breaker:
    """The breaker with one attempt more."""
    at = fact.finished_at
    before = known or Breaker(tenant=fact.tenant, name=name, policy=policy, noted_at=at)
    gone = SLOTS if before.policy.window != policy.window else _slot(at, policy) - _slot(before.noted_at, policy)
    new = replace(
        before, policy=policy, noted_at=max(at, before.noted_at),
        failures=_with(before.failures, gone, int(failed)), others=_with(before.others, gone, int(not failed)),
    )  # fmt: skip
    if failed:
        error = fact.error and ErrorInfo(type=fact.error.type, message=fact.error.message[:MESSAGE_MAX])
        new = replace(new, run_id=fact.run_id, error=error)
    lived = fact.outcome in _LIVED
    if lived and fact.handout >= new.lost_from:
        new = replace(new, losses=0, lost_from=-1)
    if new.state is BreakerState.HALF_OPEN and new.probe_failed is None and (lived or not new.suspect):
        new = replace(new, probe_failed=failed and not new.suspect)
    return new


def lost(
    known: Breaker | None, aboard: Aboard, policy: BreakerPolicy, at: datetime, *, blame: float, next_offset: int
) -> Breaker:  # fmt: skip
    """The breaker after a run went with its worker: what was handed out before the last loss is of that one."""
    before = known or Breaker(tenant=aboard.tenant, name=aboard.breaker, policy=policy, noted_at=at)
    if aboard.handout < before.lost_from:
        return before
    error = ErrorInfo(type=aboard.outcome.value, message="its worker died with it, or was not heard of any more")
    new = replace(before, policy=policy, noted_at=max(at, before.noted_at), run_id=aboard.run_id, error=error)
    if new.suspect:
        new = replace(new, blame=round(new.blame + blame, 6))
    else:
        new = replace(new, losses=new.losses + 1, lost_from=next_offset)
    is_guilty = new.blame >= GUILTY_AT or new.losses >= SUSPECT_AT
    if new.state is BreakerState.HALF_OPEN and new.probe_failed is None and is_guilty:
        new = replace(new, probe_failed=True)
    return new


def share(among: int) -> float:
    """Of a loss, where so many may have been its cause. Rounded up at the sixth place, so that six thirds are two."""
    return math.ceil(1_000_000 / max(among, 1)) / 1_000_000


def due_at(breaker: Breaker) -> datetime | None:
    """When it changes, whatever is with workers."""
    if breaker.state is BreakerState.CLOSED:
        return breaker.noted_at if _is_exceeded(breaker) or breaker.losses >= SUSPECT_AT else None
    if breaker.state is BreakerState.OPEN:
        return breaker.until
    return _unproven_at(breaker) if breaker.probe_failed is None else breaker.noted_at


def next_probe_at(breaker: Breaker, last_probe_at: datetime) -> datetime:
    """When another probe may go though as many are out as may be: the last one was handed out at an instant."""
    return last_probe_at + _wait(breaker, breaker.probes_more)


def change(breaker: Breaker, now: datetime) -> Change:
    """What becomes of one that is due."""
    if breaker.state is BreakerState.CLOSED and not _is_exceeded(breaker):
        return Change(BreakerState.HALF_OPEN, BreakerReason.LOSSES)
    if breaker.state is BreakerState.CLOSED:
        return _opens(breaker, BreakerReason.FAILURES, now)
    if breaker.state is BreakerState.OPEN:
        return Change(BreakerState.HALF_OPEN, BreakerReason.WAITED)
    if breaker.probe_failed:
        return _opens(breaker, BreakerReason.PROBE_FAILED, now)
    if breaker.probe_failed is None and now < _unproven_at(breaker):
        return Change(BreakerState.HALF_OPEN, BreakerReason.WAITED)
    if breaker.probe_failed is None:
        return Change(BreakerState.CLOSED, BreakerReason.UNPROVEN)
    return SURVIVED if breaker.suspect else Change(BreakerState.CLOSED, BreakerReason.PROBE_SUCCEEDED)


def fact_of(breaker: Breaker, to: Change, queue: str, shard: int, now: datetime) -> BreakerChanged:
    """What a change says. The last failure goes with it as long as it matters."""
    failures, attempts = counts(breaker)
    is_closed = to.state is BreakerState.CLOSED
    return BreakerChanged(
        tenant=breaker.tenant, queue=queue, shard=shard, breaker=breaker.name, state=to.state, reason=to.reason,
        changed_at=now, since=breaker.since or now, until=to.until, failures=failures, attempts=attempts,
        run_id="" if is_closed else breaker.run_id, error=None if is_closed else breaker.error,
    )  # fmt: skip


def changed(breaker: Breaker, fact: BreakerChanged) -> Breaker:
    """The breaker after a change: it counts anew, unless all that changed is that another probe may go."""
    if breaker.state is fact.state is BreakerState.HALF_OPEN:
        return replace(breaker, probes_more=breaker.probes_more + 1)
    suspect = fact.reason is BreakerReason.LOSSES or (breaker.suspect and fact.state is not BreakerState.CLOSED)
    opened = 0 if fact.state is BreakerState.CLOSED else breaker.opened + (fact.state is BreakerState.OPEN)
    return Breaker(
        tenant=breaker.tenant, name=breaker.name, policy=breaker.policy, noted_at=fact.changed_at, state=fact.state,
        changed_at=fact.changed_at, since=None if fact.state is BreakerState.CLOSED else fact.since,
        until=fact.until, opened=opened, run_id=fact.run_id, error=fact.error, suspect=suspect,
    )  # fmt: skip


def is_over(breaker: Breaker, at: datetime) -> bool:
    """Whether a closed one has nothing to say any longer: of what failed, was lost, or was out before it closed."""
    if breaker.state is not BreakerState.CLOSED:
        return False
    said_at = breaker.noted_at if any(breaker.failures) or breaker.losses else breaker.changed_at
    return said_at is None or at - said_at >= REMEMBERED


def counts(breaker: Breaker) -> tuple[int, int]:
    """How many failed, and of how many."""
    failures = sum(breaker.failures)
    return failures, failures + sum(breaker.others)


def _opens(breaker: Breaker, reason: BreakerReason, now: datetime) -> Change:
    return Change(BreakerState.OPEN, reason, now + _wait(breaker, breaker.opened))


def _wait(breaker: Breaker, doublings: int) -> timedelta:
    wait = breaker.policy.wait
    longest = max(wait, WAIT_MAX)
    return min(wait * (1 << min(doublings, 10)), longest)  # a thousand times: far beyond what is longest


def _unproven_at(breaker: Breaker) -> datetime:
    assert breaker.changed_at is not None
    return breaker.changed_at + UNPROVEN


def _is_exceeded(breaker: Breaker) -> bool:
    failures, attempts = counts(breaker)
    policy = breaker.policy
    return 0 < policy.failures <= failures and failures * 100 >= attempts * policy.percent


def _slot(at: datetime, policy: BreakerPolicy) -> int:
    return (at - _EPOCH) // (policy.window / SLOTS)


def _with(slots: tuple[int, ...], gone: int, more: int) -> tuple[int, ...]:
    """The last sixths, `gone` of them later; an instant before the last one counts for it."""
    kept = (*slots, *_NOTHING)[min(max(gone, 0), SLOTS) :][:SLOTS]
    return (*kept[:-1], kept[-1] + more)
