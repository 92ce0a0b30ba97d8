"""What a doctor says of a cluster, from what the brokers tell; each finding with its remedy."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from node.admin.drift import Drift, Weight
from node.doctor import brokers
from node.doctor.finding import Finding
from node.doctor.machine import examine, tz_data
from node.folder import DataFolder
from node.settings import ClusterSettings, Settings
from runtime.logs.kafka.administration import FoundTopic
from runtime.logs.kafka.settings import KafkaSettings

SETTINGS = KafkaSettings(bootstrap="127.0.0.1:9092")
GOOD = {
    "transaction.partition.verification.enable": "true",
    "unclean.leader.election.enable": "false",
    "auto.create.topics.enable": "false",
    "group.min.session.timeout.ms": "6000",
    "group.max.session.timeout.ms": "1800000",
    "transaction.max.timeout.ms": "900000",
    "offsets.retention.minutes": "43200",
    "transactional.id.expiration.ms": "2147483647",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "transaction.state.log.min.isr": "2",
    "min.insync.replicas": "2",
    "log.message.timestamp.after.max.ms": "3600000",
}
FOUR = {"log.remote.copy.lag.ms": "0"}  # as brokers of 4.4 tell it
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def said(findings: list[Finding]) -> list[tuple[str, str]]:
    """Verdict, and the first words up to a colon."""
    return [(str(each.verdict), each.what.partition(":")[0]) for each in findings]


# --- a broker ---


def test_of_a_broker_that_is_set_well_there_is_nothing_to_say():
    assert list(brokers.broker_settings(GOOD, SETTINGS)) == []


@pytest.mark.parametrize(
    ("setting", "value", "verdict", "what"),
    [
        (
            "transaction.partition.verification.enable", "false",
            "wrong", "transaction.partition.verification.enable is false",
        ),
        ("unclean.leader.election.enable", "true", "note", "unclean.leader.election.enable is true"),
        ("auto.create.topics.enable", "true", "wrong", "auto.create.topics.enable is true"),
        ("group.min.session.timeout.ms", "10000", "wrong", "session_timeout PT6S is refused"),
        ("group.max.session.timeout.ms", "5000", "wrong", "session_timeout PT6S is refused"),
        ("transaction.max.timeout.ms", "4000", "wrong", "transactions of 4500 ms are refused"),
        ("offsets.retention.minutes", "10080", "note", "offsets.retention.minutes"),
        ("transactional.id.expiration.ms", "604800000", "note", "transactional.id.expiration.ms"),
        ("transaction.state.log.min.isr", "1", "wrong", "transaction.state.log.min.isr is 1"),
        ("min.insync.replicas", "1", "note", "min.insync.replicas is 1"),
        ("log.message.timestamp.after.max.ms", "9223372036854775807", "note", "log.message.timestamp.after.max.ms"),
        (
            "transaction.abort.timed.out.transaction.cleanup.interval.ms", "10000",
            "note", "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        ),
    ],
)  # fmt: skip
def test_a_setting_of_a_broker_that_breaks_a_promise_is_named_with_what_to_do(setting, value, verdict, what):
    findings = list(brokers.broker_settings(GOOD | {setting: value}, SETTINGS))
    assert said(findings) == [(verdict, what)]
    assert findings[0].remedy


def test_of_kafka_4_4_it_is_said_what_it_does_when_brokers_stop_all_at_once():
    (finding,) = brokers.broker_settings(GOOD | FOUR, SETTINGS)
    assert str(finding.verdict) == "note"
    assert "ends while its partition has no leader (KAFKA-20734)" in finding.what
    assert "stop our nodes" in finding.remedy


def test_a_setting_that_a_broker_does_not_tell_is_not_judged():
    assert list(brokers.broker_settings({}, SETTINGS)) == []


@pytest.mark.parametrize(
    ("config", "verdict", "what"),
    [
        (GOOD, "ok", "the brokers are Kafka 4.0 or newer"),
        (GOOD | FOUR, "ok", "the brokers are Kafka 4.4 or newer"),
        (GOOD | {"inter.broker.protocol.version": "3.9-IV0"}, "ok", "the brokers speak Kafka 3.9-IV0"),
        ({"inter.broker.protocol.version": "3.4-IV0"}, "wrong", "the brokers are older than Kafka 3.6"),
    ],
)
def test_a_broker_that_cannot_refuse_late_writes_is_too_old(config, verdict, what):
    assert said([brokers.generation(config)]) == [(verdict, what)]


# --- brokers together ---


@pytest.mark.parametrize(
    ("count", "copies", "acknowledge", "verdict", "what"),
    [
        (3, 3, 2, "ok", "3 brokers, 3 copies, 2 acknowledge"),
        (1, 3, 2, "wrong", "no topic can be made"),
        (1, 1, 1, "note", "there is one copy of each record"),
        (3, 3, 3, "note", "min_insync_replicas is as large as replication_factor, 3"),
    ],
)
def test_there_have_to_be_as_many_brokers_as_copies(count, copies, acknowledge, verdict, what):
    settings = replace(SETTINGS, replication_factor=copies, min_insync_replicas=acknowledge)
    assert said([brokers.enough_brokers(count, settings)]) == [(verdict, what)]


def topic(name: str = "tidewheel.runs", *, in_sync: int = 3, leaderless: tuple[int, ...] = ()) -> FoundTopic:
    return FoundTopic(
        name=name, wire=name, partitions=12, replicas=3, in_sync=in_sync, leaderless=leaderless,
        config={"min.insync.replicas": "2"},
    )  # fmt: skip


def test_the_brokers_own_topics_have_as_many_copies_as_ours():
    own = {"__consumer_offsets": topic("__consumer_offsets"), "__transaction_state": topic("__transaction_state")}
    assert list(brokers.brokers_own(own, SETTINGS)) == []
    own["__transaction_state"] = replace(own["__transaction_state"], replicas=1)
    (finding,) = brokers.brokers_own(own, SETTINGS)
    assert said([finding]) == [("wrong", "__transaction_state has 1 copy, not 3")]
    assert "transaction.state.log.replication.factor" in finding.remedy


@pytest.mark.parametrize(
    ("found", "findings"),
    [
        (topic(), []),
        (topic(in_sync=2), [("note", "tidewheel.runs")]),
        (topic(in_sync=1), [("wrong", "tidewheel.runs")]),
        (topic(leaderless=(3,)), [("wrong", "tidewheel.runs")]),
    ],
)
def test_a_partition_that_cannot_be_read_or_written_is_named(found, findings):
    assert said(list(brokers.health([found]))) == findings


def test_a_transaction_that_is_open_in_two_looks_hangs():
    """One that moved on, or is new, is somebody's work."""
    before = {("tidewheel.runs", 3): 41, ("tidewheel.runs", 0): 7, ("tidewheel.links", 1): 5}
    after = {("tidewheel.runs", 3): 41, ("tidewheel.runs", 0): 9, ("tidewheel.replies", 1): 5}
    (finding,) = brokers.open_transactions(before, after)
    assert (finding.verdict, finding.what) == (
        "wrong",
        "tidewheel.runs partition 3: a transaction hangs at offset 41, and nobody reads what stands behind it",
    )
    assert "kafka-transactions.sh find-hanging" in finding.remedy


