"""How this process speaks to Kafka: settings in, configurations of clients out. Pure.

Correctness rests on many of these values, so they are not the user's to change: what may be added is how to reach the
brokers and how to be let in. Librdkafka's own defaults are made for other uses (commit by timer, skip what is gone,
make topics that are asked for): each one that matters is said here.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from types import MappingProxyType

from runtime.log import LogError
from schemas.topics import PREFIX

Config = dict[str, str | int | float | bool]

# Before 2.15 librdkafka lost messages, offsets or assignments in ways that no setting prevents.
LIBRDKAFKA_MIN = (2, 15, 0)

RECORD_BYTES_MAX = 2 * 1024 * 1024  # a decision part of 512 KiB whose last fact is large; a mebibyte for anyone else
UNSENT_KIBIBYTES_MAX = 64 * 1024  # some batches of 8 MiB; a producer that is further ahead waits
UNREAD_KIBIBYTES_MAX = 8 * 1024  # fetched ahead per reader: as much as one batch may hold
UNREAD_RECORDS_MIN = 10_000  # below it more is fetched ahead
# Three quarters of it are a transaction's, and the client knows none that may last less than a second.
SESSION_MIN, SESSION_MAX = timedelta(seconds=2), timedelta(seconds=60)

# An owner's connection that nobody uses is closed, which ends a call that was given up (`punctual`). An owner that has
# nothing to do commits every 30 s: its connections stay.
IDLE_SECONDS = 40

# A partition that is taken away is given back within the time that its host grants it to end its batch (20 s), thrice.
SILENCE = timedelta(seconds=60)


class SettingsRefused(LogError):
    """A setting cannot be used; the text names it, what is wrong and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaSettings:
    """Which cluster, and how topics are made there.

    `namespace` stands in front of every topic, group and transactional id, so that several Tidewheels share a cluster.
    `properties` are librdkafka's own, for reaching brokers and being let in (`security.protocol`, `sasl.*`, `ssl.*`).
    """

    bootstrap: str
    namespace: str = ""
    replication_factor: int = 3
    min_insync_replicas: int = 2
    session_timeout: timedelta = timedelta(seconds=6)
    plaintext: bool = False  # whether an unencrypted connection to another machine is wanted
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)  # may hold passwords

    def named(self, name: str) -> str:
        """A group or a transactional id as the brokers know it; topics have our name in theirs."""
        return self.namespace + PREFIX + name

    @property
    def session_ms(self) -> int:
        """How long a member may be silent before its partitions are given to others."""
        return self.session_timeout // timedelta(milliseconds=1)

    @property
    def transaction_ms(self) -> int:
        """How long a transaction may be open: the group must not give a partition away while one still can be."""
        return self.session_ms * 3 // 4


def check(settings: KafkaSettings) -> None:
    """`SettingsRefused` names the first setting that cannot be used."""
    for name, value in settings.properties.items():
        reason = _denied(name)
        if reason:
            raise SettingsRefused(f"kafka property {name}: {reason}; remove it")
        if "\0" in value:
            raise SettingsRefused(f"kafka property {name}: its value holds a zero byte")
    if not SESSION_MIN <= settings.session_timeout <= SESSION_MAX:
        raise SettingsRefused(f"session_timeout: {settings.session_timeout} is not between 2 and 60 s")
    if not 1 <= settings.min_insync_replicas <= settings.replication_factor:
        raise SettingsRefused(
            f"min_insync_replicas: {settings.min_insync_replicas} is not between 1 and replication_factor, "
            f"{settings.replication_factor}"
        )
    if settings.namespace and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", settings.namespace):
        raise SettingsRefused("namespace: at most 64 letters, digits and . _ -; the first one a letter or digit")
    if not _is_encrypted(settings) and not settings.plaintext and not _is_here(settings.bootstrap):
        raise SettingsRefused(
            "security.protocol: the connection to another machine is not encrypted; set SSL or SASL_SSL, "
            "or plaintext: true where the network is trusted"
        )


