"""The projector: reads events, folds them, writes rows; one thread, started and stopped by its process.

Freshness is something to wait for: `reached` tells whether the rows follow the log up to given positions, and
`on_progress` calls back whenever they have moved.

A fault of the log or the database ends nothing: the projector says so (`problem`), opens both anew and goes on from
the positions that stand beside the rows.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Protocol

from projections import batch
from runtime.record import TopicPartition
from schemas import topics

if TYPE_CHECKING:
    from projections.batch import Changes
    from projections.projection import Key, Projection, Row
    from runtime.record import Record

_log = logging.getLogger("tidewheel.projections")

Positions = Mapping[TopicPartition, int]


class EventReader(Protocol):
    """What is needed of a reader of the log."""

    def poll(self, *, records_max: int, bytes_max: int, timeout: float) -> list[Record]: ...
    def position(self, partition: TopicPartition) -> int: ...
    def wake(self) -> None: ...
    def close(self) -> None: ...


class EventLog(Protocol):
    """What is needed of the log."""

    cluster_id: str

    def partitions(self, topic: str) -> int: ...
    def topic_id(self, topic: str) -> str: ...
    def begin_offset(self, partition: TopicPartition) -> int: ...
    def end_offsets(self, partitions: Iterable[TopicPartition]) -> Positions: ...
    def open_reader(self, positions: Mapping[TopicPartition, int]) -> EventReader: ...


class ReadModel(Protocol):
    """What is needed of the read model's writer."""

    def belong_to(self, source: Mapping[str, str], *, anew: bool) -> None: ...
    def positions(self) -> Positions: ...
    def load(self, table: str, keys: Collection[Key]) -> Mapping[Key, Row]: ...
    def apply(self, changes: Changes, old: Positions, new: Positions) -> None: ...
    def forget(self) -> None: ...
    def trim(
        self, *, history_before: datetime, commands_before: datetime, workers_before: datetime, rows_max: int
    ) -> int: ...
    def trim_logs(self, *, before: datetime, now: datetime, rows_max: int) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much is taken at once. Larger batches write fewer rows for the same events, smaller ones are fresher."""

    records: int = 2_000
    bytes: int = 8 * 1024 * 1024
    idle: timedelta = timedelta(milliseconds=100)  # how long an empty poll waits
    # How long a small batch waits for company, so that the events of a short run become one row at once. Whoever waits
    # for rows cuts it short; who does not sees them that much later.
    linger: timedelta = timedelta(milliseconds=250)
    trim_rows: int = 500  # a step of retention takes milliseconds
    trim_every: timedelta = timedelta(seconds=10)
    retry_after: timedelta = timedelta(seconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """How long rows stay: as long as the topics they follow, and commands 7 days. Workers: after their last word."""

    history: timedelta = timedelta(days=30)
    commands: timedelta = timedelta(days=7)
    workers: timedelta = topics.WORKERS_KEPT
    logs: timedelta = timedelta(days=7)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What one projector is about: the topics it follows and the rows they become."""

    name: str
    inputs: Sequence[str]
    projections: Sequence[Projection]


HISTORY = Subject(name="projector", inputs=batch.INPUTS, projections=batch.PROJECTIONS)
RUN_LOGS = Subject(name="log-projector", inputs=batch.LOG_INPUTS, projections=batch.LOG_PROJECTIONS)


