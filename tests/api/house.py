"""A whole node without owners: log, projector, API; the owners are played by the test."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Self

import httpx
import orjson
from prometheus_client import CollectorRegistry

from api import create_app
from api.appender import Appender
from api.commander import Commander
from api.inboxes import InboxFeed
from api.leases import SimpleLeases
from api.relay import WorkerRelay
from api.services import ApiServices, ApiSettings
from node.forecast import Arithmetic, forecast
from projections.projector import RUN_LOGS, Projector
from projections.store.database import open_database
from projections.store.reader import Reader
from projections.store.writer import Writer
from runtime.clock import SystemClock
from runtime.logs.simulated import SimulatedLog
from runtime.record import REPLY_HEADER, SEQUENCE_HEADER, Outgoing, Record, TopicPartition
from schemas import codec, topics
from schemas.facts import Fact
from schemas.internal import CommandAnswered, WorkerReport
from tests.projections import histories

SECONDS = 20.0  # a deadline, not a measure
NODE = "node-1"

Owner = Callable[[dict[str, Any], Record], Iterable[Fact | Outgoing]]
HISTORY = timedelta(days=30)


class House:
    """Everything that stands around the API."""

    def __init__(
        self, folder: Path, *, now: Callable[[], datetime] | None = None, log: Any = None,
        require_declared: bool = False, closes_log: bool = True,
    ) -> None:  # fmt: skip
        self._closes_log = closes_log
        self.now = now or SystemClock().now
        self.log = log or SimulatedLog(3, SystemClock())
        if log is None:
            histories.create_topics(self.log)
        self.engine = open_database(f"sqlite:///{folder}/model.sqlite")
        self.projector = Projector(log=self.log, model=Writer(self.engine), now=SystemClock().now)
        self.run_logs = Projector(log=self.log, model=Writer(self.engine), now=SystemClock().now, subject=RUN_LOGS)
        self.appender = Appender(self.log)
        self.commander = Commander(log=self.log, appender=self.appender, node_id=NODE, now=SystemClock().now)
        self.feed = InboxFeed(log=self.log, node_id=NODE, ensure_queue=self.ensure_queue)
        self.relay = WorkerRelay(log=self.log, appender=self.appender, feed=self.feed, now=SystemClock().now)
        self.unready: dict[str, str] = {}
        reader = Reader(self.engine)
        self.services = ApiServices(
            log=self.log, now=self.now, reader=reader, progress=self.projector,
            log_progress=self.run_logs, commander=self.commander, appender=self.appender, relay=self.relay,
            leases=SimpleLeases(self.relay), forecast=forecast(self.now, reader.entry, HISTORY),
            arithmetic=Arithmetic(reader.entry), registry=CollectorRegistry(), unready=lambda: self.unready,
            settings=ApiSettings(version="1.2.3", require_declared=require_declared),
        )  # fmt: skip
        self.app = create_app(self.services)
        self.owner: Owner | None = None
        self._stopping = threading.Event()
        self._owners = threading.Thread(target=self._own, daemon=True)
        self._opened = AsyncExitStack()

    async def __aenter__(self) -> Self:
        for service in self.running:
            service.start()
        for service in self.running:
            assert service.ready(SECONDS)
        self._owners.start()
        self.http = await self._opened.enter_async_context(self.client())
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._opened.aclose()
        self._stopping.set()
        self._reader.wake()
        self._owners.join(SECONDS)
        for service in reversed(self.running):
            assert service.stop(SECONDS)
        self.engine.dispose()
        if self._closes_log:
            self.log.close()

    @property
    def running(self) -> tuple[Any, ...]:
        return self.projector, self.run_logs, self.appender, self.commander, self.feed

    def client(self, **headers: str) -> httpx.AsyncClient:
        transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
        return httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8440", headers=headers)

    def ensure_queue(self, queue: str) -> None:
        self.log.create({topics.dispatch_spec(queue, topics.Retention()): topics.INBOXES})

    def happened(self, *facts: Fact | Outgoing) -> None:
        """Facts are in the log, and in the rows."""
        self.log.append([fact if isinstance(fact, Outgoing) else histories.record(fact) for fact in facts])
        ends = {place: self.log.end_offset(place) for place in self.projector.inputs()}
        assert self.projector.wait_until(ends, SECONDS), self.projector.problem

    def wrote(self, *records: Outgoing) -> None:
        """Lines of runs are in the log, and in the rows."""
        self.log.append(records)
        self.read_logs()

    def read_logs(self) -> None:
        """What stands on `logs` is in the rows."""
        ends = {place: self.log.end_offset(place) for place in self.run_logs.inputs()}
        assert self.run_logs.wait_until(ends, SECONDS), self.run_logs.problem

    def reports(self) -> list[WorkerReport]:
        """What stands on `attempts`."""
        found = [codec.read_fact(record.value) for record in histories.everything(self.log, [topics.ATTEMPTS])]
        return [fact for fact in found if isinstance(fact, WorkerReport)]

    def wait_for_reports(self, count: int) -> list[WorkerReport]:
        """So many reports, once they stand on `attempts`."""
        places = {TopicPartition(topics.ATTEMPTS, number): 0 for number in range(histories.LAYOUT.shard)}
        reader = self.log.open_reader(places)
        found: list[Record] = []
        deadline = time.monotonic() + SECONDS
        while len(found) < count and time.monotonic() < deadline:
            found += reader.poll(records_max=1_000, bytes_max=1 << 23, timeout=1.0)
        reader.close()
        assert len(found) >= count, f"{len(found)} reports instead of {count}"
        return self.reports()

    def commands(self) -> list[dict[str, Any]]:
        """What stands on `schedule-changes`."""
        return [orjson.loads(record.value) for record in histories.everything(self.log, [topics.SCHEDULE_CHANGES])]

    # --- owners ---------------------------------------------------------------------------------------------------

    def _own(self) -> None:
        places = {TopicPartition(topics.SCHEDULE_CHANGES, number): 0 for number in range(histories.LAYOUT.schedule)}
        self._reader = reader = self.log.open_reader(places)
        while not self._stopping.is_set():
            for record in reader.poll(records_max=100, bytes_max=1 << 20, timeout=1.0):
                if self.owner is not None:
                    facts = self.owner(orjson.loads(record.value or b""), record)
                    self.log.append([fact if isinstance(fact, Outgoing) else histories.record(fact) for fact in facts])


def answer(record: Record, status: int, sequence: int = 7, **more: Any) -> Outgoing:
    """The owner's answer to a command."""
    reply_to = int(record.header(REPLY_HEADER) or b"0")
    command_id = orjson.loads(record.value or b"")["id"]
    fact = CommandAnswered(command_id=command_id, reply_to=reply_to, status=status, **{"body": {}, **more})
    _, value = codec.encode(fact, source="tidewheel/scheduler/0", time=histories.START)
    headers = ((SEQUENCE_HEADER, f"scheduler-0-{sequence}".encode()),)
    return Outgoing(topics.REPLIES, reply_to, command_id.encode(), value, headers)
