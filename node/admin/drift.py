"""Topics as they are against topics as they should be: what differs, why it matters, what can be set right. Pure.

Only differences that do harm are drift: a topic with more copies, larger records or stricter acknowledgement than asked
for is left in peace. What may be set right is what deletes nothing and stops no writer; the rest says what to do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import timedelta
from enum import StrEnum
from math import inf

from node.admin.wanted import WantedTopic
from runtime.logs.kafka.administration import FoundTopic
from schemas import durations
from schemas.frozen import frozen

ABSENT = "absent"


class Weight(StrEnum):
    """How bad a difference is."""

    WRONG = "wrong"  # records can be lost, doubled or refused
    NOTE = "note"  # it costs disk or time


@frozen
class Drift:
    """One difference. `by_hand` says why it is not set right here and who can; empty: it can be altered safely."""

    topic: str
    what: str
    wanted: str
    found: str
    why: str
    weight: Weight
    by_hand: str = ""


@frozen
class Rule:
    """A setting of topics: when it is off, and what that does."""

    setting: str
    is_off: Callable[[str, str], bool]  # wanted, found
    weight: Weight
    why: str


def compare(wanted: Iterable[WantedTopic], found: Mapping[str, FoundTopic]) -> tuple[Drift, ...]:
    """Every difference that matters, in the order of what is wanted. Topics that nobody wants are not looked at."""
    return tuple(
        drift
        for topic in wanted
        for drift in (_differences(topic, found[topic.name]) if topic.name in found else [_absent(topic)])
    )


def alterations(drifts: Iterable[Drift]) -> dict[str, dict[str, str]]:
    """What to set, by topic: the differences that need no hand."""
    changes: dict[str, dict[str, str]] = {}
    for drift in drifts:
        if not drift.by_hand:
            changes.setdefault(drift.topic, {})[drift.what] = drift.wanted
    return changes


def shown(setting: str, value: str) -> str:
    """A value as people read it: spans as durations, and no end as what it means."""
    if setting in {"retention.ms", "retention.bytes"} and value == "-1":
        return "no limit"
    if setting.endswith(".ms") and value.isdecimal() and int(value) < durations.LONGEST // timedelta(milliseconds=1):
        return durations.render(timedelta(milliseconds=int(value)))
    return value


# --------------------------------------------------------------------------------------------------------- settings


def _differs(wanted: str, found: str) -> bool:
    return wanted != found


def _below(wanted: str, found: str) -> bool:
    return _size(found) < _size(wanted)


def _above(wanted: str, found: str) -> bool:
    return _size(found) > _size(wanted)


def _size(value: str) -> float:
    """A number; below 0 means that there is no limit."""
    number = float(value)
    return number if number >= 0 else inf


RULES = (
    Rule(
        setting="cleanup.policy", is_off=_differs, weight=Weight.WRONG,
        why="states lose rows when a compacted topic deletes, and stories lose events when one of events compacts",
    ),
    Rule(
        setting="message.timestamp.type", is_off=_differs, weight=Weight.WRONG,
        why="a command takes effect at its append time, and clocks are held against it: a producer's own time may lie",
    ),
    Rule(
        setting="retention.ms", is_off=_below, weight=Weight.WRONG,
        why="records go before their time: input that is not read yet, history that the audit counts on",
    ),
    Rule(
        setting="retention.ms", is_off=_above, weight=Weight.NOTE,
        why="records stay longer than was promised to those whom they are about",
    ),
    Rule(
        setting="retention.bytes", is_off=_below, weight=Weight.WRONG,
        why="a busy partition deletes by size, before the time that the settings promise",
    ),
    Rule(
        setting="max.message.bytes", is_off=_below, weight=Weight.WRONG,
        why="the largest part of a decision is refused, and its partition stands still",
    ),
    Rule(
        setting="min.insync.replicas", is_off=_below, weight=Weight.WRONG,
        why="what was acknowledged can be lost with one broker",
    ),
    Rule(
        setting="unclean.leader.election.enable", is_off=_differs, weight=Weight.WRONG,
        why="a copy that lags may lead, and forget what was acknowledged",
    ),
    Rule(
        setting="min.compaction.lag.ms", is_off=_below, weight=Weight.WRONG,
        why="an owner that comes back builds its store anew, and a new read model lacks what was deleted lately",
    ),
    Rule(
        setting="delete.retention.ms", is_off=_below, weight=Weight.WRONG,
        why="a store that was away for less than a day misses deletions, and keeps rows that are gone",
    ),
    Rule(
        setting="min.cleanable.dirty.ratio", is_off=_above, weight=Weight.NOTE,
        why="compaction comes late, and a restore reads more",
    ),
    Rule(
        setting="segment.ms", is_off=_above, weight=Weight.NOTE,
        why="only closed segments are trimmed and compacted: old records stay longer",
    ),
    Rule(
        setting="segment.bytes", is_off=_above, weight=Weight.NOTE,
        why="only closed segments are compacted: a restore reads more",
    ),
)  # fmt: skip


def _differences(wanted: WantedTopic, found: FoundTopic) -> Iterator[Drift]:
    yield from _shape(wanted, found)
    for rule in RULES:
        if rule.setting in wanted.config:
            yield from _setting(rule, wanted, found)


def _setting(rule: Rule, wanted: WantedTopic, found: FoundTopic) -> Iterator[Drift]:
    value = found.config.get(rule.setting)
    right = wanted.config[rule.setting]
    if value is not None and rule.is_off(right, value):
        yield Drift(
            topic=wanted.name, what=rule.setting, wanted=right, found=value, why=rule.why, weight=rule.weight,
            by_hand=_by_hand(rule.setting, right, value, found),
        )  # fmt: skip


def _by_hand(setting: str, wanted: str, value: str, found: FoundTopic) -> str:
    """Why a setting is not altered here: because it would delete records, or stop writers."""
    if setting == "retention.ms" and _above(wanted, value):
        return f"it would delete records at once; if that is meant: {_command(found.wire, setting, wanted)}"
    if setting == "cleanup.policy" and "delete" in wanted and "delete" not in value:
        return f"it would delete records at once; if that is meant: {_command(found.wire, setting, wanted)}"
    if setting == "min.insync.replicas" and int(wanted) > found.replicas:
        return f"every write would be refused, with {found.replicas} of so many copies; give the topic more first"
    return ""


def _command(topic: str, setting: str, value: str) -> str:
    return f"kafka-configs.sh --alter --entity-type topics --entity-name {topic} --add-config {setting}={value}"


# ------------------------------------------------------------------------------------------------------------ shape


def _shape(wanted: WantedTopic, found: FoundTopic) -> Iterator[Drift]:
    if found.partitions != wanted.partitions:
        yield Drift(
            topic=wanted.name, what="partitions", wanted=str(wanted.partitions), found=str(found.partitions),
            why="the count decides where a key lives: with another one commands reach owners that do not know their "
            "schedule, and reports owners that do not know their run",
            weight=Weight.WRONG,
            by_hand="partitions are never added or taken away: a larger count means new topics, to which the owners of "
            "the old ones hand on what they have, and this version cannot do that. If the topics are right, set "
            "`partitions` to their count; if the settings are, begin with a `namespace` of its own",
        )  # fmt: skip
    if found.replicas < wanted.replicas:
        yield Drift(
            topic=wanted.name, what="replicas", wanted=str(wanted.replicas), found=str(found.replicas),
            why="fewer brokers may be lost than the settings promise",
            weight=Weight.WRONG,
            by_hand="copies are given by the cluster's own tool: kafka-reassign-partitions.sh; or set "
            f"`replication_factor` to {found.replicas} if so few are meant",
        )  # fmt: skip


def _absent(wanted: WantedTopic) -> Drift:
    return Drift(
        topic=wanted.name, what="topic", wanted="there", found=ABSENT, weight=Weight.WRONG,
        why="whoever reads or writes it waits or fails",
        by_hand="tidewheel admin topics create",
    )  # fmt: skip
