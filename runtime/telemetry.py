"""The one list of metric and log-event names.

Whatever an operator greps, graphs or is woken by has its name here and nowhere else. Log events are structured:
name, then fields; the fields of a partition are always `role`, `partition` and, where there is one, `offset`.
"""

from __future__ import annotations

from enum import StrEnum
from threading import Lock
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

if TYPE_CHECKING:
    from collections.abc import Mapping

PREFIX = "tidewheel_"
_MILLISECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60)


class Event(StrEnum):
    """Names of log events."""

    PARTITION_RESTORING = "partition_restoring"
    PARTITION_RESTORED = "partition_restored"
    PARTITION_READY = "partition_ready"
    PARTITION_STOPPED = "partition_stopped"
    PARTITION_FAILED = "partition_failed"
    PARTITION_FENCED = "partition_fenced"
    PARTITION_HANGS = "partition_hangs"
    TRANSACTION_HUNG = "transaction_hung"
    PARTITIONS_ASSIGNED = "partitions_assigned"
    PARTITIONS_REVOKED = "partitions_revoked"
    PARTITIONS_LOST = "partitions_lost"
    ROLE_FAILED = "role_failed"
    ROLE_WAITS = "role_waits"
    ROLE_UNFIT = "role_unfit"
    DECISION_ROLLED_FORWARD = "decision_rolled_forward"
    STORE_QUARANTINED = "store_quarantined"
    STORE_OUTDATED = "store_outdated"
    STORE_UNAVAILABLE = "store_unavailable"
    STATE_DIFFERS = "state_differs"
    POSITIONS_DIFFER = "positions_differ"
    RECORD_REJECTED = "record_rejected"
    RECORDS_LOST = "records_lost"
    INGRESS_WAITS = "ingress_waits"
    OUTPUT_DROPPED = "output_dropped"
    CLOCK_HELD = "clock_held"
    CLOCK_RELEASED = "clock_released"
    CLOCK_NOT_ACCEPTED = "clock_not_accepted"
    GAP_ACCEPTED = "gap_accepted"
    COMMIT_RETRIED = "commit_retried"
    PRODUCER_REPLACED = "producer_replaced"
    PROJECTION_REBUILT = "projection_rebuilt"
    PROGRESS_UNKNOWN = "progress_unknown"
    CHILD_STARTED = "child_started"
    CHILD_EXITED = "child_exited"
    NODE_READY = "node_ready"
    NODE_STOPPING = "node_stopping"
    MAINTENANCE_FAILED = "maintenance_failed"


class Metric(StrEnum):
    """Names of metrics; `DESCRIBED` says what each means."""

    # what a partition does
    RECORDS_READ = "records_read_total"
    RECORDS_REJECTED = "records_rejected_total"
    RECORDS_UNANSWERED = "records_unanswered"
    COMMIT_SECONDS = "commit_seconds"
    BATCH_SECONDS = "batch_seconds"
    DECIDED_UNTIL = "decided_until_timestamp_seconds"
    CLOCK_MARK_LAG_SECONDS = "clock_mark_lag_seconds"
    CLOCK_IS_HELD = "clock_held"
    RESTORE_SECONDS = "restore_seconds"
    RESTORE_RECORDS_LEFT = "restore_records_left"
    DECISIONS_ROLLED_FORWARD = "decisions_rolled_forward_total"
    PARTITION_FAILED = "partition_failed"
    STATE_DIFFERS = "state_differs"
    ROLE_PARTITIONS = "role_partitions"
    PRODUCERS_REPLACED = "producers_replaced_total"
    # when
    SCHEDULING_DELAY_SECONDS = "scheduling_delay_seconds"
    RUNS_CREATED = "runs_created_total"
    OCCURRENCES_SKIPPED = "occurrences_skipped_total"
    OCCURRENCES_DEFERRED = "occurrences_deferred_total"
    COMMANDS_REJECTED = "commands_rejected_total"
    RECOVERING = "recovering"
    CATCH_UP_OCCURRENCES_LEFT = "catch_up_occurrences_left"
    # who, and what next
    RUNS_QUEUED = "runs_queued"
    RUNS_RUNNING = "runs_running"
    QUEUE_HEAD_WAIT_SECONDS = "queue_head_wait_seconds"
    QUEUE_PAUSED = "queue_paused"
    WORKERS = "workers"
    WORKER_SLOTS_FREE = "worker_slots_free"
    RETRY_BUDGET_USED_RATIO = "retry_budget_used_ratio"
    RUN_WAIT_SECONDS = "run_wait_seconds"
    START_SECONDS = "start_seconds"
    BREAKERS_OPEN = "breakers_open"
    BREAKER_CHANGES = "breaker_changes_total"
    RUNS_DEFERRED = "runs_deferred_total"
    RETRIES_SCHEDULED = "retries_scheduled_total"
    ATTEMPTS_FINISHED = "attempts_finished_total"
    RUNS_FINISHED = "runs_finished_total"
    # what people ask
    READ_MODEL_AS_OF = "read_model_as_of_timestamp_seconds"
    PROJECTION_LAG_RECORDS = "projection_lag_records"
    BACKFILLS_OPEN = "backfills_open"
    BACKFILL_OCCURRENCES_LEFT = "backfill_occurrences_left"
    HTTP_REQUESTS = "http_requests_total"
    HTTP_REQUEST_SECONDS = "http_request_seconds"
    EVENT_STREAMS = "event_streams"
    EVENT_STREAMS_ENDED = "event_streams_ended_total"