class Projector:
    """Keeps a read model up with the log. It keeps the contract of all services (`runtime.lifecycle`).

    Several may share the work: each then follows the partitions whose numbers are its `share`, in every topic.
    """

    def __init__(
        self, *, log: EventLog, model: ReadModel, now: Callable[[], datetime], kept: Kept | None = None,
        limits: Limits | None = None, share: Collection[int] | None = None, subject: Subject = HISTORY,
    ) -> None:  # fmt: skip
        self.name = subject.name
        self._subject = subject
        self._log = log
        self._model = model
        self._now = now
        self._kept = kept or Kept()
        self._limits = limits or Limits()
        self._share = share
        self._moved = threading.Condition()
        self._positions: dict[TopicPartition, int] = {}
        self._targets: Positions | None = None
        self._as_of = datetime.fromtimestamp(0, UTC)
        self._trimmed_at = self._as_of
        self._callbacks: list[Callable[[], None]] = []
        self._stopping = threading.Event()
        self._hurry = threading.Event()  # somebody waits for rows, or for the end
        self._reader: EventReader | None = None
        self._thread = threading.Thread(target=self._run, name=subject.name, daemon=True)
        self.problem: str | None = None

    def start(self) -> None:
        """Begin to follow the log; a second call, or one after `stop`, changes nothing."""
        if self._thread.ident is None and not self._stopping.is_set():
            self._thread.start()

    def ready(self, timeout: float) -> bool:
        """Whether the rows have followed the log to where it ended at the start, waiting at most so many seconds."""
        with self._moved:
            return self._moved.wait_for(self._caught_up, timeout)

    def stop(self, timeout: float) -> bool:
        """End when the batch in hand is written; whether it had ended within `timeout` seconds."""
        self._stopping.set()
        self._hurry.set()
        reader = self._reader
        if reader is not None:
            reader.wake()
        if self._thread.ident is not None:
            self._thread.join(timeout)
        return not self._thread.is_alive()

    @property
    def failure(self) -> BaseException | None:
        """What ended the thread although nobody stopped it: nothing does. What it is up against is `problem`."""
        return None

    @property
    def positions(self) -> Positions:
        """The next offsets to read: everything before them is in the rows."""
        with self._moved:
            return dict(self._positions)

    @property
    def as_of(self) -> datetime:
        """Everything appended before this instant is in the rows."""
        return self._as_of

    def inputs(self) -> list[TopicPartition]:
        """The partitions that our rows follow from."""
        places = inputs_of(self._log, self._subject)
        return [place for place in places if self._share is None or place.partition in self._share]

    def reached(self, targets: Positions) -> bool:
        """Whether everything before the targets is in the rows."""
        with self._moved:
            return self._reached(targets)

    def wait_until(self, targets: Positions, timeout: float) -> bool:
        """Wait for the rows to follow the log up to the targets; False after `timeout` seconds."""
        with self._moved:
            return self._moved.wait_for(lambda: self._reached(targets), timeout)

    def on_progress(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back from the projector's thread after each batch and each failure; the answer ends that."""
        with self._moved:
            self._callbacks = [*self._callbacks, callback]
        return lambda: self._silence(callback)

    def _silence(self, callback: Callable[[], None]) -> None:
        with self._moved:
            self._callbacks = [known for known in self._callbacks if known is not callback]

    def _caught_up(self) -> bool:
        return self.problem is None and self._targets is not None and self._reached(self._targets)

    def _reached(self, targets: Positions) -> bool:
        """Whoever asks before they are there waits for them; after each batch it asks again."""
        reached = all(self._positions.get(partition, 0) >= offset for partition, offset in targets.items())
        if not reached:
            self.hurry()
        return reached

    def hurry(self) -> None:
        """Somebody waits for rows: the batch in hand waits for no company."""
        self._hurry.set()

    # --- the thread -----------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._follow()
            except Exception as error:  # noqa: BLE001 -- the border: whatever it was, rows and positions are as they were
                self.problem = f"{type(error).__name__}: {error}"
                _log.exception("projector.failed")
                self._model.forget()
                self._call_back()
                self._stopping.wait(self._limits.retry_after.total_seconds())

    def _follow(self) -> None:
        inputs = self.inputs()
        self._model.belong_to(self._source(), anew=False)
        stored = dict(self._model.positions())
        ends = self._log.end_offsets(inputs)  # asked for last: another projector may move positions meanwhile
        if any(stored.get(partition, 0) > end for partition, end in ends.items()):
            _log.error("projector.ahead: the log has lost records that stand in rows; building the rows anew")
            self._model.belong_to(self._source(), anew=True)
            stored = {}
        begin = {partition: self._begin(partition, stored) for partition in inputs}
        self._targets = ends
        self._publish(begin, self._as_of)
        self._reader = reader = self._log.open_reader(begin)
        try:
            while not self._stopping.is_set():
                stored = self._step(reader, inputs, stored)
        finally:
            self._reader = None
            reader.close()

    def _source(self) -> dict[str, str]:
        """The same for every subject: their rows stand in one layout."""
        topics = (*HISTORY.inputs, *RUN_LOGS.inputs)
        return {"cluster": self._log.cluster_id, **{topic: self._log.topic_id(topic) for topic in topics}}

    def _begin(self, partition: TopicPartition, stored: Positions) -> int:
        """Where to read on. What was trimmed from the log before it was read has no rows, and that is said."""
        wanted, oldest = stored.get(partition, 0), self._log.begin_offset(partition)
        if partition in stored and wanted < oldest:
            _log.error("projector.behind: %s[%d] %d..%d was trimmed before it was read", *partition, wanted, oldest)
        return max(wanted, oldest)

    def _step(
        self, reader: EventReader, inputs: Collection[TopicPartition], stored: dict[TopicPartition, int]
    ) -> dict[TopicPartition, int]:
        asked_at = self._now()
        records = self._gather(reader)
        reached = {partition: reader.position(partition) for partition in inputs}
        if reached != stored:  # also by no record: markers of transactions take offsets, and others wait for positions
            changes = batch.fold(batch.read_all(records), self._model.load, self._subject.projections)
            self._model.apply(changes, stored, reached)
            stored = reached
        drained = len(records) < self._limits.records
        self._publish(reached, asked_at if drained else max(record.appended_at for record in records))
        if asked_at - self._trimmed_at >= self._limits.trim_every:
            self._trim(asked_at)
        return stored

    def _gather(self, reader: EventReader) -> list[Record]:
        limits = self._limits
        records = reader.poll(
            records_max=limits.records, bytes_max=limits.bytes, timeout=limits.idle.total_seconds()
        )  # fmt: skip
        if not records or len(records) >= limits.records:
            return records
        self._hurry.wait(limits.linger.total_seconds())
        more = reader.poll(records_max=limits.records - len(records), bytes_max=limits.bytes, timeout=0)
        return records + more

    def _publish(self, positions: dict[TopicPartition, int], as_of: datetime) -> None:
        with self._moved:
            self._hurry.clear()
            self._positions = positions
            self.problem = None
            self._as_of = max(as_of, self._as_of)
            self._moved.notify_all()
        self._call_back()

    def _call_back(self) -> None:
        for callback in self._callbacks:  # a list that is replaced, never changed
            try:
                callback()
            except Exception:  # noqa: BLE001 -- the border: the rows go on, whoever listens to them
                _log.exception("projector.listener_failed")

    def _trim(self, now: datetime) -> None:
        """One bounded step; the next comes at once as long as steps find their fill."""
        model, kept, rows_max = self._model, self._kept, self._limits.trim_rows
        if self._subject is RUN_LOGS:
            gone = model.trim_logs(before=now - kept.logs, now=now, rows_max=rows_max)
        else:
            gone = model.trim(
                history_before=now - kept.history, commands_before=now - kept.commands,
                workers_before=now - kept.workers, rows_max=rows_max,
            )  # fmt: skip
        if gone < rows_max:
            self._trimmed_at = now


def inputs_of(log: EventLog, subject: Subject = HISTORY) -> list[TopicPartition]:
    """Every partition that rows follow from."""
    return [TopicPartition(topic, number) for topic in subject.inputs for number in range(log.partitions(topic))]
