"""`schedule.trigger`: one run now, also of a paused schedule. It neither blocks occurrences nor is blocked by them."""

from __future__ import annotations

from scheduler import backfills, overlap, runs
from scheduler.commands.verdict import Rejected, Verdict, created, not_found, rejected
from scheduler.context import Context
from scheduler.state import ScheduleState
from schemas.commands import Command, ScheduleTrigger


def decide(state: ScheduleState, command: Command, request: ScheduleTrigger, context: Context) -> Verdict:
    """A run named after the command; none while another one is open, if that was asked for."""
    missing = not_found(state)
    if missing is not None:
        return missing
    if request.overlap == "skip" and state.open_runs > backfills.open_in(state):
        return _overlap(state)
    plan = state.plans[state.phases[-1].version]
    recipe = runs.recipe_of(plan, state.tenant, context.shared)
    if recipe is None:
        return _no_job(str(plan.job_name))
    run = runs.of_command(state, context, recipe, source=command.source, command_id=command.id, payload=request.payload)
    return created(run, state.name)


def _overlap(state: ScheduleState) -> Rejected:
    blocker = overlap.blocker(state) or overlap.any_open(state)
    count = state.open_runs - backfills.open_in(state)
    message = f"{count} runs are open, among them {blocker}"
    remedy, body = "wait for them, or allow overlap", {"blocked_by": blocker}
    return rejected("overlap", 409, message, remedy, pointer="/data/overlap", body=body)


def _no_job(name: str) -> Rejected:
    return rejected("no_job", 409, f"its job {name!r} is not registered", "put the job first", pointer="/data/name")
