"""What freezes with `action: defer` hold: while such a window lasts nothing begins that the clock leads to.

    due in the window        stands in the backlog (`pacing`) until its end, as much of it as `catch_up` keeps: `latest`
                             the last one, `all` its `limit`, `skip` nothing; a later one takes the place of the oldest
    waits already            keeps its place, and may not go before the end: in the backlog of an outage, for a run to
                             end, for other schedules, for its turn behind a run that it follows

What counts is the instant up to which all is read when something is decided. So nothing is created in a window, however
late an occurrence of before it is; and what an outage kept from being decided in the window is just missed.

At the end everybody looks again: if the window is longer by then, or another one has begun, it waits on. What is
skipped at the end of a window is not: several windows without a gap are one, those that skip included. Who stands
behind the first one is looked at when that has gone.

A window that ends sooner, or is lifted, is told to those concerned: the partition notes for which schedules something
is held, and walks over them when freezes change (`partition`). They look when all is read up to then, and mostly find
that they may go. Not sooner: a new owner answers before it knows of any instant that all is read up to it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from scheduler import keys, occurrences, overlap, skipping
from scheduler.context import Context
from scheduler.instants import SECOND_MS, from_millis, from_seconds, millis
from scheduler.plan import Plan
from scheduler.state import PartitionState, Review, ScheduleState, Waiting
from schemas.facts import Cause, DeferReason, Fact, OccurrenceDeferred, SkipReason
from schemas.scheduling import HoldNoted, HoldQuestioned, HoldsReviewed

CHAINED_MAX = 64  # windows without a gap between them; at the end of the last one it is looked at again
TOLD_MAX = 500  # schedules that one decision tells of changed freezes: some 100 KB of it

LOOKED_AT_MAX = 1_000_000  # of one window in a preview: eleven days of seconds
NOT_CAUGHT_UP = "catch_up is skip"

Facts = tuple[Fact, ...]


class Hold(NamedTuple):
    """A freeze that defers: until when, as far as is known, and which."""

    until_ms: int
    rule: str


def met(plan: Plan, instant_ms: int) -> Hold | None:
    """The freeze that defers at an instant, if one does."""
    if plan.deferred is None:
        return None
    instant = instant_ms // SECOND_MS
    rule = plan.deferred.naming(instant)
    return None if rule is None else Hold(_end(plan, instant) * SECOND_MS, rule)


def kept(plan: Plan) -> int:
    """How many of those that are due in a window have runs behind it."""
    return {"skip": 0, "latest": 1}.get(plan.catch_up, plan.catch_up_limit)


def ahead(plan: Plan, nominal: int) -> tuple[Hold, occurrences.Taken | None] | None:
    """What will become of an occurrence to come that is due in such a window: held, or taken with its neighbours.

    Of those that are due in the window the last ones will be held, as many as are kept.
    """
    hold = met(plan, plan.due_ms(nominal))
    if hold is None:
        return None
    last, number = hold.until_ms // SECOND_MS - 1, kept(plan)
    if not number:
        return hold, _taken(plan, nominal, last, f"{hold.rule}; {NOT_CAUGHT_UP}")
    if plan.count(nominal, last, number) < number:
        return hold, None
    until = before_kept(lambda after: plan.count(after, last, number), nominal, last, number)
    return hold, _taken(plan, nominal, until, f"{hold.rule}; {_beyond(number)}")


def before_kept(count: Callable[[int], int], first: int, last: int, number: int) -> int:
    """The last second behind which there are still so many: there are behind `first`, and none behind `last`."""
    low, high = first, last
    while high - low > 1:
        middle = (low + high) // 2
        if count(middle) >= number:
            low = middle
        else:
            high = middle
    return low


def _taken(plan: Plan, first: int, until: int, rule: str) -> occurrences.Taken:
    last = occurrences.last_between(plan.trigger, first, until)
    count = plan.count(first - 1, until, LOOKED_AT_MAX)
    return occurrences.Taken(first if last is None else last, count, (rule,))


def keep(
    state: ScheduleState, context: Context, nominal: int, version: int, plan: Plan, hold: Hold, due_ms: int
) -> Facts:  # fmt: skip
    """One that is due in the window is held, in the place of an older one if need be. The decision is last."""
    if not kept(plan):
        detail = f"by {hold.rule}; {NOT_CAUGHT_UP}"
        return (skipping.one(state, context, nominal, version, SkipReason.FROZEN, detail=_short(detail)),)
    oldest: Facts = ()
    if state.backlog is not None and state.backlog_count >= kept(plan):
        detail = _short(f"by {hold.rule}; {_beyond(kept(plan))}")
        first = state.backlog
        oldest = (skipping.one(state, context, first.nominal, first.version, SkipReason.FROZEN, detail=detail),)
    fact = deferred(state, context, nominal, version, hold, cause=Cause.CATCH_UP, due_ms=due_ms)
    return (*noted(state, context, hold), *oldest, fact)


def deferred(
    state: ScheduleState, context: Context, nominal: int, version: int, hold: Hold, *, cause: Cause, due_ms: int
) -> OccurrenceDeferred:  # fmt: skip
    """It waits for the end of the window. Behind that it may wait for runs as long as what was missed may."""
    plan = state.plans[version]
    until = from_millis(hold.until_ms)
    return OccurrenceDeferred(
        tenant=state.tenant, schedule=state.name, version=version, nominal_time=from_seconds(nominal),
        reason=DeferReason.FROZEN, decided_at=context.now, until=until, blocked_by=overlap.blocker(state), cause=cause,
        rule=plan.rule, tz_version=context.tz_version, detail=_short(f"by {hold.rule}"), used=plan.used,
        release_at=until, expires_at=from_millis(hold.until_ms + plan.window_ms), missed_until=from_millis(due_ms),
        since=context.horizon,
    )  # fmt: skip


def stays(state: ScheduleState, context: Context, first: Waiting, hold: Hold) -> Facts:
    """What stands first in a line stays there until the end of the window."""
    due_ms = first.since_ms or first.nominal * SECOND_MS
    fact = deferred(state, context, first.nominal, first.version, hold, cause=first.cause, due_ms=due_ms)
    return (*noted(state, context, hold), fact)


def noted(state: ScheduleState, context: Context, hold: Hold) -> Facts:
    """The partition knows of it, until then; said once for all that is held of a schedule."""
    row = context.shared.rows.get(_row(state.tenant, state.name))
    if row is not None and int(row) >= hold.until_ms:
        return ()
    until = from_millis(hold.until_ms)
    return (
        HoldNoted(
            role="scheduler", partition=context.partition, tenant=state.tenant, schedule=state.name, until=until
        ),
    )  # fmt: skip


def _end(plan: Plan, instant: int) -> int:
    """The end of the windows that hold at an instant, and of those that follow without a gap."""
    rules = [rule for each in (plan.deferred, plan.frozen) if each is not None for rule in each.rules]
    windows = [rule.readings for rule in rules if isinstance(rule.readings, occurrences.Windows)]
    for _ in range(CHAINED_MAX):
        ends = [end for each in windows if (end := each.ends(instant)) is not None]
        if not ends:
            break
        instant = max(ends)
    return instant


def _beyond(number: int) -> str:
    return "a later one is held" if number == 1 else f"{number} later ones are held, which is the limit"


def _short(detail: str) -> str:
    return detail[: skipping.DETAIL_CHARACTERS_MAX]


# --- when freezes change ------------------------------------------------------------------------------------------


def changed(state: PartitionState, context: Context, kind: str, tenant: str) -> Facts:
    """Freezes of a tenant or a queue have changed: those of which something is held are told, the first ones now."""
    prefix = f"{tenant}/" if kind == "tenant" else ""
    if state.review is not None and state.review.prefix != prefix:
        prefix = ""  # a walk that is under way begins anew, with all
    return tell(state, context, Review(prefix=prefix, cursor=""))


def tell(state: PartitionState, context: Context, review: Review) -> Facts:
    """The next ones of a walk are told, and how far it has come.

    They look at an instant at which this is read, never at one before it, in which the freeze may not have begun.
    """
    start = (review.cursor + "\0") if review.cursor else review.prefix
    page: list[Fact] = []
    last = ""
    for row, until in state.rows.scan(keys.HELD + start.encode(), keys.end_of(keys.HELD)):
        name = row[len(keys.HELD) :].decode()
        if not name.startswith(review.prefix):
            break
        if len(page) == TOLD_MAX:
            return (*page, _reviewed(context, review.prefix, last))
        last = name
        if int(until) > context.horizon_ms:
            tenant, _, schedule = name.partition("/")
            page.append(HoldQuestioned(tenant=tenant, schedule=schedule, at=context.now))
    return (*page, _reviewed(context, review.prefix, None)) if page or state.review is not None else ()


def _reviewed(context: Context, prefix: str, cursor: str | None) -> HoldsReviewed:
    return HoldsReviewed(
        role="scheduler", partition=context.partition, reviewed_at=context.horizon, prefix=prefix, cursor=cursor
    )


# --- what facts make of it ----------------------------------------------------------------------------------------


def note(shared: PartitionState, fact: HoldNoted) -> None:
    """Something of a schedule is held."""
    shared.rows.put(_row(fact.tenant, fact.schedule), str(millis(fact.until)).encode())


def forget(shared: PartitionState, until_ms: int) -> None:
    """What was held until then is held no longer."""
    for row, value in list(shared.rows.scan(keys.HELD, keys.end_of(keys.HELD))):
        if int(value) <= until_ms:
            shared.rows.delete(row)


def reviewed(fact: HoldsReviewed) -> Review | None:
    """Where the walk goes on."""
    return None if fact.cursor is None else Review(prefix=fact.prefix, cursor=fact.cursor)


def _row(tenant: str, schedule: str) -> bytes:
    return keys.HELD + f"{tenant}/{schedule}".encode()
