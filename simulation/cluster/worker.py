"""Simulated workers: the SDK's own bookkeeping of leases and reports, with a session of tasks around it.

`Holdings`, `Reading` and the records are the SDK's; what its session does in a loop of coroutines is done here by
three tasks of one machine (report, receive, and one for each run), in the same order and with the same waits.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

from runtime.log import LogError
from runtime.record import Outgoing, TopicPartition
from schemas import topics
from simulation.cluster import newer, targets
from simulation.cluster.attempts import Attempts
from simulation.cluster.place import Place
from simulation.cluster.threads import Flag
from simulation.loop import Loop, Machine
from tidewheel.holdings import IDLE_SECONDS, Holdings, Report
from tidewheel.transports import records
from tidewheel.transports.reading import ASK_SECONDS, Reading
from tidewheel.wire import Answer, HandOut, stopped

if TYPE_CHECKING:
    from runtime.log import Reader
    from simulation.clock import MachineClock
    from simulation.cluster.site import Site

QUEUE = "default"
SHARDS = 3  # that the queue has at most
TASKS = ("work",)
CALL_SECONDS = 5.0  # as in the SDK's session
BACKOFF_SECONDS_MAX = 5.0
FORMER_MAX = 8
OWN_MAX = 100
LISTEN_SECONDS = 60.0  # a wait for post; whoever has something to say to this task wakes its reader
LEASE_SHARE = 1 / 2  # of a lease: the longest that a quiet worker says nothing of it; it ends its work after 2 / 3
QUIET_SECONDS = 13.5  # between two reports of a quiet worker; its owner misses it after fifteen
SAID_MAX = 8  # reports that may come once more, or be forged from


@dataclass(slots=True, eq=False)
class WorkerNode(Place["WorkerProcess"]):
    """A place where worker processes run, one after another, under one name."""

    site: Site
    name: str
    clock: MachineClock
    slots: int
    shard: int = 0  # of the queue, which its processes serve
    starts: int = 0
    wanted: bool = True
    process: WorkerProcess | None = None

    def start(self) -> None:
        """Begin a new process, unless there is one."""
        if not self.runs:
            self.starts += 1
            self.process = WorkerProcess(self)

    def stop(self) -> None:
        """A planned end: nothing new, what is held is finished within a grace, the rest interrupted and said so."""
        if self.process is not None and self.runs:
            self.process.drain()
            self.kill("drained")


@dataclass(slots=True)
class QuietHoldings(Holdings):
    """The SDK's, reporting so much less often as options say: each report costs its owner a transaction.

    One that is quiet at all is as quiet as its owner allows, which takes it for gone after `PERIOD_MIN`.
    """

    times: float = 1.0

    def interval_seconds(self) -> float:
        """See `Holdings.interval_seconds`."""
        usual = Holdings.interval_seconds(self)
        quiet = QUIET_SECONDS if self.times > 1.0 and usual == IDLE_SECONDS else usual * self.times
        return min(quiet, min(self._taken_at, default=float("inf")) * LEASE_SHARE)


class WorkerProcess:
    """One life of a worker."""

    def __init__(self, node: WorkerNode) -> None:
        self.node, self.site = node, node.site
        self.machine = Machine(f"{node.name}#{node.starts}")
        self.loop: Loop = node.site.loop
        self.chance = Random(f"{node.site.options.seed} {self.machine.name}")
        self.log = newer.log_of(node.site, self.machine, node.clock)
        self.attempts = Attempts(self)
        self._offered = TASKS + (targets.OFFERED if node.site.options.has("targets") else ())
        self.holdings = self._new_incarnation()
        self.former: deque[Holdings] = deque(maxlen=FORMER_MAX)
        self.own = deque([self.holdings.incarnation], maxlen=OWN_MAX)
        self.said: deque[Outgoing] = deque(maxlen=SAID_MAX)
        self.dies_when = ""  # "A15" or "A16"
        self._draining = False
        self._wake = Flag(self.loop)
        self._reading: Reading | None = None
        self._reader: Reader | None = None
        self._partitions = node.site.layout.shard
        self._inbox_of = ""  # whose inbox was asked for last
        self._inbox_at: TopicPartition
        self.spawn("report", self._report_for_ever)
        self.spawn("receive", self._receive_for_ever)

    def spawn(self, name: str, body: Any) -> None:
        """Begin a task of this process."""
        self.site.spawn(f"{self.machine.name} {name}", body, self.machine)

    def wake(self) -> None:
        """There is something to report."""
        self._wake.set()

    def drain(self, grace_seconds: float = 10.0) -> None:
        """See `WorkerNode.stop`; called from a task of somebody else."""
        self._draining = True
        self.wake()
        self._idle_within(grace_seconds)
        self.attempts.stop_all("interrupted")
        self._idle_within(2.0)
        for lease in self.attempts.abandon("interrupted"):
            self.site.story.say(self.machine.name, f"gives up {lease.rpartition('.')[0]}")
        until = self.loop.seconds + CALL_SECONDS
        while self._has_news and self.loop.seconds < until and self.machine.alive:
            self.loop.sleep(0.2)

    def _idle_within(self, seconds: float) -> None:
        until = self.loop.seconds + seconds
        while self.attempts.busy and self.loop.seconds < until and self.machine.alive:
            self.loop.sleep(0.2)

    # --- what is said ---------------------------------------------------------------------------------------------

    def _report_for_ever(self) -> None:
        pause = 0.2
        while True:
            self._until_news()
            try:
                self._report_once()
                pause = 0.2
            except LogError:
                until_fenced = max(0.0, self.holdings.fenced_at() - self.loop.seconds)
                wait = min(self.chance.uniform(0, pause), self.holdings.interval_seconds(), until_fenced)
                self.loop.sleep(max(wait, 0.01))
                pause = min(pause * 2, BACKOFF_SECONDS_MAX)

    def _until_news(self) -> None:
        if not self._has_news:
            due_at = min(self.holdings.sent_at + self.holdings.interval_seconds(), self.holdings.fenced_at())
            self._wake.wait(max(0.0, due_at - self.loop.seconds))
        self._wake.clear()

    @property
    def _has_news(self) -> bool:
        return any(holdings.has_news for holdings in (self.holdings, *self.former))

    def _report_once(self) -> None:
        if self.loop.seconds >= self.holdings.fenced_at():
            self._fence("no report was acknowledged for too long")
        holdings = next((former for former in self.former if former.has_news), self.holdings)
        slots = self._slots_of(holdings)
        report = holdings.news(slots=slots, draining=self._draining, now=self.loop.seconds)
        patience = max(0.0, min(CALL_SECONDS, self.holdings.fenced_at() - self.loop.seconds))
        try:
            self._send(report, patience)
            holdings.acknowledge(report)
        finally:
            holdings.end(report)

    def _send(self, report: Report, patience: float) -> None:
        """Append it in a task of its own, which goes on when our patience ends."""
        value = records.report(report, QUEUE, self.node.clock.now(), self.node.shard)
        partition = records.shard_of(QUEUE, self._partitions, self.node.shard)
        sent = Outgoing(topics.ATTEMPTS, partition, report.incarnation.encode(), value)
        self.said.append(sent)
        done, failures = Flag(self.loop), list[LogError]()

        def append() -> None:
            try:
                self.log.append([sent])
            except LogError as error:
                failures.append(error)
            done.set()

        self.spawn("send", append)
        if report.finished and self.dies_when == "A16":
            self.site.loop.later(self.chance.uniform(0, 0.01), self._die)
        if not done.wait(patience):
            raise LogError("no answer in time")
        if failures:
            raise failures[0]

    def _die(self) -> None:
        if self.machine.alive:
            self.site.story.fault(self.dies_when, self.machine.name, "dies here")
            self.site.loop.kill(self.machine)

    def task_ended(self) -> None:
        """A task has given back a result, and nobody has heard of it."""
        if self.dies_when == "A15":
            self._die()

    def _slots_of(self, holdings: Holdings) -> int:
        """How many runs it would take now; its post can be received from here on."""
        if holdings is not self.holdings:
            return 0
        reading = self._reading
        if reading is None or reading.incarnation != holdings.incarnation:
            self._open(holdings.incarnation)
        else:
            self._look(reading)
        reading = self._reading
        current = reading is not None and reading.is_current(self.loop.seconds)
        return self.attempts.free if current and holdings is self.holdings else 0

    # --- what is received -----------------------------------------------------------------------------------------

    def _open(self, incarnation: str) -> None:
        place = self._inbox(incarnation)
        asked_at = self.loop.seconds
        end = self.log.end_offset(place)
        former, self._reader = self._reader, self.log.open_reader({place: end})
        self._reading = Reading(incarnation, end, asked_at, is_begun=True)
        if former is not None:
            former.wake()
        self._wake.set()

    def _look(self, reading: Reading) -> None:
        """Ask where the inbox ends; while nobody answers we are not known to be there."""
        if self._reader is not None:
            reading.passed(self._reader.position(self._inbox(reading.incarnation)))
        if not reading.is_due(self.loop.seconds):
            return
        asked_at = self.loop.seconds
        try:
            end = self.log.end_offset(self._inbox(reading.incarnation))
        except LogError:
            return
        if end < reading.position:
            self._lose("the inbox was cut")
        else:
            reading.ends_at(end, asked_at)

    def _look_back(self, reading: Reading, appended_at: float) -> None:
        """What the SDK would know: it asks every `ASK_SECONDS`, and while nothing came it had read all there was.

        The last time before this came is enough, unless something stood in its way.
        """
        asked_at = reading.current_at + (appended_at - reading.current_at) // ASK_SECONDS * ASK_SECONDS
        if reading.is_due(asked_at) and asked_at >= self.site.undisturbed_since(self.machine):
            reading.ends_at(reading.position, asked_at)

    def _inbox(self, incarnation: str) -> TopicPartition:
        if incarnation != self._inbox_of:  # It is asked for with every look, and the hash is Python.
            self._inbox_of = incarnation
            self._inbox_at = TopicPartition(topics.dispatch_topic(QUEUE), records.inbox_of(incarnation))
        return self._inbox_at

    def _receive_for_ever(self) -> None:
        while True:
            reader, reading = self._reader, self._reading
            if reader is None or reading is None:
                self.loop.sleep(0.05)
                continue
            try:
                found = reader.poll(records_max=500, bytes_max=1 << 22, timeout=LISTEN_SECONDS)
                position = reader.position(self._inbox(reading.incarnation))
            except LogError as error:
                self._lose(str(error))
                continue
            if reading is not self._reading:
                reader.close()
                continue
            if found:
                self._look_back(reading, self.site.seconds_of(found[0].appended_at))
            current_at = reading.current_at  # Nothing of what was found has moved it yet.
            for record in found:
                if record.key == reading.incarnation.encode():
                    self._deliver(reading.incarnation, record.value or b"", current_at)
            reading.passed(position)

    def _deliver(self, incarnation: str, value: bytes, current_at: float) -> None:
        answer = records.post(value)
        if answer is not None and incarnation == self.holdings.incarnation:
            self._absorb(self.holdings, answer, late_by=self.loop.seconds - current_at)

    def _lose(self, reason: str) -> None:
        self._reading, self._reader = None, None
        self._fence(reason)

    def _absorb(self, holdings: Holdings, answer: Answer, *, late_by: float) -> None:
        if answer.incarnation_ended:
            self._incarnation_ended(answer.ended_by)
            return
        if self.loop.seconds >= holdings.fenced_at():
            self._fence("the process stood still for too long")
            return
        for lease in answer.lost:
            if holdings.drop(lease):
                self.wake()
            self.attempts.stop(lease, None)
        for lease in answer.cancelled:
            self.attempts.stop(lease, "cancelled")
        for handout in holdings.take(0, answer.leases, self.loop.seconds):
            self._begin(holdings, handout, late_by)

    def _begin(self, holdings: Holdings, handout: HandOut, late_by: float) -> None:
        if late_by > handout.start_by_seconds:
            holdings.drop(handout.lease)
            self.site.story.say(self.machine.name, f"leaves {handout.run['run_id']} to others: {late_by:.1f} s late")
        elif self._draining:
            holdings.finish(handout.lease, stopped(handout.lease, "interrupted"))
        else:
            self.attempts.begin(handout)
            holdings.start(handout.lease)
        self.wake()

    def attempt_ended(self, handout: HandOut, entry: bytes | None) -> None:
        """Whoever held the lease says how it ended."""
        for holdings in (self.holdings, *self.former):
            if entry is not None and holdings.incarnation == handout.incarnation:
                holdings.finish(handout.lease, entry)
        self.wake()

    # --- incarnations ---------------------------------------------------------------------------------------------

    def _incarnation_ended(self, ended_by: str) -> None:
        if ended_by and ended_by not in self.own:
            self.attempts.stop_all(None)
            self.node.kill(f"another process has this worker's name: {ended_by}")
        else:
            self._fence("the server ended this incarnation")

    def _fence(self, reason: str) -> None:
        """Drop all work and begin anew: whoever has the leases next must not meet us."""
        self.site.story.say(self.machine.name, f"begins anew: {reason}")
        self.attempts.stop_all(None)
        self.holdings.retire(self.loop.seconds)
        self.former.append(self.holdings)
        self.holdings = self._new_incarnation()
        self.own.append(self.holdings.incarnation)
        self.wake()

    def _new_incarnation(self) -> Holdings:
        incarnation = f"{self.chance.getrandbits(64):016x}"
        return QuietHoldings(
            times=self.site.options.quiet_workers, worker=self.node.name, tasks=self._offered, now=self.loop.seconds,
            incarnation=incarnation, answered=False,
        )  # fmt: skip
