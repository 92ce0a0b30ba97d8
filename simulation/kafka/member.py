"""librdkafka's consumer of a group: static, cooperative, and it reads nothing.

What the group says arrives in the background; the application hears of it in `poll`. Heartbeats go on by themselves,
for as long as `poll` is called often enough.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from runtime.log import Fenced
from runtime.logs.kafka.claim import Claim
from runtime.logs.kafka.membership import KafkaMember
from runtime.record import TopicPartition
from simulation.kafka.client import MOVED_SECONDS, Host, Message, error, packed
from simulation.kafka.groups import NOTHING
from simulation.kafka.protocol import Answer, Code, Heartbeat, Joined, JoinGroup, Membership, SyncGroup
from simulation.loop import Signal

FENCED_TEXT = "Broker: Static consumer fenced by other consumer with same group.instance.id"
Callback = Callable[[Any, list[Any]], None]


class Place:
    """As `confluent_kafka.TopicPartition`."""

    __slots__ = ("offset", "partition", "topic")

    def __init__(self, topic: str, partition: int) -> None:
        self.topic, self.partition, self.offset = topic, partition, -1001


class Told(NamedTuple):
    """What the group has said and the application has not heard yet: our share, or that we have lost everything."""

    share: frozenset[int] | None


class SimulatedConsumer:
    """As `confluent_kafka.Consumer` of a member."""

    def __init__(self, host: Host, config: Mapping[str, Any], *, logger: Any = None) -> None:  # noqa: ARG002 -- its signature
        host.check_alive()
        self._host = host
        self._connection = host.network.connect(host.machine, "member")
        self._group, self._instance = config["group.id"], config["group.instance.id"]
        self._session = config["session.timeout.ms"] / 1000
        self._beat = config["heartbeat.interval.ms"] / 1000
        self._patience = config["max.poll.interval.ms"] / 1000
        self._membership = Membership(self._group, instance=self._instance)
        self._topic = ""
        self._owned: frozenset[int] = NOTHING
        self._owned_in = -1
        self._told: deque[Told] = deque()
        self._changed = Signal(host.loop)
        host.machine.nudges.append(self._changed.set)
        self._fatal: Message | None = None
        self._polled_at = self._heard_at = host.loop.seconds
        self._in = False  # whether we are a member, as far as we know
        self._joining = self._beating = self._late = False
        self._closed = False
        self._hearing = self._again = False  # whether the application is being told; whether to join again afterwards
        self._callbacks: dict[str, Callback] = {}

    # --- what the application calls -------------------------------------------------------------------------------

    def subscribe(self, topics: Sequence[str], *, on_assign: Callback, on_revoke: Callback, on_lost: Callback) -> None:
        """Take part; while the application is told what it has been given: join once more afterwards.

        At any other time a subscription to the same topic changes nothing.
        """
        if self._callbacks:
            self._again = self._hearing
            return
        (self._topic,) = topics
        self._callbacks = {"assign": on_assign, "revoke": on_revoke, "lost": on_lost}
        self._join()
        self._host.later(self._beat, self._tick)

    def poll(self, timeout: float) -> Message | None:
        """Hear what the group says; a message only of what ends it all."""
        self._host.check_alive()
        self._polled_at = self._host.loop.seconds
        if self._late:
            self._late = False
            self._lose()
            self._host.later(0.0, self._join)
            return Message(TopicPartition("", 0), problem=error(Code.MAX_POLL_EXCEEDED))
        if not self._told and self._fatal is None:
            self._changed.clear()
            self._changed.wait(timeout)
            self._polled_at = self._host.loop.seconds
        if self._told:
            self._hear(self._told.popleft())
        elif self._fatal is not None:
            message, self._fatal = self._fatal, None
            self._host.network.fenced.setdefault(self._host.machine.name, self._host.loop.seconds)
            return message
        return None

    def close(self) -> None:
        """Give everything back; a static member takes no leave."""
        self._host.check_alive()
        while self._told and self._told[0].share is None:
            self._hear(self._told.popleft())
        self._closed = True
        self._connection.close()
        if self._owned:
            given, self._owned = self._owned, NOTHING
            self._call("lost" if self._late else "revoke", given)

    def incremental_assign(self, places: Sequence[Any]) -> None:
        """The application takes what it was given."""

    def incremental_unassign(self, places: Sequence[Any]) -> None:
        """The application has let go."""

    def pause(self, places: Sequence[Any]) -> None:
        """Nothing is read anyway."""

    def consumer_group_metadata(self) -> bytes:
        """What a commit may quote."""
        return packed(self._membership)

    # --- hearing --------------------------------------------------------------------------------------------------

    def _hear(self, told: Told) -> None:
        self._hearing = True
        try:
            self._take(told)
        finally:
            self._hearing = False

    def _take(self, told: Told) -> None:
        if told.share is None:
            self._give_up()
            return
        revoked, added = self._owned - told.share, told.share - self._owned
        if revoked:
            self._call("revoke", revoked)
            self._owned = self._owned - revoked
        if added or not revoked:
            self._owned = self._owned | added
            self._call("assign", added)
        self._owned_in = self._membership.generation
        if revoked or self._again:
            self._again = False
            self._join()

    def _give_up(self) -> None:
        lost, self._owned = self._owned, NOTHING
        if lost:
            self._call("lost", lost)

    def _call(self, what: str, partitions: frozenset[int]) -> None:
        self._callbacks[what](self, [Place(self._topic, number) for number in sorted(partitions)])

    def _tell(self, told: Told) -> None:
        self._told.append(told)
        self._changed.set()

    def _lose(self) -> None:
        """We are no member any more, and what we had is another's."""
        self._in = False
        self._membership = Membership(self._group, instance=self._instance)
        self._told.clear()
        self._tell(Told(None))

    def _die(self) -> None:
        self._in = False
        self._fatal = Message(
            TopicPartition("", 0), problem=error(Code.FATAL, f"Fatal error: {FENCED_TEXT}", fatal=True)
        )
        self._changed.set()
        self._closed = True

    # --- joining --------------------------------------------------------------------------------------------------

    def _join(self) -> None:
        if self._joining or self._closed:
            return
        self._joining = True
        request = JoinGroup(
            self._membership, self._topic, self._session, self._patience, self._owned, self._owned_in
        )  # fmt: skip
        self._connection.send(request, self._joined, self._patience + 5.0)

    def _joined(self, answer: Answer) -> None:
        if self._closed or self._failed_to_join(answer.code):
            return
        joined: Joined = answer.value
        self._membership, self._in, self._heard_at = joined.membership, True, self._host.loop.seconds
        shares = None
        if joined.members is not None:
            shares = shared_out(range(joined.partitions), joined.members)
        self._connection.send(SyncGroup(self._membership, shares), self._synced, self._patience + 5.0)

    def _synced(self, answer: Answer) -> None:
        if self._closed or self._failed_to_join(answer.code):
            return
        self._joining = False
        self._heard_at = self._host.loop.seconds
        self._tell(Told(answer.value))

    def _failed_to_join(self, code: Code) -> bool:
        if code is Code.NONE:
            return False
        self._joining = False
        if code is Code.FENCED_INSTANCE_ID:
            self._die()
            return True
        if code in {Code.UNKNOWN_MEMBER_ID, Code.ILLEGAL_GENERATION}:
            self._lose()
        self._host.later(MOVED_SECONDS, self._join)
        return True

    # --- staying --------------------------------------------------------------------------------------------------

    def _tick(self) -> None:
        if self._closed:
            return
        now = self._host.loop.seconds
        self._host.later(self._beat, self._tick)
        if self._late or self._joining:
            return
        if now - self._polled_at > self._patience:
            self._late, self._in = True, False
            self._membership = Membership(self._group, instance=self._instance)
            return
        if self._in and now - self._heard_at > self._session:
            self._lose()
            self._join()
        elif self._in and not self._beating:
            self._beating = True
            self._connection.send(Heartbeat(self._membership), self._beaten, self._session)

    def _beaten(self, answer: Answer) -> None:
        self._beating = False
        if self._closed or not self._in:
            return
        if answer.code in {Code.NONE, Code.REBALANCE_IN_PROGRESS}:
            self._heard_at = self._host.loop.seconds
        if answer.code is Code.FENCED_INSTANCE_ID:
            self._die()
        elif answer.code is Code.REBALANCE_IN_PROGRESS and not self._told and not self._hearing:
            self._join()  # not before the application has heard all: what we own is not settled until then
        elif answer.code in {Code.UNKNOWN_MEMBER_ID, Code.ILLEGAL_GENERATION} and not self._joining:
            self._lose()
            self._join()


