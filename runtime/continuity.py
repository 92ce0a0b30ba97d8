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
    a store ahead of its changelog, in which no footer stands    halt: the store is all that is left of the state
    a changelog without a footer, while the group has positions  halt: there was a state, and it is gone
    a topic that was deleted and created again                   halt: positions and state belong to the former one
    a position, also the group's, beyond an input's end          halt: input that was answered is lost; what comes next
                                                                   would be taken for it and passed over
    a position before what an input still has                    halt: input was deleted that nobody has read
    a topic with another number of partitions than the layout's  halt: each key would move to another partition
    no positions in the group, or others behind the footer's     nothing: the footer's are the ones
    positions in the group ahead of the footer's                 a warning: the changelog has lost its end, or the last
                                                                   transaction was torn; the footer's are the ones

An id that a footer does not have (one of an older version) is not compared.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from runtime import footer as framing
from runtime.footer import InputPosition
from runtime.log import UnknownTopic
from runtime.telemetry import Event
from schemas import topics

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from runtime.log import Log
    from runtime.partition import Partition
    from runtime.record import TopicPartition
    from runtime.restore import Restored
    from runtime.telemetry import Telemetry
    from schemas.topics import Layout

NO_COMMAND = "there is no command yet that accepts this loss"


class Halted(Exception):
    """The partition must not go on by itself: the text says what happened, and what a person can do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bearings:
    """From where on a partition reads its inputs, and which incarnations of its topics that is true of."""

    positions: Mapping[TopicPartition, int]
    incarnations: Mapping[str, str]


def find(log: Log, partition: Partition, restored: Restored, place: str, telemetry: Telemetry) -> Bearings:
    """Where a restored partition goes on; `Halted` when it must not. `place` is where its store is."""
    inputs = partition.inputs.of(partition.number)
    incarnations = incarnations_of(log, partition)
    left: tuple[InputPosition, ...] = ()
    if restored.footer is not None:
        left = restored.footer.positions
        _check_changelog(partition, restored.footer.changelog_id, incarnations, place)
    if restored.torn is not None:
        left = restored.torn.head.positions
    for item in left:
        if item.topic_id and item.topic_id != incarnations.get(item.topic, item.topic_id):
            raise Halted(
                f"topic {item.topic} was deleted and created again: position {item.offset} of partition "
                f"{item.partition} belongs to the former one, and what it held is gone; {NO_COMMAND}"
            )
    known = framing.positions_of(left)
    positions = {item: known[item] if item in known else log.begin_offset(item) for item in inputs}
    _check_group(log, partition, positions, place, telemetry, anew=not left)
    check_positions(log, positions)
    return Bearings(positions=positions, incarnations=incarnations)


def incarnations_of(log: Log, partition: Partition) -> dict[str, str]:
    """The ids of the topics whose places a partition remembers."""
    names = [partition.changelog.topic, *(item.topic for item in partition.inputs.of(partition.number))]
    return {name: log.topic_id(name) for name in names}


def listed(positions: Mapping[TopicPartition, int], incarnations: Mapping[str, str]) -> tuple[InputPosition, ...]:
    """Positions as they are written down."""
    return tuple(
        InputPosition(topic=item.topic, partition=item.partition, offset=offset, topic_id=incarnations[item.topic])
        for item, offset in positions.items()
    )


def check_topics(log: Log, incarnations: Mapping[str, str], counts: Mapping[str, int]) -> None:
    """`Halted` when one of the topics was created again, or given partitions, under a running partition."""
    for name, id_ in incarnations.items():
        if log.topic_id(name) != id_:
            raise Halted(f"topic {name} was deleted and created again while it was in use")
        if name in counts:
            check_count(name, log.partitions(name), counts[name])


def check_positions(log: Log, positions: Mapping[TopicPartition, int]) -> None:
    """`Halted` when a position is outside of what the log has: records were lost."""
    ends = log.end_offsets(positions)
    for item, position in positions.items():
        name, begin, end = f"{item.topic} partition {item.partition}", log.begin_offset(item), ends[item]
        if position > end:
            raise Halted(
                f"{name} ends at {end}, and was read up to {position}: {position - end} records that were answered "
                f"are lost; {NO_COMMAND}"
            )
        if position < begin:
            raise Halted(
                f"{name} begins at {begin}, and was read up to {position} only: {begin - position} records were "
                f"deleted before they were read; {NO_COMMAND}"
            )


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


def _to_begin_anew(partition: Partition, place: str) -> str:
    return (
        f"What its store held may still be in {place}. To begin anew without it (schedules that are not published "
        f"again are lost): stop the node, move that folder away, and delete the offsets of group {partition.role}"
    )


def _check_changelog(partition: Partition, changelog_id: str, incarnations: Mapping[str, str], place: str) -> None:
    if changelog_id and changelog_id != incarnations[partition.changelog.topic]:
        raise recreated(partition, place)


def _check_group(
    log: Log, partition: Partition, positions: Mapping[TopicPartition, int], place: str, telemetry: Telemetry, *,
    anew: bool,
) -> None:  # fmt: skip
    """Hold what the group says against where we are. References are left out: all partitions commit them."""
    own = [item for item in positions if item.topic not in partition.inputs.references]
    committed = log.committed(partition.role, own)
    if anew and any(committed.values()):
        raise lost(partition, f"group {partition.role} has positions: {_told(committed)}", place)
    check_positions(log, {item: max(positions[item], offset) for item, offset in committed.items()})
    ahead = {item: offset for item, offset in committed.items() if offset > positions[item]}
    if ahead:
        telemetry.warning(
            Event.POSITIONS_DIFFER, group=_told(ahead), footer=_told({item: positions[item] for item in ahead}),
            role=partition.role, partition=str(partition.number),
        )  # fmt: skip


def _told(positions: Mapping[TopicPartition, int]) -> str:
    items: Iterable[tuple[TopicPartition, int]] = sorted(positions.items())
    return ", ".join(f"{item.topic}-{item.partition} at {offset}" for item, offset in items)
