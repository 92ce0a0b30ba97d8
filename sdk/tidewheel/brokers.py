"""Where a worker finds Kafka, and how it is let in: settings in, configurations of clients out. Pure.

Where nothing is said the environment is asked, by the names that a server has too: TIDEWHEEL_BOOTSTRAP,
TIDEWHEEL_NAMESPACE, TIDEWHEEL_PLAINTEXT and TIDEWHEEL_KAFKA, a JSON object of properties.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address

from tidewheel.logs.settings import is_secret_property

Config = dict[str, str | int | bool]

SOCKET_MS = 10_000  # A broker that is silent for so long is asked on another connection.
DELIVERY_MS = 5_000  # for one report; then a newer one is made, so that old ones do not pile up
RECONNECT_MS_MAX = 5_000  # A broker that comes back is found within one idle period.
UNREAD_KIBIBYTES_MAX = 8 * 1024  # of an inbox, read ahead: many times what all its workers have open

# How to reach brokers and to be let in. Everything else is ours to set, as correctness rests on it.
_ALLOWED = ("security.protocol", "sasl.", "ssl.", "client.", "socket.", "broker.address.")
_REFUSED = {"ssl.endpoint.identification.algorithm": "it lets anyone pose as a broker"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Kafka:
    """A cluster of brokers, as `host:port` by commas.

    `namespace` stands in front of the names of topics where several Tidewheels share a cluster; the server's setting
    of that name. `properties` are librdkafka's own, for being let in: `security.protocol`, `sasl.*`, `ssl.*`.
    `plaintext` says that an unencrypted connection to another machine is wanted.
    """

    bootstrap: str
    namespace: str = ""
    properties: Mapping[str, str] = field(default_factory=dict, repr=False)  # They may hold passwords.
    plaintext: bool = False

    def __post_init__(self) -> None:
        if not self.bootstrap:
            raise ValueError("kafka: name at least one broker, host:port")
        if not re.fullmatch(r"(?:[A-Za-z0-9][A-Za-z0-9._-]{0,63})?", self.namespace):
            raise ValueError("namespace: at most 64 letters, digits and . _ -; the first one a letter or digit")
        for name in self.properties:
            if name in _REFUSED:
                raise ValueError(f"kafka property {name}: {_REFUSED[name]}; remove it")
            if not name.startswith(_ALLOWED):
                raise ValueError(f"kafka property {name}: only {', '.join(_ALLOWED)} can be set")
        if not (self.plaintext or self._is_encrypted or self._is_here):
            raise ValueError(
                "kafka: the connection to another machine is not encrypted; set the property security.protocol to "
                "SSL or SASL_SSL (TIDEWHEEL_KAFKA), or plaintext where the network is trusted (TIDEWHEEL_PLAINTEXT)"
            )

    @classmethod
    def of_environment(cls, environment: Mapping[str, str], bootstrap: str = "", namespace: str = "") -> Kafka | None:
        """The cluster that the environment names, or this one with what the environment says besides; None for none."""
        bootstrap = bootstrap or environment.get("TIDEWHEEL_BOOTSTRAP", "")
        if not bootstrap:
            return None
        return cls(
            bootstrap=bootstrap,
            namespace=namespace or environment.get("TIDEWHEEL_NAMESPACE", ""),
            properties=_properties(environment.get("TIDEWHEEL_KAFKA", "")),
            plaintext=environment.get("TIDEWHEEL_PLAINTEXT", "").lower() in {"1", "true", "yes", "on"},
        )

    def secrets(self) -> list[str]:
        """Values of properties that let one in."""
        return [value for name, value in self.properties.items() if is_secret_property(name)]

    @property
    def _is_encrypted(self) -> bool:
        return self.properties.get("security.protocol", "").upper() in {"SSL", "SASL_SSL"}

    @property
    def _is_here(self) -> bool:
        return all(_is_loopback(address.strip()) for address in self.bootstrap.split(","))


def producer_config(kafka: Kafka) -> Config:
    """Writes reports: each once and in order, and never in a transaction, which could hold up a whole partition."""
    return _common(kafka) | {
        "acks": "all",
        "enable.idempotence": True,
        "linger.ms": 0,  # Reports gather what there is to say by themselves.
        "message.timeout.ms": DELIVERY_MS,
        "request.timeout.ms": DELIVERY_MS,
    }


def consumer_config(kafka: Kafka) -> Config:
    """Reads one partition from where it is told. No group ever hears of it, and nothing is skipped in silence."""
    return _common(kafka) | {
        "group.id": kafka.namespace + "tidewheel-worker",
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "isolation.level": "read_committed",
        "auto.offset.reset": "error",
        "check.crcs": True,
        "allow.auto.create.topics": False,
        "enable.partition.eof": True,
        "queued.max.messages.kbytes": UNREAD_KIBIBYTES_MAX,
        "fetch.error.backoff.ms": 100,
    }


def _common(kafka: Kafka) -> Config:
    return {
        "client.id": "tidewheel-worker",
        "socket.timeout.ms": SOCKET_MS,
        **kafka.properties,
        "bootstrap.servers": kafka.bootstrap,
        "reconnect.backoff.max.ms": RECONNECT_MS_MAX,
    }


def _properties(text: str) -> dict[str, str]:
    try:
        properties = json.loads(text or "{}")
    except ValueError:
        properties = None
    if not isinstance(properties, dict) or not all(isinstance(value, str) for value in properties.values()):
        raise ValueError('TIDEWHEEL_KAFKA: a JSON object of texts, {"security.protocol": "SSL"}')  # quotes no secret
    return properties


def _is_loopback(address: str) -> bool:
    host = address.rpartition(":")[0].strip("[]")
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
