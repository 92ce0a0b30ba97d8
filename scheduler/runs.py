"""Runs come into being here: for an occurrence, or because someone asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from scheduler import keys, occurrences, plan, shards
from scheduler.context import Context
from scheduler.instants import DAY_SECONDS, from_millis, from_seconds, seconds, text
from scheduler.plan import JobRecipe, Plan
from scheduler.state import Backfill, PartitionState, ScheduleState
from schemas import identity
from schemas.facts import Cause, JobSnapshot, RunCreated, Upstream

BACKFILL_LANE = "bulk"  # whatever its job's own: what is done after the event waits for what is due now
LOOK_BACK_SECONDS = 366 * DAY_SECONDS  # for the occurrence before the first one: further back it says little


def recipe_of(plan_: Plan, tenant: str, shared: PartitionState) -> JobRecipe | None:
    """The job of a schedule as the partition knows it now; None for one that nobody has registered."""
    return plan_.recipe if plan_.job_name is None else recipe_of_job(tenant, plan_.job_name, shared)


def recipe_of_job(tenant: str, name: str, shared: PartitionState) -> JobRecipe | None:
    """A registered job as the partition knows it now; None for one that it does not know."""
    row = shared.rows.get(keys.adopted("job", tenant, name))
    return None if row is None else plan.adopted_recipe(row, name)


def of_occurrence(
    state: ScheduleState, context: Context, nominal: int, version: int, recipe: JobRecipe, cause: Cause,
    due_ms: int | None = None,
) -> RunCreated:  # fmt: skip
    """The one run of an occurrence. `due_ms` says when it was due, where a change of the schedule hastened it."""
    plan_ = state.plans[version]
    nominal_time = from_seconds(nominal)
    due_at = _due_at(plan_, nominal, due_ms, context.now) if plan_.jitter_ms else nominal_time
    run_id = state.name + _ending(nominal)
    previous = _before(state, plan_, nominal)
    job = _filled_in(recipe, state, plan_, run_id, nominal, previous)
    counts_from = due_at if cause is Cause.SCHEDULE else context.now
    return RunCreated(
        tenant=state.tenant,
        schedule=state.name,
        run_id=run_id,
        version=version,
        cause=cause,
        created_at=context.now,
        due_at=due_at,
        deadline_at=counts_from + job.deadline,
        shard=shards.of(state.tenant, state.name, job, context.shared),
        job=job,
        rule=plan_.rule,
        tz_version=context.tz_version,
        nominal_time=nominal_time,
        interval_from=None if previous is None else from_seconds(previous),
        labels=plan_.labels,
        used=plan_.used,
        # Whoever waits for others first has no run yet, which nobody could begin.
        start_by_at=_start_by_at(job, context.now if plan_.intervals else counts_from),
    )


def _start_by_at(job: JobSnapshot, counts_from: datetime) -> datetime | None:
    return None if job.start_within is None else counts_from + job.start_within


def _due_at(plan_: Plan, nominal: int, due_ms: int | None, now: datetime) -> datetime:
    return min(from_millis(plan_.due_ms(nominal) if due_ms is None else due_ms), now)


@lru_cache(maxsize=4096)  # thousands of schedules are due in the same second
def _ending(nominal: int) -> str:
    """What the ids of all runs of an instant end in, behind the schedule's name."""
    return identity.occurrence_run_id("", from_seconds(nominal))


def of_backfill(
    state: ScheduleState, context: Context, plan_: Plan, recipe: JobRecipe, backfill: Backfill, nominal: int, *,
    again: bool,
) -> RunCreated:  # fmt: skip
    """The run that a backfill makes for an occurrence: its one run, or, `again`, another one of it."""
    nominal_time = from_seconds(nominal)
    own = state.name + _ending(nominal)
    run_id = identity.reprocessed_run_id(state.tenant, state.name, backfill.id, nominal_time) if again else own
    previous = occurrences.last_between(plan_.trigger, nominal - LOOK_BACK_SECONDS, nominal - 1)
    job = _filled_in(recipe, state, plan_, run_id, nominal, previous)
    return at_once(
        state, context, run_id, replace(job, priority=BACKFILL_LANE), version=backfill.version, cause=Cause.BACKFILL,
        rule=plan_.rule, nominal_time=nominal_time, interval_from=None if previous is None else from_seconds(previous),
        labels=plan_.labels, of=own if again else None, backfill=backfill.id, used=plan_.used,
    )  # fmt: skip


