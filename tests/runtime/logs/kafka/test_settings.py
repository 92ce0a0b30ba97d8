"""How clients are configured, and what a user may not change of it."""

from dataclasses import replace
from datetime import timedelta

import pytest

from runtime.log import LogError
from runtime.logs.kafka.settings import (
    DENIED,
    KafkaSettings,
    SettingsRefused,
    admin_config,
    appender_config,
    check,
    check_version,
    ends_config,
    group_config,
    member_config,
    owner_config,
    reader_config,
)

HERE = KafkaSettings(bootstrap="127.0.0.1:9092")
AWAY = KafkaSettings(
    bootstrap="kafka-1.example:9093,kafka-2.example:9093", namespace="staging.", properties={"security.protocol": "SSL"}
)

# What faults.md asks of each client, written out once more.
READING = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "isolation.level": "read_committed",
    "auto.offset.reset": "error",
    "check.crcs": True,
    "allow.auto.create.topics": False,
}


def test_the_owner_of_a_partition_writes_in_short_transactions_and_is_watched():
    assert owner_config(HERE, "scheduler.3") == {
        "bootstrap.servers": "127.0.0.1:9092",
        "client.id": "tidewheel",
        "transactional.id": "tidewheel.scheduler.3",
        "transaction.timeout.ms": 4500,
        "message.timeout.ms": 4500,
        "acks": "all",
        "enable.idempotence": True,
        "debug": "eos",
        "statistics.interval.ms": 1000,
        "retry.backoff.ms": 5,
        "connections.max.idle.ms": 40000,
        "linger.ms": 1,
        "message.max.bytes": 2097152,
        "queue.buffering.max.kbytes": 65536,
    }


@pytest.mark.parametrize("seconds", [2, 6, 30])
def test_a_transaction_ends_before_its_partition_is_given_to_another(seconds):
    settings = replace(HERE, session_timeout=timedelta(seconds=seconds))
    member, owner = member_config(settings, "scheduler", "a"), owner_config(settings, "scheduler.0")
    assert owner["transaction.timeout.ms"] == seconds * 750
    assert member["session.timeout.ms"] == seconds * 1000
    assert member["heartbeat.interval.ms"] == seconds * 250


def test_a_member_is_static_cooperative_and_of_the_classic_protocol():
    assert READING.items() <= member_config(AWAY, "scheduler", "scheduler-node-1").items()
    assert {
        "group.id": "staging.tidewheel.scheduler",
        "group.protocol": "classic",
        "group.instance.id": "scheduler-node-1",
        "partition.assignment.strategy": "cooperative-sticky",
        "session.timeout.ms": 6000,
        "heartbeat.interval.ms": 1500,
        "max.poll.interval.ms": 60000,
    }.items() <= member_config(AWAY, "scheduler", "scheduler-node-1").items()


def test_a_reader_skips_nothing_and_is_told_where_partitions_end():
    assert (READING | {"enable.partition.eof": True}).items() <= reader_config(HERE).items()


def test_appends_are_idempotent_and_acknowledged_by_all():
    config = appender_config(HERE)
    assert (config["enable.idempotence"], config["acks"]) == (True, "all")
    assert "transactional.id" not in config


def test_groups_and_ids_have_our_name_and_the_namespace_before_it():
    assert owner_config(AWAY, "scheduler.3")["transactional.id"] == "staging.tidewheel.scheduler.3"
    assert group_config(AWAY, "scheduler")["group.id"] == "staging.tidewheel.scheduler"


@pytest.mark.parametrize(
    "config",
    [
        admin_config(AWAY), owner_config(AWAY, "a"), appender_config(AWAY), reader_config(AWAY),
        member_config(AWAY, "g", "m"), group_config(AWAY, "g"), ends_config(AWAY),
    ],
)  # fmt: skip
def test_every_client_knows_how_to_be_let_in(config):
    assert config["security.protocol"] == "SSL"
    assert config["bootstrap.servers"] == "kafka-1.example:9093,kafka-2.example:9093"


def test_what_we_set_ourselves_cannot_be_set_by_a_user():
    ours = {
        *owner_config(HERE, "a"), *appender_config(HERE), *reader_config(HERE), *member_config(HERE, "g", "m"),
        *admin_config(HERE), *group_config(HERE, "g"), *ends_config(HERE),
    }  # fmt: skip
    for name in ours - {"client.id"}:
        with pytest.raises(SettingsRefused, match=name):
            check(replace(HERE, properties={name: "x"}))


