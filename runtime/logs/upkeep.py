"""One step of housekeeping: some partitions in turn, and no more work than fits between two breaths."""

from __future__ import annotations

from datetime import datetime
from threading import Lock

from runtime.clock import Clock
from runtime.logs.compaction import compact
from runtime.logs.keeping import lag_of
from runtime.logs.partition import Partition
from runtime.logs.retention import trim
from runtime.logs.topics import Topic, Topics
from runtime.stores.database import Database
from schemas.topics import Cleanup

# A record is looked at in some 25 µs, a partition without anything to do in some 5: a step takes about 25 ms, during
# which the others get the interpreter in turn.
PARTITIONS_A_STEP = 256
RECORDS_A_STEP = 1024


class Upkeep:
    """Retention and compaction of a whole log; one step at a time, whoever asks."""

    def __init__(self, database: Database, topics: Topics, clock: Clock, lock: Lock) -> None:
        self._database = database
        self._topics = topics
        self._clock = clock
        self._lock = lock
        self._stepping = Lock()
        self._visited = 0

    def step(self) -> bool:
        """Do a step; whether more is waiting."""
        if not self._stepping.acquire(blocking=False):
            return False
        try:
            return self._step()
        finally:
            self._stepping.release()

    def _step(self) -> bool:
        all_ = [(topic, partition) for topic in self._topics.all().values() for partition in topic.partitions]
        now = self._clock.now()
        records_left = RECORDS_A_STEP
        for _ in range(min(PARTITIONS_A_STEP, len(all_))):
            topic, partition = all_[self._visited % len(all_)]
            self._visited += 1
            records_left -= self._visit(topic, partition, now, records_left)
            if records_left <= 0:
                return True
        return False

    def _visit(self, topic: Topic, partition: Partition, now: datetime, records_max: int) -> int:
        if topic.spec.cleanup is Cleanup.COMPACT:
            return compact(self._database, partition, now, lag_of(topic.spec), records_max, self._lock)
        if topic.spec.retention is not None:
            trim(self._database, partition, topic.spec.retention, now, self._lock)
        return 0
