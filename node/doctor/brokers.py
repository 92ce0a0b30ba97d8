"""What is known of a cluster → findings. Pure.

What matters most stands first: how a broker is set decides whether a promise of ours can hold at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta

from node.admin.drift import Drift, Weight, shown
from node.doctor.finding import Finding, Verdict, note, ok, wrong
from runtime.logs.kafka.administration import FoundTopic
from runtime.logs.kafka.settings import KafkaSettings
from schemas import durations

CLOCKS_APART_MAX = timedelta(seconds=5)  # beyond it a partition holds: see runtime.clock_guard
FRESH = timedelta(seconds=15)  # idle workers report every 5 s, so a newest record this old says nothing of the clocks
POSITIONS_KEPT = timedelta(days=30)
IDS_KEPT = timedelta(days=24)  # the setting cannot hold more
ABORTED_WITHIN = timedelta(seconds=1)
AHEAD_MAX = timedelta(days=1)  # of a producer's clock: beyond it nobody has looked at it
NAMED_MAX = 5  # topics by name in one line: enough to see which


# --------------------------------------------------------------------------------------------------------- a broker


OF_4_4 = "log.remote.copy.lag.ms"  # a setting that Kafka has had since 4.4; every broker tells all that it has


def generation(config: Mapping[str, str]) -> Finding:
    """Which Kafka a broker is, as far as what can be set there tells: the protocol does not name versions."""
    if "transaction.partition.verification.enable" not in config:
        return wrong(
            "the brokers are older than Kafka 3.6: what a dead owner sent late can end up in a later transaction",
            "upgrade them to 4.0 or newer",
        )
    named = config.get("inter.broker.protocol.version")
    if named is not None:
        return ok(f"the brokers speak Kafka {named}")
    return ok(f"the brokers are Kafka {'4.4' if OF_4_4 in config else '4.0'} or newer")


def broker_settings(config: Mapping[str, str], settings: KafkaSettings) -> Iterator[Finding]:
    """Each setting that is not as it should be; nothing for a broker that does not tell it."""
    for find in (
        _markers, _transactions, _elections, _automatic_topics, _sessions, _transaction_time, _transaction_copies,
        _position_copies, _positions, _ids, _aborts, _timestamps,
    ):  # fmt: skip
        finding = find(config, settings)
        if finding is not None:
            yield finding


def _markers(config: Mapping[str, str], _settings: KafkaSettings) -> Finding | None:
    if OF_4_4 not in config:
        return None
    return note(
        "Kafka 4.4.0 leaves a transaction open for readers that ends while its partition has no leader (KAFKA-20734): "
        "they stand still there",
        "before all brokers stop, stop our nodes and wait longer than session_timeout; see the guide for operators, A "
        "transaction that hangs",
    )


def _transactions(config: Mapping[str, str], _settings: KafkaSettings) -> Finding | None:
    if config.get("transaction.partition.verification.enable", "true") == "true":
        return None
    return wrong(
        "transaction.partition.verification.enable is false: what a dead owner sent late can join a later transaction",
        "set it to true",
    )


def _elections(config: Mapping[str, str], _settings: KafkaSettings) -> Finding | None:
    if config.get("unclean.leader.election.enable", "false") == "false":
        return None
    return note(
        "unclean.leader.election.enable is true: a copy that lags may lead, and forget what was acknowledged",
        "set it to false; our own topics say so themselves, the brokers' topics of positions and transactions do not",
    )


def _automatic_topics(config: Mapping[str, str], _settings: KafkaSettings) -> Finding | None:
    if config.get("auto.create.topics.enable", "false") == "false":
        return None
    return wrong(
        "auto.create.topics.enable is true: whoever mentions a topic makes it, with the wrong partitions and retention",
        "set it to false, and make topics with `tidewheel admin topics create`",
    )


def _sessions(config: Mapping[str, str], settings: KafkaSettings) -> Finding | None:
    shortest = _span(config, "group.min.session.timeout.ms")
    longest = _span(config, "group.max.session.timeout.ms")
    wanted = settings.session_timeout
    if shortest is not None and wanted < shortest:
        return wrong(
            f"session_timeout {durations.render(wanted)} is refused: group.min.session.timeout.ms is "
            f"{durations.render(shortest)}",
            "set session_timeout to that or more, or the broker's limit to less",
        )
    if longest is not None and wanted > longest:
        return wrong(
            f"session_timeout {durations.render(wanted)} is refused: group.max.session.timeout.ms is "
            f"{durations.render(longest)}",
            "set session_timeout to that or less",
        )
    return None


def _transaction_time(config: Mapping[str, str], settings: KafkaSettings) -> Finding | None:
    longest = _span(config, "transaction.max.timeout.ms")
    if longest is None or settings.transaction_ms <= longest // timedelta(milliseconds=1):
        return None
    return wrong(
        f"transactions of {settings.transaction_ms} ms are refused: transaction.max.timeout.ms is "
        f"{durations.render(longest)}",
        "set it to a minute or more",
    )


def _transaction_copies(config: Mapping[str, str], settings: KafkaSettings) -> Finding | None:
    found = config.get("transaction.state.log.min.isr")
    if found is None or int(found) >= settings.min_insync_replicas:
        return None
    return wrong(
        f"transaction.state.log.min.isr is {found}: with one broker a commit can be forgotten",
        f"set it to {settings.min_insync_replicas}",
    )


def _position_copies(config: Mapping[str, str], settings: KafkaSettings) -> Finding | None:
    """Our topics say so themselves, the brokers' topic of positions does not."""
    found = config.get("min.insync.replicas")
    if found is None or int(found) >= settings.min_insync_replicas:
        return None
    return note(
        f"min.insync.replicas is {found}: with one broker positions can be forgotten; ours stand in the log all the "
        "same, those of your own consumers are not",
        f"set it to {settings.min_insync_replicas}",
    )


