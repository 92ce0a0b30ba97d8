"""The transaction coordinator, as it serves clients of the first version of the protocol.

An end names a producer id and an epoch, not a transaction: one that comes late ends whatever is open under the same
epoch. Only a new epoch refuses it. Answers come before markers: what was committed is readable a moment later.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from random import Random
from typing import NamedTuple

from runtime.record import TopicPartition
from simulation.kafka.protocol import (
    DONE,
    NONE,
    AddOffsets,
    AddPartitions,
    Answer,
    Code,
    EndTransaction,
    Identity,
    InitProducerId,
)
from simulation.loop import Loop

MARKER_SECONDS = (0.0005, 0.004)  # from an end to its markers, on a broker at ease
WRITING_SECONDS = 0.01  # of a transaction, where nothing is slow
APART_SHARE = 0.125  # of ends whose markers are written one by one, partition after partition
NAP_SECONDS = 0.25  # between looks whether the brokers are back
EPOCH_MAX = 32_766  # beyond it a transactional id is given another producer id
# Each broker draws producer ids from a block of its own. All ids but some that were forgotten have one coordinator.
FIRST_PRODUCER = 1000
FIRST_PRODUCER_ELSEWHERE = 1


class State(StrEnum):
    """Of a transactional id."""

    EMPTY = "empty"
    ONGOING = "ongoing"
    COMMITTING = "committing"
    ABORTING = "aborting"
    COMMITTED = "committed"
    ABORTED = "aborted"


@dataclass(slots=True, eq=False)
class Transaction:
    """What is known of a transactional id."""

    id: str
    producer: Identity
    timeout_seconds: float
    state: State = State.EMPTY
    partitions: set[TopicPartition] = field(default_factory=set)
    groups: set[str] = field(default_factory=set)
    count: int = 0  # of transactions begun: a timer that fires for an earlier one is void
    used_at: float = 0.0  # seconds
    began_at: float = 0.0
    told: bool = False  # some partition of its end, and not yet all

    @property
    def is_ending(self) -> bool:
        """Whether its markers are being written."""
        return self.state in {State.COMMITTING, State.ABORTING}

    @property
    def is_at_rest(self) -> bool:
        """Whether nothing is open or ending: no other id is ever forgotten."""
        return self.state in {State.EMPTY, State.COMMITTED, State.ABORTED}


@dataclass(frozen=True, slots=True, kw_only=True)
class Marks:
    """How a partition, and a group's positions, learn that a transaction has ended."""

    partition: Callable[[TopicPartition, Identity, bool], None]
    group: Callable[[str, Identity, bool], None]


class Past(NamedTuple):
    """A transaction that has ended, as evidence keeps it; instants in seconds."""

    id: str
    producer: Identity
    partitions: frozenset[TopicPartition]
    began: float
    ended: float
    committed: bool


