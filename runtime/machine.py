"""What a core is to the runtime: a pure state machine over the keys of one partition.

    load(key, rows)                        -> state        the state as stored; a new one where there are no rows
    opened(states, shared, now)            -> facts        what a process says first when it has taken a partition over
    decide(state, input, moment, shared)   -> facts        what follows from an input, now; nothing is changed
    evolve(state, fact)                    -> state        what a fact makes of a state; needs no moment
    wakeup(state)                          -> Wakeup       when this key wants to be asked again
    route(state, fact)                     -> outputs      where a fact is published, given the state before it
    save(key, state, rows)                                 writes what evolve changed

`decide` takes one small step: the shell evolves its facts and asks again while `wakeup` is due, so a step never has
to imagine what its own facts will have done. A fact evolves the key that `key_of` names: its own, or PARTITION, the
key under which a partition keeps what all its keys share; `shared` is that state.

A state may keep rows of its own (children) in `rows`, which holds one key's ordered bytes as the running batch sees
them: reading them in `decide` is reading state; writing them happens in `evolve` and `save` only. When a batch fails
its rows and states are dropped together.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from schemas.facts import Fact
from schemas.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from runtime.record import Headers, Record

PARTITION = b""  # the key of what all keys of a partition share: adopted catalog, recovery, tz version

S = TypeVar("S")


class Unfit(Exception):
    """Raised where a process must not own partitions of the role, and another one may. Its text says what to do."""


@frozen
class Moment:
    """What a decision may know besides state and input.

    `now` never goes back within a partition. `read_until` is the latest instant at which the ends of all inputs were
    asked for that has since been read and answered. `known_until` is later than that where nothing about the key that
    is asked, nor about what all keys share, is left unanswered of what the log held then; None: it is not.
    `entropy` is 16 random bytes, one draw a batch, kept in the decision record.
    """

    now: datetime
    read_until: datetime
    entropy: bytes = bytes(16)
    known_until: datetime | None = None

    @property
    def horizon(self) -> datetime:
        """Up to where everything about the key is known."""
        return self.known_until or self.read_until


@frozen
class Wakeup:
    """When a key wants to be asked again: `at` against `Moment.horizon`, `on_evidence_at` against `read_until`.

    What is decided against the evidence can be judged by whoever reads the decision record, where `read_until` stands.
    """

    at: datetime | None = None
    on_evidence_at: datetime | None = None


NEVER = Wakeup()


@dataclass(frozen=True, slots=True, kw_only=True)
class Woken:
    """The input that a due wakeup becomes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """The input that PARTITION gets when nothing due at or before `until` is left to decide in the partition."""

    until: datetime


class Output(NamedTuple):
    """Where a fact goes. `partition` None: by murmur2 of `key`. `tombstone` deletes `key` on a compacted topic.

    `carried`, where it is given, is sent instead of the fact: a record that is somebody else's. `headers` go with it.
    `optional`: its topic may well not be there, and is not asked for with each such output.

    A named tuple, like the `Outgoing` that becomes of it, because most facts have one and a tuple is made quickly.
    """

    topic: str
    key: str
    fact: Fact
    partition: int | None = None
    tombstone: bool = False
    headers: Headers = ()
    carried: bytes | None = None
    optional: bool = False


class Rows(Protocol):
    """The ordered bytes of one key, as the running batch sees them."""

    def get(self, row: bytes) -> bytes | None:
        """One row."""
        ...

    def put(self, row: bytes, value: bytes) -> None:
        """Write one row."""
        ...

    def delete(self, row: bytes) -> None:
        """Remove one row; absent is fine."""
        ...

    def scan(
        self, start: bytes = b"", end: bytes | None = None, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """Rows with start <= row < end in byte order."""
        ...


class Core(Protocol[S]):
    """A role's decisions. One instance serves one partition; it keeps no state of its own.

    `derivation` names what wakeups follow from besides states (the tz database, a rule of this version): when a
    partition is opened under another one than before, the wakeups of all its keys are derived anew.
    """

    role: str
    derivation: str

    def read(self, record: Record) -> tuple[bytes, Any] | None:
        """The key and input of a record; None for one that is not for us; raises `Refused` for a poison record.

        A pure function: a record may be read long before it is answered. Its input may change what that key and
        PARTITION hold, and no other key: until it is answered no time is decided for that key.
        """
        ...

    def about(self, record: Record) -> bytes | None:
        """The key that `read` would name, where a glance tells; None: ask `read`. It never raises.

        Of a poison record it may be the key that it seems to be about.
        """
        ...

    def strand(self, record: Record, key: bytes | None, input_: Any) -> bytes:
        """Whose order a record keeps: those of another strand of its input may be answered before or behind it.

        `key` and `input_` are what `read` said, or what `about` did, and then there is no input; of one that is refused
        there is nothing, and its order is nobody's concern. What is about PARTITION is of no strand, and is not asked
        for. It follows from the record, whoever was asked before, and is the same in all versions: how far each strand
        is answered is remembered.
        """
        ...

    def load(self, key: bytes, rows: Rows) -> S:
        """The state of a key."""
        ...

    def opened(self, states: Iterator[S], shared: S, now: datetime) -> Sequence[Fact]:
        """What is to be said before all else of a partition that a process has taken over; `states` are all there are.

        They are loaded one by one, as far as they are looked at. Their facts may be about any key.
        """
        ...

    def save(self, key: bytes, state: S, rows: Rows) -> None:
        """Write what changed since `load` or the last `save`."""
        ...

    def decide(self, state: S, input_: Any, moment: Moment, shared: S) -> Sequence[Fact]:
        """The facts that follow from one input. A refusal is a fact too.

        Who is woken has something to say; or, while it is not known beyond `read_until`, waits to be asked again.
        """
        ...

    def key_of(self, fact: Fact) -> bytes:
        """The key that a fact evolves."""
        ...

    def evolve(self, state: S, fact: Fact) -> S:
        """The state after a fact."""
        ...

    def wakeup(self, state: S) -> Wakeup:
        """When the key wants to be asked again."""
        ...

    def route(self, state: S, fact: Fact) -> Sequence[Output]:
        """Where the fact is published; `state` is the one before it."""
        ...

    def refuse(self, record: Record, faults: Sequence[Any], moment: Moment) -> Sequence[Fact]:
        """The facts that say a record was refused: a rejection, and an answer when one was asked for.

        They change nothing that decisions follow from.
        """
        ...
