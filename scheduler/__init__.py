"""WHEN: schedule changes and time in; runs and skipped occurrences out. Pure.

One instance serves one partition. Its inputs are commands (`schedule-changes`), outcomes of runs (`run-outcomes`), the
catalog (jobs, calendars, queues, tenants), and wakeups; its outputs are facts, which `routing` sends to their topics.

    command ──▶ commands/   judged once, remembered for seven days, in force from the instant it was published
                 ├─ delays      it waits for a record of the catalog, and those behind it wait with it
                 └─ forwarding  it stands in a partition of another owner, who gets it
    wakeup  ──▶ due         the earliest of: an outcome that makes room, an occurrence, the end of a wait, a pause
                 ├─ overlap     runs are active: wait or skip
                 ├─ catch_up    older than its grace: which of the missed ones still run
                 └─ runs        a run, with everything that a worker needs to know
    fact    ──▶ evolving    the only place where a schedule's state changes
            ──▶ routing     topics and partitions

Exactly one live decision per occurrence: created, skipped, or (deferred and then) one of both. The mark behind it only
moves forward. Decisions follow from what the log says and when it said it, not from how it was cut into batches: each
thing is taken at its own instant, and only once everything that the log held at that instant has been read.

A crash loses nothing that counts: state is a fold of facts, and a fact that was written is never decided again.
"""

from scheduler.core import SchedulerCore
from scheduler.partition import TzVersionTooOld

__all__ = ["SchedulerCore", "TzVersionTooOld"]
