"""A schedule of every minute with a hole in its past, and backfills of that."""

from typing import Any

from schemas.facts import (
    Cause,
    RunCreated,
)
from tests.scheduler.harness import Shell, at, clock, definition

DAY = "2024-01-01T"
NIGHT = {"from": f"{DAY}10:01:00Z", "to": f"{DAY}10:04:00Z"}


def minutely(**more: Any) -> Shell:
    """Every minute, from 10:00:10; what comes goes at once, so that nothing of the schedule is open at 10:05:30."""
    shell = Shell(f"{DAY}10:00:10")
    body = definition(**{"overlap": {"policy": "allow_all"}, **more})
    if "every" in body["trigger"]:
        del body["trigger"]["cron"]
    shell.put(body=body)
    return shell


def paused(**more: Any) -> Shell:
    """The same, but 10:01, 10:02 and 10:03 were skipped, as it was paused; it is 10:05:30."""
    shell = minutely(**more)
    shell.send("SchedulePause")
    shell.until(f"{DAY}10:03:30")
    shell.send("ScheduleResume")
    shell.until(f"{DAY}10:05:30")
    return shell


def start(shell: Shell, **more: Any) -> tuple[int, Any]:
    """Start one; the answer's status and body."""
    shell.send("BackfillStart", **{**NIGHT, **more})
    return shell.answer().status, shell.answer().body


def backfilled(shell: Shell) -> list[str]:
    """The runs of backfills by their nominal times, those of another run with a star."""
    return [
        clock(run.nominal_time) + ("*" if run.of else "")
        for run in shell.all(RunCreated)
        if run.cause is Cause.BACKFILL and run.nominal_time is not None
    ]


def run_all(shell: Shell, outcome: str = "succeeded", *, until: str = f"{DAY}10:59:00") -> None:
    """Let every run of a backfill end at once, until no more come."""
    finished: set[str] = set()
    for _ in range(200):
        shell.settle()
        open_ = [run for run in shell.all(RunCreated) if run.cause is Cause.BACKFILL and run.run_id not in finished]
        for run in open_:
            shell.finish(run, outcome)
            finished.add(run.run_id)
        due = shell.next_wakeup()
        if not shell.schedule().backfills or due is None or due > at(until):
            return
        shell.now = max(shell.now, due)
    raise AssertionError("this would go on for ever")


def finish_live(shell: Shell, outcome: str = "succeeded", *nominals: str) -> None:
    for run in shell.all(RunCreated):
        if run.cause is Cause.SCHEDULE and (not nominals or clock(run.nominal_time) in nominals):  # type: ignore[arg-type]
            shell.finish(run, outcome)