@pytest.mark.parametrize(
    "name",
    [
        "transactional.id", "enable.idempotence", "acks", "request.required.acks", "isolation.level",
        "enable.auto.commit", "auto.commit.interval.ms", "auto.offset.reset", "group.id", "group.instance.id",
        "group.protocol", "partition.assignment.strategy", "max.in.flight", "partitioner", "message.timeout.ms",
        "delivery.timeout.ms", "retries", "plugin.library.paths", "sasl.kerberos.kinit.cmd", "ssl.engine.location",
        "ssl.providers", "enable.ssl.certificate.verification", "ssl.endpoint.identification.algorithm", "debug",
        "log_level", "log.queue", "error_cb", "stats_cb", "rebalance_cb", "test.mock.num.brokers", "bootstrap.servers",
        "metadata.broker.list", "opaque", "default.topic.config", "api.version.request", "oauth_cb",
    ],
)  # fmt: skip
def test_a_dangerous_property_is_refused_with_its_name_and_the_reason(name):
    with pytest.raises(SettingsRefused, match=rf"^kafka property {name}: .+; remove it$"):
        check(replace(HERE, properties={name: "x"}))


@pytest.mark.parametrize(
    "name",
    [
        "security.protocol", "sasl.mechanism", "sasl.username", "sasl.password", "ssl.ca.location", "ssl.key.location",
        "client.id", "client.rack", "socket.timeout.ms", "socket.keepalive.enable", "broker.address.family",
        "compression.type", "reconnect.backoff.ms", "metadata.max.age.ms", "ssl.keystore.location",
    ],
)  # fmt: skip
def test_how_brokers_are_reached_is_the_user_s(name):
    check(replace(HERE, properties={name: "x"}))


def test_a_password_is_not_shown_with_the_settings():
    assert "secret" not in repr(replace(HERE, properties={"sasl.password": "secret"}))


def test_every_denial_has_a_reason():
    assert all(DENIED.values())


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"session_timeout": timedelta(milliseconds=1999)}, "session_timeout"),
        ({"session_timeout": timedelta(seconds=61)}, "session_timeout"),
        ({"min_insync_replicas": 0}, "min_insync_replicas"),
        ({"min_insync_replicas": 4}, "min_insync_replicas"),
        ({"namespace": "with space"}, "namespace"),
        ({"namespace": ".begins"}, "namespace"),
        ({"properties": {"sasl.password": "a\0b"}}, "sasl.password"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named(changed, field):
    with pytest.raises(SettingsRefused, match=field):
        check(replace(HERE, **changed))


@pytest.mark.parametrize("bootstrap", ["kafka:9092", "127.0.0.1:9092,10.0.0.1:9092", "10.0.0.1:9092", "[fd00::1]:9092"])
def test_an_unencrypted_connection_to_another_machine_has_to_be_wanted(bootstrap):
    with pytest.raises(SettingsRefused, match=r"security\.protocol"):
        check(replace(HERE, bootstrap=bootstrap))
    check(replace(HERE, bootstrap=bootstrap, plaintext=True))
    check(replace(HERE, bootstrap=bootstrap, properties={"security.protocol": "sasl_ssl"}))


@pytest.mark.parametrize("bootstrap", ["127.0.0.1:9092", "localhost:9092", "[::1]:9092", "127.0.0.1:1, 127.0.0.2:2"])
def test_on_one_machine_it_is_fine(bootstrap):
    check(replace(HERE, bootstrap=bootstrap))


@pytest.mark.parametrize(("version", "fits"), [(0x020F00FF, True), (0x021000FF, True), (0x030000FF, True)])
def test_a_client_that_is_new_enough_is_taken(version, fits):
    check_version(version, "")
    assert fits


@pytest.mark.parametrize(("version", "text"), [(0x020E02FF, "2.14.2"), (0x010900FF, "1.9.0")])
def test_an_older_client_is_refused_with_what_to_do(version, text):
    with pytest.raises(LogError, match=rf"librdkafka {text} is too old: 2.15.0 is needed; upgrade confluent-kafka"):
        check_version(version, text)
