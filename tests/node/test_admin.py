"""`tidewheel admin topics` and `tidewheel doctor`, at a real broker."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from confluent_kafka import Producer

from node.admin.command import admin
from node.admin.reaching import names_a_cluster
from node.doctor.command import doctor
from runtime.clock import SystemClock
from runtime.logs.kafka.administration import Administration
from runtime.logs.kafka.log import KafkaLog
from runtime.logs.kafka.settings import KafkaSettings
from runtime.record import Outgoing
from tests.support.waiting import eventually

NOBODY = "127.0.0.1:9"


class Cluster:
    """A namespace of a broker, as commands are told of it: two partitions, one copy."""

    def __init__(self, bootstrap: str, namespace: str, config: Path) -> None:
        self.settings = KafkaSettings(
            bootstrap=bootstrap, namespace=namespace, replication_factor=1, min_insync_replicas=1
        )
        self.administration = Administration(self.settings)
        self._config = config
        config.write_text(
            f'bootstrap = "{bootstrap}"\nnamespace = "{namespace}"\npartitions = 2\n'
            "replication_factor = 1\nmin_insync_replicas = 1\n",
            encoding="utf-8",
        )

    def run(self, command: click.Command, *arguments: str) -> tuple[int, str, str]:
        result = CliRunner().invoke(command, [*arguments, "--config", str(self._config)])
        return result.exit_code, result.stdout, result.stderr

    def topics(self, *arguments: str) -> tuple[int, Any]:
        code, out, _ = self.run(admin, "topics", *arguments, "--json")
        return code, json.loads(out)


@pytest.fixture
def cluster(broker: str, topic_prefix: str, tmp_path: Path) -> Cluster:
    return Cluster(broker, topic_prefix, tmp_path / "tidewheel.toml")


@pytest.fixture
def made(cluster: Cluster) -> Cluster:
    """A cluster with its topics and the inboxes of one queue."""
    assert cluster.topics("create", "--queue", "mail")[0] == 0
    return cluster


def test_create_makes_every_topic_once_and_verify_finds_them_as_they_should_be(cluster):
    code, report = cluster.topics("create", "--queue", "mail")
    assert code == 0
    assert {topic["state"] for topic in report["topics"]} == {"created"}
    assert {"topic": "tidewheel.dispatch.mail", "partitions": 8, "state": "created"} in report["topics"]
    assert {"topic": "tidewheel.runs", "partitions": 2, "state": "created"} in report["topics"]
    code, report = cluster.topics("create", "--queue", "mail")
    assert (code, {topic["state"] for topic in report["topics"]}) == (0, {"there"})
    assert cluster.topics("verify") == (0, {"drift": [], "altered": {}})
    assert cluster.run(admin, "topics")[:2] == (0, "Every topic is as the settings say.\n")


def test_before_create_every_topic_is_missing(cluster):
    code, report = cluster.topics("verify")
    assert code == 1
    assert len(report["drift"]) == 17
    assert {drift["found"] for drift in report["drift"]} == {"absent"}


def test_what_somebody_altered_is_drift_until_it_is_fixed(made):
    made.administration.alter("tidewheel.run-events", {"retention.ms": "3600000"})
    made.administration.alter("tidewheel.dispatch.mail", {"message.timestamp.type": "CreateTime"})
    code, out, _ = made.run(admin, "topics", "verify")
    assert code == 1
    assert "tidewheel.run-events" in out
    assert "records go before their time" in out
    code, report = made.topics("verify", "--fix")
    assert (code, report["drift"]) == (0, [])
    assert report["altered"] == {
        "tidewheel.run-events": {"retention.ms": "2592000000"},
        "tidewheel.dispatch.mail": {"message.timestamp.type": "LogAppendTime"},
    }
    assert made.topics("verify")[0] == 0


def test_what_would_delete_records_is_not_fixed(made):
    made.administration.alter("tidewheel.runs", {"retention.ms": "-1"})
    code, report = made.topics("verify", "--fix")
    assert (code, report["altered"]) == (1, {})
    assert made.administration.topics()["tidewheel.runs"].config["retention.ms"] == "-1"


def test_a_topic_with_other_partitions_is_named_and_left(made, tmp_path):
    grown = Cluster(made.settings.bootstrap, made.settings.namespace, tmp_path / "grown.toml")
    text = (tmp_path / "grown.toml").read_text(encoding="utf-8")
    (tmp_path / "grown.toml").write_text(text.replace("partitions = 2", "partitions = 3"), encoding="utf-8")
    code, report = grown.topics("verify", "--fix")
    assert (code, report["altered"]) == (1, {})
    assert {(drift["what"], drift["wanted"], drift["found"]) for drift in report["drift"]} == {("partitions", "3", "2")}
    code, out, _ = grown.run(admin, "topics")
    assert "a larger count means new topics" in out


def test_the_doctor_looks_at_brokers_topics_and_clocks(made):
    log = KafkaLog(made.settings, SystemClock())
    log.append([Outgoing("tidewheel.logs", 0, b"key", b"{}")])
    log.close()
    code, out, _ = made.run(doctor, "--json", "--url", "http://127.0.0.1:9")
    findings = {finding["what"]: finding["verdict"] for finding in json.loads(out)["findings"]}
    assert (code, findings["18 topics as the settings say"]) == (0, "ok")
    assert "wrong" not in findings.values()
    said = "\n".join(findings)
    assert "answers at" in said
    assert "librdkafka 2." in said
    assert "this clock and the brokers' agree within" in said


def test_the_doctor_says_what_differs_and_how_to_set_it_right(made):
    made.administration.alter("tidewheel.attempts", {"unclean.leader.election.enable": "true"})
    code, out, _ = made.run(doctor, "--url", "http://127.0.0.1:9")
    assert code == 1
    assert "wrong tidewheel.attempts: unclean.leader.election.enable is true, not false" in out
    assert "tidewheel admin topics verify --fix" in out


# --- without a broker ---


def test_a_cluster_that_does_not_answer_is_unreachable_and_the_reason_is_told():
    result = CliRunner().invoke(admin, ["topics", "--bootstrap", NOBODY])
    assert result.exit_code == 3
    assert f"no broker answers at {NOBODY}: " in result.stderr
    assert "Connection refused" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["create", "--fix"], "--fix: it alters topics that exist"),
        (["verify", "--queue", "a/b"], "--queue: 'a/b' is no queue's name"),
        (["--namespace", "no spaces"], "namespace"),
        (["--bootstrap", "kafka.example:9092"], "the connection to another machine is not encrypted"),
        (["--config", "no-such-file.toml"], "config: there is no file no-such-file.toml"),
        (["destroy"], "destroy"),
    ],
)
def test_wrong_usage_is_refused_before_anybody_is_asked(arguments, said):
    result = CliRunner().invoke(admin, ["topics", *arguments])
    assert (result.exit_code, said in result.stderr.replace("\n", " ")) == (2, True)


@pytest.mark.parametrize("command", ["acls", "rebuild"])
def test_what_a_later_version_will_do_is_refused_by_name(command):
    result = CliRunner().invoke(admin, [command, "--json"])
    assert (result.exit_code, "not_supported" in result.stderr) == (2, True)


def test_the_doctor_looks_at_a_cluster_only_when_one_is_named(tmp_path, monkeypatch):
    monkeypatch.delenv("TIDEWHEEL_BOOTSTRAP", raising=False)
    result = CliRunner().invoke(doctor, ["--data", str(tmp_path), "--url", "http://127.0.0.1:9", "--json"])
    assert result.exit_code == 0
    assert "librdkafka" not in result.stdout
    monkeypatch.setenv("TIDEWHEEL_BOOTSTRAP", NOBODY)
    result = CliRunner().invoke(doctor, ["--data", str(tmp_path), "--url", "http://127.0.0.1:9", "--json"])
    assert result.exit_code == 1
    assert f"no broker answers at {NOBODY}" in result.stdout


def test_a_file_names_a_cluster_when_it_sets_what_only_processes_on_kafka_have(tmp_path):
    file = tmp_path / "tidewheel.toml"
    assert not names_a_cluster(None)
    file.write_text('port = 1\ndurability = "disk"\n', encoding="utf-8")
    assert not names_a_cluster(file)
    file.write_text('roles = ["api"]\n', encoding="utf-8")
    assert names_a_cluster(file)


def test_a_transaction_that_is_under_way_is_seen_until_it_ends(made):
    """Where it begins is as far as any reader gets."""
    topic = f"{made.settings.namespace}tidewheel.runs"
    there = [made.administration.topics()["tidewheel.runs"]]
    assert made.administration.open_since(there) == {}
    producer = Producer({"bootstrap.servers": made.settings.bootstrap, "transactional.id": topic})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce(topic, b"x", partition=1)
    producer.flush()
    assert made.administration.open_since(there) == {("tidewheel.runs", 1): 0}
    producer.abort_transaction()
    eventually(lambda: made.administration.open_since(there) == {}, within=30, what="the marker is written")
