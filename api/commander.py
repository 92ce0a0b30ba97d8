"""Commands, and the answers of their owners.

A command is appended to `schedule-changes` with the partition of `replies` on which this node listens. That partition
is read from where it ended before the first command was sent, so no answer can be missed. Who waits too long is told
where to ask later; the command stands all the same. What several owners answer together is one answer here.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

import orjson

from api.problems import overloaded
from runtime.lifecycle import Running, Threaded, ThreadService, persevere
from runtime.log import LogError, OffsetOutOfRange
from runtime.record import REPLY_HEADER, SEQUENCE_HEADER, Outgoing, TopicPartition
from schemas import codec, commands, identity, topics
from schemas.faults import Fault

if TYPE_CHECKING:
    from api.appender import Appender
    from runtime.log import Log, Reader
    from runtime.record import Record

_logger = logging.getLogger("tidewheel.api")

SOURCE = "tidewheel/api"
ANSWER_SECONDS = 10.0
PENDING_MAX = 2_000  # commands that wait for their owner; beyond it the owners are the bottleneck, and we say so


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What the owner said."""

    status: int
    body: Mapping[str, Any]
    faults: tuple[Fault, ...]
    position: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asking:
    """A request that waits. Clients choose ids, and may use one id for several things: the subject tells them apart."""

    tenant: str
    name: str
    loop: asyncio.AbstractEventLoop
    answer: asyncio.Future[Answer]
    heard: dict[int, Answer] = field(default_factory=dict)  # parts of an answer that several owners give

    def hear(self, answer: Answer, part: int, parts: int) -> None:
        """A part of the answer, usually the only one."""
        self.heard[part] = answer
        if len(self.heard) >= parts and not self.answer.done():
            self.answer.set_result(together([self.heard[number] for number in sorted(self.heard)]))

    def is_meant(self, body: Mapping[str, Any]) -> bool:
        """Whether an answer with this body is about what was asked."""
        name = body.get("name") or identity.schedule_of(body.get("run_id") or "")
        return body.get("tenant") in (None, self.tenant) and name in ("", self.name)


class Commander(Threaded):
    """Sends commands and hands out their answers. A service (`runtime.lifecycle`)."""

    def __init__(self, *, log: Log, appender: Appender, node_id: str, now: Callable[[], datetime]) -> None:
        self._log = log
        self._appender = appender
        self._now = now
        self._replies = TopicPartition(topics.REPLIES, identity.partition_of(node_id, topics.REPLY_PARTITIONS))
        self._asking: dict[str, list[_Asking]] = {}
        self._count = 0
        self._next: int | None = None
        self._reader: Reader | None = None
        self._thread = ThreadService("replies", self._run, interrupt=self._wake)

    def waits_for(self, command_id: str) -> bool:
        """Whether a request here still waits for this command's answer."""
        return command_id in self._asking

    async def ask(
        self, type_: str, data: Mapping[str, Any], command_id: str, seconds: float = ANSWER_SECONDS
    ) -> Answer | None:
        """The owner's answer; None when it did not come in time. `Refused` when no owner would accept it."""
        record = self._record(type_, data, command_id)
        if seconds <= 0:
            await self._appender.append(record)
            return None
        if self._count >= PENDING_MAX:
            raise overloaded("Too many commands wait for their owners.")
        loop = asyncio.get_running_loop()
        asking = _Asking(tenant=data["tenant"], name=data["name"], loop=loop, answer=loop.create_future())
        self._asking.setdefault(command_id, []).append(asking)
        self._count += 1
        try:
            await self._appender.append(record)
            async with asyncio.timeout(seconds):
                return await asking.answer
        except TimeoutError:
            return None
        finally:
            self._count -= 1
            self._forget(command_id, asking)

    def _record(self, type_: str, data: Mapping[str, Any], command_id: str) -> Outgoing:
        envelope = codec.Envelope(id=command_id, source=SOURCE, type=type_, subject="", data=data)
        request = commands.read_request(envelope)
        subject = f"{request.tenant}/{request.owner}"
        document = {
            "specversion": "1.0",
            "id": command_id,
            "source": SOURCE,
            "type": type_,
            "subject": subject,
            "time": self._now(),
            "datacontenttype": "application/json",
            "data": data,
        }
        partition = identity.partition_of(subject, self._log.partitions(topics.SCHEDULE_CHANGES))
        headers = ((REPLY_HEADER, str(self._replies.partition).encode()), ("content-type", codec.CONTENT_TYPE))
        value = orjson.dumps(document, option=orjson.OPT_UTC_Z)
        return Outgoing(topics.SCHEDULE_CHANGES, partition, subject.encode(), value, headers)

    def _forget(self, command_id: str, asking: _Asking) -> None:
        others = [each for each in self._asking.get(command_id, ()) if each is not asking]
        if others:
            self._asking[command_id] = others
        else:
            self._asking.pop(command_id, None)

    # --- the thread that reads answers ----------------------------------------------------------------------------

    def _run(self, running: Running) -> None:
        """A log that is away for a while costs time, no answer: we go on from where we stood."""
        persevere(running, lambda: self._listen(running), against=LogError, told=_complain)

    def _listen(self, running: Running) -> None:
        if self._next is None:
            self._next = self._log.end_offset(self._replies)
        self._reader = reader = self._log.open_reader({self._replies: self._next})
        running.ready()
        try:
            while not running.stopping.is_set():
                for record in reader.poll(records_max=1_000, bytes_max=4 * 1024 * 1024, timeout=1.0):
                    self._hand_out(record)
                self._next = reader.position(self._replies)
        except OffsetOutOfRange:  # We were away for longer than answers are kept: nobody waits for those any more.
            self._next = None
            raise
        finally:
            reader.close()

    def _hand_out(self, record: Record) -> None:
        """Other nodes may share the partition, and who asked may have gone: most answers are not looked into."""
        asking = self._asking.get((record.key or b"").decode("utf-8", "replace"), ())
        if not asking or record.value is None:
            return
        data = orjson.loads(record.value)["data"]
        answer = Answer(
            status=data["status"],
            body=data["body"],
            faults=tuple(codec.load(Fault, fault) for fault in data.get("faults") or ()),
            position=(record.header(SEQUENCE_HEADER) or b"").decode(),
        )
        for each in list(asking):
            if each.is_meant(answer.body) and not each.loop.is_closed():
                each.loop.call_soon_threadsafe(each.hear, answer, data.get("part", 0), data.get("parts", 1))

    def _wake(self) -> None:
        if self._reader is not None:
            self._reader.wake()


def together(answers: Sequence[Answer]) -> Answer:
    """One answer of several: lists go together, numbers add up, the rest is the same in all."""
    first, *others = answers
    body = dict(first.body)
    for name, value in ((name, value) for other in others for name, value in other.body.items()):
        if isinstance(value, list):
            body[name] = [*body.get(name, ()), *value]
        elif type(value) is int:
            body[name] = body.get(name, 0) + value
    faults = tuple(fault for answer in answers for fault in answer.faults)
    return replace(answers[-1], status=max(answer.status for answer in answers), body=body, faults=faults)


def _complain(error: Exception) -> None:
    _logger.warning("replies.unreadable: %s", error)
