"""When a definition would be due, before anyone accepts it: the same checks and the same arithmetic as an apply.

    preview(definition, from_=…, to=…, limit=…, now=…)
        -> {"words", "warnings", "rule", "tz_version", "definition", "occurrences", "skipped", "dst"}
    check(definition, now=…) -> warnings

Both raise `Refused` with every fault that an apply would name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from heapq import merge
from itertools import groupby, islice
from typing import Any

from scheduler import calendars, checks, finishing, freezes, holding, missing, occurrences, words
from scheduler.calendars import Lookup
from scheduler.instants import from_millis, from_seconds, seconds, text
from scheduler.links import awaiting
from scheduler.occurrences.zones import Segment
from scheduler.plan import Adopted, Plan, adopted_recipe
from scheduler.timeline import LAST_INSTANT
from schemas import codec
from schemas.faults import Fault, Refused

LIMIT_MAX = 1_000  # occurrences of one answer
CHANGES_MAX = 100  # clock changes of one answer: half a century of them
READINGS_SHOWN_MAX = 5
TAKEN_MAX = 2_000  # excluded ranges one behind the other that are passed on the way to what is left
NAMELESS = "_"  # what `H` takes its place from when a preview has no name yet


def nothing(_kind: str, _tenant: str, _name: str) -> None:
    """A catalog in which nothing stands."""


def preview(  # noqa: PLR0913 -- a question of many parts, each said by name
    definition: Mapping[str, Any],
    *,
    from_: datetime,
    to: datetime,
    limit: int,
    now: datetime,
    tenant: str = NAMELESS,
    name: str = NAMELESS,
    strict: bool = True,
    accepted: bool = False,
    since: datetime | None = None,
    history: timedelta | None = None,
    look: Lookup = nothing,
) -> dict[str, Any]:
    """The occurrences in [from_, to), the first `limit` of them, and what clock changes in that time do to them.

    What rules and policies take out before the last of them is `skipped`, again the first `limit`. A definition that
    was `accepted` some time ago may be over by now: that is no fault then. Where an interval counts from the end of a
    run, one is known: the first, or the one that counts from `since`. `look` finds what the
    catalog says now. What a freeze will hold says until when, as `held_until`.
    """
    faults = tuple(_range_faults(from_, to, limit))
    if faults:
        raise Refused(*faults)
    checked = checks.schedule(
        definition, hash_key=f"{tenant}/{name}", now=now, strict=strict, accepted=accepted, history=history
    )
    plan = checked.plan if since is None else finishing.counted_from(checked.plan, since)
    plan = freezes.bound(calendars.bound(plan, tenant, look), tenant, _queue(plan, tenant, look), look)
    plan = calendars.whole(plan)
    unknown = () if accepted else missing.warnings(plan, tenant, look)
    first, last = seconds(from_) - (from_.microsecond == 0), min(seconds(to) - (to.microsecond == 0), LAST_INSTANT)
    left = limit if accepted else min(limit, _left(plan, seconds(now), first))
    left = min(left, limit if plan.after_finish is None else 1)
    due, taken = _met(plan, first, last, left)
    return {
        "words": words.sentence(checked.plan),
        "warnings": [*checked.warnings, *unknown],
        "rule": plan.rule,
        "tz_version": occurrences.tz_version(),
        "definition": checked.definition,
        "occurrences": [_occurrence(plan, nominal) for nominal in due],
        "skipped": _skipped(plan, taken, first, _known_until(due, left, last), limit),
        "dst": [_change(plan, segment) for segment in islice(_changes(plan, first, last), CHANGES_MAX)],
    }


def adopted(version: int, definition: Mapping[str, Any]) -> bytes:
    """An entry of the catalog as `look` finds it."""
    return codec.dump(Adopted(version=version, definition=definition))


def check(
    definition: Mapping[str, Any],
    *,
    now: datetime,
    tenant: str = NAMELESS,
    name: str = NAMELESS,
    strict: bool = True,
) -> tuple[str, ...]:
    """The warnings that an apply would give."""
    return checks.schedule(definition, hash_key=f"{tenant}/{name}", now=now, strict=strict).warnings


def _range_faults(from_: datetime, to: datetime, limit: int) -> Iterator[Fault]:
    if from_ >= to:
        yield Fault(pointer="/to", code="range", message="is not after `from`", remedy="ranges are [from, to)")
    if not 1 <= limit <= LIMIT_MAX:
        remedy = f"ask for 1 to {LIMIT_MAX}"
        yield Fault(pointer="/limit", code="range", message=f"{limit} is not possible", remedy=remedy)


# --- occurrences --------------------------------------------------------------------------------------------------


def _left(plan: Plan, now: int, first: int) -> int:
    """How many occurrences behind `first` may have runs, if their number counts from now."""
    if plan.max_runs is None:
        return LIMIT_MAX
    return max(0, plan.max_runs - (plan.count(now, first, plan.max_runs) if now < first else 0))


def _known_until(due: list[int], limit: int, last: int) -> int:
    """Up to where all that is due is named."""
    return due[-1] if due and len(due) == limit else last


def _met(plan: Plan, after: int, until: int, limit: int) -> tuple[list[int], list[tuple[int, occurrences.Taken]]]:
    """What is due in (after, until], the first `limit`; and what a decision takes out on the way, as one with its
    neighbours.
    """
    due: list[int] = []
    taken: list[tuple[int, occurrences.Taken]] = []
    in_a_row = 0
    while len(due) < limit and in_a_row < TAKEN_MAX:
        nominal = plan.trigger.next_after(after)
        if nominal is None or nominal > until:
            break
        excluded = plan.taken(nominal, until)
        if excluded is None and (held := holding.ahead(plan, nominal)) is not None:
            excluded = held[1]
        if excluded is None:
            due.append(nominal)
            after, in_a_row = nominal, 0
            continue
        after, in_a_row = excluded.last, in_a_row + 1
        if len(taken) < limit:
            taken.append((nominal, excluded))
    return due, taken


def _skipped(
    plan: Plan, taken: list[tuple[int, occurrences.Taken]], after: int, until: int, limit: int
) -> list[dict[str, Any]]:
    """What has no run, each with its reason, in the order of the instants at which it is passed over."""
    excluded = [(nominal, _excluded(plan, nominal, each)) for nominal, each in taken]
    readings = islice(occurrences.dropped(plan.trigger, after, until), limit) if plan.drops else iter(())
    dropped = [(each.at, {"reason": each.reason, "local_time": _reading(each.local_reading)}) for each in readings]
    found = islice(merge(excluded, dropped, key=lambda each: each[0]), limit)
    return [{"at": text(from_seconds(at)), **said} for at, said in found]


def _queue(plan: Plan, tenant: str, look: Lookup) -> str | None:
    """Where its runs would go, as far as that is known."""
    if plan.recipe is not None:
        return plan.recipe.snapshot.queue
    row = None if plan.job_name is None else look("job", tenant, plan.job_name)
    return None if row is None else adopted_recipe(row, str(plan.job_name)).snapshot.queue


def _excluded(plan: Plan, nominal: int, taken: occurrences.Taken) -> dict[str, Any]:
    frozen = all(rule.startswith(freezes.FREEZE) for rule in taken.rules)
    said = {"reason": "frozen" if frozen else "excluded", "detail": taken.quoted}
    if taken.count == 1:
        offset = plan.zone.offset(nominal)
        when = {"nominal_time": text(from_seconds(nominal)), "local_time": _local(nominal + offset, offset)}
        return {**when, **said}
    span = {"from": text(from_seconds(nominal)), "to": text(from_seconds(taken.last + 1)), "count": taken.count}
    return {"range": span, **said}


def _occurrence(plan: Plan, nominal: int) -> dict[str, str]:
    offset = plan.zone.offset(nominal)
    found = {"nominal_time": text(from_seconds(nominal)), "local_time": _local(nominal + offset, offset)}
    if plan.jitter_ms:
        found["due_at"] = text(from_millis(plan.due_ms(nominal)))
    held = holding.ahead(plan, nominal)
    if held is not None:
        found["held_until"] = text(from_millis(held[0].until_ms))
    notes = (
        _note(plan, nominal), _jitter(found.get("due_at")), _held(held), finishing.note(plan),
        awaiting.note(plan, nominal),
    )  # fmt: skip
    note = "; ".join(filter(None, notes))
    return found | {"note": note} if note else found


def _jitter(due_at: str | None) -> str:
    return f"due at {due_at} by its jitter" if due_at else ""


def _held(held: tuple[holding.Hold, Any] | None) -> str:
    return "" if held is None else f"held until {text(from_millis(held[0].until_ms))} by {held[0].rule}"


def _note(plan: Plan, nominal: int) -> str:
    segment = next(plan.zone.segments(nominal, nominal))
    reading = nominal + segment.offset
    if nominal == segment.start and segment.before < segment.offset:
        moved = _readings_in_gap(plan, segment)
        if moved and _shifts(plan):
            return f"moved here from {', '.join(map(_clock, moved))}, which the clock skips that day"
    shown = plan.zone.instants(reading)
    if len(shown) > 1:
        return f"the clock shows {_clock(reading)} twice; this is the {'first' if nominal == shown[0] else 'second'}"
    return ""


# --- clock changes ------------------------------------------------------------------------------------------------


def _changes(plan: Plan, first: int, last: int) -> Iterator[Segment]:
    if isinstance(plan.trigger, occurrences.WindowTrigger):
        first, last = plan.trigger.clip(first, last)
    if first >= last:
        return
    for segment in plan.zone.segments(first, last):
        if first < segment.start <= last and segment.before != segment.offset:
            yield segment


def _change(plan: Plan, segment: Segment) -> dict[str, Any]:
    """One clock change. It `touches` a schedule that names a reading which the clock skips or shows twice."""
    gap = segment.before < segment.offset
    opens, closes = sorted((segment.start + segment.before, segment.start + segment.offset))
    return {
        "at": text(from_seconds(segment.start)),
        "kind": "gap" if gap else "fold",
        "from_local": _reading(opens),
        "to_local": _reading(closes),
        "effect": _gap_effect(plan, segment) if gap else _fold_effect(plan, opens, closes),
        "touches": any(True for part in occurrences.clocks(plan.trigger) for _ in _first_named(part, opens, closes)),
    }


def _first_named(part: occurrences.CronTrigger, opens: int, closes: int) -> Iterator[int]:
    return islice(part.readings.instants(opens, closes, 0), 1)


def _gap_effect(plan: Plan, segment: Segment) -> str:
    if not _fixed(plan):
        return "follows the real clock: nothing is made up"
    missing = _readings_in_gap(plan, segment)
    if not missing:
        return "nothing is due in the gap"
    shown = ", ".join(map(_clock, missing))
    return f"{shown} moved to {text(from_seconds(segment.start))}" if _shifts(plan) else f"{shown} left out"


def _fold_effect(plan: Plan, opens: int, closes: int) -> str:
    fixed = _fixed(plan)
    if not fixed:
        return "follows the real clock: both passes count"
    twice = _readings(plan, opens, closes)
    if not twice:
        return "nothing is due in the fold"
    shown = ", ".join(map(_clock, twice))
    how = {"first": "once, the first time", "second": "once, the second time", "both": "twice"}[fixed[0].fold_policy]
    return f"{shown} {how}"


def _readings_in_gap(plan: Plan, segment: Segment) -> list[int]:
    """Local readings of the expression that the clock jumped over when a segment began."""
    return _readings(plan, segment.start + segment.before, segment.start + segment.offset)


def _readings(plan: Plan, opens: int, closes: int) -> list[int]:
    """The first readings in [opens, closes) that follow the policies."""
    each = merge(*(part.readings.instants(opens, closes, 0) for part in _fixed(plan)))
    return list(islice((reading for reading, _ in groupby(each)), READINGS_SHOWN_MAX))


def _fixed(plan: Plan) -> list[occurrences.CronTrigger]:
    """The expressions that follow the policies. Those of one trigger all follow the same."""
    return [part for part in occurrences.clocks(plan.trigger) if part.expression.fixed_time]


def _shifts(plan: Plan) -> bool:
    return any(part.gap_policy == "shift" for part in _fixed(plan))


def _local(reading: int, offset: int) -> str:
    """A local time with its offset, so that it names one instant."""
    sign, (hours, rest) = "-" if offset < 0 else "+", divmod(abs(offset), 3600)
    return f"{_reading(reading)}{sign}{hours:02}:{rest // 60:02}"


def _reading(reading: int) -> str:
    return datetime.fromtimestamp(reading, UTC).isoformat()[:19]


def _clock(reading: int) -> str:
    moment = datetime.fromtimestamp(reading, UTC)
    return moment.strftime("%H:%M:%S" if moment.second else "%H:%M")
