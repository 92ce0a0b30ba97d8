"""Whether the log is still the one that a partition left, and what follows when it is not.

What can be made again is made again, and said. Where going on would lose state or input behind everybody's back, the
partition halts, and a person decides.

    what is found                                                what follows
    -----------------------------------------------------------  -------------------------------------------------------
    a store that is damaged, or another cluster's, role's,       set aside, built anew from the changelog (`restore`)
      partition's or format's
    a store ahead of its changelog, in which a footer stands:    the same: the state of that footer is whole, and what
      the log's end was lost with committed transactions           it has not read yet is read again and decided anew,
                                                                   with the same ids
    a store that does not fit to its changelog: another          the same
      transaction ends at its position, or none, or not the
      next one stands behind it
    a store of either kind, and a changelog without a footer     halt: the store is all that is left of the state
    a changelog that nobody can read, or that goes back          halt: nobody can tell what the state is
    a changelog without a footer, while the group has positions  halt: there was a state, and it is gone
    a changelog that was deleted and created again               halt: the state belongs to the former one
    an input that was deleted and created again                  halt *: the position belongs to the former one
    a position, also the group's, beyond an input's end          halt *: input that was answered is lost; what comes
                                                                   next would be taken for it and passed over
    a position before what an input still has                    halt *: input was deleted that nobody has read
    a topic with another number of partitions than the layout's  halt: each key would move to another partition
    no positions in the group, or others behind the footer's     nothing: the footer's are the ones
    positions in the group ahead of the footer's                 a warning: the changelog has lost its end, or the last
                                                                   transaction was torn; the footer's are the ones

A halt with a star ends when an operator accepts that very loss (`tidewheel admin accept-gap`, `schemas.operations`):
the partition goes on where they say, and states it as a fact. References are none of them: a partition remembers up to
where it has adopted the catalog, and would pass over what stands there now.

An id that a footer does not have (one of an older version) is not compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from runtime import footer as framing
from runtime.footer import InputPosition
from runtime.log import UnknownTopic
from runtime.operations import Operations
from runtime.record import TopicPartition
from runtime.telemetry import Event
from schemas import topics
from schemas.facts import GapAccepted, GapReason

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from runtime.log import Log
    from runtime.partition import Partition
    from runtime.restore import Restored
    from runtime.strands import Further
    from runtime.telemetry import Telemetry
    from schemas.operations import GapAccept
    from schemas.topics import Layout


class Halted(Exception):
    """The partition must not go on by itself: the text says what happened, and what a person can do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bearings:
    """From where on a partition reads its inputs, and which incarnations of its topics that is true of.

    `further` are the strands that were answered beyond the positions. `accepted` are the losses that operators have
    accepted: still to be stated.
    """

    positions: Mapping[TopicPartition, int]
    further: Mapping[TopicPartition, Further]
    incarnations: Mapping[str, str]
    accepted: tuple[GapAccepted, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """An input that does not have any more what a partition would read next, or had answered.

    It had read up to `read_up_to` in the incarnation `left_id`, and answered all before `position`; now there is
    [`begin`, `end`) of `topic_id`.
    """

    place: TopicPartition
    reason: GapReason
    position: int
    read_up_to: int
    left_id: str
    begin: int
    end: int
    topic_id: str

    def lost(self, go_on_at: int) -> tuple[int, int | None]:
        """From where to where nothing will be read when the partition goes on there; None: nobody knows how much."""
        match self.reason:
            case GapReason.DELETED:
                return self.read_up_to, go_on_at
            case GapReason.TRUNCATED:
                return go_on_at, self.read_up_to
            case GapReason.RECREATED:
                return self.read_up_to, None

    @property
    def told(self) -> str:
        """What happened."""
        name = f"{self.place.topic} partition {self.place.partition}"
        match self.reason:
            case GapReason.DELETED:
                return (
                    f"{name} begins at {self.begin}, and was read up to {self.read_up_to} only: "
                    f"{self.begin - self.read_up_to} records were deleted before they were read"
                )
            case GapReason.TRUNCATED:
                return (
                    f"{name} ends at {self.end}, and was read up to {self.read_up_to}: "
                    f"{self.read_up_to - self.end} records that were answered are lost"
                )
            case GapReason.RECREATED:
                return (
                    f"topic {self.place.topic} was deleted and created again: position {self.read_up_to} of partition "
                    f"{self.place.partition} belongs to the former one, and what it held is gone"
                )


def find(log: Log, partition: Partition, restored: Restored, place: str, telemetry: Telemetry) -> Bearings:
    """Where a restored partition goes on; `Halted` when it must not. `place` is where its store is."""
    incarnations = incarnations_of(log, partition)
    committed = committed_of(log, partition)
    check_changelog(partition, restored, incarnations, committed, place)
    left = left_at(restored)
    known = framing.positions_of(left)
    inputs = partition.inputs.of(partition.number)
    positions = {item: known[item] if item in known else log.begin_offset(item) for item in inputs}
    found = losses(log, partition, left, incarnations, committed)
    accepted = _accepted(log, partition, found, telemetry)
    goes_on = {TopicPartition(gap.topic, gap.topic_partition): gap.goes_on_at for gap in accepted}
    _compare(partition, {item: at for item, at in committed.items() if item not in goes_on}, positions, telemetry)
    further = {item: strands for item, strands in framing.further_of(left).items() if item not in _lost(accepted)}
    return Bearings(positions=positions | goes_on, further=further, incarnations=incarnations, accepted=accepted)


def _lost(accepted: Iterable[GapAccepted]) -> set[TopicPartition]:
    """Inputs in which other records may stand where some were answered; what is read twice there is known by its id."""
    return {TopicPartition(gap.topic, gap.topic_partition) for gap in accepted if gap.reason is not GapReason.DELETED}


def left_at(restored: Restored) -> tuple[InputPosition, ...]:
    """Up to where its inputs had been read by what is known to have been decided."""
    if restored.torn:
        return restored.torn[-1].positions
    return () if restored.footer is None else restored.footer.positions


def committed_of(log: Log, partition: Partition) -> Mapping[TopicPartition, int]:
    """The group's positions in the partition's own inputs; those in references are of no use: all partitions commit."""
    own = [item for item in partition.inputs.of(partition.number) if item.topic not in partition.inputs.references]
    return log.committed(partition.role, own)


def check_changelog(
    partition: Partition, restored: Restored, incarnations: Mapping[str, str],
    committed: Mapping[TopicPartition, int], place: str,
) -> None:  # fmt: skip
    """`Halted` when the state is gone from the log; `committed` are the group's positions."""
    id_ = "" if restored.footer is None else restored.footer.changelog_id
    if id_ and id_ != incarnations[partition.changelog.topic]:
        raise recreated(partition, place)
    if not left_at(restored) and any(committed.values()):
        raise lost(partition, f"group {partition.role} has positions: {_told(committed)}", place)


def losses(
    log: Log, partition: Partition, left: Iterable[InputPosition], incarnations: Mapping[str, str],
    committed: Mapping[TopicPartition, int],
) -> tuple[Loss, ...]:  # fmt: skip
    """What the inputs do not have any more, by these positions and those of the group."""
    known = {TopicPartition(item.topic, item.partition): item for item in left}
    inputs = partition.inputs.of(partition.number)
    ends = log.end_offsets(inputs)
    found = (
        _loss(item, known.get(item), committed.get(item, 0), (log.begin_offset(item), ends[item]), incarnations)
        for item in inputs
    )
    return tuple(loss for loss in found if loss is not None)


def halted(partition: Partition, loss: Loss) -> Halted:
    """Why a partition must not go on over a loss, and what can be done."""
    return Halted(f"{loss.told}; {_remedy(partition, loss)}")


def is_acceptable(partition: Partition, loss: Loss) -> bool:
    """Whether a person may accept it."""
    return loss.place.topic not in partition.inputs.references


def incarnations_of(log: Log, partition: Partition) -> dict[str, str]:
    """The ids of the topics whose places a partition remembers."""
    names = [partition.changelog.topic, *(item.topic for item in partition.inputs.of(partition.number))]
    return {name: log.topic_id(name) for name in names}


def listed(
    positions: Mapping[TopicPartition, int], further: Mapping[TopicPartition, Further], incarnations: Mapping[str, str]
) -> tuple[InputPosition, ...]:
    """Positions as they are written down, with the strands that are beyond them."""
    return tuple(
        InputPosition(
            topic=item.topic, partition=item.partition, offset=offset, topic_id=incarnations[item.topic],
            strands=_by_name(further[item]) if item in further else {},
        )
        for item, offset in positions.items()
    )  # fmt: skip


def _by_name(further: Further) -> dict[str, int]:
    return {str(strand): beyond for strand, beyond in sorted(further.items())}


def check_topics(log: Log, incarnations: Mapping[str, str], counts: Mapping[str, int]) -> None:
    """`Halted` when one of the topics was created again, or given partitions, under a running partition."""
    for name, id_ in incarnations.items():
        if log.topic_id(name) != id_:
            raise Halted(f"topic {name} was deleted and created again while it was in use")
        if name in counts:
            check_count(name, log.partitions(name), counts[name])


def check_inputs(
    log: Log, partition: Partition, positions: Mapping[TopicPartition, int], incarnations: Mapping[str, str]
) -> None:
    """`Halted` when a position is outside of what the log has: records were lost."""
    for loss in losses(log, partition, listed(positions, {}, incarnations), incarnations, {}):
        raise halted(partition, loss)


def counts_of(log: Log, layout: Layout) -> dict[str, int]:
    """How many partitions the topics have that exist; `Halted` when the layout says otherwise."""
    found = {}
    for spec in topics.topic_table(topics.Retention()):
        try:
            found[spec.name] = log.partitions(spec.name)
        except UnknownTopic:
            continue  # Whoever reads it will say so; what is written to it has nowhere to go.
        check_count(spec.name, found[spec.name], layout.partitions(spec.family))
    return found


def check_count(topic: str, found: int, wanted: int) -> None:
    """`Halted` when a topic has another number of partitions than it was made with."""
    if found != wanted:
        raise Halted(
            f"topic {topic} has {found} partitions, and the layout of this node says {wanted}: each key would move to "
            "another partition. A topic cannot lose partitions again: what was written since belongs into a new one"
        )


def recreated(partition: Partition, place: str) -> Halted:
    """Why a partition must not go on over a changelog that is another one than its state was logged in."""
    return Halted(
        f"topic {partition.changelog.topic} was deleted and created again: the state of {partition.role} partition "
        f"{partition.number} was logged in the former one, and is gone from the log. {_to_begin_anew(partition, place)}"
    )


def lost(partition: Partition, what: str, place: str) -> Halted:
    """Why a partition must not begin anew over a changelog in which no footer stands."""
    return Halted(
        f"{what}, and no transaction stands in {partition.changelog.topic} partition {partition.number}: the state is "
        f"lost from the log. {_to_begin_anew(partition, place)}"
    )


def impossible(partition: Partition, what: str, place: str) -> Halted:
    """Why a partition must not be built from a changelog that cannot be followed."""
    return Halted(
        f"{partition.changelog.topic} partition {partition.number} cannot be followed: {what}. Restore the topic from "
        f"a backup of the brokers' disks. {_to_begin_anew(partition, place)}"
    )


def _to_begin_anew(partition: Partition, place: str) -> str:
    return (
        f"What its store held may still be in {place}. To begin anew without it (schedules that are not published "
        f"again are lost): stop the node, move that folder away, and delete the offsets of group {partition.role}"
    )


def _loss(
    item: TopicPartition, left: InputPosition | None, committed: int, held: tuple[int, int],
    incarnations: Mapping[str, str],
) -> Loss | None:  # fmt: skip
    """What one input does not have any more; `held` is from where to where there is something."""
    (begin, end), topic_id = held, incarnations[item.topic]
    position, left_id = (begin, topic_id) if left is None else (left.offset, left.topic_id or topic_id)
    read_up_to = max(position, committed, *(() if left is None else left.strands.values()))
    if left_id != topic_id:
        reason, read_up_to = GapReason.RECREATED, position
    elif read_up_to > end:
        reason = GapReason.TRUNCATED
    elif position < begin:
        reason, read_up_to = GapReason.DELETED, position
    else:
        return None
    return Loss(
        place=item, reason=reason, position=position, read_up_to=read_up_to, left_id=left_id, begin=begin, end=end,
        topic_id=topic_id,
    )  # fmt: skip


def _accepted(log: Log, partition: Partition, found: Iterable[Loss], telemetry: Telemetry) -> tuple[GapAccepted, ...]:
    """The facts of losses that operators have accepted; `Halted` for the first that none has."""
    said, accepted = Operations(log, partition, telemetry), list[GapAccepted]()
    for loss in found:
        word = said.gap(loss.place) if is_acceptable(partition, loss) else None
        if word is None or not _covers(word, loss):
            raise halted(partition, loss)
        accepted.append(_gap(partition, loss, word))
        telemetry.warning(
            Event.GAP_ACCEPTED, reason=loss.told, goes_on_at=word.go_on_at, accepted_by=word.by, role=partition.role,
            partition=str(partition.number),
        )  # fmt: skip
    return tuple(accepted)


def _covers(word: GapAccept, loss: Loss) -> bool:
    """Whether it is this loss that was accepted, and there is something to go on with."""
    same = (word.read_up_to, word.left_id, word.topic_id) == (loss.read_up_to, loss.left_id, loss.topic_id)
    return same and loss.begin <= word.go_on_at <= loss.end


def _gap(partition: Partition, loss: Loss, word: GapAccept) -> GapAccepted:
    lost_from, lost_to = loss.lost(word.go_on_at)
    return GapAccepted(
        role=partition.role, partition=partition.number, topic=loss.place.topic, topic_partition=loss.place.partition,
        reason=loss.reason, read_up_to=loss.read_up_to, goes_on_at=word.go_on_at, lost_from=lost_from,
        lost_to=lost_to, accepted_by=word.by, note=word.note,
    )  # fmt: skip


def _remedy(partition: Partition, loss: Loss) -> str:
    if is_acceptable(partition, loss):
        who = f"--role {partition.role} --partition {partition.number}"
        return f"`tidewheel admin accept-gap {who}` says what goes with it, and accepts it"
    return (
        f"this loss cannot be accepted, as the state remembers up to where it has adopted {loss.place.topic}: restore "
        "the topic from a backup of the brokers' disks"
    )


def _compare(
    partition: Partition, committed: Mapping[TopicPartition, int], positions: Mapping[TopicPartition, int],
    telemetry: Telemetry,
) -> None:  # fmt: skip
    """Say when the group knows more than the changelog."""
    ahead = {item: offset for item, offset in committed.items() if offset > positions[item]}
    if ahead:
        telemetry.warning(
            Event.POSITIONS_DIFFER, group=_told(ahead), footer=_told({item: positions[item] for item in ahead}),
            role=partition.role, partition=str(partition.number),
        )  # fmt: skip


def _told(positions: Mapping[TopicPartition, int]) -> str:
    items: Iterable[tuple[TopicPartition, int]] = sorted(positions.items())
    return ", ".join(f"{item.topic}-{item.partition} at {offset}" for item, offset in items)