def check_version(version: int, text: str) -> None:
    """LogError for a librdkafka that is too old; `version` as it counts itself (0xMMmmrrpp)."""
    found = (version >> 24 & 0xFF, version >> 16 & 0xFF, version >> 8 & 0xFF)
    if found < LIBRDKAFKA_MIN:
        wanted = ".".join(map(str, LIBRDKAFKA_MIN))
        raise LogError(f"librdkafka {text} is too old: {wanted} is needed; upgrade confluent-kafka to 2.16 or newer")


# ------------------------------------------------------------------------------------------------- configurations


def admin_config(settings: KafkaSettings) -> Config:
    """Asks and creates. It says nothing by itself: what went wrong is in its answers."""
    return _common(settings) | {"log_level": 0}


def owner_config(settings: KafkaSettings, transactional_id: str) -> Config:
    """The one writer of a partition.

    Its log lines and statistics are how a doubtful commit is found out (`doubt`). A transaction that follows at once
    on another finds the broker still writing the markers of the first and asks again: after 5 ms, not after 100.
    """
    return _writing(settings) | {
        "transactional.id": settings.named(transactional_id),
        "transaction.timeout.ms": settings.transaction_ms,
        "message.timeout.ms": settings.transaction_ms,
        "debug": "eos",
        "statistics.interval.ms": 1000,
        "retry.backoff.ms": 5,
        "connections.max.idle.ms": IDLE_SECONDS * 1000,
        "linger.ms": 1,  # What is sent while the positions are on their way goes along; a flush waits for nothing.
    }


def appender_config(settings: KafkaSettings) -> Config:
    """Writes without transactions, each record once and in order.

    Somebody waits for each, and who has many brings them together: none waits for company here.
    """
    return _writing(settings) | {"message.timeout.ms": 30_000, "linger.ms": 0}


def reader_config(settings: KafkaSettings, *, undecided: bool = False) -> Config:
    """Reads what it is assigned from where it is told; no group ever hears of it.

    That a partition has ended is said with the answer after its last record, for which a broker with nothing new waits
    as long as it may. Markers are passed without that word; behind what was aborted it is needed, and by default it
    comes up to half a second late. A shorter wait is a load: each reader that has nothing to read asks so often.
    """
    return _reading(settings, "reader") | {
        "isolation.level": "read_uncommitted" if undecided else "read_committed",
        "fetch.wait.max.ms": 100,
        "enable.partition.eof": True,
        "queued.max.messages.kbytes": UNREAD_KIBIBYTES_MAX,
        "queued.min.messages": UNREAD_RECORDS_MIN,
        "fetch.queue.backoff.ms": 10,
        "fetch.error.backoff.ms": 50,
    }


