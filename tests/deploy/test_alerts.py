"""Alerts fire when they should, name a runbook that is there, and runbooks name commands that exist."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from runtime.telemetry import DESCRIBED, PREFIX, Metric
from tests.deploy.test_deploy import parsed
from tests.house.test_documents import anchors

ROOT = Path(__file__).parents[2]
RULES = ROOT / "deploy/prometheus/tidewheel.rules.yml"
CASES = ROOT / "tests/deploy/prometheus/alerts.test.yml"
RUNBOOKS = sorted((ROOT / "docs/runbooks").glob("*.md"))
ORDER = ["Means.", "Look.", "Do.", "Do not.", "Leave it when"]


def promtool(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Prometheus's own judge; the package `prometheus` of Debian has it."""
    found = shutil.which("promtool")
    assert found, "promtool is missing: install Prometheus (apt-get install prometheus)"
    return subprocess.run([found, *arguments], cwd=ROOT, capture_output=True, text=True, check=False)


def alerts() -> list[dict[str, Any]]:
    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    return [rule for group in groups for rule in group["rules"]]


def names() -> list[str]:
    return [alert["alert"] for alert in alerts()]


def test_prometheus_takes_the_sample_configuration_and_its_rules():
    done = promtool("check", "config", "deploy/prometheus/prometheus.yml")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(names())} rules found" in done.stdout


def test_each_alert_fires_when_it_should_and_not_before():
    done = promtool("test", "rules", str(CASES))
    assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_has_a_case_in_which_it_fires_and_one_in_which_it_does_not():
    told: dict[str, set[bool]] = {}
    for case in yaml.safe_load(CASES.read_text(encoding="utf-8"))["tests"]:
        for look in case["alert_rule_test"]:
            told.setdefault(look["alertname"], set()).add(bool(look["exp_alerts"]))
    assert told == {name: {True, False} for name in names()}


def test_alerts_ask_for_metrics_that_there_are_by_labels_that_they_have():
    endings = ("", "_bucket", "_sum", "_count")
    known = {f"{PREFIX}{name.value}{ending}": DESCRIBED[name].labels for name in Metric for ending in endings}
    for alert in alerts():
        asked = re.findall(r"(tidewheel_\w+)(?:{([^}]*)})?", alert["expr"])
        assert [name for name, _ in asked if name not in known] == [], alert["alert"]
        labels = [(label, known[name]) for name, by in asked for label in re.findall(r"(\w+)(?:=|!)", by)]
        assert [label for label, there in labels if label not in there] == [], alert["alert"]


@pytest.mark.parametrize("alert", alerts(), ids=names())
def test_an_alert_says_how_bad_it_is_what_it_is_and_where_its_runbook_stands(alert):
    assert alert["labels"]["severity"] in {"critical", "warning"}
    assert alert["annotations"]["summary"].endswith(".")
    path, _, heading = alert["annotations"]["runbook"].partition("#")
    assert heading == alert["alert"].lower()
    assert heading in anchors(ROOT / path)


@pytest.mark.parametrize("alert", names())
def test_a_runbook_says_what_it_means_how_to_look_what_to_do_what_not_and_when_to_leave_it(alert):
    assert re.findall(r"^\*\*(.+?)\*\*", section(alert), flags=re.MULTILINE) == ORDER


def test_no_runbook_is_of_an_alert_that_there_is_not():
    text = "\n".join(page.read_text(encoding="utf-8") for page in RUNBOOKS)
    found = re.findall(r"^## (.+)$", text, flags=re.MULTILINE)
    assert sorted(found) == sorted(names())


def section(alert: str) -> str:
    text = "\n".join(page.read_text(encoding="utf-8") for page in RUNBOOKS)
    return text.partition(f"\n## {alert}\n")[2].partition("\n## ")[0]


def commands() -> list[str]:
    """The lines of runbooks that call our own command, in blocks and in sentences."""
    text = "\n".join(page.read_text(encoding="utf-8") for page in RUNBOOKS)
    blocks = re.findall(r"^ {4}tidewheel (.+)$", text, flags=re.MULTILINE)
    sentences = re.findall(r"`tidewheel ([^`]+)`", text)
    return sorted({*blocks, *sentences})


@pytest.mark.parametrize("command", commands())
def test_a_command_of_a_runbook_is_one_that_there_is(command, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert parsed(shlex.split(command)).command.name is not None
