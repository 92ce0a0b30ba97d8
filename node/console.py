"""The demonstration's running commentary: what happens to runs, as it happens, read from `run-events` like anyone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.lifecycle import Threaded, ThreadService
from runtime.record import TopicPartition
from schemas import codec, topics
from schemas.facts import (
    AttemptFinished,
    AttemptOutcome,
    AttemptStarted,
    Fact,
    OccurrenceSkipped,
    Outcome,
    RunCreated,
    RunDeferred,
    RunFinished,
    RunRetryScheduled,
    ScheduleAccepted,
)

if TYPE_CHECKING:
    from rich.console import Console

    from runtime.lifecycle import Running
    from runtime.log import Log

WAIT_SECONDS = 0.5


class Commentary(Threaded):
    """Prints a line for each thing that happens to a run. A service (`runtime.lifecycle`)."""

    def __init__(self, log: Log, console: Console) -> None:
        self._console = console
        partitions = [TopicPartition(topics.RUN_EVENTS, number) for number in range(log.partitions(topics.RUN_EVENTS))]
        self._reader = log.open_reader(log.end_offsets(partitions))
        self._thread = ThreadService("commentary", self._run, interrupt=self._reader.wake)

    def _run(self, running: Running) -> None:
        running.ready()
        while not running.stopping.is_set():
            for record in self._reader.poll(records_max=100, bytes_max=1 << 20, timeout=WAIT_SECONDS):
                line = describe(codec.read_fact(record.value or b""))
                if line:
                    self._console.print(f"[dim]{record.appended_at:%H:%M:%S}[/] {line}", highlight=False)
        self._reader.close()


_FINISHED = {Outcome.SUCCEEDED: "[green]succeeded[/]", Outcome.CANCELLED: "[yellow]cancelled[/]"}


def describe(fact: Fact) -> str:
    """One line in words, with colours; nothing for what would only be noise."""
    match fact:
        case ScheduleAccepted():
            return f"[bold]{fact.schedule}[/] accepted, version {fact.version}: {fact.words}"
        case RunCreated():
            return f"[bold]{fact.run_id}[/] created ({fact.cause})"
        case AttemptStarted():
            return f"[bold]{fact.run_id}[/] attempt {fact.attempt} started on {fact.worker}"
        case AttemptFinished() if fact.outcome is not AttemptOutcome.SUCCEEDED:
            said = f": {fact.error.type}: {fact.error.message}" if fact.error else ""
            return f"[bold]{fact.run_id}[/] attempt {fact.attempt} [red]{fact.outcome}[/]{said}"
        case RunDeferred():
            until = f" until {fact.until:%H:%M:%S}" if fact.until else ""
            return f"[bold]{fact.run_id}[/] [yellow]waits: {fact.reason}{until}[/]"
        case RunRetryScheduled():
            when = f"attempt {fact.attempt} at {fact.retry_at:%H:%M:%S}"
            return f"[bold]{fact.run_id}[/] [yellow]will be tried again[/]: {when}"
        case RunFinished():
            return f"[bold]{fact.run_id}[/] {_FINISHED.get(fact.outcome, f'[red]{fact.outcome}[/]')}"
        case OccurrenceSkipped() if fact.nominal_time is not None:
            blocked = f" by {fact.blocked_by}" if fact.blocked_by else ""
            return f"[bold]{fact.schedule}[/] {fact.nominal_time:%H:%M:%S} [yellow]skipped: {fact.reason}{blocked}[/]"
    return ""
