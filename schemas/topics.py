"""The topic table: every topic with its key, partitions, clean-up and retention.

Partition counts come in three families that must agree: `schedule` (changes, outcomes, links, and what is keyed
by schedule), `shard` (runs and attempts) and fixed ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

PREFIX = "tidewheel."
SHARDS_MAX = 64  # of one queue; each is a state of its own, and a report may make one
INBOXES = 8  # partitions of a dispatch topic: workers share inboxes, so this bounds open readers, not workers
REPLY_PARTITIONS = 16
WORKERS_KEPT = timedelta(hours=1)  # in the list of workers after their last word: who died in the last incident


class Family(StrEnum):
    """Which setting a topic's partition count follows."""

    SCHEDULE = "schedule"
    SHARD = "shard"
    ONE = "one"
    INBOX = "inbox"
    REPLY = "reply"


class Cleanup(StrEnum):
    """What happens to old records."""

    DELETE = "delete"
    COMPACT = "compact"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSpec:
    """One topic as it is created.

    `retention` says how long records are kept; of a compacted topic, how long those that are superseded stay at least.
    None: until compaction removes them.
    """

    name: str
    key: str
    family: Family
    cleanup: Cleanup
    retention: timedelta | None
    internal: bool = False
    log_append_time: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How long each kind of history is kept (contract: Topics)."""

    history: timedelta = timedelta(days=30)
    runs: timedelta = timedelta(days=3)
    attempts: timedelta = timedelta(days=3)
    logs: timedelta = timedelta(days=7)
    replies: timedelta = timedelta(hours=1)
    dispatch: timedelta = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Partition counts of one cluster; written down once and never changed in place."""

    schedule: int = 4
    shard: int = 4

    def partitions(self, family: Family) -> int:
        """How many partitions a topic of this family has."""
        return {
            Family.SCHEDULE: self.schedule,
            Family.SHARD: self.shard,
            Family.ONE: 1,
            Family.INBOX: INBOXES,
            Family.REPLY: REPLY_PARTITIONS,
        }[family]


SCHEDULE_CHANGES = PREFIX + "schedule-changes"
SCHEDULES = PREFIX + "schedules"
CATALOG = PREFIX + "catalog"
VERSIONS = PREFIX + "versions"
REJECTIONS = PREFIX + "rejections"
RUNS = PREFIX + "runs"
ATTEMPTS = PREFIX + "attempts"
LINKS = PREFIX + "links"
REPLIES = PREFIX + "replies"
LOGS = PREFIX + "logs"
RUN_EVENTS = PREFIX + "run-events"
RUN_OUTCOMES = PREFIX + "run-outcomes"
DEAD_LETTERS = PREFIX + "dead-letters"
OPERATIONS = PREFIX + "operations"
WORKERS = PREFIX + "workers"


def dispatch_topic(queue: str) -> str:
    """The topic whose partitions are the inboxes of a queue's workers."""
    return f"{PREFIX}dispatch.{queue}"


def changelog_topic(role: str) -> str:
    """The compacted topic that holds the state of a role's partitions."""
    return f"{PREFIX}{role}-changelog"


def topic_table(retention: Retention) -> tuple[TopicSpec, ...]:
    """Every topic that exists before the first queue is used."""
    delete, compact = Cleanup.DELETE, Cleanup.COMPACT
    schedule, shard, one = Family.SCHEDULE, Family.SHARD, Family.ONE

    def spec(
        name: str, key: str, family: Family, cleanup: Cleanup, kept: timedelta | None = None, *, internal: bool = False
    ) -> TopicSpec:
        return TopicSpec(name=name, key=key, family=family, cleanup=cleanup, retention=kept, internal=internal)

    return (
        spec(SCHEDULE_CHANGES, "tenant/name", schedule, delete, retention.history),
        # What was superseded or deleted can be read for as long as the events that tell of it: so a read model that is
        # made anew has the rows of the live one.
        spec(SCHEDULES, "tenant/name", schedule, compact, retention.history),
        spec(CATALOG, "kind/tenant/name", one, compact, retention.history),
        spec(VERSIONS, "tenant/name/version", schedule, compact, retention.history),
        spec(REJECTIONS, "tenant/name", schedule, delete, retention.history),
        spec(RUNS, "run id, explicit partition of the queue's shard", shard, delete, retention.runs),
        spec(
            ATTEMPTS,
            "incarnation, explicit partition of the queue's shard",
            shard,
            delete,
            retention.attempts,
            internal=True,
        ),
        spec(LINKS, "receiver's partition", schedule, delete, retention.history, internal=True),
        spec(
            REPLIES, "command id, partition of the asking node", Family.REPLY, delete, retention.replies, internal=True
        ),
        spec(LOGS, "run id", shard, delete, retention.logs, internal=True),
        spec(RUN_EVENTS, "tenant/name", schedule, delete, retention.history),
        spec(RUN_OUTCOMES, "tenant/name", schedule, delete, retention.history),
        spec(DEAD_LETTERS, "tenant/name", schedule, delete, retention.history),
        spec(OPERATIONS, "matter/role/partition", one, compact, internal=True),
        spec(WORKERS, "queue/shard/incarnation", one, compact, WORKERS_KEPT, internal=True),
        spec(changelog_topic("scheduler"), "row", schedule, compact, internal=True),
        spec(changelog_topic("dispatcher"), "row", shard, compact, internal=True),
    )


def dispatch_spec(queue: str, retention: Retention) -> TopicSpec:
    """The inbox topic of one queue."""
    return TopicSpec(
        name=dispatch_topic(queue),
        key="incarnation",
        family=Family.INBOX,
        cleanup=Cleanup.DELETE,
        retention=retention.dispatch,
        internal=True,
    )
