"""`tidewheel audit` says what it found to people and to machines, and its exit code says whether all is well."""

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from node.audit.command import audit
from node.folder import DataFolder
from runtime.logs.embedded import EmbeddedLog
from tests.audit.world import World, at


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A data folder in which 12:01 was created and 12:02 was lost."""
    world = World()
    log = EmbeddedLog(tmp_path / "log", world.clock)
    world = World(log)
    world.version()
    world.created("12:01")
    world.decided(at("12:02:30"))
    log.close()
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
    log = EmbeddedLog(tmp_path / "log", World().clock)
    world = World(log)
    world.version()
    world.created("12:01")
    world.decided(at("12:01:30"))
    log.close()
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