# --- topics ---


def drift(name: str, found: str = "4") -> Drift:
    return Drift(
        topic=name, what="partitions", wanted="12", found=found, why="keys live elsewhere", weight=Weight.WRONG,
        by_hand="never",
    )  # fmt: skip


def test_topics_that_differ_in_the_same_way_are_one_finding():
    names = [f"t{number}" for number in range(7)]
    (finding,) = brokers.drifted(map(drift, names), 15)
    assert finding.what == "t0, t1, t2, t3, t4 and 2 more: partitions is 4, not 12: keys live elsewhere"
    assert (finding.verdict, finding.remedy) == ("wrong", "never")


def test_what_can_be_altered_says_how():
    (finding,) = brokers.drifted([replace(drift("t"), by_hand="")], 15)
    assert finding.remedy == "tidewheel admin topics verify --fix"


def test_topics_as_the_settings_say_are_counted():
    assert said(list(brokers.drifted([], 15))) == [("ok", "15 topics as the settings say")]


# --- clocks and zones ---


@pytest.mark.parametrize(
    ("ahead", "verdict", "what"),
    [
        (timedelta(seconds=-2), "ok", "this clock and the brokers' agree within PT2S"),
        (timedelta(seconds=5), "ok", "this clock and the brokers' agree within PT5S"),
        (timedelta(seconds=6), "wrong", "the brokers' clocks are PT6S ahead of this one"),
        (timedelta(hours=-3), "ok", "this clock is not behind the brokers' (the newest record is PT3H old)"),
    ],
)
def test_the_newest_append_time_is_held_against_the_clock(ahead, verdict, what):
    assert said([brokers.clocks(NOON + ahead, NOON)]) == [(verdict, what)]


def test_without_a_record_the_clocks_cannot_be_compared():
    assert said([brokers.clocks(None, NOON)])[0][0] == "note"


def test_another_tz_database_on_the_machine_is_worth_a_note():
    assert (
        said([tz_data("2026f", "2026f"), tz_data("2026f", None)])
        == [("ok", "time zone data 2026f (pinned package)")] * 2
    )
    assert tz_data("2026f", "2025b").verdict == "note"


# --- this machine ---

NOBODY = "http://127.0.0.1:9"


def test_a_folder_that_is_not_there_yet_and_a_server_that_does_not_run_are_no_faults(tmp_path):
    findings = list(examine(Settings(data=tmp_path / "none"), NOBODY))
    assert {each.verdict for each in findings} == {"ok", "note"}
    assert [each.remedy for each in findings[-2:]] == ["`tidewheel dev` makes it", "start one: tidewheel dev"]
    assert not (tmp_path / "none").exists()


def test_each_process_of_a_node_has_its_folder_and_is_named(tmp_path):
    held = DataFolder.hold(tmp_path / "process-0")
    DataFolder.hold(tmp_path / "process-1").release()
    findings = [each.what for each in examine(ClusterSettings(data=tmp_path), NOBODY)]
    assert f"{tmp_path / 'process-0'} is in use by process {os.getpid()}" in findings
    assert f"{tmp_path / 'process-1'}: no process has it" in findings
    held.release()
