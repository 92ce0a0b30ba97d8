"""The group coordinator: the classic protocol with static members, and the positions of groups.

A generation begins when all members have said that they are there (join); one of them shares out (sync). A member that
is silent for its session's time is gone. A static one that comes back in time is given what it had, under a new member
id: whoever still uses the old one is fenced.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from runtime.record import TopicPartition
from simulation.kafka.protocol import (
    DONE,
    Answer,
    Code,
    CommitOffsets,
    DescribeGroup,
    Heartbeat,
    Joined,
    JoinGroup,
    Membership,
    Respond,
    SyncGroup,
)
from simulation.loop import Loop

NOTHING: frozenset[int] = frozenset()


class Phase(StrEnum):
    """Of a group."""

    EMPTY = "empty"
    JOINING = "joining"  # members are asked to say that they are there
    SHARING = "sharing"  # a generation has begun, and one of its members is sharing out
    STABLE = "stable"


@dataclass(slots=True, eq=False)
class Member:
    """A member as the coordinator knows it."""

    id: str
    instance: str
    session_seconds: float
    owned: frozenset[int]
    owned_in: int
    silent_after: float = 0.0  # the second at which it is taken for dead
    joining: Respond | None = None
    syncing: Respond | None = None


@dataclass(slots=True, eq=False)
class Group:
    """Who shares the partitions of a topic, and where they stand."""

    name: str
    topic: str = ""
    phase: Phase = Phase.EMPTY
    generation: int = 0
    leader: str = ""
    count: int = 0  # of rebalances begun: a timer that fires for an earlier one is void
    members: dict[str, Member] = field(default_factory=dict)
    instances: dict[str, str] = field(default_factory=dict)  # who has a name at the moment
    shares: Mapping[str, frozenset[int]] = field(default_factory=dict)
    positions: dict[TopicPartition, int] = field(default_factory=dict)
    pending: dict[int, dict[TopicPartition, int]] = field(default_factory=dict)  # by producer


class Groups:
    """Serves all groups."""

    def __init__(self, loop: Loop, partitions: Callable[[str], int]) -> None:
        self.groups: dict[str, Group] = {}
        self._loop, self._partitions = loop, partitions
        self._named = 0
        self.asleep = False  # while the brokers are away nobody's silence counts
        self.unquoted: list[str] = []  # transactional ids of commits that quoted no membership of a group with members

    def group(self, name: str) -> Group:
        """A group comes into being when it is named."""
        return self.groups.setdefault(name, Group(name))

    # --- taking part ----------------------------------------------------------------------------------------------

    def join(self, request: JoinGroup, respond: Respond) -> None:
        """Answered when the generation begins."""
        group, said = self.group(request.membership.group), request.membership
        holder = group.instances.get(said.instance) if said.instance else None
        if said.member and said.instance and holder != said.member:
            respond(Answer(Code.FENCED_INSTANCE_ID if holder else Code.UNKNOWN_MEMBER_ID))
            return
        if said.member and said.member not in group.members:
            respond(Answer(Code.UNKNOWN_MEMBER_ID))
            return
        if holder and not said.member:
            member = self._come_back(group, holder, request)
            if group.phase is Phase.STABLE:
                respond(self._joined(group, member, leads=False))
                return
        else:
            member = group.members.get(said.member) or self._newcomer(group, request)
            if (
                group.phase is Phase.STABLE
                and said.member
                and (member.owned, member.owned_in) == (request.owned, request.owned_in)
                and group.leader != member.id
            ):
                respond(self._joined(group, member, leads=False))
                return
        group.topic = request.topic
        member.owned, member.owned_in, member.joining = request.owned, request.owned_in, respond
        self._rebalance(group, request.rebalance_seconds)
        self._maybe_begin(group)

    def sync(self, request: SyncGroup, respond: Respond) -> None:
        """Answered when the one who shares out has done so."""
        group, said = self.group(request.membership.group), request.membership
        code = self.check(group, said)
        if code is not Code.NONE:
            respond(Answer(code))
        elif group.phase is Phase.JOINING:
            respond(Answer(Code.REBALANCE_IN_PROGRESS))
        elif group.phase is Phase.STABLE:
            respond(Answer(Code.NONE, group.shares.get(said.member, NOTHING)))
        else:
            group.members[said.member].syncing = respond
            if said.member == group.leader and request.shares is not None:
                self._share(group, request.shares)

    def heartbeat(self, request: Heartbeat) -> Answer:
        """Whoever sends it is alive; it is told when a rebalance has begun."""
        group, said = self.group(request.membership.group), request.membership
        code = self.check(group, said)
        if code is not Code.NONE:
            return Answer(code)
        self._heard(group.members[said.member])
        return Answer(Code.REBALANCE_IN_PROGRESS) if group.phase is Phase.JOINING else DONE

    def describe(self, request: DescribeGroup) -> Answer:
        """For whoever asks, member or not."""
        group = self.group(request.group)
        given = frozenset().union(*group.shares.values())
        return Answer(Code.NONE, given if group.phase is Phase.STABLE else None)

    def check(self, group: Group, said: Membership) -> Code:
        """Whether a membership is one of the present generation."""
        holder = group.instances.get(said.instance) if said.instance else None
        if said.instance and holder is not None and holder != said.member:
            return Code.FENCED_INSTANCE_ID
        if said.member not in group.members:
            return Code.UNKNOWN_MEMBER_ID
        return Code.NONE if said.generation == group.generation else Code.ILLEGAL_GENERATION

    # --- generations ----------------------------------------------------------------------------------------------

    def _newcomer(self, group: Group, request: JoinGroup) -> Member:
        self._named += 1
        instance = request.membership.instance
        member = Member(
            id=f"{instance or 'member'}-{self._named}", instance=instance, session_seconds=request.session_seconds,
            owned=request.owned, owned_in=request.owned_in,
        )  # fmt: skip
        group.members[member.id] = member
        if instance:
            group.instances[instance] = member.id
        self._heard(member)
        self._watch(group, member)
        return member

    def _come_back(self, group: Group, before: str, request: JoinGroup) -> Member:
        """A name is used again: its former holder is refused from now on, and what it had is there to be asked for."""
        former = group.members.pop(before)
        for respond in (former.joining, former.syncing):
            if respond is not None:
                respond(Answer(Code.FENCED_INSTANCE_ID))
        former.joining = former.syncing = None
        member = self._newcomer(group, request)
        group.shares = {member.id if id_ == before else id_: share for id_, share in group.shares.items()}
        if group.leader == before:
            group.leader = member.id
        return member

    def _rebalance(self, group: Group, seconds: float) -> None:
        if group.phase is Phase.JOINING:
            return
        for member in group.members.values():
            if member.syncing is not None:
                respond, member.syncing = member.syncing, None
                respond(Answer(Code.REBALANCE_IN_PROGRESS))
        group.phase, group.count = Phase.JOINING, group.count + 1
        count = group.count
        self._loop.later(seconds, lambda: self._enough(group, count))

    def _enough(self, group: Group, count: int) -> None:
        """Who has not been heard by now is not waited for. Static members stay until their session ends."""
        if group.count == count and group.phase is Phase.JOINING:
            for member in [m for m in group.members.values() if m.joining is None and not m.instance]:
                self._remove(group, member)
            self._begin(group)

    def _maybe_begin(self, group: Group) -> None:
        if group.phase is Phase.JOINING and all(member.joining for member in group.members.values()):
            self._begin(group)

    def _begin(self, group: Group) -> None:
        there = [member for member in group.members.values() if member.joining is not None]
        group.generation += 1
        group.shares = {}
        if not there:
            group.phase = Phase.EMPTY
            return
        group.phase = Phase.SHARING
        if group.leader not in {member.id for member in there}:
            group.leader = there[0].id
        for member in there:
            respond, member.joining = member.joining, None
            self._heard(member)
            assert respond is not None, "chosen for it"
            respond(self._joined(group, member, leads=member.id == group.leader))

    def _joined(self, group: Group, member: Member, *, leads: bool) -> Answer:
        self._heard(member)
        members = {other.id: (other.owned, other.owned_in) for other in group.members.values()} if leads else None
        membership = Membership(group.name, group.generation, member.id, member.instance)
        return Answer(Code.NONE, Joined(membership, self._partitions(group.topic), members))

    def _share(self, group: Group, shares: Mapping[str, frozenset[int]]) -> None:
        group.phase, group.shares = Phase.STABLE, shares
        for member in group.members.values():
            if member.syncing is not None:
                respond, member.syncing = member.syncing, None
                self._heard(member)
                respond(Answer(Code.NONE, shares.get(member.id, NOTHING)))

    # --- sessions -------------------------------------------------------------------------------------------------

    def _heard(self, member: Member) -> None:
        member.silent_after = self._loop.seconds + member.session_seconds

    def _watch(self, group: Group, member: Member) -> None:
        self._loop.later(member.silent_after - self._loop.seconds, lambda: self._look(group, member))

    def _look(self, group: Group, member: Member) -> None:
        if group.members.get(member.id) is not member:
            return
        if self.asleep or member.joining is not None or member.syncing is not None:
            self._heard(member)
        if member.silent_after > self._loop.seconds:
            self._watch(group, member)
            return
        self._remove(group, member)
        if group.phase is Phase.JOINING:
            self._maybe_begin(group)
        elif group.members:
            self._rebalance(group, member.session_seconds)
            self._maybe_begin(group)
        else:
            group.phase, group.generation = Phase.EMPTY, group.generation + 1

    def _remove(self, group: Group, member: Member) -> None:
        del group.members[member.id]
        if group.instances.get(member.instance) == member.id:
            del group.instances[member.instance]

    # --- positions ------------------------------------------------------------------------------------------------

    def commit(self, request: CommitOffsets) -> Answer:
        """Positions that count once their transaction is committed; who quotes no membership is believed."""
        said = request.membership
        group = self.group(said.group)
        if said.generation >= 0 or said.member or said.instance:
            code = self.check(group, said)
            if code is not Code.NONE:
                return Answer(code)
        elif group.members:
            self.unquoted.append(request.transactional_id)
        group.pending.setdefault(request.producer.number, {}).update(request.positions)
        return DONE

    def mark(self, name: str, producer: int, *, commit: bool) -> None:
        """The marker that ends a transaction in which positions were committed."""
        group = self.group(name)
        pending = group.pending.pop(producer, {})
        if commit:
            group.positions.update(pending)

    def positions(self, name: str, partitions: Sequence[TopicPartition]) -> Answer:
        """Where a group stands, when no transaction is about to change it."""
        group = self.group(name)
        for pending in group.pending.values():
            if not pending.keys().isdisjoint(partitions):
                return Answer(Code.UNSTABLE_OFFSET_COMMIT)
        return Answer(Code.NONE, {place: group.positions[place] for place in partitions if place in group.positions})