OTHER = "_other"  # in place of a name when there are too many: no tenant or queue can be called so
# Values of a label that are kept apart in a process; all later ones are counted under OTHER. A series costs Prometheus
# some kilobytes, and whoever may name a tenant could make any number of them.
LABEL_VALUES_MAX: Mapping[str, int] = MappingProxyType({"tenant": 100, "queue": 100, "reason": 50})

_NONE: Mapping[str, str] = MappingProxyType({})
_PARTITION = ("role", "partition")
_QUEUE = ("role", "partition", "queue")
_REQUEST = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_DELAY = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600)


class Described(NamedTuple):
    """What a metric is: how it is counted, what it means, by which labels it is told apart, a histogram's buckets."""

    kind: type[Counter | Gauge | Histogram]
    help: str
    labels: tuple[str, ...]
    buckets: tuple[float, ...] = _MILLISECONDS


DESCRIBED: Mapping[Metric, Described] = {
    Metric.RECORDS_READ: Described(Counter, "Input records read by a partition.", _PARTITION),
    Metric.RECORDS_UNANSWERED: Described(
        Gauge, "Input records that a partition has read and not answered yet; it holds them in memory.", _PARTITION
    ),
    Metric.RECORDS_REJECTED: Described(Counter, "Input records refused as unreadable or wrong.", _PARTITION),
    Metric.COMMIT_SECONDS: Described(Histogram, "Time of one transaction on the log.", _PARTITION),
    Metric.BATCH_SECONDS: Described(Histogram, "Time from reading a batch to having applied it.", _PARTITION),
    Metric.DECIDED_UNTIL: Described(
        Gauge,
        "Up to which instant a partition has decided everything, in seconds since 1970; moves twice a minute at rest.",
        _PARTITION,
    ),
    Metric.CLOCK_MARK_LAG_SECONDS: Described(Gauge, "Wall clock minus clock mark at the last batch.", _PARTITION),
    Metric.CLOCK_IS_HELD: Described(Gauge, "1 while the wall clock is not believed.", _PARTITION),
    Metric.RESTORE_SECONDS: Described(Gauge, "Time the last restore of a partition took.", _PARTITION),
    Metric.RESTORE_RECORDS_LEFT: Described(
        Gauge, "Records of its changelog a partition has yet to read to work.", _PARTITION
    ),
    Metric.DECISIONS_ROLLED_FORWARD: Described(Counter, "Torn transactions completed at a restore.", _PARTITION),
    Metric.PARTITION_FAILED: Described(Gauge, "1 for a partition that stopped although nobody asked.", _PARTITION),
    Metric.STATE_DIFFERS: Described(
        Gauge, "1 for a partition whose state was found not to be what its log says.", _PARTITION
    ),
    Metric.ROLE_PARTITIONS: Described(
        Gauge, "Partitions that a role of this process has in the whole cluster; somebody should own each.", ("role",)
    ),
    Metric.PRODUCERS_REPLACED: Described(
        Counter, "Producers replaced because a commit of theirs left doubt; on Kafka.", _PARTITION
    ),
    Metric.SCHEDULING_DELAY_SECONDS: Described(
        Histogram,
        "From when an occurrence was due to the decision that made its run; not of what was caught up or had to wait.",
        (),
        _DELAY,
    ),
    Metric.RUNS_CREATED: Described(Counter, "Runs created.", ("tenant", "cause")),
    Metric.OCCURRENCES_SKIPPED: Described(
        Counter, "Occurrences that have no run, and why; a range counts all it holds.", ("tenant", "reason")
    ),
    Metric.OCCURRENCES_DEFERRED: Described(
        Counter, "Times that a due occurrence was told to wait, and why.", ("tenant", "reason")
    ),
    Metric.COMMANDS_REJECTED: Described(Counter, "Commands and records refused by their owner.", ("role", "reason")),
    Metric.RECOVERING: Described(Gauge, "1 while a partition decides what an outage left behind.", _PARTITION),
    Metric.CATCH_UP_OCCURRENCES_LEFT: Described(
        Gauge,
        "Missed occurrences whose turn is still to come (`paced`), and what freezes hold (`frozen`).",
        (*_PARTITION, "reason"),
    ),
    Metric.RUNS_QUEUED: Described(
        Gauge, "Runs that wait for a worker, for their instant or for another attempt.", (*_QUEUE, "tenant")
    ),
    Metric.RUNS_RUNNING: Described(Gauge, "Runs that are with a worker.", (*_QUEUE, "tenant")),
    Metric.QUEUE_HEAD_WAIT_SECONDS: Described(
        Gauge,
        "How long the run that is first in its line could have been with a worker; the longest of a queue's lines.",
        _QUEUE,
    ),
    Metric.BREAKERS_OPEN: Described(Gauge, "Breakers of a queue that are not closed.", _QUEUE),
    Metric.BREAKER_CHANGES: Described(Counter, "Breakers that changed, by the state they came to.", ("queue", "state")),
    Metric.QUEUE_PAUSED: Described(Gauge, "1 while a queue hands nothing out because somebody paused it.", _QUEUE),
    Metric.WORKERS: Described(Gauge, "Workers that are there and take runs.", _QUEUE),
    Metric.WORKER_SLOTS_FREE: Described(Gauge, "Slots that they have free.", _QUEUE),
    Metric.RETRY_BUDGET_USED_RATIO: Described(
        Gauge, "Retries of the last ten minutes over those allowed, of the schedule where that is most.", _QUEUE
    ),
    Metric.RUN_WAIT_SECONDS: Described(
        Histogram,
        "From when a run was due, or created if that was later, to its first hand-out.",
        ("queue", "lane"),
        _DELAY,
    ),
    Metric.START_SECONDS: Described(
        Histogram, "From a hand-out to the report that its attempt began, as its owner read it.", ("queue",), _DELAY
    ),
    Metric.RUNS_DEFERRED: Described(Counter, "Times that a run was told why it waits.", ("queue", "reason")),
    Metric.RETRIES_SCHEDULED: Described(Counter, "Attempts that are to be made again.", ("queue",)),
    Metric.ATTEMPTS_FINISHED: Described(
        Counter, "Attempts that ended, and how: `lease_expired` is a worker that was silent.", ("queue", "outcome")
    ),
    Metric.RUNS_FINISHED: Described(Counter, "Runs that reached their outcome.", ("tenant", "outcome")),
    Metric.READ_MODEL_AS_OF: Described(
        Gauge, "Everything appended before this instant is in the rows; in seconds since 1970.", ()
    ),
    Metric.PROJECTION_LAG_RECORDS: Described(
        Gauge, "Records the read model has not folded yet; markers of transactions are counted too.", ()
    ),
    Metric.BACKFILLS_OPEN: Described(Gauge, "Backfills that are not over, as the read model has them.", ("state",)),
    Metric.BACKFILL_OCCURRENCES_LEFT: Described(Gauge, "Occurrences that they have still to decide.", ("state",)),
    Metric.HTTP_REQUESTS: Described(Counter, "Requests answered.", ("method", "route", "status")),
    Metric.EVENT_STREAMS: Described(Gauge, "Streams of events that are open.", ()),
    Metric.EVENT_STREAMS_ENDED: Described(Counter, "Streams of events that ended, and why.", ("reason",)),
    Metric.HTTP_REQUEST_SECONDS: Described(Histogram, "Time to the end of the answer.", ("method", "route"), _REQUEST),
}
# Made where they are used: only a process with an API has them.
_OF_THE_DOOR = frozenset(
    {Metric.HTTP_REQUESTS, Metric.HTTP_REQUEST_SECONDS, Metric.EVENT_STREAMS, Metric.EVENT_STREAMS_ENDED}
)


