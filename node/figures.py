"""The figures of the two roles that own partitions: an `Observer` each, from facts and states to metrics.

The cores know nothing of it. Facts are added up first and told once a batch: metrics have locks, and a batch may have
thousands of facts.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from operator import add
from typing import TYPE_CHECKING, Any

from dispatcher import figures
from dispatcher.shard import Shard
from node.backlogs import Backlogs
from runtime.clock_watch import NEVER_READ
from runtime.telemetry import Metric
from schemas.facts import (
    AttemptFinished,
    AttemptStarted,
    BreakerChanged,
    Cause,
    CommandRejected,
    OccurrenceDeferred,
    OccurrenceSkipped,
    RunCreated,
    RunDeferred,
    RunFinished,
    RunRetryScheduled,
)
from schemas.internal import HandOut

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime, timedelta

    from dispatcher.figures import ShardFigures
    from runtime.observer import States
    from runtime.telemetry import Telemetry
    from schemas.facts import Fact

Labels = tuple[tuple[str, str], ...]

GAUGES = (
    Metric.RUNS_QUEUED, Metric.RUNS_RUNNING, Metric.QUEUE_HEAD_WAIT_SECONDS, Metric.QUEUE_PAUSED, Metric.WORKERS,
    Metric.WORKER_SLOTS_FREE, Metric.RETRY_BUDGET_USED_RATIO, Metric.BREAKERS_OPEN,
)  # fmt: skip


class Tally:
    """What a batch adds to counters and histograms."""

    def __init__(self, telemetry: Telemetry) -> None:
        self._telemetry = telemetry
        self._sums: Counter[tuple[Metric, Labels]] = Counter()
        self._seconds: defaultdict[tuple[Metric, Labels], list[float]] = defaultdict(list)

    def add(self, name: Metric, amount: int = 1, **labels: str) -> None:
        """Count what is told with the batch."""
        self._sums[name, tuple(labels.items())] += amount

    def time(self, name: Metric, took: timedelta, *labels: tuple[str, str]) -> None:
        """Observe it when the batch is told; what ends before it begins, as clocks differ, took no time."""
        self._seconds[name, labels].append(max(took.total_seconds(), 0.0))

    def tell(self) -> None:
        """All of it, and begin anew."""
        for (name, labels), amount in self._sums.items():
            self._telemetry.count(name, self._bounded(labels), amount)
        for (name, labels), seconds in self._seconds.items():
            self._telemetry.observe(name, self._bounded(labels), *seconds)
        self._sums.clear()
        self._seconds.clear()

    def _bounded(self, labels: Labels) -> dict[str, str]:
        return {label: self._telemetry.bounded(label, value) for label, value in labels}


class SchedulerFigures:
    """Of one partition that decides when."""

    ROLE = "scheduler"

    def __init__(self, telemetry: Telemetry, partition: int) -> None:
        self._telemetry, self._tally = telemetry, Tally(telemetry)
        self._where = {"role": self.ROLE, "partition": str(partition)}
        self._decided_until, self._backlogs = NEVER_READ, Backlogs()
        self._heard: Mapping[type[Fact], Callable[[Any], None]] = {
            RunCreated: self._created,
            OccurrenceSkipped: self._skipped,
            OccurrenceDeferred: self._deferred,
            CommandRejected: self._rejected,
        }

    def committed(self, facts: Sequence[Fact], *, decided_until: datetime) -> None:
        """See `Observer.committed`."""
        self._decided_until = decided_until
        _hear(self._heard, facts)
        self._tally.tell()

    def _created(self, fact: RunCreated) -> None:
        self._backlogs.hear(fact)
        self._tally.add(Metric.RUNS_CREATED, tenant=fact.tenant, cause=fact.cause)
        # What was due by then had its decision; its run comes of something else: an end, a turn, a person.
        if fact.cause is Cause.SCHEDULE and fact.due_at > self._decided_until:
            self._tally.time(Metric.SCHEDULING_DELAY_SECONDS, fact.created_at - fact.due_at)

    def _skipped(self, fact: OccurrenceSkipped) -> None:
        self._backlogs.hear(fact)
        count = 1 if fact.range is None else fact.range.count
        self._tally.add(Metric.OCCURRENCES_SKIPPED, count, tenant=fact.tenant, reason=fact.reason)

    def _deferred(self, fact: OccurrenceDeferred) -> None:
        self._backlogs.hear(fact)
        self._tally.add(Metric.OCCURRENCES_DEFERRED, tenant=fact.tenant, reason=fact.reason)

    def _rejected(self, fact: CommandRejected) -> None:
        self._tally.add(Metric.COMMANDS_REJECTED, role=self.ROLE, reason=fact.reason)

    def look(self, states: States, shared: Any, now: datetime) -> None:  # noqa: ARG002 -- see the port
        """See `Observer.look`."""
        self._telemetry.set(Metric.RECOVERING, self._where, 0 if shared.recovery is None else 1)
        for reason, count in (self._backlogs.look(states) or {}).items():
            self._telemetry.set(Metric.CATCH_UP_OCCURRENCES_LEFT, {**self._where, "reason": reason}, count)

    def close(self) -> None:
        """See `Observer.close`. What is left is the next owner's to count."""
        self._telemetry.forget(Metric.CATCH_UP_OCCURRENCES_LEFT, self._where)


