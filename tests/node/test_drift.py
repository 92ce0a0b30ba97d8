"""Topics as they are against topics as they should be: what counts as drift, and what may be set right."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from node.admin.drift import alterations, compare, shown
from node.admin.wanted import WantedTopic, queues_in, wanted
from node.settings import ClusterSettings
from runtime.logs.kafka.administration import FoundTopic

EVENTS = {
    "cleanup.policy": "delete",
    "message.timestamp.type": "LogAppendTime",
    "max.message.bytes": "2097152",
    "min.insync.replicas": "2",
    "unclean.leader.election.enable": "false",
    "retention.ms": "2592000000",
    "retention.bytes": "-1",
    "segment.ms": "86400000",
}
STATES = {
    "cleanup.policy": "compact",
    "message.timestamp.type": "LogAppendTime",
    "max.message.bytes": "2097152",
    "min.insync.replicas": "2",
    "unclean.leader.election.enable": "false",
    "min.compaction.lag.ms": "3600000",
    "delete.retention.ms": "86400000",
    "min.cleanable.dirty.ratio": "0.2",
    "segment.ms": "3600000",
    "segment.bytes": "67108864",
}


def topic(**config: str) -> tuple[WantedTopic, FoundTopic]:
    """`tidewheel.run-events` as wanted, and as found with other settings."""
    return (
        WantedTopic(name="tidewheel.run-events", partitions=12, replicas=3, config=EVENTS),
        found("tidewheel.run-events", EVENTS | config),
    )


def found(name: str, config: dict[str, str], *, partitions: int = 12, replicas: int = 3) -> FoundTopic:
    return FoundTopic(
        name=name, wire=f"prod.{name}", partitions=partitions, replicas=replicas, in_sync=replicas, leaderless=(),
        config=config,
    )  # fmt: skip


def differences(right: WantedTopic, there: FoundTopic) -> list[tuple[str, str, str, str]]:
    drifts = compare([right], {there.name: there})
    return [(drift.what, drift.wanted, drift.found, drift.weight) for drift in drifts]


def test_a_topic_as_the_settings_say_does_not_differ():
    assert compare([topic()[0]], {"tidewheel.run-events": topic()[1]}) == ()


def test_what_else_is_set_there_and_other_topics_are_not_looked_at():
    right, there = topic(**{"compression.type": "zstd", "retention.ms": "2592000000"})
    other = found("invoices", {"cleanup.policy": "compact"}, partitions=1)
    assert compare([right], {there.name: there, other.name: other}) == ()


def test_a_topic_that_is_not_there_is_made_by_create():
    (drift,) = compare([topic()[0]], {})
    assert (drift.what, drift.found, drift.by_hand) == ("topic", "absent", "tidewheel admin topics create")


@pytest.mark.parametrize(
    ("setting", "value", "weight"),
    [
        ("cleanup.policy", "compact", "wrong"),
        ("cleanup.policy", "compact,delete", "wrong"),
        ("message.timestamp.type", "CreateTime", "wrong"),
        ("max.message.bytes", "1048588", "wrong"),
        ("min.insync.replicas", "1", "wrong"),
        ("unclean.leader.election.enable", "true", "wrong"),
        ("retention.ms", "604800000", "wrong"),
        ("retention.ms", "-1", "note"),
        ("retention.ms", "5184000000", "note"),
        ("retention.bytes", "1073741824", "wrong"),
        ("segment.ms", "604800000", "note"),
    ],
)
def test_a_setting_of_a_topic_of_events_that_does_harm_is_drift(setting, value, weight):
    assert differences(*topic(**{setting: value})) == [(setting, EVENTS[setting], value, weight)]


@pytest.mark.parametrize(
    ("setting", "value", "weight"),
    [
        ("cleanup.policy", "delete", "wrong"),
        ("cleanup.policy", "compact,delete", "wrong"),
        ("min.compaction.lag.ms", "0", "wrong"),
        ("delete.retention.ms", "3600000", "wrong"),
        ("min.cleanable.dirty.ratio", "0.5", "note"),
        ("segment.ms", "604800000", "note"),
        ("segment.bytes", "1073741824", "note"),
    ],
)
def test_a_setting_of_a_topic_of_states_that_does_harm_is_drift(setting, value, weight):
    right = WantedTopic(name="tidewheel.scheduler-changelog", partitions=12, replicas=3, config=STATES)
    there = found(right.name, STATES | {setting: value})
    assert differences(right, there) == [(setting, STATES[setting], value, weight)]


@pytest.mark.parametrize(
    ("setting", "value"),
    [("max.message.bytes", "10485760"), ("min.insync.replicas", "3"), ("segment.ms", "3600000")],
)
def test_what_is_stricter_or_larger_than_wanted_is_left_in_peace(setting, value):
    assert differences(*topic(**{setting: value})) == []


def test_more_copies_than_wanted_are_left_in_peace_and_fewer_are_named():
    right, there = topic()
    assert differences(right, replace(there, replicas=5)) == []
    assert differences(right, replace(there, replicas=1)) == [("replicas", "3", "1", "wrong")]


def test_a_setting_that_the_broker_does_not_tell_is_not_judged():
    right, there = topic()
    assert differences(right, replace(there, config={"cleanup.policy": "delete"})) == []


def test_partitions_are_never_altered_and_it_is_said_what_growth_means():
    right, there = topic()
    (drift,) = compare([right], {there.name: replace(there, partitions=24)})
    assert (drift.what, drift.wanted, drift.found) == ("partitions", "12", "24")
    assert drift.by_hand.startswith("partitions are never added or taken away: a larger count means new topics")
    assert alterations([drift]) == {}


# --- setting right ---


def fix(right: WantedTopic, there: FoundTopic) -> dict[str, dict[str, str]]:
    return alterations(compare([right], {there.name: there}))


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("message.timestamp.type", "CreateTime"),
        ("max.message.bytes", "1048588"),
        ("min.insync.replicas", "1"),
        ("unclean.leader.election.enable", "true"),
        ("retention.ms", "604800000"),
        ("retention.bytes", "1073741824"),
        ("segment.ms", "604800000"),
        ("cleanup.policy", "compact,delete"),
    ],
)
def test_what_deletes_nothing_and_stops_no_writer_is_altered(setting, value):
    assert fix(*topic(**{setting: value})) == {"tidewheel.run-events": {setting: EVENTS[setting]}}


def test_a_topic_of_states_that_deletes_stops_to():
    right = WantedTopic(name="tidewheel.scheduler-changelog", partitions=12, replicas=3, config=STATES)
    there = found(right.name, STATES | {"cleanup.policy": "delete"})
    assert fix(right, there) == {right.name: {"cleanup.policy": "compact"}}


@pytest.mark.parametrize(
    ("setting", "value", "command"),
    [
        ("retention.ms", "5184000000", "--add-config retention.ms=2592000000"),
        ("retention.ms", "-1", "--add-config retention.ms=2592000000"),
        ("cleanup.policy", "compact", "--add-config cleanup.policy=delete"),
    ],
)
def test_what_would_delete_records_is_left_to_a_person_with_the_command_for_it(setting, value, command):
    right, there = topic(**{setting: value})
    (drift,) = compare([right], {there.name: there})
    assert alterations([drift]) == {}
    assert drift.by_hand == (
        "it would delete records at once; if that is meant: "
        f"kafka-configs.sh --alter --entity-type topics --entity-name prod.tidewheel.run-events {command}"
    )


def test_more_acknowledgements_than_copies_are_not_asked_for():
    right, there = topic(**{"min.insync.replicas": "1"})
    drifts = compare([right], {there.name: replace(there, replicas=1)})
    assert alterations(drifts) == {}
    assert [drift.what for drift in drifts] == ["replicas", "min.insync.replicas"]
    assert drifts[1].by_hand.startswith("every write would be refused, with 1 of so many copies")


# --- what is wanted ---


def test_the_topic_table_is_wanted_with_the_counts_and_times_of_the_settings():
    settings = ClusterSettings(partitions=6, retain_history=timedelta(days=7), retain_runs=timedelta(days=2))
    topics = {each.name: each for each in wanted(settings, ["mail", "mail"])}
    assert {name: each.partitions for name, each in topics.items()} == {
        "tidewheel.schedule-changes": 6, "tidewheel.schedules": 6, "tidewheel.catalog": 1, "tidewheel.versions": 6,
        "tidewheel.rejections": 6, "tidewheel.runs": 6, "tidewheel.attempts": 6, "tidewheel.links": 6,
        "tidewheel.replies": 16, "tidewheel.logs": 6, "tidewheel.run-events": 6, "tidewheel.run-outcomes": 6,
        "tidewheel.dead-letters": 6, "tidewheel.operations": 1, "tidewheel.workers": 1,
        "tidewheel.scheduler-changelog": 6, "tidewheel.dispatcher-changelog": 6,
        "tidewheel.dispatch.mail": 8,
    }  # fmt: skip
    assert {each.replicas for each in topics.values()} == {3}
    assert topics["tidewheel.run-events"].config["retention.ms"] == "604800000"
    assert topics["tidewheel.runs"].config["retention.ms"] == "172800000"
    assert topics["tidewheel.dispatch.mail"].config["retention.ms"] == "3600000"
    assert topics["tidewheel.versions"].config["cleanup.policy"] == "compact"


def test_queues_are_known_by_their_inboxes():
    assert queues_in(["tidewheel.dispatch.mail", "tidewheel.dispatch.a.b", "tidewheel.runs"]) == {"mail", "a.b"}


@pytest.mark.parametrize(
    ("setting", "value", "text"),
    [
        ("retention.ms", "604800000", "P7D"),
        ("retention.ms", "-1", "no limit"),
        ("retention.bytes", "-1", "no limit"),
        ("segment.ms", "9223372036854775807", "9223372036854775807"),
        ("max.message.bytes", "1048588", "1048588"),
        ("partitions", "12", "12"),
    ],
)
def test_people_read_spans_as_durations(setting, value, text):
    assert shown(setting, value) == text
