"""People and programs that call the API, and the API node between them and the log.

The node does what `api.commander` does: it reads its partition of `replies` from where that ended before the first
command, appends a command with that partition in a header, and waits for the answer. A caller repeats a call whose end
it does not know, with the same id; each time is a call of its own in the history.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from random import Random
from typing import TYPE_CHECKING, Any

import orjson

from runtime.log import LogError
from runtime.record import SEQUENCE_HEADER, Outgoing, Record, TopicPartition
from schemas import identity, topics
from simulation.cluster import hour
from simulation.cluster.threads import Flag
from simulation.history import FAILED, OK, UNKNOWN
from simulation.loop import Machine

if TYPE_CHECKING:
    from simulation.clock import MachineClock
    from simulation.cluster.site import Site

ANSWER_SECONDS = 10.0  # as in `api.commander`
REPEATS_MAX = 4  # of a call with one id
LISTEN_SECONDS = 60.0


@dataclass(slots=True, eq=False)
class Asking:
    """A command that waits for its answer."""

    subject: tuple[str, str]
    answered: Flag
    status: int | None = None
    body: Mapping[str, Any] = field(default_factory=dict)
    position: str = ""


class ApiNode:
    """An API process: killed and started again it waits for nothing that was asked before."""

    def __init__(self, site: Site, name: str, clock: MachineClock) -> None:
        self._site, self.name, self._clock = site, name, clock
        self._replies = TopicPartition(topics.REPLIES, identity.partition_of(name, topics.REPLY_PARTITIONS))
        self.starts = 0
        self.dies_when_appended = False  # A13
        self.machine = Machine(name, alive=False)
        self._asking: dict[str, Asking] = {}

    def start(self) -> None:
        """Begin a new process, unless there is one."""
        if self.machine.alive:
            return
        self.starts += 1
        self._asking = {}
        self.machine = Machine(f"{self.name}#{self.starts}")
        self._log = self._site.log_of(self.machine, self._clock)
        self._listening = Flag(self._site.loop)
        self._site.spawn(f"{self.machine.name} replies", self._listen, self.machine)

    def kill(self, why: str) -> None:
        """`kill -9`."""
        self._site.story.say(self.name, f"killed: {why}")
        self._site.loop.kill(self.machine)

    def ask(self, command: Outgoing, command_id: str, subject: tuple[str, str]) -> Asking | None:
        """Append a command and wait for its answer; None when this process died of it or before."""
        if not self.machine.alive:
            return None
        machine = self.machine
        asking = self._asking[command_id] = Asking(subject, Flag(self._site.loop))
        self._site.spawn(f"{machine.name} appends", lambda: self._append(command), machine)
        asking.answered.wait(ANSWER_SECONDS)
        self._asking.pop(command_id, None)
        return asking if machine.alive else None

    def _append(self, command: Outgoing) -> None:
        if not self._listening.wait(ANSWER_SECONDS):
            return
        try:
            self._log.append([command])
        except LogError:
            return  # The caller hears nothing in time.
        if self.dies_when_appended:
            self.dies_when_appended = False
            self._site.story.fault("A13", self.machine.name, "dies when the command stands in the log")
            self.kill("A13")

    def _listen(self) -> None:
        position: int | None = None
        while True:
            try:
                position = self._log.end_offset(self._replies) if position is None else position
                reader = self._log.open_reader({self._replies: position})
                self._listening.set()
                while True:
                    for record in reader.poll(records_max=1000, bytes_max=1 << 22, timeout=LISTEN_SECONDS):
                        self._hand_out(record)
                    position = reader.position(self._replies)
            except LogError:
                self._site.loop.sleep(1.0)

    def _hand_out(self, record: Record) -> None:
        asking = self._asking.get((record.key or b"").decode())
        if asking is None or record.value is None:
            return
        data = orjson.loads(record.value)["data"]
        asking.status, asking.body = data["status"], data["body"]
        asking.position = (record.header(SEQUENCE_HEADER) or b"").decode()
        asking.answered.set()


class Caller:
    """One caller after another of an API node; lives outside of the cluster and never dies."""

    def __init__(self, site: Site, node: ApiNode, name: str) -> None:
        self._site, self._node, self.name = site, node, name
        self._agenda = site.agenda
        self._count = 0
        self._machine = Machine(name)
        self.chance = Random(f"{site.options.seed} {name}")

    def call(self, kind: str, data: Mapping[str, Any]) -> Asking | None:
        """Ask until the end is known, or given up; from a task."""
        self._count += 1
        command_id = f"{self.name}-{self._count}"
        for _ in range(REPEATS_MAX):
            asking = self._once(kind, data, command_id)
            if asking is not None and asking.status is not None and asking.status < HTTPStatus.INTERNAL_SERVER_ERROR:
                return asking
            self._site.loop.sleep(self.chance.uniform(0.5, 5.0))
        return None

    def _once(self, kind: str, data: Mapping[str, Any], command_id: str) -> Asking | None:
        site, tenant, name = self._site, data["tenant"], data["name"]
        number = site.history.began(kind, tenant, name, command_id=command_id, source=hour.API)
        reply_to = identity.partition_of(self._node.name, topics.REPLY_PARTITIONS)
        command = hour.record_of(kind, data, command_id, site.layout, source=hour.API, reply_to=reply_to)
        asking = self._node.ask(command, command_id, (tenant, name))
        status = None if asking is None else asking.status
        result = UNKNOWN
        if status is not None and status < HTTPStatus.INTERNAL_SERVER_ERROR:
            result = OK if status < HTTPStatus.MULTIPLE_CHOICES else FAILED
        answer = {} if asking is None else asking.body
        site.history.ended(number, result, status=status, answer=answer)
        site.story.say(self.name, f"{kind} {tenant}/{name} {command_id}: {result} {status}")
        return asking

    # --- what is asked for ----------------------------------------------------------------------------------------

    def live(self) -> None:
        """Call now and then, for as long as there are faults."""
        while self._site.under_faults:
            longest = self._site.options.calls_every_seconds
            self._site.loop.sleep(self.chance.uniform(longest / 6, longest))
            if self._site.under_faults:
                self._ask_for_something()

    def _ask_for_something(self) -> None:
        tenant, name = self.chance.choice(self._agenda.subjects)
        subject: dict[str, Any] = {"tenant": tenant, "name": name}
        match self.chance.choices(("pause", "trigger", "put", "cancel", "delete", "job"), (4, 4, 3, 3, 1, 1))[0]:
            case "pause":
                self.call("schedule.pause", subject)
                self._site.loop.sleep(self.chance.uniform(5, 200))
                if self.chance.randrange(3) == 0 and self._site.under_faults:  # Afterwards all are deleted.
                    self.call("schedule.put", self._agenda.edited(tenant, name, self._count))
                    self._site.loop.sleep(self.chance.uniform(1, 60))
                self.call("schedule.resume", subject)
            case "trigger":
                self._trigger(subject, cancel=self.chance.choice((True, False)))
            case "put":
                self.call("schedule.put", self._agenda.edited(tenant, name, self._count))
            case "cancel":
                self._trigger({"tenant": "globex", "name": "crowded"}, cancel=True)
            case "delete":
                self.call("schedule.delete", subject | {"runs": self.chance.choice(("keep", "cancel"))})
                self._site.loop.sleep(self.chance.uniform(5, 100))
                if self._site.under_faults:
                    self.call("schedule.put", self._agenda.put(tenant, name))
            case "job":
                self._job()

    def _trigger(self, subject: Mapping[str, Any], *, cancel: bool) -> None:
        asking = self.call("schedule.trigger", subject)
        run_id = "" if asking is None else str(asking.body.get("run_id", ""))
        if run_id and cancel:
            self._site.loop.sleep(self.chance.choice((0.0, 0.02, 0.2, 5.0, 60.0)))
            self.call("run.cancel", dict(subject) | {"run_id": run_id})

    def _job(self) -> None:
        tenant, name = hour.JOB
        asking = self.call("job.put", self._agenda.job(tenant, name))
        if asking is not None and asking.position:
            self.call("schedule.put", self._agenda.put("initech", "named") | {"after_catalog": asking.position})

    def start(self) -> None:
        """Begin to live."""
        self._site.spawn(self.name, self.live, self._machine)
