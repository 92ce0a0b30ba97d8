"""What a simulated run leaves behind, for judges that know nothing of the code that made it.

The simulator fills an `Evidence` from outside of the cluster: from its model of Kafka, from the disks, from what
callers and user code saw. A part that a run does not have stays empty; a checker then says that it observed nothing.

Instants are the simulation's true time, the one that the model of Kafka stamps records with, except where a field says
otherwise. What a partition took for the time stands in its own records (`now` of decisions, `clock_mark` of footers).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple, TypeVar

from runtime.record import Headers, TopicPartition
from schemas.frozen import frozen
from schemas.topics import TopicSpec
from simulation.history import Call

T = TypeVar("T")

Partition = tuple[str, int]  # a role and a number

# Headers that publishers of a simulation put on what they publish, and that nothing of the product looks at.
POISON = "sim-poison"  # this record must be refused; the value says what is wrong with it
NEWER = "of_the_next_version"  # the field that processes of the next version add to each object of ours (F7)
UNKNOWN = "sim-unknown"  # this command has a field, named by the value, that no version in the cluster knows

MARKER = "mark-of-"


def marker(tenant: str) -> str:
    """Text that publishers put into payloads, results and labels of a tenant, and that no other may ever see."""
    return f"{MARKER}{tenant}."


class Place(NamedTuple):
    """Where a record stands."""

    topic: str
    partition: int
    offset: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}@{self.offset}"


@frozen
class Violation:
    """An invariant that does not hold. `where` is a record's place, or names what else was looked at."""

    invariant: str
    what: str
    where: Place | str

    def __str__(self) -> str:
        return f"{self.invariant} {self.where}: {self.what}"


class Committed(NamedTuple):
    """A record that readers of committed records got to see. `transaction` is a key of `Evidence.transactions`."""

    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    appended_at: datetime
    transaction: int | None = None

    def header(self, name: str) -> str | None:
        """The first header of that name, as text."""
        return next((value.decode("utf-8", "replace") for key, value in self.headers if key == name), None)


@frozen
class Transaction:
    """A transaction as the coordinator saw it; `outcome` is committed, aborted or open.

    A coordinator that has forgotten an id gives it a new producer, whose epochs begin anew. `producer` tells
    them apart, in the order in which they were given.
    """

    transactional_id: str
    epoch: int
    began_at: datetime
    outcome: str
    ended_at: datetime | None = None
    producer: int = 0


@frozen
class StoreContents:
    """A store of one machine at the end, read from its disk: all entries in byte order, the checkpoint among them."""

    role: str
    partition: int
    machine: str
    entries: tuple[tuple[bytes, bytes], ...]
    owned: bool  # whether its machine owned the partition at the end


@frozen
class Execution:
    """User code that really ran. `outcome` is succeeded, failed, or killed: the process ended before the code did.

    `fencing_token` is what the code was given; a target that remembers the highest refuses an older one.
    """

    run_id: str
    tenant: str
    attempt: int
    lease: str
    incarnation: str
    worker: str
    started_at: datetime
    fencing_token: str
    may_have_run: bool = False
    ended_at: datetime | None = None
    outcome: str = ""
    result: Any = None  # what it gave back: something that no other execution does, such as its lease


@frozen
class Owning:
    """A word on who has a partition. `what`: assigned, revoked or lost, as the group said it; begun: a process builds
    up what works on it.
    """

    at: datetime
    machine: str  # `<node>#<number>`: processes of one node have one name in the group
    role: str
    partition: int
    what: str


@frozen
class Glimpse:
    """A row of a read model as somebody saw it; all in the order of seeing."""

    table: str
    key: str
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Everything a run left behind.

    `records` has an entry for every partition there is, and in it all that was ever committed, also what retention and
    compaction have taken since.
    `ended_at` is when the simulation stopped; `faults_off_at` when its second phase began; `rested_at` when nobody had
    anything left to do (None: not by the end).
    """

    seed: int = 0
    faults: frozenset[str] = frozenset()  # names of the catalogue that were on
    ended_at: datetime | None = None
    faults_off_at: datetime | None = None
    rested_at: datetime | None = None

    topics: Mapping[str, TopicSpec] = field(default_factory=dict)
    records: Mapping[TopicPartition, tuple[Committed, ...]] = field(default_factory=dict)
    aborted: Mapping[TopicPartition, tuple[Committed, ...]] = field(default_factory=dict)  # nobody ever saw these
    transactions: Mapping[int, Transaction] = field(default_factory=dict)
    positions: Mapping[str, Mapping[TopicPartition, int]] = field(default_factory=dict)  # by group: next offsets
    # How far a wall clock may be ahead before it is held (design: Clock), and as much again for a broker's clock.
    clocks_apart_max: timedelta = timedelta(seconds=10)
    doubting: bool = False  # owners give a producer up whose commit is in doubt: nothing is torn then
    transaction_seconds_max: float = 0.0  # the coordinator's timeout and sweep; 0: not known

    stores: tuple[StoreContents, ...] = ()
    owners: Mapping[Partition, str | None] = field(default_factory=dict)  # at the end; None: nobody
    restored: Mapping[Partition, tuple[datetime, ...]] = field(default_factory=dict)  # when somebody took it over
    owning: tuple[Owning, ...] = ()  # in the order in which it was said
    fenced: Mapping[str, datetime] = field(default_factory=dict)  # when a machine heard that another has its name
    unquoted: tuple[str, ...] = ()  # transactional ids of positions that were committed without a word on who does

    history: tuple[Call, ...] = ()
    executions: tuple[Execution, ...] = ()
    read_model: Mapping[str, tuple[Mapping[str, Any], ...]] = field(default_factory=dict)  # rows by table
    rebuilt: Mapping[str, tuple[Mapping[str, Any], ...]] = field(default_factory=dict)  # the same, made anew
    glimpses: tuple[Glimpse, ...] = ()
    canaries: tuple[str, ...] = ()  # secrets that were used
    texts: Mapping[str, str] = field(default_factory=dict)  # log lines, metrics, pages: by what they are

    _known: dict[Any, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def once(self, name: Any, make: Callable[[], T]) -> T:
        """What `make` returns, made the first time it is asked for: how checkers share what they read."""
        if name not in self._known:
            self._known[name] = make()
        made: T = self._known[name]
        return made

    def partitions(self, topic: str) -> Iterator[TopicPartition]:
        """The partitions of a topic, in order."""
        return (place for place in sorted(self.records) if place.topic == topic)

    def spans(self) -> Iterable[tuple[TopicPartition, tuple[Committed, ...]]]:
        """All records, partition by partition, in order."""
        return sorted(self.records.items())
