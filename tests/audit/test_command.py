"""`tidewheel audit` says what it found to people and to machines, and its exit code says whether all is well."""

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from node.admin.audit import audit
from node.folder import DataFolder
from runtime.clock import SystemClock
from runtime.logs.kafka.log import KafkaLog
from runtime.logs.kafka.settings import KafkaSettings
from tests.audit.world import World, at, leave, leave_with_one_lost


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A data folder in which 12:01 was created and 12:02 was lost."""
    leave_with_one_lost(tmp_path)
    return tmp_path


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(audit, arguments)
    return result.exit_code, result.output


def test_a_fault_is_named_and_the_exit_code_is_1(folder):
    code, output = run("--data", str(folder))
    assert code == 1
    assert "2026-03-02T12:02:00Z" in output
    assert "Something is wrong." in output


def test_machines_get_json(folder):
    code, output = run("--data", str(folder), "--json")
    figures = json.loads(output)
    assert code == 1
    assert (figures["due"], figures["created"], figures["missing"], figures["open_runs"]) == (2, 1, 1, 1)
    assert figures["offenders"]["missing"][0]["what"] == "2026-03-02T12:02:00Z"


def test_all_is_well_with_exit_code_0(tmp_path):
    leave(tmp_path, decided="12:01:30")
    code, output = run("--data", str(tmp_path))
    assert code == 0
    assert "Every due occurrence has exactly one decision." in output


def test_a_folder_without_a_log_is_refused_in_words(tmp_path):
    code, output = run("--data", str(tmp_path))
    assert code == 1
    assert output.startswith("Error: ")
    assert not (tmp_path / "log").exists()


def test_a_folder_whose_process_runs_is_refused_with_what_to_do(folder):
    held = DataFolder.hold(folder)
    code, output = run("--data", str(folder))
    assert code == 1
    assert f"in use by process {os.getpid()}: audit the running server with --url" in output.replace("\n", " ")
    held.release()
    assert run("--data", str(folder), "--json")[0] == 1  # for what it found


def test_a_server_that_is_not_there_is_unreachable():
    result = CliRunner().invoke(audit, ["--url", "http://127.0.0.1:9"])
    assert type(result.exception).__name__ == "Unreachable"  # the command line makes exit code 3 of it


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--data", "/", "--url", "http://127.0.0.1:9"], "--data and --url"),
        (["--data", "/", "--bootstrap", "127.0.0.1:9"], "--data and --bootstrap"),
        (["--url", "http://127.0.0.1:9", "--config", "x.toml"], "--url and --bootstrap"),
        (["--namespace", "prod."], "--namespace: it names topics on Kafka"),
    ],
)
def test_an_audit_reads_one_source(arguments, said):
    result = CliRunner().invoke(audit, arguments)
    assert (result.exit_code, said in result.stderr) == (2, True)


def test_a_server_named_by_the_environment_gives_way_to_a_folder(folder, monkeypatch):
    monkeypatch.setenv("TIDEWHEEL_URL", "http://127.0.0.1:9")
    assert run("--data", str(folder))[0] == 1  # for what it found


def test_a_cluster_without_an_answer_is_unreachable():
    code, output = run("--bootstrap", "127.0.0.1:9")
    assert code == 3
    assert "no broker answers at 127.0.0.1:9" in output


def test_kafka_is_read_without_a_server_between(broker, topic_prefix):
    """12:01 was created and 12:02 was lost, in a namespace of a cluster."""
    settings = KafkaSettings(bootstrap=broker, namespace=topic_prefix, replication_factor=1, min_insync_replicas=1)
    log = KafkaLog(settings, SystemClock())
    world = World(log)
    world.version()
    world.finished(world.created("12:01"))
    world.decided(at("12:02:30"))
    log.close()
    code, output = run("--bootstrap", broker, "--namespace", topic_prefix, "--json")
    figures = json.loads(output)
    assert code == 1
    assert (figures["due"], figures["created"], figures["missing"], figures["open_runs"]) == (2, 1, 1, 0)
    assert figures["offenders"]["missing"][0]["what"] == "2026-03-02T12:02:00Z"
