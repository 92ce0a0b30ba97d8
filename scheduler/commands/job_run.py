"""`job.run`: one run of a registered job, of no schedule.

Such runs go under `_` and the job's name, which no schedule can have: so the state that knows which of them are open,
and all that follows from that (asking after them, cancels, reruns), is that of a schedule that never was.
"""

from __future__ import annotations

from scheduler import runs
from scheduler.commands.verdict import Rejected, Verdict, created, rejected
from scheduler.context import Context
from scheduler.state import ScheduleState
from schemas.commands import Command, JobRun


def decide(state: ScheduleState, command: Command, request: JobRun, context: Context) -> Verdict:
    """A run named after the command; none while another one of the job is open, if that was asked for."""
    recipe = runs.recipe_of_job(state.tenant, request.name, context.shared)
    if recipe is None:
        message = f"there is no job {state.tenant}/{request.name}"
        remedy = "put it first; right behind its put, name the answer's position as after_catalog"
        return rejected("not_found", 404, message, remedy, pointer="/data/name")
    if request.overlap == "skip" and state.open_runs:
        return _overlap(state)
    run = runs.of_job(
        state, context, recipe, source=command.source, command_id=command.id, payload=request.payload
    )  # fmt: skip
    return created(run, request.name)


def _overlap(state: ScheduleState) -> Rejected:
    message = f"{state.open_runs} runs of the job by itself are open"
    return rejected("overlap", 409, message, "wait for them, or allow overlap", pointer="/data/overlap")
