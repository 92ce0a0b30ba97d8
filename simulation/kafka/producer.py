"""librdkafka's producer, as far as our adapter can tell: transactional, or idempotent without transactions.

What is sent goes on its way by itself; the calls of a transaction wait for what they need. A request without an answer
is repeated on a new connection until its time is up, the end of a transaction too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from functools import partial
from typing import Any, NoReturn

from runtime.record import Outgoing, TopicPartition
from simulation.kafka.client import PASSING, Host, backoff, failure, unpacked
from simulation.kafka.outbox import Outbox
from simulation.kafka.protocol import (
    NOBODY,
    NONE,
    AddOffsets,
    AddPartitions,
    Answer,
    Code,
    CommitOffsets,
    EndTransaction,
    InitProducerId,
)
from simulation.loop import Killed, Signal

SOCKET_SECONDS_MIN = 0.9
SHORTER_SECONDS = 0.1  # a request's time is by so much shorter than the transaction's
STATISTICS_SECONDS = 1.0
FENCED = frozenset({Code.INVALID_PRODUCER_EPOCH, Code.FENCED})


class State(StrEnum):
    """Of a transactional producer."""

    NEW = "Init"
    READY = "Ready"
    OPEN = "InTransaction"
    BEGIN_COMMIT = "BeginCommit"
    COMMITTING = "CommittingTransaction"
    ABORTING = "AbortingTransaction"
    ABORTABLE = "AbortableError"
    FATAL = "FatalError"


# Looked at several times a transaction: a set of members takes half a microsecond to make.
OPEN, READY, BEGIN_COMMIT, FATAL = State.OPEN, State.READY, State.BEGIN_COMMIT, State.FATAL
SENDING = frozenset({OPEN, BEGIN_COMMIT})
FAILED = frozenset({FATAL, State.ABORTABLE})


class SimulatedProducer:
    """As `confluent_kafka.Producer`: our adapter's calls, from a task, and the configuration it gives."""

    def __init__(self, host: Host, config: Mapping[str, Any], *, logger: Any = None) -> None:
        host.check_alive()
        self._host, self._logger = host, logger
        self._id: str | None = config.get("transactional.id")
        self._message_seconds = config["message.timeout.ms"] / 1000
        self._timeout_seconds = config.get("transaction.timeout.ms", 0) / 1000
        default = max(self._timeout_seconds - SHORTER_SECONDS, SOCKET_SECONDS_MIN) if self._id else 60.0
        self._socket_seconds = int(config.get("socket.timeout.ms", default * 1000)) / 1000
        self._linger = config.get("linger.ms", 0) / 1000
        self._statistics: Callable[[str], None] | None = config.get("stats_cb")
        self._told_at, self._told = host.loop.seconds, -1
        machine, network = host.machine, host.network
        self._coordinator = network.connect(machine, f"{self._id or 'appender'}:coordinator")
        self._leader = network.connect(machine, f"{self._id or 'appender'}:leader")
        self._outbox = Outbox(
            host, self._leader, self._id, socket_seconds=self._socket_seconds, lost=self._lost, moved=self._moved
        )
        self._state = State.NEW
        self._producer = NOBODY
        self._problem: tuple[Code, str] = (NONE, "")
        self._registered: set[TopicPartition] = set()
        self._asked = 0  # requests by which the coordinator may know of a transaction
        self._registering = self._pumping = self._initialising = False
        self._bump = False
        self._gone = False
        self._ended: Answer | None = None
        self._changed = Signal(host.loop)
        self._awaited: Callable[[], bool] = bool  # what who waits waits for

    # --- what the application calls: transactions -----------------------------------------------------------------

    def init_transactions(self, timeout: float) -> None:
        """Take the transactional id over."""
        self._fails_when_dead()
        deadline = self._host.loop.seconds + timeout
        answer = self._initialise(deadline)
        if answer.code in PASSING:
            raise failure(Code.TIMED_OUT, "Failed to initialize Producer ID", again=True)
        if answer.code is not NONE:
            self._die(answer.code, "Failed to acquire transactional PID")
            self._raise()
        self._state = READY

    def begin_transaction(self) -> None:
        """Open a transaction; the brokers hear of it with its first partition."""
        self._require(READY)
        self._state, self._asked, self._outbox.failed = OPEN, 0, 0
        self._registered.clear()

    def send_offsets_to_transaction(self, offsets: Sequence[Any], metadata: bytes, timeout: float) -> None:
        """Commit positions with the open transaction."""
        self._require(OPEN)
        assert self._id is not None, "only with a transactional id"
        deadline = self._host.loop.seconds + timeout
        membership = unpacked(metadata)
        positions = {TopicPartition(place.topic, place.partition): place.offset for place in offsets}
        self._asked += 1
        self._persist(AddOffsets(self._id, self._producer, membership.group), deadline, "add offsets")
        self._persist(CommitOffsets(self._id, self._producer, membership, positions), deadline, "commit offsets")

    def commit_transaction(self, timeout: float) -> None:
        """Commit; called again after a time-out it goes on where it was."""
        deadline = self._host.loop.seconds + timeout
        self._require(OPEN, BEGIN_COMMIT, State.COMMITTING)
        if self._state is OPEN:
            self._state = BEGIN_COMMIT
        if self._state is BEGIN_COMMIT:
            if self._wait(lambda: not self._outbox.count, deadline):
                raise failure(Code.TIMED_OUT, "Failed to flush all outstanding messages", again=True)
            self._outbox.serve()
            self._require(BEGIN_COMMIT)
            if self._outbox.failed:
                self._make_abortable(Code.INCONSISTENT, f"{self._outbox.failed} message(s) failed delivery")
                self._raise()
            self._end(commit=True)
        self._await_end(deadline)

    def abort_transaction(self, timeout: float) -> None:
        """Abort; likewise."""
        deadline = self._host.loop.seconds + timeout
        self._require(OPEN, State.ABORTABLE, BEGIN_COMMIT, State.ABORTING)
        if self._state is not State.ABORTING:
            self._state = State.ABORTING
            self._purge(Code.PURGE_QUEUE)
            self._ended = None
            if self._wait(lambda: not self._outbox.flying, deadline):
                self._state = State.ABORTABLE
                raise failure(Code.TIMED_OUT, "Failed to flush what is in flight", again=True)
            self._end(commit=False)
        self._await_end(deadline)

    # --- what the application calls: records ----------------------------------------------------------------------

    def produce(
        self, topic: str, value: bytes | None, key: bytes | None, partition: int, *,
        on_delivery: Callable[[Any, Any], None], headers: Sequence[tuple[str, bytes]],
    ) -> None:  # fmt: skip
        """Send a record, now or a little later."""
        if self._id is not None and self._state is not OPEN:
            dead = self._state is FATAL
            raise failure(Code.FATAL if dead else Code.STATE, "Unable to produce message")
        self._outbox.put(Outgoing(topic, partition, key, value, tuple(headers)), on_delivery, self._message_seconds)
        if not self._pumping:
            self._pumping = True
            self._host.later(self._linger, self._pump_at_last)

    def flush(self, timeout: float) -> int:
        """Wait until everything has arrived or failed; how much has not."""
        self._fails_when_dead()
        self._pump()
        self._wait(lambda: not self._outbox.count, self._host.loop.seconds + timeout)
        self._outbox.serve()
        return self._outbox.count

    def poll(self, timeout: float = 0) -> int:
        """Hand out what there is to report."""
        self._fails_when_dead()
        if timeout and not self._outbox.reports:
            self._wait(lambda: bool(self._outbox.reports), self._host.loop.seconds + timeout)
        self._tell_statistics()
        return self._outbox.serve()

    def purge(self, *, blocking: bool) -> None:  # noqa: ARG002 -- the client's own signature
        """Drop it all; here also the end, as a client that is let go of does nothing more."""
        self._gone = True
        self._coordinator.close()
        self._leader.close()

    # --- records on their way -------------------------------------------------------------------------------------

    def _pump_at_last(self) -> None:
        self._pumping = False
        self._pump()

    def _pump(self) -> None:
        """Register new partitions, send what may be sent."""
        places = self._outbox.waiting
        if not places or self._gone:
            return
        if self._id is None and self._producer is NOBODY:
            self._identify()
        elif self._id is None:
            self._outbox.send(self._producer, list(places))
        elif self._state in SENDING:
            self._register([place for place in places if place not in self._registered])
            self._outbox.send(self._producer, [place for place in places if place in self._registered])

    def _moved(self) -> None:
        self._pump()
        self._stir()

    def _stir(self) -> None:
        """Something has come: the last deed of a callback. Who would only wait on is left alone."""
        if len(self._changed.waiting) > 1 or self._awaited():
            self._changed.set_and_go_on()

    def _lost(self, code: Code) -> None:
        """A batch has failed."""
        if self._id is None:
            self._producer = NOBODY  # A number is missing in the sequence: begin another one.
            self._outbox.begin_anew()
        elif code is Code.INVALID_PRODUCER_EPOCH:
            self._die(Code.FENCED, "transactional producer fenced by newer producer instance")
        else:
            self._bump = True
            self._make_abortable(code, f"ProduceRequest failed: {code.name}")

    def _purge(self, code: Code) -> None:
        self._outbox.purge(code)
        self._changed.set()

    def _give_up_old(self) -> None:
        if self._outbox.waiting and self._outbox.give_up_old() and self._id is not None:
            self._make_abortable(Code.MSG_TIMED_OUT, "messages timed out")

    # --- identity and partitions ----------------------------------------------------------------------------------

    def _initialise(self, deadline: float) -> Answer:
        """Ask for a producer id until there is one, or the time is up; from a task."""
        request = InitProducerId(self._id, self._timeout_seconds)
        while True:
            left = deadline - self._host.loop.seconds
            if left <= 0:
                return Answer(Code.TIMED_OUT)
            answer = self._host.ask(self._coordinator, request, min(left, self._socket_seconds))
            if answer.code is NONE:
                self._acquired(answer)
            if answer.code not in PASSING:
                return answer
            self._host.loop.sleep(backoff(answer.code))

    def _acquired(self, answer: Answer) -> None:
        self._producer = answer.value
        self._outbox.begin_anew()
        self._log("GETPID", f"Acquired PID{{Id:{self._producer.number},Epoch:{self._producer.epoch}}}")

    def _identify(self) -> None:
        """Without transactions: ask for a producer id in the background."""
        if not self._initialising:
            self._initialising = True
            self._coordinator.send(InitProducerId(None, 0.0), self._identified, self._socket_seconds)

    def _identified(self, answer: Answer) -> None:
        self._initialising = False
        if answer.code is NONE:
            self._acquired(answer)
        self._give_up_old()
        if answer.code is NONE:
            self._pump()
        elif self._outbox.waiting:
            self._host.later(backoff(answer.code), self._pump)

    def _register(self, wanted: Sequence[TopicPartition]) -> None:
        if not wanted or self._registering or self._id is None:
            return
        self._registering = True
        self._asked += 1
        self._coordinator.send(
            AddPartitions(self._id, self._producer, wanted), partial(self._added, wanted), self._socket_seconds
        )  # fmt: skip

    def _added(self, places: Sequence[TopicPartition], answer: Answer) -> None:
        self._registering = False
        if self._gone or self._state not in SENDING:
            return
        code = answer.code
        if code is NONE:
            self._registered.update(places)
        elif code in PASSING:
            self._give_up_old()
            self._host.later(backoff(code), self._pump)
            return
        elif code in FENCED or code is Code.INVALID_TXN_STATE:
            self._die(code, "Failed to add partition to transaction")
        else:
            self._bump = True
            self._make_abortable(code, "Failed to add partition(s) to transaction")
        self._pump()

    def _persist(self, request: Any, deadline: float, what: str) -> None:
        """Ask until there is an answer that means something, or the time is up."""
        while True:
            left = deadline - self._host.loop.seconds
            code = Code.TIMED_OUT
            if left > 0:
                connection = self._leader if isinstance(request, CommitOffsets) else self._coordinator
                code = self._host.ask(connection, request, min(left, self._socket_seconds)).code
            self._require(OPEN)
            if code is NONE:
                return
            if code in PASSING and deadline > self._host.loop.seconds:
                self._host.loop.sleep(min(backoff(code), deadline - self._host.loop.seconds))
                continue
            mapping = isinstance(request, CommitOffsets) and code is Code.INVALID_PRODUCER_ID_MAPPING
            if code in FENCED or code is Code.INVALID_TXN_STATE or mapping:
                self._die(code, f"Failed to {what}")
            else:
                self._make_abortable(code, f"Failed to {what}: {code.name}")
            self._raise()

    # --- the end of a transaction ---------------------------------------------------------------------------------

    def _end(self, *, commit: bool) -> None:
        self._state = State.COMMITTING if commit else State.ABORTING
        self._ended = None
        if not self._asked:
            self._ended = Answer(NONE)  # The coordinator knows of no transaction.
            return
        self._send_end(commit=commit)

    def _send_end(self, *, commit: bool) -> None:
        assert self._id is not None, "only with a transactional id"
        if self._gone or self._state is not (State.COMMITTING if commit else State.ABORTING):
            return
        request = EndTransaction(self._id, self._producer, commit)
        self._coordinator.send(request, partial(self._end_answered, commit=commit), self._socket_seconds)

    def _end_answered(self, answer: Answer, *, commit: bool) -> None:
        if self._gone:
            return
        code = answer.code
        self._log("ENDTXN", f"EndTxn returned {_name(code)} in state {self._state} (may_retry=true)")
        if code in PASSING:
            self._host.later(backoff(code), partial(self._send_end, commit=commit))
            return
        if code in FENCED or code is Code.INVALID_TXN_STATE:
            self._die(code, "Failed to end transaction")
        elif code is not NONE:
            self._bump = True
            if commit:
                self._make_abortable(code, f"Failed to end transaction: {code.name}")
        self._ended = answer
        self._stir()

    def _await_end(self, deadline: float) -> None:
        if self._wait(lambda: self._ended is not None or self._state is FATAL, deadline):
            raise failure(Code.TIMED_OUT, "Transactional API operation timed out", again=True)
        if self._state in FAILED:
            self._raise()
        if self._bump:
            self._host.check_alive()
            self._initialise(deadline)
        self._ended, self._bump = None, False
        self._state, self._problem = READY, (NONE, "")
        self._outbox.serve()

    # --- what went wrong ------------------------------------------------------------------------------------------

    def _die(self, code: Code, text: str) -> None:
        if self._state is not FATAL:
            self._state, self._problem = FATAL, (Code.FENCED if code in FENCED else code, text)
            self._purge(self._problem[0])

    def _make_abortable(self, code: Code, text: str) -> None:
        if self._state in {OPEN, BEGIN_COMMIT, State.COMMITTING}:
            self._state, self._problem = State.ABORTABLE, (code, text)
            self._purge(Code.PURGE_QUEUE)

    def _require(self, *states: State) -> None:
        if not self._host.machine.alive:
            raise Killed
        if self._outbox.waiting:
            self._give_up_old()
        if self._state not in states:
            self._raise()

    def _raise(self) -> NoReturn:
        code, text = self._problem
        if self._state is FATAL:
            raise failure(code, text, fatal=True)
        if self._state is State.ABORTABLE:
            raise failure(code, text, abort=True)
        raise failure(Code.STATE, f"Operation not valid in state {self._state}")

    def _fails_when_dead(self) -> None:
        self._host.check_alive()
        if self._outbox.waiting:
            self._give_up_old()

    # --- reports --------------------------------------------------------------------------------------------------

    def _tell_statistics(self) -> None:
        if self._statistics is None or self._host.loop.seconds - self._told_at < STATISTICS_SECONDS:
            return
        timeouts = self._coordinator.timeouts + self._leader.timeouts
        losses = self._coordinator.losses + self._leader.losses
        if timeouts + losses != self._told:
            self._told_at, self._told = self._host.loop.seconds, timeouts + losses
            self._statistics(json.dumps({"brokers": {"1": {"req_timeouts": timeouts, "disconnects": losses}}}))

    def _log(self, facility: str, text: str) -> None:
        if self._logger is not None and self._id is not None:
            self._logger.log(7, "%s", facility, "simulated", text)

    def _wait(self, holds: Callable[[], bool], deadline: float) -> bool:
        """Wait in the calling task until it holds; whether the time was up before."""
        self._awaited = holds
        while not holds():
            left = deadline - self._host.loop.seconds
            if left <= 0:
                return True
            self._changed.clear()
            self._changed.wait(left)
            self._give_up_old()
        return False


def _name(code: Code) -> str:
    return "NO_ERROR" if code is NONE else f"_{code.name}" if code < 0 else code.name