def _timestamps(config: Mapping[str, str], _settings: KafkaSettings) -> Finding | None:
    name = "log.message.timestamp.after.max.ms"
    ahead = config.get(name)
    if ahead is None or int(ahead) <= AHEAD_MAX // timedelta(milliseconds=1):
        return None
    return note(
        f"{name}: a record of others may say that it is of a time to come, and is then kept until long after that",
        "set it to 3600000 (an hour)",
    )


def _positions(config: Mapping[str, str], _settings: KafkaSettings) -> Finding | None:
    minutes = config.get("offsets.retention.minutes")
    if minutes is None or timedelta(minutes=int(minutes)) >= POSITIONS_KEPT:
        return None
    return note(
        f"offsets.retention.minutes: positions are forgotten after {int(minutes) / 1440:.0f} days of standstill; ours "
        "are found in the log all the same, those of your own consumers are not",
        "set it to 43200 (30 days)",
    )


def _ids(config: Mapping[str, str], _settings: KafkaSettings) -> Finding | None:
    kept = _span(config, "transactional.id.expiration.ms")
    if kept is None or kept >= IDS_KEPT:
        return None
    return note(
        f"transactional.id.expiration.ms: an owner that stood still for {durations.render(kept)} is forgotten, and "
        "one that comes back after that is not fenced off",
        "set it to 2147483647, the most that it can hold",
    )


def _aborts(config: Mapping[str, str], _settings: KafkaSettings) -> Finding | None:
    pause = _span(config, "transaction.abort.timed.out.transaction.cleanup.interval.ms")
    if pause is None or pause <= ABORTED_WITHIN:
        return None
    return note(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms: what a dead process left open holds readers up "
        f"for {durations.render(pause)} after its time",
        "set it to 1000",
    )


def _span(config: Mapping[str, str], name: str) -> timedelta | None:
    value = config.get(name)
    return None if value is None else timedelta(milliseconds=int(value))


# -------------------------------------------------------------------------------------------------- brokers together


def enough_brokers(count: int, settings: KafkaSettings) -> Finding:
    """Whether there are as many as the copies we ask for."""
    if count < settings.replication_factor:
        return wrong(
            f"no topic can be made: replication_factor is {settings.replication_factor}, and there are "
            f"{_number(count, 'broker')}",
            "add brokers, or set replication_factor and min_insync_replicas to less (a cluster of one: 1 and 1)",
        )
    if settings.replication_factor == settings.min_insync_replicas and settings.replication_factor > 1:
        return note(
            f"min_insync_replicas is as large as replication_factor, {settings.replication_factor}: nothing can be "
            "written while one broker is away",
            "set one to 3 and the other to 2",
        )
    if settings.replication_factor == 1:
        return note(
            "there is one copy of each record: its broker's disk is all there is", "three brokers, three copies"
        )
    return ok(
        f"{_number(count, 'broker')}, {settings.replication_factor} copies, {settings.min_insync_replicas} acknowledge"
    )