class Coordinator:
    """Serves all transactional ids."""

    def __init__(self, loop: Loop, chance: Random, marks: Marks) -> None:
        self.transactions: dict[str, Transaction] = {}
        self.past: list[Past] = []
        self.marker_seconds = MARKER_SECONDS
        self.slow_markers: Callable[[], float] = lambda: 0.0  # what a broker in trouble adds
        self._loop, self._chance, self._marks = loop, chance, marks
        self.given: dict[int, int] = {}  # producer ids, and the how manieth each was
        self._next, self._next_elsewhere = FIRST_PRODUCER, FIRST_PRODUCER_ELSEWHERE
        self._elsewhere: set[str] = set()  # ids whose coordinator is another broker by now
        self._waylaid: tuple[tuple[str, ...], bool, Callable[[], None]] | None = None
        self.asleep = False  # while the brokers are away: what is due then happens when they are back

    # --- what clients ask -----------------------------------------------------------------------------------------

    def init(self, request: InitProducerId) -> Answer:
        """Who asks is the only one from now on; what its predecessor has open is aborted first."""
        if request.transactional_id is None:
            return Answer(NONE, self._new())
        found = self.transactions.get(request.transactional_id)
        if found is None:
            producer = self._new(elsewhere=request.transactional_id in self._elsewhere)
            found = Transaction(request.transactional_id, producer, request.timeout_seconds)
            self.transactions[found.id] = found
        elif found.is_ending:
            return Answer(Code.CONCURRENT_TRANSACTIONS)
        elif found.state is State.ONGOING:
            self._fence(found)
            return Answer(Code.CONCURRENT_TRANSACTIONS)
        else:
            found.producer = self._bumped(found.producer)
        found.state, found.timeout_seconds, found.used_at = State.EMPTY, request.timeout_seconds, self._loop.seconds
        return Answer(NONE, found.producer)

    def add_partitions(self, request: AddPartitions) -> Answer:
        """Begins a transaction, or widens it."""
        found = self.transactions.get(request.transactional_id)
        code = self._begin(found, request.producer)
        if code is NONE:
            assert found is not None, "just looked at"
            found.partitions.update(request.partitions)
        return Answer(code)

    def add_offsets(self, request: AddOffsets) -> Answer:
        """Begins a transaction, or widens it by a group's positions."""
        found = self.transactions.get(request.transactional_id)
        code = self._begin(found, request.producer)
        if code is NONE:
            assert found is not None, "just looked at"
            found.groups.add(request.group)
        return Answer(code)

    def end(self, request: EndTransaction) -> Answer:
        """Commit or abort what is open; that it has been done already is a success."""
        found = self.transactions.get(request.transactional_id)
        code = _known(found, request.producer)
        if code is not NONE:
            return Answer(code)
        assert found is not None, "just looked at"
        wanted = (State.COMMITTING, State.COMMITTED) if request.commit else (State.ABORTING, State.ABORTED)
        if found.state is State.ONGOING:
            self._end(found, commit=request.commit)
            return DONE
        if found.state is wanted[1]:
            return DONE
        return Answer(Code.CONCURRENT_TRANSACTIONS if found.state is wanted[0] else Code.INVALID_TXN_STATE)

    def verify(self, transactional_id: str, producer: Identity, partition: TopicPartition) -> Code:
        """Whether a partition is part of what the producer has open: a leader asks before it begins to write."""
        found = self.transactions.get(transactional_id)
        code = _known(found, producer)
        if code is not NONE or found is None:
            return code
        ongoing = found.state is State.ONGOING and partition in found.partitions
        return NONE if ongoing else Code.INVALID_TXN_STATE

    def may_commit(self, transactional_id: str, producer: Identity, group: str) -> Code:
        """Whether a group's positions are part of what the producer has open."""
        found = self.transactions.get(transactional_id)
        code = _known(found, producer)
        if code is not NONE or found is None:
            return code
        return NONE if found.state is State.ONGOING and group in found.groups else Code.INVALID_TXN_STATE

    # --- what happens by itself -----------------------------------------------------------------------------------

    def waylay(self, names: tuple[str, ...], do: Callable[[], None]) -> None:
        """At the next transaction of such an id, unless brokers are away, `do`, and leave unmarked what is open then.

        Soon after it has begun, or when it ends: by chance it is seldom hit.
        """

        def strike() -> None:
            if not self.asleep:
                do()
                self.leave_unmarked(*names)

        self._waylaid = names, self._chance.choice((True, False)), strike

    def let_be(self) -> None:
        """Waylay nobody."""
        self._waylaid = None

    def expire(self, idle_seconds: float) -> None:
        """Forget transactional ids that were not used for so long."""
        since = self._loop.seconds - idle_seconds
        for found in list(self.transactions.values()):
            if found.used_at <= since and found.is_at_rest:
                del self.transactions[found.id]

    def forget(self, transactional_id: str, *, elsewhere: bool = False) -> None:
        """Forget an id that is at rest, as if nobody had used it for days: whoever asks for it is given another one.

        `elsewhere`: by another broker, whose block of producer ids is an older one, so that the new one is smaller.
        """
        assert self.transactions[transactional_id].is_at_rest, f"{transactional_id} is in use"
        del self.transactions[transactional_id]
        (self._elsewhere.add if elsewhere else self._elsewhere.discard)(transactional_id)

    def leave_unmarked(self, *names: str) -> None:
        """End what is open or about to end, and tell no partition: as if none had a leader (KAFKA-20734).

        Of the ids that begin with one of these names; what others leave so is for an administrator to end. What some
        partition has been told already, all are.
        """
        for found in self.transactions.values():
            if found.told or not found.id.startswith(names):
                continue
            if found.state is State.ONGOING:
                found.producer = self._bumped(found.producer)
                self._forget(found, commit=False)
            elif found.is_ending:
                self._forget(found, commit=found.state is State.COMMITTING)

    def _forget(self, found: Transaction, *, commit: bool) -> None:
        found.partitions, found.count = set(), found.count + 1
        self._complete(found, found.producer, commit=commit)

    def _begin(self, found: Transaction | None, producer: Identity) -> Code:
        code = _known(found, producer)
        if code is not NONE or found is None:
            return code
        if found.is_ending:
            return Code.CONCURRENT_TRANSACTIONS
        if found.state is not State.ONGOING:
            found.state, found.count, found.used_at = State.ONGOING, found.count + 1, self._loop.seconds
            count, found.began_at = found.count, self._loop.seconds
            self._loop.later(found.timeout_seconds, lambda: self._time_up(found, count))
            self._step_out(found, ends=False)
        return NONE

    def _step_out(self, found: Transaction, *, ends: bool) -> None:
        """Of whoever waylays it."""
        if self._waylaid is not None and found.id.startswith(self._waylaid[0]):
            _, at_end, do = self._waylaid
            if ends == at_end:
                self._waylaid = None
                self._loop.later(0.0 if ends else self._chance.uniform(0.0, WRITING_SECONDS), do)

    def _time_up(self, found: Transaction, count: int) -> None:
        if self.asleep:
            self._loop.later(NAP_SECONDS, lambda: self._time_up(found, count))
        elif found.count == count and found.state is State.ONGOING:
            self._fence(found)

    def _fence(self, found: Transaction) -> None:
        """Abort what is open under a new epoch, so that its producer cannot go on with it."""
        found.producer = self._bumped(found.producer)
        self._end(found, commit=False)

    def _end(self, found: Transaction, *, commit: bool) -> None:
        found.state, found.used_at = State.COMMITTING if commit else State.ABORTING, self._loop.seconds
        self._step_out(found, ends=True)
        producer = found.producer
        marks: list[Callable[[], None]] = [
            *(partial(self._marks.partition, place, producer, commit) for place in sorted(found.partitions)),
            *(partial(self._marks.group, group, producer, commit) for group in sorted(found.groups)),
        ]
        count, apart = found.count, self._chance.random() < APART_SHARE
        if apart:
            self._chance.shuffle(marks)
        left = [len(marks)]

        def done(mine: list[Callable[[], None]]) -> None:
            if self.asleep:
                self._loop.later(NAP_SECONDS, partial(done, mine))
                return
            if found.count != count:
                return  # It has been left unmarked.
            found.told = True
            for mark in mine:
                mark()
            left[0] -= len(mine)
            if not left[0]:
                self._complete(found, producer, commit=commit)

        for mine in [[mark] for mark in marks] if apart and marks else [marks]:
            seconds = self._chance.uniform(*self.marker_seconds) + self.slow_markers()
            self._loop.later(seconds, partial(done, mine))

    def _complete(self, found: Transaction, producer: Identity, *, commit: bool) -> None:
        partitions = frozenset(found.partitions)
        self.past.append(Past(found.id, producer, partitions, found.began_at, self._loop.seconds, commit))
        found.state = State.COMMITTED if commit else State.ABORTED
        found.partitions, found.groups, found.told = set(), set(), False

    def _new(self, *, elsewhere: bool = False) -> Identity:
        if elsewhere:
            number = self._next_elsewhere
            self._next_elsewhere += 1
            assert number <= FIRST_PRODUCER, "an hour has forgotten more ids than a block has"
        else:
            number = self._next = self._next + 1
        self.given[number] = len(self.given)
        return Identity(number, 0)

    def _bumped(self, producer: Identity) -> Identity:
        return self._new() if producer.epoch >= EPOCH_MAX else Identity(producer.number, producer.epoch + 1)


def _known(found: Transaction | None, producer: Identity) -> Code:
    if found is None or found.producer.number != producer.number:
        return Code.INVALID_PRODUCER_ID_MAPPING
    return NONE if found.producer.epoch == producer.epoch else Code.INVALID_PRODUCER_EPOCH