def of_command(
    state: ScheduleState,
    context: Context,
    recipe: JobRecipe,
    *,
    source: str,
    command_id: str,
    payload: Mapping[str, Any] | None,
) -> RunCreated:
    """The one run of a trigger command. Its nominal date, where the payload asks for one, is the day it is asked."""
    version = state.phases[-1].version
    plan_ = state.plans[version]
    run_id = identity.manual_run_id(state.tenant, state.name, source, command_id)
    if payload is None:
        job = _filled_in(recipe, state, plan_, run_id, seconds(context.now), state.last_nominal)
    else:
        job = plan.with_payload(recipe.snapshot, payload)
    return at_once(
        state, context, run_id, job, version=version, cause=Cause.MANUAL, rule="manual", labels=plan_.labels,
        command_id=command_id,
    )  # fmt: skip


def of_job(
    state: ScheduleState, context: Context, recipe: JobRecipe, *, source: str, command_id: str,
    payload: Mapping[str, Any] | None,
) -> RunCreated:  # fmt: skip
    """The one run of a `job.run`. Its version is the job's; for a payload its schedule has the job's name."""
    run_id = identity.manual_run_id(state.tenant, state.name, source, command_id)
    job = recipe.snapshot
    if payload is not None:
        job = plan.with_payload(job, payload)
    elif recipe.render is not None:
        job = plan.with_payload(job, recipe.render(_values_of_job(state, run_id, context.now)))
    return at_once(
        state, context, run_id, job, version=job.version or 0, cause=Cause.MANUAL, rule="job", command_id=command_id
    )  # fmt: skip


def _values_of_job(state: ScheduleState, run_id: str, now: datetime) -> Mapping[str, str]:
    """As of a schedule in UTC that is due now, and never was before."""
    return {
        "tenant": state.tenant,
        "schedule": identity.job_of(state.name) or state.name,
        "run_id": run_id,
        "nominal_time": text(from_seconds(seconds(now))),
        "nominal_date": now.date().isoformat(),
        "interval_from": "",
    }


def of_upstream(
    state: ScheduleState, context: Context, version: int, recipe: JobRecipe, upstream: Upstream, chain: tuple[str, ...]
) -> RunCreated:
    """The one run that a run of another schedule leads to. It has no instant of its own: a payload has the other's."""
    plan_ = state.plans[version]
    nominal = "" if upstream.nominal_time is None else text(upstream.nominal_time)
    run_id = identity.dependency_run_id(state.tenant, state.name, upstream.schedule, upstream.run_id, nominal)
    job = _filled_in(recipe, state, plan_, run_id, seconds(upstream.nominal_time or upstream.finished_at), None)
    return at_once(
        state, context, run_id, job, version=version, cause=Cause.DEPENDENCY, rule=f"after {upstream.schedule}",
        labels=plan_.labels, upstream=upstream, chain=chain,
    )  # fmt: skip


def at_once(state: ScheduleState, context: Context, run_id: str, job: JobSnapshot, **facts: Any) -> RunCreated:
    """A run that is due as it is made: its limits count from then. `facts` are the other fields of its fact."""
    return RunCreated(
        tenant=state.tenant, schedule=state.name, run_id=run_id, job=job, tz_version=context.tz_version,
        shard=shards.of(state.tenant, state.name, job, context.shared),
        created_at=context.now, due_at=context.now, deadline_at=context.now + job.deadline,
        start_by_at=_start_by_at(job, context.now), **facts,
    )  # fmt: skip


def _filled_in(
    recipe: JobRecipe, state: ScheduleState, plan_: Plan, run_id: str, nominal: int, previous: int | None
) -> JobSnapshot:
    """The job with its payload's names filled in."""
    if recipe.render is None:
        return recipe.snapshot
    return plan.with_payload(recipe.snapshot, recipe.render(_values(state, plan_, run_id, nominal, previous)))


def _before(state: ScheduleState, plan_: Plan, nominal: int) -> int | None:
    """The nominal instant before this one: as decided, or as the trigger would have had it before the first one."""
    if state.last_nominal is not None and state.last_nominal < nominal:
        return state.last_nominal
    return occurrences.last_between(plan_.trigger, nominal - LOOK_BACK_SECONDS, nominal - 1)


def _values(state: ScheduleState, plan_: Plan, run_id: str, nominal: int, previous: int | None) -> Mapping[str, str]:
    local = datetime.fromtimestamp(nominal + plan_.zone.offset(nominal), UTC)
    return {
        "tenant": state.tenant,
        "schedule": state.name,
        "run_id": run_id,
        "nominal_time": text(from_seconds(nominal)),
        "nominal_date": local.date().isoformat(),
        "interval_from": "" if previous is None else text(from_seconds(previous)),
    }
