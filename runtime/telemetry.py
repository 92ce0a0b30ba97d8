"""The one list of metric and log-event names.

Whatever an operator greps, graphs or is woken by has its name here and nowhere else. Log events are structured:
name, then fields; the fields of a partition are always `role`, `partition` and, where there is one, `offset`.
"""

from __future__ import annotations

from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

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
    PROJECTION_REBUILT = "projection_rebuilt"
    PROGRESS_UNKNOWN = "progress_unknown"
    CHILD_STARTED = "child_started"
    CHILD_EXITED = "child_exited"
    NODE_READY = "node_ready"
    NODE_STOPPING = "node_stopping"
    MAINTENANCE_FAILED = "maintenance_failed"


class Metric(StrEnum):
    """Names of metrics; `describe` says what each means."""

    RECORDS_READ = "records_read_total"
    RECORDS_REJECTED = "records_rejected_total"
    COMMIT_SECONDS = "commit_seconds"
    BATCH_SECONDS = "batch_seconds"
    CLOCK_MARK_LAG_SECONDS = "clock_mark_lag_seconds"
    CLOCK_IS_HELD = "clock_held"
    RESTORE_SECONDS = "restore_seconds"
    RESTORE_RECORDS_LEFT = "restore_records_left"
    DECISIONS_ROLLED_FORWARD = "decisions_rolled_forward_total"
    PARTITION_FAILED = "partition_failed"
    STATE_DIFFERS = "state_differs"
    PROJECTION_LAG_RECORDS = "projection_lag_records"


_NONE: Mapping[str, str] = MappingProxyType({})
_PARTITION = ("role", "partition")
_TABLE: Mapping[Metric, tuple[type[Counter | Gauge | Histogram], str, tuple[str, ...]]] = {
    Metric.RECORDS_READ: (Counter, "Input records read by a partition.", _PARTITION),
    Metric.RECORDS_REJECTED: (Counter, "Input records refused as unreadable or wrong.", _PARTITION),
    Metric.COMMIT_SECONDS: (Histogram, "Time of one transaction on the log.", _PARTITION),
    Metric.BATCH_SECONDS: (Histogram, "Time from reading a batch to having applied it.", _PARTITION),
    Metric.CLOCK_MARK_LAG_SECONDS: (Gauge, "Wall clock minus clock mark at the last batch.", _PARTITION),
    Metric.CLOCK_IS_HELD: (Gauge, "1 while the wall clock is not believed.", _PARTITION),
    Metric.RESTORE_SECONDS: (Gauge, "Time the last restore of a partition took.", _PARTITION),
    Metric.RESTORE_RECORDS_LEFT: (Gauge, "Records of its changelog a partition has yet to read to work.", _PARTITION),
    Metric.DECISIONS_ROLLED_FORWARD: (Counter, "Torn transactions completed at a restore.", _PARTITION),
    Metric.PARTITION_FAILED: (Gauge, "1 for a partition that stopped although nobody asked.", _PARTITION),
    Metric.STATE_DIFFERS: (Gauge, "1 for a partition whose state was found not to be what its log says.", _PARTITION),
    Metric.PROJECTION_LAG_RECORDS: (Gauge, "Records the read model has not folded yet.", ()),
}


class Telemetry:
    """Metrics in one registry and a structured logger, handed to whoever has something to say."""

    def __init__(self, registry: CollectorRegistry | None = None, logger: Any = None) -> None:
        self.registry = registry or CollectorRegistry()
        self._log = logger or structlog.get_logger()
        self._metrics = {name: self._make(name) for name in Metric}

    def _make(self, name: Metric) -> Counter | Gauge | Histogram:
        kind, help_, labels = _TABLE[name]
        full = PREFIX + name.value
        if kind is Histogram:
            return Histogram(full, help_, labels, registry=self.registry, buckets=_MILLISECONDS)
        return kind(full, help_, labels, registry=self.registry)

    def count(self, name: Metric, labels: Mapping[str, str] = _NONE, amount: float = 1) -> None:
        """Add to a counter."""
        metric = self._metrics[name]
        assert isinstance(metric, Counter)
        (metric.labels(**labels) if labels else metric).inc(amount)

    def set(self, name: Metric, labels: Mapping[str, str], value: float) -> None:
        """Set a gauge."""
        metric = self._metrics[name]
        assert isinstance(metric, Gauge)
        (metric.labels(**labels) if labels else metric).set(value)

    def observe(self, name: Metric, labels: Mapping[str, str], seconds: float) -> None:
        """Add an observation to a histogram."""
        metric = self._metrics[name]
        assert isinstance(metric, Histogram)
        (metric.labels(**labels) if labels else metric).observe(seconds)

    def info(self, event: Event, **fields: Any) -> None:
        """Log what an operator may want to know."""
        self._log.info(event.value, **fields)

    def warning(self, event: Event, **fields: Any) -> None:
        """Log what an operator should look at."""
        self._log.warning(event.value, **fields)

    def error(self, event: Event, **fields: Any) -> None:
        """Log what an operator must act on."""
        self._log.error(event.value, **fields)
