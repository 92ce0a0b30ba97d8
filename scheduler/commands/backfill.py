"""`backfill.start | pause | resume | cancel`: the occurrences of a past range, beside the schedule's own.

What cannot be done is said before anything begins: a range that reaches into the future or behind what is remembered
of decisions, one in which nothing is due, more than one backfill may hold. A dry run says what would become of the
range as it stands now, by the same walk that the backfill itself takes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from scheduler import backfills, calendars, fates, memory, occurrences, runs, sweeps, words
from scheduler.backfills import ACTIVE_MAX, CANCELLING, OCCURRENCES_MAX, PAUSED, RUNNING
from scheduler.commands.verdict import Accepted, Rejected, Verdict, not_found, rejected
from scheduler.context import Context
from scheduler.instants import SECOND_MS, from_seconds, seconds, text
from scheduler.plan import Plan
from scheduler.state import Backfill, ScheduleState
from schemas import durations, identity
from schemas.commands import BackfillCancel, BackfillPause, BackfillResume, BackfillStart, Command
from schemas.facts import BackfillStarted, Fact, RunCancelRequested

CREATED = 201
DRY_STRETCHES_MAX = 10_000  # that a dry run looks at: a tenth of a second at most; what it left is said

Asked = BackfillPause | BackfillResume | BackfillCancel


def start(state: ScheduleState, command: Command, request: BackfillStart, context: Context) -> Verdict:
    """A backfill more, or what it would do, or what is wrong with it."""
    verdict = started(state, command, request, context)
    if isinstance(verdict, Rejected):
        return verdict
    fact, plan, warnings = verdict
    if request.dry_run:
        return Accepted(body=_body(fact, warnings, dry_run=True, **_forecast(state, request, fact, plan)))
    return Accepted(facts=(fact,), status=CREATED, body=_body(fact, warnings, backfill=fact.backfill, state=RUNNING))


def pause(state: ScheduleState, command: Command, request: BackfillPause, context: Context) -> Verdict:
    """No further runs until it is resumed; those that are open go on."""
    return _switched(state, command, request, context, PAUSED)


def resume(state: ScheduleState, command: Command, request: BackfillResume, context: Context) -> Verdict:
    """It goes on where it stood."""
    return _switched(state, command, request, context, RUNNING)


def cancel(state: ScheduleState, command: Command, request: BackfillCancel, context: Context) -> Verdict:
    """No further runs, and none is left behind that nobody has begun; what runs finishes."""
    backfill = backfills.find(state, request.backfill)
    if backfill is None:
        return _gone(state, request.backfill, context)
    asked = [_asked(state, run_id, command, context) for run_id in backfills.open_runs(state, backfill.id)]
    if backfill.state == CANCELLING:
        return Accepted(body=_said(state, backfill, CANCELLING, changed=False))
    fact = backfills.progressed(state, backfill, context, CANCELLING, reason="by command", **_author(command))
    note = "those of them that no worker has begun are cancelled, the others run to their end" if asked else ""
    body = _said(state, backfill, CANCELLING, changed=True)
    return Accepted(facts=(*asked, fact), body={**body, "note": note} if note else body)


def of_pause(state: ScheduleState, command: Command, resumed: Accepted, context: Context) -> Verdict:
    """A schedule that is resumed, and a backfill of what its pause has skipped."""
    if not state.paused:
        return replace(
            resumed, body={**resumed.body, "warnings": ["/backfill: it was not paused: nothing was skipped"]}
        )
    ends = datetime.fromisoformat(resumed.body["effective_at"])
    begins = state.phases[-1].paused_ms // SECOND_MS + 1
    kept_from = seconds(context.now) - context.history_seconds + 1
    asked = {"tenant": state.tenant, "name": state.name, "by": command.request.by, "note": command.request.note}
    span = {"from": from_seconds(max(begins, kept_from)), "to": from_seconds(seconds(ends) + 1)}
    request = BackfillStart.model_validate({**asked, **span})
    verdict = started(state, command, request, context)
    if isinstance(verdict, Rejected):
        if verdict.reason in {"no_occurrence", "range"}:
            return replace(
                resumed, body={**resumed.body, "warnings": ["/backfill: no occurrence of its trigger was skipped"]}
            )
        return _without(verdict)
    fact, _, warnings = verdict
    if begins < kept_from:
        warnings = [f"/backfill: what was skipped before {text(from_seconds(kept_from))} is not remembered any more"]
    body = {**resumed.body, "backfill": _body(fact, warnings, backfill=fact.backfill, state=RUNNING)}
    return Accepted(facts=(*resumed.facts, fact), body=body)


def _without(verdict: Rejected) -> Rejected:
    faults = tuple(
        replace(fault, pointer="/data/backfill", remedy="resume without it, and start one for what you want")
        for fault in verdict.faults
    )
    return replace(verdict, faults=faults)


# --- starting -----------------------------------------------------------------------------------------------------


def started(
    state: ScheduleState, command: Command, request: BackfillStart, context: Context
) -> tuple[BackfillStarted, Plan, list[str]] | Rejected:
    """The fact that a backfill is started, its plan, and what its author should know; or why there is none."""
    missing = not_found(state) or _too_many(state)
    if missing is not None:
        return missing
    version = state.version if request.as_of is None else request.as_of
    plan = fates.judging_plan(state, version, context) if 0 < version <= state.version else None
    if plan is None:
        return _no_version(state, version)
    if plan.after_finish is not None:
        return _from_finish(version)
    plan = calendars.bound(plan, state.tenant, calendars.adopted_by(context.shared))
    first, to = seconds(request.from_), _end(request, context)
    refused = _out_of_reach(first, to, context)
    if refused is not None:
        return refused
    count = occurrences.count_between(plan.trigger, first - 1, to - 1, OCCURRENCES_MAX + 1)
    if not count:
        return _nothing_due(first, to, version, plan)
    if count > OCCURRENCES_MAX:
        return _too_large(count, first, to)
    if runs.recipe_of(plan, state.tenant, context.shared) is None:
        message = f"its job {plan.job_name!r} is not registered"
        return rejected("no_job", 409, message, "put the job first", pointer="/data/name")
    fact = _fact(state, command, request, context, (version, first, to, count))
    return fact, plan, _warnings(state, version, first)


def _fact(
    state: ScheduleState, command: Command, request: BackfillStart, context: Context, about: tuple[int, int, int, int]
) -> BackfillStarted:
    version, first, to, count = about
    return BackfillStarted(
        tenant=state.tenant, schedule=state.name, version=version, from_=from_seconds(first), to=from_seconds(to),
        backfill=identity.backfill_id(state.tenant, state.name, command.source, command.id),
        order=request.order, reprocess=request.reprocess, max_active=request.max_active, rate=request.rate,
        occurrences=count, started_at=context.now, **_author(command),
    )  # fmt: skip


def _author(command: Command) -> dict[str, str]:
    request = command.request
    return {"by": request.by, "note": request.note, "command_id": command.id, "source": command.source}


def _end(request: BackfillStart, context: Context) -> int:
    return seconds(context.now) + 1 if request.to is None else seconds(request.to)


def _warnings(state: ScheduleState, version: int, first: int) -> list[str]:
    decided = fates.first_decided(state)
    if decided is not None and decided <= first:
        return []
    known = f"before {text(from_seconds(decided))} " if decided is not None else ""
    return [f"/from: nothing was decided {known}by this schedule; what is due there by version {version} has its run"]


# --- refusals -----------------------------------------------------------------------------------------------------


def _too_many(state: ScheduleState) -> Rejected | None:
    if len(state.backfills) < ACTIVE_MAX:
        return None
    known = ", ".join(each.id for each in state.backfills)
    message = f"{ACTIVE_MAX} backfills of this schedule are under way: {known}"
    return rejected("too_many_backfills", 409, message, "wait for one of them, or cancel it")


def _no_version(state: ScheduleState, version: int) -> Rejected:
    message = f"there is no version {version}, or its definition is not kept any more"
    remedy = f"name one of its versions, up to {state.version}, or leave it out"
    return rejected("no_version", 404, message, remedy, pointer="/data/as_of")


def _from_finish(version: int) -> Rejected:
    message = f"the occurrences of version {version} follow the ends of runs (from: finish): no past range has any"
    remedy = "trigger it, or name a version with another trigger"
    return rejected("from_finish", 422, message, remedy, pointer="/data/as_of")


def _out_of_reach(first: int, to: int, context: Context) -> Rejected | None:
    now = seconds(context.now)
    if to > now + 1:
        message = f"{text(from_seconds(to))} is in the future: what comes is the schedule's own"
        return rejected("future", 422, message, f"end it at {text(from_seconds(now))}", pointer="/data/to")
    if first >= to:
        return rejected("range", 422, "is not before `to`", "ranges are [from, to)", pointer="/data/from")
    kept_from = now - context.history_seconds
    if first >= kept_from:
        return None
    kept = durations.render(timedelta(seconds=context.history_seconds))
    message = f"decisions are remembered for {kept} (retention.history): what had a run before that is not known"
    return rejected("beyond_history", 422, message, f"begin at {text(from_seconds(kept_from + 1))} or later",
                    pointer="/data/from", body={"kept_from": text(from_seconds(kept_from))})  # fmt: skip


def _nothing_due(first: int, to: int, version: int, plan: Plan) -> Rejected:
    span = f"[{text(from_seconds(first))}, {text(from_seconds(to))})"
    following = words.following(plan, to - 1, 1)
    remedy = f"the next one behind it is {text(following[0])}" if following else "nothing is due behind it either"
    return rejected("no_occurrence", 422, f"nothing is due in {span} by version {version}", remedy, pointer="/data")


def _too_large(count: int, first: int, to: int) -> Rejected:
    message = f"more than {OCCURRENCES_MAX} occurrences are due in that range"
    middle = from_seconds(first + (to - first) * OCCURRENCES_MAX // (2 * count))
    return rejected("too_many_occurrences", 422, message, f"begin with a part of it, such as up to {text(middle)}",
                    pointer="/data/to")  # fmt: skip


# --- what it would do ---------------------------------------------------------------------------------------------


def _forecast(state: ScheduleState, request: BackfillStart, fact: BackfillStarted, plan: Plan) -> Mapping[str, Any]:
    """How many runs, made for what, and what is left alone and why, as it stands now."""
    created: Counter[str] = Counter()
    again: Counter[str] = Counter()
    left_out: Counter[str] = Counter()
    first, last = seconds(fact.from_), seconds(fact.to) - 1
    for number, stretch in enumerate(fates.stretches(state, plan, fact.version, first, last)):
        if number >= DRY_STRETCHES_MAX:
            break
        kept = fates.wanted(stretch.fate, request.reprocess)
        into = left_out if not kept else created if stretch.fate in fates.NOT_RUN else again
        into[stretch.reason or stretch.fate] += stretch.count(plan)
    looked_at = created.total() + again.total() + left_out.total()
    return {
        "runs": created.total() + again.total(), "created": _counts(created), "reprocessed": _counts(again),
        "left_out": _counts(left_out), "looked_at": looked_at, "complete": looked_at == fact.occurrences,
        "shortest": durations.render(_shortest(created.total() + again.total(), request)),
    }  # fmt: skip


def _shortest(count: int, request: BackfillStart) -> timedelta:
    """How long it takes at least, by its rate."""
    spacing = backfills.spacing_ms(request.rate)
    return timedelta(seconds=-(-max(0, count - 1) * spacing // SECOND_MS))


def _counts(counter: Counter[str]) -> dict[str, int]:
    return {key: count for key, count in sorted(counter.items()) if count}


# --- answers ------------------------------------------------------------------------------------------------------


def _body(fact: BackfillStarted, warnings: list[str], **more: Any) -> Mapping[str, Any]:
    return {
        "tenant": fact.tenant, "name": fact.schedule, **more, "version": fact.version, "from": text(fact.from_),
        "to": text(fact.to), "order": fact.order, "reprocess": fact.reprocess, "max_active": fact.max_active,
        "rate": fact.rate, "occurrences": fact.occurrences, "warnings": warnings,
    }  # fmt: skip


def _said(state: ScheduleState, backfill: Backfill, status: str, *, changed: bool) -> Mapping[str, Any]:
    return {
        "tenant": state.tenant, "name": state.name, "backfill": backfill.id, "state": status, "changed": changed,
        "decided": backfills.decided(backfill.counts), "occurrences": backfill.occurrences,
        "open_runs": backfill.counts.active,
    }  # fmt: skip


def _switched(state: ScheduleState, command: Command, request: Asked, context: Context, status: str) -> Verdict:
    backfill = backfills.find(state, request.backfill)
    if backfill is None:
        return _gone(state, request.backfill, context)
    if backfill.state == CANCELLING:
        message = f"{backfill.id} is being cancelled"
        return rejected("cancelling", 409, message, "start another one", pointer="/data/backfill")
    if backfill.state == status:
        return Accepted(body=_said(state, backfill, status, changed=False))
    fact = backfills.progressed(state, backfill, context, status, **_author(command))
    return Accepted(facts=(fact,), body=_said(state, backfill, status, changed=True))


def _gone(state: ScheduleState, backfill_id: str, context: Context) -> Rejected:
    """The answer to its start is remembered for seven days: so long one can tell that it is over."""
    answer = memory.recall(state.rows, backfill_id.removeprefix("b-"), context.now)
    if answer is not None and answer.body.get("backfill") == backfill_id:
        message = f"backfill {backfill_id} is over"
        return rejected("already_finished", 409, message, "nothing is left to do", pointer="/data/backfill")
    message = f"no backfill {backfill_id[:40]} of {state.tenant}/{state.name} is under way"
    return rejected("not_found", 404, message, "list the backfills there are", pointer="/data/backfill")


def _asked(state: ScheduleState, run_id: str, command: Command, context: Context) -> Fact:
    run = sweeps.run_row(state, run_id)
    assert run is not None, "a run that is listed is open"
    return RunCancelRequested(
        tenant=run.tenant, schedule=run.schedule, run_id=run_id, requested_at=context.now, queue=run.job.queue,
        shard=run.shard, by=command.request.by, note=f"backfill {run.backfill} is cancelled", command_id=command.id,
        source=command.source, unstarted=True,
    )  # fmt: skip
