"""The commands that import: what they print where, and what they exit with."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.sdk import importing
from tidewheel import definitions
from tidewheel.cli import main


def run(*words: str, data: bytes = b"") -> Result:
    return CliRunner().invoke(main, ["import", *words], input=data)


@pytest.mark.parametrize(
    ("command", "name", "last"),
    [
        ("kubernetes-cronjob", "cronjobs.yaml", "2 schedules, 1 CronJobs or files left out"),
        ("eventbridge", "stack.yaml", "3 schedules, 3 schedules or files left out"),
        ("quartz", "quartz_data.xml", "5 schedules, 2 triggers, jobs or files left out"),
    ],
)
def test_definitions_go_to_standard_output_and_remarks_to_standard_error(command, name, last):
    result = run(command, str(importing.FIXTURES / name), "--tenant", "acme", "--queue", "ops")
    read = definitions.read(result.stdout, "-")
    assert result.exit_code == 0
    assert {(each.tenant, (each.body or {})["job"]["queue"], each.faults) for each in read} == {("acme", "ops", ())}
    assert result.stderr.splitlines()[-1] == last


def test_a_folder_is_all_its_files_and_output_may_go_to_one(tmp_path):
    (tmp_path / "in").mkdir()
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / "in" / name).write_bytes((importing.FIXTURES / "cronjobs.yaml").read_bytes())
    result = run("kubernetes-cronjob", str(tmp_path / "in"), "-o", str(tmp_path / "out.yaml"))
    assert (result.exit_code, result.stdout) == (0, "")
    names = [each.name for each in definitions.read(Path(tmp_path / "out.yaml").read_text("utf-8"), "out")]
    assert names == ["nightly-report", "heartbeat", "finance-nightly-report", "ops-heartbeat"]


@pytest.mark.parametrize(
    ("command", "data"),
    [
        ("kubernetes-cronjob", b"kind: CronJob\nmetadata: {name: x}\nspec: {schedule: 61 0 * * *}\n"),
        ("eventbridge", b'{"Name": "x", "ScheduleExpression": "daily"}'),
        ("quartz", b"<quartz/>"),
    ],
)
def test_what_its_own_system_could_not_read_is_exit_code_1(command, data):
    result = run(command, "-", data=data)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "left out: " in result.stderr


@pytest.mark.parametrize("command", ["kubernetes-cronjob", "eventbridge", "quartz"])
def test_a_file_that_cannot_be_read_is_wrong_usage(command, tmp_path):
    result = run(command, str(tmp_path / "none"))
    assert (result.exit_code, "none cannot be read: No such file or directory" in result.stderr) == (2, True)


@pytest.mark.parametrize("command", ["kubernetes-cronjob", "quartz"])
def test_a_zone_that_there_is_not_is_wrong_usage(command):
    result = run(command, "-", "--timezone", "Mars/Olympus")
    assert (result.exit_code, "'Mars/Olympus' is no zone of IANA's database" in result.stderr) == (2, True)