class DispatcherFigures:
    """Of one partition that decides who, and what next."""

    ROLE = "dispatcher"

    def __init__(self, telemetry: Telemetry, partition: int) -> None:
        self._telemetry, self._tally = telemetry, Tally(telemetry)
        self._where = {"role": self.ROLE, "partition": str(partition)}
        self._shown: dict[Metric, frozenset[Labels]] = {}
        self._heard: Mapping[type[Fact], Callable[[Any], None]] = {
            HandOut: self._handed_out,
            AttemptStarted: self._started,
            AttemptFinished: self._attempt_finished,
            RunFinished: self._finished,
            RunDeferred: self._deferred,
            BreakerChanged: self._breaker_changed,
            RunRetryScheduled: self._retried,
            CommandRejected: self._rejected,
        }

    def committed(self, facts: Sequence[Fact], *, decided_until: datetime) -> None:  # noqa: ARG002 -- see the port
        """See `Observer.committed`."""
        _hear(self._heard, facts)
        self._tally.tell()

    def _handed_out(self, fact: HandOut) -> None:
        """Only a first attempt waited from when its run was due; what others waited for stands in no fact."""
        if fact.attempt == 1:
            run = fact.run
            waited = fact.handed_out_at - max(run.due_at, run.created_at)
            labels = ("queue", run.job.queue), ("lane", run.job.priority)
            self._tally.time(Metric.RUN_WAIT_SECONDS, waited, *labels)

    def _started(self, fact: AttemptStarted) -> None:
        self._tally.time(Metric.START_SECONDS, fact.started_at - fact.handed_out_at, ("queue", fact.queue))

    def _attempt_finished(self, fact: AttemptFinished) -> None:
        self._tally.add(Metric.ATTEMPTS_FINISHED, queue=fact.queue, outcome=fact.outcome)

    def _finished(self, fact: RunFinished) -> None:
        if not fact.repeat:
            self._tally.add(Metric.RUNS_FINISHED, tenant=fact.tenant, outcome=fact.outcome)

    def _deferred(self, fact: RunDeferred) -> None:
        self._tally.add(Metric.RUNS_DEFERRED, queue=fact.queue, reason=fact.reason)

    def _breaker_changed(self, fact: BreakerChanged) -> None:
        self._tally.add(Metric.BREAKER_CHANGES, queue=fact.queue, state=fact.state)

    def _retried(self, fact: RunRetryScheduled) -> None:
        self._tally.add(Metric.RETRIES_SCHEDULED, queue=fact.queue)

    def _rejected(self, fact: CommandRejected) -> None:
        self._tally.add(Metric.COMMANDS_REJECTED, role=self.ROLE, reason=fact.reason)

    def look(self, states: States, shared: Any, now: datetime) -> None:  # noqa: ARG002 -- see the port
        """See `Observer.look`. Several shards of a queue may be in one partition: their figures go together."""
        self._show(figures.of(state, now) for state in states() if isinstance(state, Shard))

    def _show(self, seen: Iterator[ShardFigures]) -> None:
        """All gauges of the partition; what is no more is zero."""
        values: dict[Metric, dict[Labels, float]] = {name: {} for name in GAUGES}
        for shard in seen:
            queue = ("queue", self._telemetry.bounded("queue", shard.queue))
            for name, combine, value in (
                (Metric.QUEUE_HEAD_WAIT_SECONDS, max, shard.head_wait_seconds),
                (Metric.QUEUE_PAUSED, min, int(shard.paused)),
                (Metric.WORKERS, add, shard.workers),
                (Metric.WORKER_SLOTS_FREE, add, shard.slots_free),
                (Metric.RETRY_BUDGET_USED_RATIO, max, shard.budget_used),
                (Metric.BREAKERS_OPEN, add, shard.breakers_open),
            ):
                known = values[name].get((queue,))
                values[name][(queue,)] = value if known is None else combine(known, value)
            for name, by_tenant in ((Metric.RUNS_QUEUED, shard.queued), (Metric.RUNS_RUNNING, shard.running)):
                self._add_by_tenant(values[name], queue, by_tenant)
        for name, by_labels in values.items():
            self._replace(name, by_labels)

    def _add_by_tenant(self, found: dict[Labels, float], queue: tuple[str, str], counts: Mapping[str, int]) -> None:
        for tenant, count in counts.items():
            labels = (queue, ("tenant", self._telemetry.bounded("tenant", tenant)))
            found[labels] = found.get(labels, 0) + count

    def _replace(self, name: Metric, by_labels: Mapping[Labels, float]) -> None:
        gone = self._shown.get(name, frozenset()) - by_labels.keys()
        for labels in gone:
            self._telemetry.set(name, self._where | dict(labels), 0)
        for labels, value in by_labels.items():
            self._telemetry.set(name, self._where | dict(labels), value)
        self._shown[name] = frozenset(by_labels) | gone

    def close(self) -> None:
        """See `Observer.close`. Who owns the partition now says how its queues are."""
        for name in GAUGES:
            self._telemetry.forget(name, self._where)


def _hear(heard: Mapping[type[Fact], Callable[[Any], None]], facts: Sequence[Fact]) -> None:
    for fact in facts:
        hear = heard.get(type(fact))
        if hear is not None:
            hear(fact)
