"""What clients ask of brokers and what these answer. Values only; a record of ours is a record of theirs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import Any, Literal, NamedTuple

from runtime.record import Outgoing, Record, TopicPartition
from schemas.topics import TopicSpec

Edge = Literal["begin", "end", "stable"]  # of a partition; the end is the high watermark


class Code(IntEnum):
    """Kafka's error codes; below zero those that a client says by itself."""

    FENCED = -144
    AUTO_OFFSET_RESET = -140
    MAX_POLL_EXCEEDED = -147
    INCONSISTENT = -149
    FATAL = -150
    PURGE_QUEUE = -152
    STATE = -172
    TIMED_OUT = -185
    PARTITION_EOF = -191
    MSG_TIMED_OUT = -192
    TRANSPORT = -195
    NONE = 0
    OFFSET_OUT_OF_RANGE = 1
    UNKNOWN_TOPIC_OR_PART = 3
    LEADER_NOT_AVAILABLE = 5
    NOT_LEADER_FOR_PARTITION = 6
    MSG_SIZE_TOO_LARGE = 10
    COORDINATOR_LOAD_IN_PROGRESS = 14
    NOT_COORDINATOR = 16
    NOT_ENOUGH_REPLICAS = 19
    ILLEGAL_GENERATION = 22
    UNKNOWN_MEMBER_ID = 25
    REBALANCE_IN_PROGRESS = 27
    TOPIC_ALREADY_EXISTS = 36
    OUT_OF_ORDER_SEQUENCE_NUMBER = 45
    INVALID_PRODUCER_EPOCH = 47
    INVALID_TXN_STATE = 48
    INVALID_PRODUCER_ID_MAPPING = 49
    CONCURRENT_TRANSACTIONS = 51
    FENCED_INSTANCE_ID = 82
    UNSTABLE_OFFSET_COMMIT = 88


NONE = Code.NONE  # asked for with every answer: to look a member up takes four times as long as a name


class Answer(NamedTuple):
    """What comes back."""

    code: Code
    value: Any = None


Respond = Callable[[Answer], None]
DONE = Answer(NONE)


class Identity(NamedTuple):
    """A producer at one time of its life; a transactional id has one at a time."""

    number: int
    epoch: int


NOBODY = Identity(-1, -1)

# --- administration -------------------------------------------------------------------------------------------------


class Describe(NamedTuple):
    """A topic → `Described`, or UNKNOWN_TOPIC_OR_PART."""

    topic: str


class Described(NamedTuple):
    """A topic as it is."""

    partitions: int
    id: str
    spec: TopicSpec


class ListTopics(NamedTuple):
    """→ every topic's `Described`, by name."""


class CreateTopics(NamedTuple):
    """Make topics with so many partitions; one that is there stays."""

    topics: Sequence[tuple[TopicSpec, int]]


class ListOffsets(NamedTuple):
    """Where partitions begin, end, or are decided up to → offsets in the same order."""

    partitions: Sequence[TopicPartition]
    edge: Edge


# --- writing --------------------------------------------------------------------------------------------------------


class InitProducerId(NamedTuple):
    """→ an `Identity`; of a transactional id the only one from now on."""

    transactional_id: str | None
    timeout_seconds: float


class AddPartitions(NamedTuple):
    """These partitions will be written to in the open transaction, which this begins."""

    transactional_id: str
    producer: Identity
    partitions: Sequence[TopicPartition]


class AddOffsets(NamedTuple):
    """Positions of this group will be committed with the open transaction."""

    transactional_id: str
    producer: Identity
    group: str


class Batch(NamedTuple):
    """Records for one partition; `sequence` counts a producer's records there."""

    partition: TopicPartition
    sequence: int
    records: Sequence[Outgoing]
    created_ms: int
    size: int


class Produce(NamedTuple):
    """Write → for each batch (code, first offset, milliseconds of its append)."""

    transactional_id: str | None
    producer: Identity
    batches: Sequence[Batch]


class Membership(NamedTuple):
    """What a member quotes of itself."""

    group: str
    generation: int = -1
    member: str = ""
    instance: str = ""


class CommitOffsets(NamedTuple):
    """Next positions of a group, with the open transaction (TxnOffsetCommit)."""

    transactional_id: str
    producer: Identity
    membership: Membership
    positions: Mapping[TopicPartition, int]


class EndTransaction(NamedTuple):
    """Commit or abort whatever this producer has open: the first version names no transaction."""

    transactional_id: str
    producer: Identity
    commit: bool


# --- reading --------------------------------------------------------------------------------------------------------


class Fetch(NamedTuple):
    """Records from these offsets; waits for some → `Fetched` of each partition that has something to say.

    `committed` ones alone, as all of ours ask: whoever does not ask for that gets what may be aborted yet.
    """

    client: str
    partitions: Sequence[tuple[TopicPartition, int]]
    wait_seconds: float
    committed: bool = True


class Fetched(NamedTuple):
    """`position` is behind the records and the gap after them; `stable` is where the readable ones end."""

    partition: TopicPartition
    code: Code
    records: Sequence[Record]
    position: int
    stable: int


class FetchOffsets(NamedTuple):
    """Where a group stands → positions; UNSTABLE_OFFSET_COMMIT while a transaction is about to move them."""

    group: str
    partitions: Sequence[TopicPartition]


# --- groups ---------------------------------------------------------------------------------------------------------


class JoinGroup(NamedTuple):
    """Take part → `Joined`, once all have been heard. `owned` was given to us by generation `owned_in`."""

    membership: Membership
    topic: str
    session_seconds: float
    rebalance_seconds: float
    owned: frozenset[int]
    owned_in: int


class Joined(NamedTuple):
    """`members`, for the one who shares out: what each owns by its own account and since which generation."""

    membership: Membership
    partitions: int
    members: Mapping[str, tuple[frozenset[int], int]] | None


class SyncGroup(NamedTuple):
    """→ which partitions are ours; `shares` is what the one who shares out has decided."""

    membership: Membership
    shares: Mapping[str, frozenset[int]] | None


class DescribeGroup(NamedTuple):
    """→ the partitions that members have been given, or None while they are being given anew."""

    group: str


class Heartbeat(NamedTuple):
    """We are here."""

    membership: Membership


Request = (
    Describe | ListTopics | CreateTopics | ListOffsets | InitProducerId | AddPartitions | AddOffsets | Produce
    | CommitOffsets | EndTransaction | Fetch | FetchOffsets | JoinGroup | SyncGroup | Heartbeat
    | DescribeGroup
)  # fmt: skip