def brokers_own(topics: Mapping[str, FoundTopic], settings: KafkaSettings) -> Iterator[Finding]:
    """The topics of positions and transactions are as safe as ours."""
    for name, topic in sorted(topics.items()):
        if topic.replicas < settings.replication_factor:
            setting = "offsets.topic" if "offsets" in name else "transaction.state.log"
            yield wrong(
                f"{name} has {_number(topic.replicas, 'copy', 'copies')}, not {settings.replication_factor}: with one "
                "broker the cluster forgets positions or open transactions",
                f"give it more with kafka-reassign-partitions.sh, and set {setting}.replication.factor",
            )


# ----------------------------------------------------------------------------------------------------------- topics


def drifted(drifts: Iterable[Drift], count: int) -> Iterator[Finding]:
    """Topics that are not as the settings say, one finding for each difference that several have."""
    together: dict[tuple[Weight, str, str, str, str, str], list[str]] = {}
    for drift in drifts:
        same = (drift.weight, drift.what, drift.wanted, drift.found, drift.why, drift.by_hand)
        together.setdefault(same, []).append(drift.topic)
    for (weight, what, right, found, why, by_hand), topics in together.items():
        yield Finding(
            verdict=Verdict(weight),
            what=f"{_named(topics)}: {what} is {shown(what, found)}, not {shown(what, right)}: {why}",
            remedy=by_hand or "tidewheel admin topics verify --fix",
        )
    if not together:
        yield ok(f"{_number(count, 'topic')} as the settings say")


def health(topics: Iterable[FoundTopic]) -> Iterator[Finding]:
    """Whether every partition can be read and written just now."""
    found = tuple(topics)
    leaderless = [topic.name for topic in found if topic.leaderless]
    refusing = [topic.name for topic in found if topic.in_sync < int(topic.config.get("min.insync.replicas", "1"))]
    lagging = [topic.name for topic in found if topic.in_sync < topic.replicas and topic.name not in refusing]
    if leaderless:
        yield wrong(
            f"{_named(leaderless)}: nobody leads some partitions, so their keys stand still", "start their brokers"
        )
    if refusing:
        yield wrong(f"{_named(refusing)}: too few copies are up to date, so writes are refused", "start their brokers")
    if lagging:
        yield note(f"{_named(lagging)}: some copies are not up to date", "a broker is away or catching up")


def open_transactions(
    before: Mapping[tuple[str, int], int], after: Mapping[tuple[str, int], int]
) -> Iterator[Finding]:  # fmt: skip
    """Transactions that are open in both looks, with more time between them than one may take: nobody will end them."""
    hanging = [place for place, offset in before.items() if after.get(place) == offset]
    for topic, partition in sorted(hanging):
        yield wrong(
            f"{topic} partition {partition}: a transaction hangs at offset {before[topic, partition]}, and nobody "
            "reads what stands behind it",
            "kafka-transactions.sh find-hanging, then abort: see the guide for operators, A transaction that hangs",
        )


# ------------------------------------------------------------------------------------------------------------ clocks


def clocks(newest: datetime | None, now: datetime) -> Finding:
    """The clock of this machine against the latest instant that a broker stamped on a record."""
    if newest is None:
        return note(
            "no record has been appended yet, so this clock cannot be held against the brokers'", "ask again later"
        )
    ahead = newest - now
    if ahead > CLOCKS_APART_MAX:
        return wrong(
            f"the brokers' clocks are {_seconds(ahead)} ahead of this one: partitions here decide nothing by time",
            "let both follow a time server (chrony, systemd-timesyncd)",
        )
    if -ahead > FRESH:
        return ok(f"this clock is not behind the brokers' (the newest record is {_seconds(-ahead)} old)")
    return ok(f"this clock and the brokers' agree within {_seconds(max(abs(ahead), timedelta(seconds=1)))}")


def _seconds(span: timedelta) -> str:
    return durations.render(timedelta(seconds=round(span.total_seconds())))


def _named(topics: list[str]) -> str:
    if len(topics) <= NAMED_MAX:
        return ", ".join(topics)
    return f"{', '.join(topics[:NAMED_MAX])} and {len(topics) - NAMED_MAX} more"


def _number(count: int, one: str, many: str = "") -> str:
    return f"{count} {one if count == 1 else many or f'{one}s'}"
