"""One process in the life of a partition: `python -m tests.upgrade.living FOLDER FROM TO [CRON ZONE]`.

Takes the embedded log in a folder over at one instant, puts a schedule when it is told one, lives to another instant by
a clock of its own, and prints what stands on the log then. It keeps nothing but the log.
"""

from __future__ import annotations

import sys
from datetime import datetime, timedelta
from pathlib import Path

import orjson

from runtime.logs.embedded import EmbeddedLog
from scheduler.occurrences import tz_version
from schemas import topics
from schemas.facts import RunCreated, TzAdopted
from simulation.clock import ManualClock
from simulation.line import Line

STEP = timedelta(minutes=30)


def main(folder: str, begin: str, end: str, *schedule: str) -> None:
    """Live, and tell."""
    clock = ManualClock(datetime.fromisoformat(begin))
    log = EmbeddedLog(Path(folder) / "log", clock)
    line = Line(log, clock)
    if schedule:
        cron, zone = schedule
        definition = {
            "trigger": {"cron": cron, "timezone": zone},
            "overlap": {"policy": "allow_all"},
            "job": {"target": {"type": "task", "name": "work"}},
        }
        line.command("schedule.put", {"tenant": "acme", "name": "daily", "definition": definition})
    line.settle()
    line.advance(datetime.fromisoformat(end) - clock.now(), step=STEP)
    events = line.facts(topics.RUN_EVENTS)
    runs = [(fact.nominal_time, fact.created_at, fact.tz_version) for fact in events if isinstance(fact, RunCreated)]
    adopted = [fact for fact in events if isinstance(fact, TzAdopted)]
    moved = [(each.schedule, each.was, each.becomes) for fact in adopted for each in fact.moved]
    told = {"version": tz_version(), "runs": runs, "adopted": [fact.version for fact in adopted], "moved": moved}
    for processor in line.processors:
        processor.close()
    log.close()
    sys.stdout.buffer.write(orjson.dumps(told))


if __name__ == "__main__":
    main(*sys.argv[1:])
