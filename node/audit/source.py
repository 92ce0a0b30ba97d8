"""Where an audit reads topics from: Kafka, a stopped data folder, a running server over HTTP, or any log at hand.

A source gives each record's key as text and its value as parsed JSON, in order, up to the end that the partition had
when it was asked. It never writes.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import IO, Any, Protocol
from urllib.parse import quote

import httpx
import orjson

from runtime.clock import SystemClock
from runtime.log import Log, LogError, Reader, UnknownTopic
from runtime.logs.embedded import EmbeddedLog
from runtime.logs.kafka.administration import Administration
from runtime.logs.kafka.log import KafkaLog
from runtime.logs.kafka.settings import KafkaSettings
from runtime.record import Record, TopicPartition
from schemas.frozen import frozen
from tidewheel import connection
from tidewheel.errors import Unreachable

RECORDS_MAX = 2000  # in one reading: a few megabytes at most
BYTES_MAX = 8 * 1024 * 1024
TIMEOUT_SECONDS = 30.0  # of one request; a server that needs longer for a page is in trouble
POLL_SECONDS = 0.05  # a poll ends with records or its time: that nothing committed stands before the end ends none
QUIET_POLLS_MAX = 1200  # a minute in the middle of a partition: longer than a cluster needs to find a new leader


@frozen
class Entry:
    """A record. `value` is parsed JSON, None for a tombstone, `Unreadable` for anything else."""

    offset: int
    key: str
    value: Any
    appended_at: datetime


class Unreadable:
    """Stands where a record's value is not JSON."""


class AuditSource(Protocol):
    """Read-only access to topics."""

    def partitions(self, topic: str) -> int:
        """How many partitions; 0 when there is no such topic."""
        ...

    def begin(self, topic: str, partition: int) -> int:
        """The oldest offset that is kept."""
        ...

    def end(self, topic: str, partition: int) -> int:
        """One past the last record."""
        ...

    def entries(self, topic: str, partition: int, start: int) -> Iterator[Entry]:
        """Records from `start` up to the end of now, in order."""
        ...


class LogSource:
    """Any log of this process."""

    def __init__(self, log: Log) -> None:
        self._log = log

    def partitions(self, topic: str) -> int:
        """See `AuditSource.partitions`."""
        try:
            return self._log.partitions(topic)
        except UnknownTopic:
            return 0

    def begin(self, topic: str, partition: int) -> int:
        """See `AuditSource.begin`."""
        return self._log.begin_offset(TopicPartition(topic, partition))

    def end(self, topic: str, partition: int) -> int:
        """See `AuditSource.end`."""
        return self._log.end_offset(TopicPartition(topic, partition))

    def entries(self, topic: str, partition: int, start: int) -> Iterator[Entry]:
        """See `AuditSource.entries`."""
        place = TopicPartition(topic, partition)
        end = self._log.end_offset(place)
        if start < end:
            with closing(self._log.open_reader({place: start})) as reader:
                yield from map(_entry, _read(reader, place, end))

    def close(self) -> None:
        """Let go of the log."""
        self._log.close()


def _read(reader: Reader, place: TopicPartition, end: int) -> Iterator[Record]:
    """The records before `end`; LogError when nothing comes any more."""
    quiet = 0
    while reader.position(place) < end:
        records = reader.poll(records_max=RECORDS_MAX, bytes_max=BYTES_MAX, timeout=POLL_SECONDS)
        quiet = 0 if records else quiet + 1
        if quiet > QUIET_POLLS_MAX:
            raise LogError(f"{place.topic} {place.partition}: nothing comes from {reader.position(place)} on")
        yield from (record for record in records if record.offset < end)


class KafkaSource(LogSource):
    """A cluster, without any process of ours between; `Away` tells why it cannot be reached."""

    def __init__(self, settings: KafkaSettings) -> None:
        Administration(settings).cluster()
        super().__init__(KafkaLog(settings, SystemClock()))


class FolderSource(LogSource):
    """A data folder whose process has stopped."""

    def __init__(self, data: Path) -> None:
        self._held = _hold(data)
        super().__init__(EmbeddedLog.open_read_only(data / "log"))

    def close(self) -> None:
        """Let go of the folder."""
        super().close()
        if self._held is not None:
            self._held.close()


def _hold(data: Path) -> IO[str] | None:
    """Keep writers out while we read; LogError when one is in. Other readers are welcome, and nothing is written."""
    path = data / "lock"
    if not path.exists():
        return None  # a copy, or a folder that nobody has used yet
    lock = path.open()
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        owner = lock.read().strip()
        lock.close()
        raise LogError(f"{data} is in use by process {owner}: audit the running server with --url") from error
    return lock


class HttpSource:
    """A running server's `/v1/log`."""

    def __init__(self, url: str | None, token: str | None = None, *, client: httpx.Client | None = None) -> None:
        self._url = connection.server_url(url)
        self._client = client or httpx.Client(
            headers=connection.headers(token), timeout=TIMEOUT_SECONDS, trust_env=not connection.is_here(self._url)
        )
        self._topics: dict[str, Any] | None = None

    def partitions(self, topic: str) -> int:
        """See `AuditSource.partitions`."""
        if self._topics is None:
            self._topics = {entry["topic"]: entry["partitions"] for entry in self._get("/v1/log")["topics"]}
        return len(self._topics.get(topic, ()))

    def begin(self, topic: str, partition: int) -> int:
        """See `AuditSource.begin`."""
        begin: int = self._page(topic, partition, None, 1)["begin"]
        return begin

    def end(self, topic: str, partition: int) -> int:
        """See `AuditSource.end`."""
        end: int = self._page(topic, partition, None, 1)["end"]
        return end

    def entries(self, topic: str, partition: int, start: int) -> Iterator[Entry]:
        """See `AuditSource.entries`."""
        end = self.end(topic, partition)
        while start < end:
            page = self._page(topic, partition, start, RECORDS_MAX)
            for record in page["records"]:
                if record["offset"] < end:
                    yield _entry_of_json(record)
            if page["next"] <= start:
                raise Unreachable(f"{self._url} gives nothing of {topic} {partition} from {start} on")
            start = page["next"]

    def close(self) -> None:
        """Let go of the connection."""
        self._client.close()

    def _page(self, topic: str, partition: int, start: int | None, limit: int) -> Any:
        where = "" if start is None else f"from={start}&"
        return self._get(f"/v1/log/{quote(topic, safe='')}/{partition}?{where}limit={limit}")

    def _get(self, path: str) -> Any:
        try:
            return connection.read(self._client.get(self._url + path))
        except httpx.HTTPError as error:
            raise Unreachable(f"{self._url} cannot be read: {error}") from error


def _entry(record: Record) -> Entry:
    return Entry(
        offset=record.offset,
        key=(record.key or b"").decode("utf-8", "replace"),
        value=_parsed(record.value),
        appended_at=record.appended_at,
    )


def _parsed(value: bytes | None) -> Any:
    if value is None:
        return None
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        return Unreadable


def _entry_of_json(record: dict[str, Any]) -> Entry:
    return Entry(
        offset=record["offset"],
        key=record.get("key") or "",
        value=record.get("value", Unreadable),
        appended_at=datetime.fromisoformat(record["appended_at"]),
    )
