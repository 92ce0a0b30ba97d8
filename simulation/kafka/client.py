"""What the clients of one process have in common: its machine, its network, its time; and how they say what failed."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVarTuple

from confluent_kafka import KafkaError, KafkaException

from runtime.logs.kafka.claim import GENERATION, MAGIC, generation
from runtime.record import TopicPartition
from simulation.kafka.network import Network
from simulation.kafka.protocol import Answer, Code, Membership
from simulation.loop import Killed, Loop, Machine

Arguments = TypeVarTuple("Arguments")

# Said by coordinators and leaders on the move: the client asks again.
PASSING = frozenset({
    Code.COORDINATOR_LOAD_IN_PROGRESS,
    Code.CONCURRENT_TRANSACTIONS,
    Code.LEADER_NOT_AVAILABLE,
    Code.NOT_COORDINATOR,
    Code.NOT_ENOUGH_REPLICAS,
    Code.NOT_LEADER_FOR_PARTITION,
    Code.TIMED_OUT,
    Code.TRANSPORT,
    Code.UNKNOWN_TOPIC_OR_PART,
    Code.UNSTABLE_OFFSET_COMMIT,
})  # fmt: skip
UNHEARD = frozenset({Code.TIMED_OUT, Code.TRANSPORT})  # nobody knows whether it was done
MOVED_SECONDS = 0.1  # after which a coordinator is looked for again
AGAIN_SECONDS = 0.005  # as our adapter sets `retry.backoff.ms`


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """Where clients live."""

    loop: Loop
    network: Network
    machine: Machine
    now_ms: Callable[[], int]  # the machine's wall clock

    def later(self, seconds: float, do: Callable[[*Arguments], None], *arguments: *Arguments) -> None:
        """Call `do` unless the machine is dead by then."""
        self.network.later(self.machine, seconds, do, *arguments)

    def monotonic(self) -> float:
        """`time.monotonic` of this machine."""
        return self.loop.seconds

    def check_alive(self) -> None:
        """`Killed` in a dead process, whatever it still tries on its way out."""
        if not self.machine.alive:
            raise Killed

    def ask(self, connection: Any, request: Any, timeout: float) -> Answer:
        """Send a request and wait for its answer; from a task."""
        loop = self.loop
        answers: list[Answer] = []
        task = loop.current()

        def answered(answer: Answer) -> None:
            answers.append(answer)
            loop.go_on(task)

        connection.send(request, answered, timeout)
        while not answers:
            loop.pause()
        return answers[0]


def backoff(code: Code) -> float:
    """How long a client waits before it asks again."""
    return AGAIN_SECONDS if code is Code.CONCURRENT_TRANSACTIONS else MOVED_SECONDS


def failure(
    code: Code, text: str = "", *, fatal: bool = False, again: bool = False, abort: bool = False
) -> KafkaException:
    """What the client raises."""
    return KafkaException(error(code, text, fatal=fatal, again=again, abort=abort))


@lru_cache(maxsize=256)  # the end of a partition is said with nearly every fetch
def error(code: Code, text: str = "", *, fatal: bool = False, again: bool = False, abort: bool = False) -> KafkaError:
    """What the client says."""
    flags: dict[str, Any] = {"fatal": fatal, "retriable": again, "txn_requires_abort": abort}
    return KafkaError(int(code), text or code.name, **flags)


class Message:
    """As `confluent_kafka.Message`, as far as our adapter asks it."""

    __slots__ = ("_error", "_ms", "_offset", "_partition", "_topic", "record")

    def __init__(
        self, place: TopicPartition, offset: int = -1, milliseconds: int = -1, *, problem: KafkaError | None = None,
        record: Any = None,
    ) -> None:  # fmt: skip
        self._topic, self._partition = place
        self._offset, self._ms, self._error = offset, milliseconds, problem
        self.record = record

    def topic(self) -> str:
        return self._topic

    def partition(self) -> int:
        return self._partition

    def offset(self) -> int:
        return self._offset

    def timestamp(self) -> tuple[int, int]:
        return 2, self._ms

    def error(self) -> KafkaError | None:
        return self._error


@lru_cache(maxsize=1024)  # a member quotes the same one with each of its transactions
def packed(membership: Membership) -> bytes:
    """A membership as the client hands it out."""
    number = membership.generation.to_bytes(4, sys.byteorder, signed=True)
    rest = f"{membership.group}\0{membership.member}\0{membership.instance}"
    return MAGIC + number + rest.encode()


@lru_cache(maxsize=1024)
def unpacked(metadata: bytes) -> Membership:
    """A membership that was handed out."""
    group, member, instance = metadata[GENERATION.stop :].decode().split("\0")
    return Membership(group, generation(metadata), member, instance)