def make(name: Metric, registry: CollectorRegistry) -> Any:
    """A metric as it is described, in a registry."""
    kind, help_, labels, buckets = DESCRIBED[name]
    full = PREFIX + name.value
    if kind is Histogram:
        return Histogram(full, help_, labels, registry=registry, buckets=buckets)
    return kind(full, help_, labels, registry=registry)


class Bounded:
    """The values of labels, of each only as many as `LABEL_VALUES_MAX` says: whoever comes later is OTHER.

    For as long as a process lives, so that no series changes its meaning. From any thread.
    """

    def __init__(self, most: Mapping[str, int] = LABEL_VALUES_MAX) -> None:
        self._most = most
        self._known: dict[str, set[str]] = {label: set() for label in most}
        self._lock = Lock()

    def __call__(self, label: str, value: str) -> str:
        """The value itself, or OTHER; of a label whose values are ours it is always itself."""
        known = self._known.get(label)
        if known is None or value in known:
            return value
        with self._lock:
            if len(known) >= self._most[label]:
                return OTHER
            known.add(value)
        return value


class Telemetry:
    """Metrics in one registry and a structured logger, handed to whoever has something to say."""

    def __init__(self, registry: CollectorRegistry | None = None, logger: Any = None) -> None:
        self.registry = registry or CollectorRegistry()
        self.bounded = Bounded()
        self._log = logger or structlog.get_logger()
        self._series: dict[tuple[Any, ...], Any] = {}
        self._metrics = {name: make(name, self.registry) for name in Metric if name not in _OF_THE_DOOR}

    def count(self, name: Metric, labels: Mapping[str, str] = _NONE, amount: float = 1) -> None:
        """Add to a counter."""
        metric = self._series_of(name, labels)
        assert isinstance(metric, Counter)
        metric.inc(amount)

    def set(self, name: Metric, labels: Mapping[str, str], value: float) -> None:
        """Set a gauge."""
        metric = self._metrics[name]
        assert isinstance(metric, Gauge)
        (metric.labels(**labels) if labels else metric).set(value)

    def observe(self, name: Metric, labels: Mapping[str, str], *seconds: float) -> None:
        """Add observations to a histogram."""
        metric = self._series_of(name, labels)
        assert isinstance(metric, Histogram)
        for each in seconds:
            metric.observe(each)

    def _series_of(self, name: Metric, labels: Mapping[str, str]) -> Any:
        """Found once: to look it up costs more than to count. Not of gauges, whose series come and go."""
        known = (name, *labels.items())
        series = self._series.get(known)
        if series is None:
            metric = self._metrics[name]
            series = self._series[known] = metric.labels(**labels) if labels else metric
        return series

    def forget(self, name: Metric, labels: Mapping[str, str]) -> None:
        """Have a gauge say nothing more about these labels; it may have said nothing yet."""
        metric = self._metrics[name]
        assert isinstance(metric, Gauge)
        if labels:
            metric.remove_by_labels(dict(labels))
        else:
            metric.clear()

    def forget_partition(self, role: str, partition: str) -> None:
        """Have no gauge say anything more of a partition: it is another's now, or nobody's."""
        for name, (kind, _, labels, _) in DESCRIBED.items():
            if kind is Gauge and labels[:2] == _PARTITION:
                self.forget(name, {"role": role, "partition": partition})

    def info(self, event: Event, **fields: Any) -> None:
        """Log what an operator may want to know."""
        self._log.info(event.value, **fields)

    def warning(self, event: Event, **fields: Any) -> None:
        """Log what an operator should look at."""
        self._log.warning(event.value, **fields)

    def error(self, event: Event, **fields: Any) -> None:
        """Log what an operator must act on."""
        self._log.error(event.value, **fields)