def member_config(settings: KafkaSettings, group: str, name: str) -> Config:
    """Takes part in a group under a name that survives a restart."""
    return _reading(settings, group) | {
        "group.protocol": "classic",
        "group.instance.id": name,
        "partition.assignment.strategy": "cooperative-sticky",
        "session.timeout.ms": settings.session_ms,
        "heartbeat.interval.ms": settings.session_ms // 4,
        "max.poll.interval.ms": max(SILENCE // timedelta(milliseconds=1), settings.session_ms),
        "queued.min.messages": 1,  # It reads nothing: its partitions are paused.
        "queued.max.messages.kbytes": 64,
    }


def group_config(settings: KafkaSettings, group: str) -> Config:
    """Stands for a group in which nobody takes part."""
    return _reading(settings, group) | {"log_level": 0}


def ends_config(settings: KafkaSettings) -> Config:
    """Asks where partitions end, and reads nothing. An end is behind what is still open, unlike what may be read."""
    return _reading(settings, "reader") | {"isolation.level": "read_uncommitted", "log_level": 0}


def _common(settings: KafkaSettings) -> Config:
    return {
        **settings.properties,
        "bootstrap.servers": settings.bootstrap,
        "client.id": settings.properties.get("client.id", "tidewheel"),
    }


def _writing(settings: KafkaSettings) -> Config:
    return _common(settings) | {
        "acks": "all",
        "enable.idempotence": True,
        "message.max.bytes": RECORD_BYTES_MAX,
        "queue.buffering.max.kbytes": UNSENT_KIBIBYTES_MAX,
    }


def _reading(settings: KafkaSettings, group: str) -> Config:
    return _common(settings) | {
        "group.id": settings.named(group),
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "isolation.level": "read_committed",
        "auto.offset.reset": "error",
        "check.crcs": True,
        "allow.auto.create.topics": False,
    }


# ------------------------------------------------------------------------------------- what users may not set

_OURS = "exactly-once creation of runs rests on it"
_CODE = "it runs or loads what it names"

# A whole name, or with a star the beginning of names. Aliases count too: librdkafka takes the last one it meets.
DENIED: Mapping[str, str] = MappingProxyType({
    "bootstrap.servers": "it has a setting of its own, bootstrap",
    "metadata.broker.list": "it has a setting of its own, bootstrap",
    "group.*": _OURS,
    "transactional.id": _OURS,
    "transaction.timeout.ms": _OURS,
    "acks": _OURS,
    "request.required.acks": _OURS,
    "enable.idempotence": _OURS,
    "enable.gapless.guarantee": _OURS,
    "max.in.flight*": _OURS,
    "retries": _OURS,
    "message.send.max.retries": _OURS,
    "message.timeout.ms": _OURS,
    "delivery.timeout.ms": _OURS,
    "message.max.bytes": _OURS,
    "message.copy.max.bytes": _OURS,
    "queue.buffering.*": _OURS,
    "queuing.strategy": _OURS,
    "partitioner*": _OURS,
    "sticky.partitioning*": _OURS,
    "partition.assignment.strategy": _OURS,
    "session.timeout.ms": _OURS,
    "heartbeat.interval.ms": _OURS,
    "max.poll.interval.ms": _OURS,
    "coordinator.query.interval.ms": _OURS,
    "enable.auto.*": _OURS,
    "auto.commit.*": _OURS,
    "auto.offset.reset": _OURS,
    "offset.store.*": _OURS,
    "isolation.level": _OURS,
    "check.crcs": _OURS,
    "consume.callback.max.messages": _OURS,
    "allow.auto.create.topics": _OURS,
    "topic.blacklist": _OURS,
    "enable.partition.eof": _OURS,
    "queued.*": _OURS,
    "fetch.queue.backoff.ms": _OURS,
    "fetch.wait.max.ms": _OURS,
    "fetch.error.backoff.ms": _OURS,
    "retry.backoff.ms": _OURS,
    "linger.ms": _OURS,
    "connections.max.idle.ms": "a call that was given up ends by it",
    "statistics.interval.ms": "a doubtful commit is found by it",
    "debug": "a doubtful commit is found by it",
    "log*": "a doubtful commit is found by it",
    "api.version.*": "old protocols lose records",
    "broker.version.fallback": "old protocols lose records",
    "default.topic.config": "topics follow the topic table",
    "plugin.library.paths": _CODE,
    "sasl.kerberos.kinit.cmd": _CODE,
    "ssl.engine*": _CODE,
    "ssl.providers": _CODE,
    "sasl.oauthbearer.config": "it reads what it names",
    "sasl.oauthbearer.assertion.*": "it reads what it names",
    "enable.sasl.oauthbearer.unsecure.jwt": "it lets anyone in",
    "enable.ssl.certificate.verification": "it lets anyone pose as the broker",
    "ssl.endpoint.identification.algorithm": "it lets anyone pose as the broker",
    "test.*": "it replaces the brokers",
    "*_cb": "it is code",
    "opaque": "it is code",
})  # fmt: skip


def _denied(name: str) -> str:
    for pattern, reason in DENIED.items():
        begin, star, end = pattern.partition("*")
        if name == pattern or (star and name.startswith(begin) and name.endswith(end)):
            return reason
    return ""


def _is_encrypted(settings: KafkaSettings) -> bool:
    return settings.properties.get("security.protocol", "plaintext").upper() in {"SSL", "SASL_SSL"}


def _is_here(bootstrap: str) -> bool:
    return all(_is_loopback(address.strip()) for address in bootstrap.split(","))


def _is_loopback(address: str) -> bool:
    host = address.rpartition("//")[2].rpartition(":")[0].strip("[]")
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
