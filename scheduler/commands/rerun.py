"""`run.rerun` and `run.redrive`: what a run did, once more, as a new run of it; a run that is over never returns.

The owner forgets a run when it is over, so the command brings it whole; who may write commands is trusted with that.
What the owner still knows counts for more: a run that is open is not run beside itself.
"""

from __future__ import annotations

from scheduler import reruns, runs, sweeps
from scheduler.commands.verdict import Accepted, Rejected, Verdict, created, not_found, rejected
from scheduler.context import Context
from scheduler.state import ScheduleState
from schemas import codec, identity
from schemas.commands import Command, RunRedrive, RunRerun
from schemas.facts import RunCreated


def rerun(state: ScheduleState, command: Command, request: RunRerun, context: Context) -> Verdict:
    """Another run of one that is over, as often as somebody asks."""
    return _decide(state, command, request, context, reruns.RERUN)


def redrive(state: ScheduleState, command: Command, request: RunRedrive, context: Context) -> Verdict:
    """Another run of one that was given up, once: two people who see the same dead letter make one run of it."""
    before = reruns.redriven(state, request.run_id, context)
    if before is not None:
        return _redriven(request.run_id, before)
    verdict = _decide(state, command, request, context, reruns.REDRIVE)
    if not isinstance(verdict, Accepted):
        return verdict
    (run,) = verdict.facts
    assert isinstance(run, RunCreated), "it makes one run"
    noted = reruns.remembered(run, context, verdict.status)
    return Accepted(facts=(run, noted), status=verdict.status, body=verdict.body)


def _decide(state: ScheduleState, command: Command, request: RunRerun, context: Context, rule: str) -> Verdict:
    job_name = identity.job_of(state.name)  # of a run that has no schedule
    missing = not_found(state) if job_name is None else None
    if missing is not None:
        return missing
    if request.outcome is None and _is_open(state, request.run_id):
        return _open(request.run_id)
    recipe = None
    if request.definition == "current":
        if job_name is not None:
            recipe = runs.recipe_of_job(state.tenant, job_name, context.shared)
        else:
            plan = state.plans[state.phases[-1].version]
            job_name, recipe = plan.job_name, runs.recipe_of(plan, state.tenant, context.shared)
        if recipe is None:
            return _no_job(str(job_name))
    old = codec.load(RunCreated, request.run)
    run = reruns.of_run(
        state, context, old, recipe, rule=rule, source=command.source, command_id=command.id, payload=request.payload
    )
    return created(run, run.schedule, of=run.of)


def _is_open(state: ScheduleState, run_id: str) -> bool:
    """An outcome that waits for its turn is one all the same."""
    return sweeps.is_open(state, run_id) and all(held.run_id != run_id for held in state.held)


def _open(run_id: str) -> Rejected:
    message, remedy = f"run {run_id} is still open", "wait until it has its outcome, or cancel it"
    return rejected("run_open", 409, message, remedy, pointer="/data/run_id", body={"run_id": run_id, "state": "open"})


def _redriven(run_id: str, before: str) -> Rejected:
    message = f"dead letter {run_id} was redriven as {before}"
    remedy = "look at that run: it can be redriven when it is given up; to run the old one again, rerun it"
    body = {"run_id": run_id, "redriven_as": before}
    return rejected("already_redriven", 409, message, remedy, pointer="/data/run_id", body=body)


def _no_job(name: str) -> Rejected:
    message, remedy = f"its job {name!r} is not registered", "put the job first, or leave the definition as it was"
    return rejected("no_job", 409, message, remedy, pointer="/data/definition")
