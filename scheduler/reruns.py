"""What a run did, done once more: a new run `of` the old one, which stays as it ended.

It decides no occurrence and stands in nobody's way: it is not due, uses up none of `max_runs`, and is not counted as a
failure in a row. Like a run of a backfill it says how its occurrence fared at last, for backfills that look for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from scheduler import fills, memory, plan, runs
from scheduler.context import Context
from scheduler.instants import from_millis, seconds
from scheduler.memory import Remembered
from scheduler.plan import JobRecipe
from scheduler.state import ScheduleState
from schemas import identity
from schemas.facts import Cause, JobSnapshot, RunCreated, RunFinished
from schemas.scheduling import CommandRemembered, RunSettled

RERUN, REDRIVE = "rerun", "redrive"
_LETTERS = "_dead-letters"  # the source by which redriven dead letters are remembered among the commands


def of_run(
    state: ScheduleState, context: Context, old: RunCreated, recipe: JobRecipe | None, *,
    rule: str, source: str, command_id: str, payload: Mapping[str, Any] | None,
) -> RunCreated:  # fmt: skip
    """The one run of a command: by the old run's job, or by `recipe`, which the version in force has."""
    job = old.job if recipe is None else plan.with_payload(recipe.snapshot, old.job.payload)
    if payload is not None:
        job = plan.with_payload(job, payload)
    version, labels = (old.version, old.labels) if recipe is None else _current(state, job)
    return runs.at_once(
        state,
        context,
        identity.rerun_run_id(state.tenant, state.name, source, command_id),
        job,
        version=version,
        cause=Cause.RERUN,
        rule=rule,
        nominal_time=old.nominal_time,
        interval_from=old.interval_from,
        labels=labels,
        of=old.run_id,
        command_id=command_id,
        upstream=old.upstream,
        chain=old.chain,  # whoever follows this schedule is told of the new run too, and must not go in circles
    )


def _current(state: ScheduleState, job: JobSnapshot) -> tuple[int, Mapping[str, str]]:
    """The version in force and its labels; where runs have no schedule, the job's version, which has none."""
    if not state.phases:
        return job.version or 0, {}
    version = state.phases[-1].version
    return version, state.plans[version].labels


def redriven(state: ScheduleState, run_id: str, context: Context) -> str | None:
    """The run that a dead letter was redriven as, in the last seven days."""
    known: Remembered | None = memory.recall(state.rows, _known_by(state, run_id), context.now)
    return None if known is None else str(known.body["run_id"])


def remembered(run: RunCreated, context: Context, status: int) -> CommandRemembered:
    """That a dead letter was redriven: it stands among the commands, and is forgotten as they are."""
    return CommandRemembered(
        of="schedule",
        tenant=run.tenant,
        name=run.schedule,
        source=_LETTERS,
        command_id=str(run.of),
        status=status,
        body={"run_id": run.run_id},
        remembered_at=context.now,
    )


def settled(state: ScheduleState, finished: RunFinished, at_ms: int) -> RunSettled:
    """It has its outcome, which is nobody's room and no failure in a row."""
    return RunSettled(
        tenant=state.tenant,
        schedule=state.name,
        run_id=finished.run_id,
        outcome=finished.outcome,
        appended_at=from_millis(at_ms),
        counted=False,
        nominal_time=finished.nominal_time,
    )


def evolve_created(new: Any, fact: RunCreated) -> None:
    """The draft of a state in which what an occurrence did is being done again."""
    _fill(new, fact.nominal_time, fills.OPEN)


def evolve_settled(new: Any, fact: RunSettled) -> None:
    """The draft of a state in which that has its outcome."""
    _fill(new, fact.nominal_time, fact.outcome.value)


def _fill(new: Any, nominal_time: datetime | None, outcome: str) -> None:
    if nominal_time is None:
        return
    bucket = fills.put(new.rows, seconds(nominal_time), outcome)
    new.filled_from = bucket if new.filled_from is None else min(new.filled_from, bucket)


def _known_by(state: ScheduleState, run_id: str) -> str:
    return memory.digest(state.tenant, state.name, _LETTERS, run_id)
