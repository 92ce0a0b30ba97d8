"""What was, and what will be: each occurrence of a schedule with its decision, and what that decision rests on.

(from, … last decision]    rows of the read model: created, skipped, deferred
(last decision, now]       what is due and not decided yet: pending
[now, …, to)               the arithmetic that will decide, asked beforehand: planned, will_skip, will_defer
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from api import chain, moments, views
from api.backlog import held
from projections.occurrences import DEFERRED
from projections.store.reader import Scope, Span
from schemas.facts import DeferReason
from schemas.faults import Refused

if TYPE_CHECKING:
    from api.services import ApiServices, Expected, Outlook, Skipped

SECOND = timedelta(seconds=1)
FOR_CLOCKS = ("gap", "fold")  # readings that policies drop: while paused nobody says so
A_MOMENT = timedelta(seconds=1)


def explained(services: ApiServices, scope: Scope, name: str, span: Span) -> views.Json | None:
    """What was decided in a span, what is not yet, and what will be, in order of nominal time."""
    row = services.reader.schedule(scope, name)
    if row is None:
        return None
    zones = _zones(services, row)
    past = [_completed(services, row, _read_locally(view, zones)) for view in decided(services, scope, name, span)]
    past = _held_together(services, row, past)
    begin = max(span.from_, _undecided_since(services, scope, row))
    found = past + coming(services, row, begin, span.to, span.limit - len(past))
    kept_since = services.now() - services.settings.history
    return {
        "tenant": row["tenant"],
        "schedule": name,
        "state": row["state"],
        "from": span.from_,
        "to": span.to,
        "kept_since": kept_since,
        "beyond_history": span.from_ < kept_since,
        "occurrences": found,
        "truncated": len(found) >= span.limit,
    }


def _held_together(services: ApiServices, row: views.Row, past: list[views.Json]) -> list[views.Json]:
    """What a freeze holds waits behind the first of it, of which the end is known that was learned last."""
    if not any(_is_held(view) for view in past):
        return past
    known = held(services, row)
    until = None if known is None else known["until"]
    return [
        {**view, "until": max(view["until"], until)} if _is_held(view) and until is not None else view for view in past
    ]


def _is_held(view: views.Json) -> bool:
    is_frozen: bool = view["decision"] == DEFERRED and view["reason"] == DeferReason.FROZEN
    return is_frozen and "until" in view


def decided(services: ApiServices, scope: Scope, name: str, span: Span) -> list[views.Json]:
    """Occurrences of a span that have a run, a reason for none, or a reason to wait, which a run or a skip ends."""
    runs, undone = services.reader.created(scope, name, span), services.reader.undone(scope, name, span)
    wait_no_longer = {run["nominal_time"] for run in runs}
    wait_no_longer |= {each["nominal_from"] for each in undone if each["decision"] != DEFERRED}
    found = [(run["nominal_time"], views.created(run)) for run in runs]
    found += [(run["created_at"], views.created(run)) for run in services.reader.followed(scope, name, span)]
    found += [
        (each["nominal_from"], views.undone(each))
        for each in undone
        if each["decision"] != DEFERRED or each["nominal_from"] not in wait_no_longer
    ]
    found.sort(key=lambda pair: pair[0], reverse=span.newest)
    return [view for _, view in found[: span.limit]]


def coming(services: ApiServices, row: views.Row, begin: datetime, end: datetime, limit: int) -> list[views.Json]:
    """Occurrences in [begin, end) that nobody has decided, and how they will be if nothing changes."""
    if row["state"] == "deleted" or begin >= end or limit <= 0:
        return []
    outlook = forecast_of(services, row, begin, end, limit)
    if outlook is None:
        return []
    said = {"version": row["version"], "rule": outlook.rule, "tz_version": outlook.tz_version}
    paused, now = row["state"] == "paused", services.now()
    found = [
        (each.nominal_time, {**_decision(each, now, paused=paused), **said, **expected(each)})
        for each in outlook.occurrences
    ]
    found += [
        (each.at, {**_skip(each, paused=paused), **said, **each.said})
        for each in outlook.skipped
        if not (paused and each.reason in FOR_CLOCKS)
    ]
    found.sort(key=lambda pair: pair[0])
    return [view for _, view in found[:limit]]


def forecast_of(services: ApiServices, row: views.Row, begin: datetime, end: datetime, limit: int) -> Outlook | None:
    """What an accepted definition leads to in [begin, end), no more than it may still have runs.

    None when this version does not understand the definition.
    """
    subject = f"{row['tenant']}/{row['name']}"
    is_open, since = chain.standing(services, row)
    try:
        found = services.forecast(
            subject, row["definition"], from_=begin, to=end, limit=limit, accepted=True, since=since
        )
    except Refused:
        return None
    if is_open:
        return only(found, 0)  # the end of its run decides
    left = runs_left(services, row)
    if left is not None and begin > (now := services.now()):
        sooner = services.forecast(subject, row["definition"], from_=now, to=begin, limit=limit, accepted=True)
        left -= len(sooner.occurrences)
    return found if left is None else only(found, max(0, left))


def only(outlook: Outlook, count: int) -> Outlook:
    """An outlook on the first occurrences, and what is skipped before the last of them."""
    if len(outlook.occurrences) <= count:
        return outlook
    due = outlook.occurrences[:count]
    skipped = tuple(each for each in outlook.skipped if due and each.at < due[-1].nominal_time)
    return replace(outlook, occurrences=due, skipped=skipped)


def runs_left(services: ApiServices, row: views.Row) -> int | None:
    """How many more occurrences may have runs; None when their number has no limit.

    A version that has had all its runs has an end. Before that, runs are counted as far back as they are kept: so it
    is at most this many.
    """
    if _max_runs(row["definition"]) is None:
        return None
    versions = services.reader.versions(Scope(tenant=row["tenant"]), row["name"])
    if versions and versions[0]["version"] == row["version"] and versions[0]["effective_to"] is not None:
        return 0
    return left_under(services, row, row["definition"])


def left_under(services: ApiServices, row: views.Row, definition: Mapping[str, Any]) -> int | None:
    """How many more there may be once a definition is put. Runs count on where the version in force limits them."""
    limit = _max_runs(definition)
    if limit is None or _max_runs(row["definition"]) is None:
        return limit
    scope = Scope(tenant=row["tenant"])
    since = row["version"]
    for newer, older in pairwise(services.reader.versions(scope, row["name"])):
        if _max_runs(older["definition"]) is None or older["effective_to"] != newer["effective_from"]:
            break  # it counts anew behind a version without a limit, and when it was deleted in between
        since = older["version"]
    return max(0, limit - services.reader.counted(scope, row["name"], since_version=since))


def _max_runs(definition: Mapping[str, Any] | None) -> int | None:
    limit: int | None = ((definition or {}).get("trigger") or {}).get("max_runs")
    return limit


def expected(each: Expected) -> views.Json:
    """An occurrence as arithmetic knows it."""
    view: views.Json = {"nominal_time": each.nominal_time, "local_time": each.local_time}
    if each.due_at is not None:
        view["due_at"] = each.due_at
    if each.held_until is not None:
        view["held_until"] = each.held_until
    if each.note:
        view["note"] = each.note
    return view


def _decision(each: Expected, now: datetime, *, paused: bool) -> views.Json:
    if paused:
        return {"decision": "will_skip", "reason": "paused"}
    if each.nominal_time > now and each.held_until is not None:
        return {"decision": "will_defer", "reason": "frozen", "until": each.held_until}
    if each.nominal_time > now:
        return {"decision": "planned", "reason": "schedule"}
    jittered = each.due_at is not None and each.due_at > now
    return {"decision": "pending", "reason": "jitter" if jittered else "undecided"}


def _skip(each: Skipped, *, paused: bool) -> views.Json:
    return {"decision": "will_skip", "reason": "paused" if paused else each.reason}


def _undecided_since(services: ApiServices, scope: Scope, row: views.Row) -> datetime:
    """The instant from which on rows say nothing: behind the last decision, and behind when the version began."""
    now = services.now()
    newest = Span(from_=now - services.settings.history, to=now, limit=1, newest=True)
    known: list[datetime] = [now - services.settings.history, row["effective_at"] + timedelta(milliseconds=1)]
    known += [each["nominal_time"] + SECOND for each in services.reader.created(scope, row["name"], newest)]
    known += [
        each["nominal_to"] or each["nominal_from"] + SECOND
        for each in services.reader.undone(scope, row["name"], newest, own=True)
    ]
    since: datetime = max(known)
    return min(now, since)


def _zones(services: ApiServices, row: views.Row) -> dict[int, str]:
    """The zone of each version that is kept: an older one may have had another."""
    versions = [row, *services.reader.versions(Scope(tenant=row["tenant"]), row["name"])]
    return {each["version"]: views.timezone(each["definition"]) for each in versions}


def _read_locally(view: views.Json, zones: Mapping[int, str]) -> views.Json:
    """With what the clocks of its version's zone showed; a dropped reading and a range have what they have."""
    nominal, zone = view.get("nominal_time"), zones.get(view["version"])
    local = moments.on_clocks(nominal, zone) if nominal and zone else None
    return view if local is None else {**view, "local_time": local}


def _completed(services: ApiServices, row: views.Row, view: views.Json) -> views.Json:
    """A deferral quotes no rule; that of its version is what it rests on."""
    if "rule" in view or view["version"] != row["version"]:
        return view
    now = services.now()
    outlook = forecast_of(services, row, now, now + A_MOMENT, 1)
    return view if outlook is None else {**view, "rule": outlook.rule, "tz_version": row["tz_version"]}