def shared_out(
    partitions: Sequence[int], members: Mapping[str, tuple[frozenset[int], int]]
) -> dict[str, frozenset[int]]:
    """Evenly, leaving as much as possible where it is; what moves is given only once its owner has let go of it."""
    owner: dict[int, str] = {}
    for id_, (owned, _) in sorted(members.items(), key=lambda item: (item[1][1], item[0])):
        owner |= dict.fromkeys(owned & set(partitions), id_)  # who says so of a later generation is believed
    least, more = divmod(len(partitions), len(members))
    shares: dict[str, list[int]] = {id_: [] for id_ in members}
    for partition, id_ in sorted(owner.items()):
        shares[id_].append(partition)
    by_size = sorted(shares, key=lambda id_: (-len(shares[id_]), id_))
    room = {id_: least + (1 if rank < more else 0) for rank, id_ in enumerate(by_size)}
    free = [partition for partition in partitions if partition not in owner]
    for id_ in by_size:
        free += shares[id_][room[id_] :]
        shares[id_] = shares[id_][: room[id_]]
    for partition in sorted(free):
        id_ = min(shares, key=lambda id_: (len(shares[id_]) - room[id_], id_))
        if owner.get(partition, id_) == id_:
            shares[id_].append(partition)
        else:
            room[id_] -= 1  # kept for it until the partition is free
    return {id_: frozenset(share) for id_, share in shares.items()}


class SimulatedClaim(Claim):
    """A claim whose waits are those of the loop."""

    def __init__(self, host: Host, name: str) -> None:
        super().__init__(name)
        self._host, self._heard = host, Signal(host.loop)

    def capture(self, membership: bytes) -> None:
        """See `Claim.capture`."""
        super().capture(membership)
        self._heard.set()

    def end(self, reason: str) -> None:
        """See `Claim.end`."""
        super().end(reason)
        self._heard.set()

    def settle(self, refused: bytes, seconds: float) -> None:
        """See `Claim.settle`."""
        deadline = self._host.loop.seconds + seconds
        while not self._ended and self._membership == refused and self._host.loop.seconds < deadline:
            self._heard.clear()
            self._heard.wait(deadline - self._host.loop.seconds)
        self.check()
        if self._membership == refused:
            raise Fenced(f"{self._name}: the group has moved on without us")


class SimulatedMember(KafkaMember):
    """Our adapter's member over such a consumer."""

    client: Any

    def __init__(self, host: Host, *arguments: Any, **named: Any) -> None:
        self.client = lambda config, *, logger: SimulatedConsumer(host, config, logger=logger)
        self.claim = lambda name: SimulatedClaim(host, name)
        super().__init__(*arguments, **named)
