"""Our place in a role's group: which partitions of the lead input are ours, on Kafka's own group protocol.

The classic protocol, cooperatively: a rebalance takes away only what moves, and all other partitions go on. We are a
static member: a process that comes back within the session's time has its partitions back, and nobody noticed.

If it died while it gave partitions up, these are in nobody's share, and the brokers take the group for at rest. So who
is known to a group anew looks whether each partition has an owner, and joins once more if not: a member that says of
itself what it did not say before makes the group rebalance.

The member's consumer reads nothing. Its partitions stand at their end, paused; whoever owns one reads it by a reader.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import confluent_kafka
from confluent_kafka import OFFSET_END, Consumer, KafkaError

from runtime.log import Fenced, Log, LogError, Owner
from runtime.logs.kafka.claim import Claim, identity
from runtime.logs.kafka.errors import RAISED, TAKEN_OVER, error_of, translated
from runtime.logs.kafka.settings import KafkaSettings, member_config

# A consumer that is beyond help says only that it is; what happened stands in its words.
FINAL = frozenset({*TAKEN_OVER, KafkaError._FATAL})  # noqa: SLF001 -- its public name

# A rebalance leads to another where partitions move. What still has no owner after so many, none of them will give one.
LOOKS_MAX = 3

_log = logging.getLogger(__name__)

Places = list[confluent_kafka.TopicPartition]


class KafkaMember:
    """`Member`. The owner is called from within `poll` and `close`, by the client's rebalance callbacks."""

    # Of which kind the client is, and what a right to a partition is made of; a simulation has its own of both.
    client: Callable[..., Consumer] = Consumer
    claim: Callable[[str], Claim] = Claim

    def __init__(
        self, settings: KafkaSettings, group: str, topic: str, *, name: str, owner: Owner,
        claimed: Callable[[Claim], Log], unowned: Callable[[], set[int]], logger: Any,
    ) -> None:  # fmt: skip
        self.joined = False
        self._group, self._name = group, name
        self._owner = owner
        self._claimed = claimed
        self._unowned = unowned
        self._known_as = b""
        self._looks = 0
        self._claims: dict[int, Claim] = {}
        self._closed = False
        self._gone = False  # whether we are no member any more: the client takes leave as if we were
        config = member_config(settings, group, name) | {"error_cb": lambda _error: None}
        self._consumer = self.client(config, logger=logger)
        self._topic = settings.namespace + topic
        self._subscribe()

    def poll(self, timeout: float) -> None:
        """See `Member.poll`."""
        if self._closed:
            raise LogError(f"{self._name} has left the group {self._group}")
        try:
            message = self._consumer.poll(timeout)
        except RAISED as exception:
            raise self._translated(error_of(exception)) from exception
        error = None if message is None else message.error()
        if error is not None and (error.fatal() or error.code() in FINAL):
            told = self._translated(error)
            self._gone = True
            for claim in self._claims.values():
                claim.end(str(told))
            raise told

    def close(self) -> None:
        """See `Member.close`."""
        if not self._closed:
            self._closed = True
            self._consumer.close()
            left = sorted(self._claims)
            self._end(left, "we are no member any more")
            if left:  # A client that is beyond help gives nothing back.
                self._owner.lost(left)

    def _subscribe(self) -> None:
        callbacks = {"on_assign": self._assigned, "on_revoke": self._revoked, "on_lost": self._lost}
        self._consumer.subscribe([self._topic], **callbacks)

    # --- what the client calls ------------------------------------------------------------------------------------

    def _assigned(self, consumer: Consumer, places: Places) -> None:
        """Called after every rebalance, also with nothing new: what we quote changes each time."""
        self.joined = True
        new = [place.partition for place in places]
        for partition in new:
            self._claims[partition] = self.claim(f"{self._group} partition {partition}")
        membership = self._capture(consumer)
        for partition in new:
            self._owner.assigned([partition], self._claimed(self._claims[partition]))
        self._mend(membership)
        for place in places:
            place.offset = OFFSET_END
        consumer.incremental_assign(places)
        if places:
            consumer.pause(places)

    def _mend(self, membership: bytes) -> None:
        """Have the group rebalance where it has only given us back what it had kept, and some partition is nobody's.

        What is subscribed to while the client is being assigned it applies afterwards, by joining once more; at any
        other time it would see that nothing has changed, and do nothing.
        """
        if identity(membership) != self._known_as:
            self._known_as, self._looks = identity(membership), LOOKS_MAX
        if not self._looks:
            return
        why = self._lacks()
        self._looks = self._looks - 1 if why else 0
        if why:
            _log.info("group %s is made to rebalance: %s", self._group, why)
            self._subscribe()

    def _lacks(self) -> str:
        """What it lacks, as far as we know: a rebalance too many moves nothing."""
        try:
            unowned = self._unowned()
        except LogError as error:
            return str(error)
        return f"nobody has {sorted(unowned)}" if unowned else ""

    def _revoked(self, consumer: Consumer, places: Places) -> None:
        """The group waits for us: the owner may still commit what it has in hand, and then they are given away."""
        if self._gone:
            self._lost(consumer, places)
            return
        self._capture(consumer)
        partitions = [place.partition for place in places]
        self._owner.revoked(partitions)
        self._end(partitions, "the group has asked for it")
        consumer.incremental_unassign(places)

    def _lost(self, consumer: Consumer, places: Places) -> None:
        """Others have them already: nothing more may be committed, so the right ends before the owner hears of it."""
        partitions = [place.partition for place in places]
        self._end(partitions, "the group has given it to others")
        self._owner.lost(partitions)
        consumer.incremental_unassign(places)

    # --- the claims -----------------------------------------------------------------------------------------------

    def _capture(self, consumer: Consumer) -> bytes:
        membership: bytes = consumer.consumer_group_metadata()
        for claim in self._claims.values():
            claim.capture(membership)
        return membership

    def _end(self, partitions: Sequence[int], reason: str) -> None:
        for partition in partitions:
            self._claims.pop(partition).end(reason)

    def _translated(self, error: KafkaError) -> LogError:
        told = translated(error, f"member {self._name} of group {self._group}")
        if isinstance(told, Fenced) or "fenced by other consumer" in error.str():
            return Fenced(f"{told}; another process has this name")
        return told
