"""The ways to run it that no test can run: what is written there exists, fits together and is closed to strangers.

There is no container engine here. What one would refuse at once (a misspelt key, a file that is not there) is looked
for in the files; what only we can refuse (a command, an option, a setting) is asked of our own code.
"""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
import tomllib
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from string import Template
from typing import Any

import click
import pytest
import yaml

from node.children import ChildProcess
from node.cluster import processes_of
from node.process import PROCESS_STOP_SECONDS, STOP_SECONDS
from node.settings import ROLES, ClusterSettings, read_as
from runtime.logs.kafka.settings import check
from runtime.telemetry import Telemetry
from tidewheel.cli import main
from tidewheel.loading import load_worker

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
DOCKERFILE, COMPOSE = DEPLOY / "docker" / "Dockerfile", DEPLOY / "docker" / "compose.yaml"
SERVE, DEV = (DEPLOY / "systemd" / name for name in ("tidewheel-serve@.service", "tidewheel-dev.service"))
TAGGED = re.compile(r"[a-z0-9-]+(/[a-z0-9-]+)?:[A-Za-z0-9._-]+")  # no host of a registry, and never what is latest
SETTINGS = {f"TIDEWHEEL_{name.upper()}" for name in ClusterSettings.model_fields}
OF_THE_SDK = {"TIDEWHEEL_URL", "TIDEWHEEL_TENANT", "TIDEWHEEL_TOKEN"}


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def parsed(arguments: list[str]) -> click.Context:
    """A command line as our own program reads it; click.UsageError when it does not."""
    command: click.Command = main
    name, context = "tidewheel", None
    while True:
        context = command.make_context(name, list(arguments), parent=context)
        if not isinstance(command, click.Group):
            return context
        found, child, arguments = command.resolve_command(context, [*context._protected_args, *context.args])
        assert child is not None, found
        name, command = str(found), child


# --- the image ----------------------------------------------------------------------------------------------------


def instructions() -> list[tuple[str, str]]:
    """Every instruction of the Dockerfile with its arguments, continued lines joined."""
    lines = [line for line in text_of(DOCKERFILE).splitlines() if line.strip() and not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [(name, rest.strip()) for name, _, rest in (line.partition(" ") for line in joined.splitlines())]


def arguments_of(name: str) -> list[str]:
    return [rest for found, rest in instructions() if found == name]


def copied() -> set[str]:
    """What is copied from the repository."""
    return {
        source for rest in arguments_of("COPY") if not rest.startswith("--from=") for source in shlex.split(rest)[:-1]
    }


def test_the_image_is_made_by_instructions_that_exist():
    known = {
        "FROM", "ENV", "WORKDIR", "RUN", "COPY", "VOLUME", "USER", "EXPOSE", "STOPSIGNAL", "HEALTHCHECK", "ENTRYPOINT",
        "CMD",
    }  # fmt: skip
    assert {name for name, _ in instructions()} == known


def test_the_image_begins_with_one_whose_version_is_named():
    stages = [re.fullmatch(r"(\S+)(?: AS (\S+))?", rest) for rest in arguments_of("FROM")]
    assert [stage and (bool(TAGGED.fullmatch(stage[1])), stage[2]) for stage in stages] == [
        (True, "build"), (True, None),
    ]  # fmt: skip
    assert [rest for rest in arguments_of("COPY") if rest.startswith("--from=")] == [
        "--from=build /opt/tidewheel /opt/tidewheel"
    ]


def test_what_the_image_copies_is_there_and_is_all_that_both_distributions_are_made_of():
    project = tomllib.loads(text_of(ROOT / "pyproject.toml"))
    packages = set(project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"])
    assert {source for source in copied() if not (ROOT / source).exists()} == set()
    assert copied() == packages | {
        "sdk", "pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "requirements.txt", "requirements-dev.txt",
    }  # fmt: skip


def test_the_builder_sees_what_the_image_copies_and_nothing_else():
    lines = text_of(DOCKERFILE.with_name("Dockerfile.dockerignore")).splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "*"
    assert {rule[1:] for rule in rules if rule.startswith("!")} == copied()


def test_of_the_large_lock_the_image_takes_the_client_of_postgresql_with_its_hashes(tmp_path):
    shutil.copy(ROOT / "requirements-dev.txt", tmp_path)
    take, install = next(rest for rest in arguments_of("RUN") if rest.startswith("awk")).split("&&")
    subprocess.run(take, shell=True, cwd=tmp_path, check=True)
    lock = text_of(tmp_path / "postgresql.txt")
    assert re.findall(r"^([a-z-]+)==[0-9.]+ \\\n +--hash=sha256:[0-9a-f]{64}", lock, flags=re.MULTILINE) == [
        "psycopg", "psycopg-binary",
    ]  # fmt: skip
    assert re.findall(r"^[^\s#].*?==", lock, flags=re.MULTILINE) == ["psycopg==", "psycopg-binary=="]
    assert " --require-hashes -r requirements.txt -r postgresql.txt" in install


def test_no_tool_that_builds_or_installs_stays_in_the_image():
    removed = set(re.findall(r"uninstall --yes ([a-z -]+)", arguments_of("RUN")[2])[0].split())
    backend = set(re.findall(r"^([a-z-]+)==(?:(?!\n\S).)*# via hatchling$", LOCK, flags=re.MULTILINE | re.DOTALL))
    assert {"pathspec", "pluggy", "trove-classifiers"} <= backend
    assert removed == backend | {"editables", "hatchling", "pip", "setuptools"}
    assert arguments_of("RUN")[3].startswith("python -m pip uninstall --yes --root-user-action=ignore pip ")


LOCK = text_of(ROOT / "requirements.txt")


def test_the_image_runs_as_a_user_who_is_not_root_and_kubernetes_can_tell():
    assert arguments_of("USER") == ["10001:10001"]
    last = [name for name, _ in instructions()]
    assert "RUN" not in last[last.index("USER") :]


def test_the_image_is_the_command_and_serves_unless_told_otherwise():
    assert [json.loads(rest) for rest in arguments_of("ENTRYPOINT")] == [["tidewheel"]]
    assert [json.loads(rest) for rest in arguments_of("CMD")] == [["serve"]]
    assert parsed(["serve"]).info_name == "serve"


@pytest.mark.parametrize(("answer", "code"), [(200, 0), (503, 1)])
def test_the_image_is_healthy_while_healthz_says_so(answer, code):
    class Server(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(answer if self.path == "/healthz" else 404)
            self.end_headers()

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Server) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            assert health_of(server.server_port) == code
        finally:
            server.shutdown()
            thread.join()


def test_the_image_is_unhealthy_when_nobody_answers():
    assert health_of(1) == 1


def health_of(port: int) -> int:
    """The exit code of the image's own check."""
    python, *rest = json.loads(arguments_of("HEALTHCHECK")[0].partition("CMD ")[2])
    assert python == "python"
    environment = os.environ | {"TIDEWHEEL_PORT": str(port), "http_proxy": "http://127.0.0.1:9"}
    return subprocess.run([sys.executable, *rest], env=environment, stderr=subprocess.DEVNULL, check=False).returncode


# --- compose.yaml -------------------------------------------------------------------------------------------------

FILE: dict[str, Any] = yaml.safe_load(text_of(COMPOSE))
SERVICES: dict[str, dict[str, Any]] = FILE["services"]
OURS = {name: service for name, service in SERVICES.items() if "build" in service}
NODES = {name: service for name, service in OURS.items() if service["command"][0] == "serve"}


def test_every_key_is_one_of_the_compose_specification():
    assert {key for key in FILE if not key.startswith("x-")} == {"name", "services", "volumes"}
    assert {key for service in SERVICES.values() for key in service} == {
        "image", "build", "command", "environment", "depends_on", "healthcheck", "volumes", "ports", "restart",
        "stop_grace_period", "init", "read_only", "tmpfs", "cap_drop", "security_opt",
    }  # fmt: skip
    assert {key for service in SERVICES.values() for key in service.get("healthcheck", {})} == {
        "disable", "test", "interval", "timeout", "start_period", "retries",
    }  # fmt: skip


def test_values_that_yaml_would_read_as_something_else_are_texts():
    values = {value for service in SERVICES.values() for value in service.get("environment", {}).values()}
    assert {value for value in values if not isinstance(value, str)} == set()
    assert {service["restart"] for service in SERVICES.values()} == {"no", "unless-stopped"}


@pytest.mark.parametrize("name", OURS)
def test_each_command_is_one_of_ours_with_options_that_exist(name):
    assert parsed(OURS[name]["command"]).info_name in {"serve", "worker", "topics"}


@pytest.mark.parametrize("name", NODES)
def test_the_settings_of_each_node_are_accepted_as_they_stand(name, monkeypatch):
    for variable, value in NODES[name]["environment"].items():
        monkeypatch.setenv(variable, value)
    flags = {key: value for key, value in parsed(NODES[name]["command"]).params.items() if key in FLAGS}
    settings = read_as(ClusterSettings, None, flags)
    check(settings.log)
    assert settings.roles == (name,)
    assert settings.bootstrap == "kafka:9092"


FLAGS = {"roles", "bootstrap", "data", "host", "port", "processes"}


def test_every_role_has_a_service():
    assert set(NODES) == set(ROLES)


def test_every_variable_of_ours_is_one_that_its_command_reads():
    for name, service in OURS.items():
        known = OF_THE_SDK if name == "worker" else SETTINGS
        assert {key for key in service["environment"] if key.startswith("TIDEWHEEL_")} - known == set(), name


def test_all_nodes_say_the_same_of_the_cluster():
    variables = ("BOOTSTRAP", "PLAINTEXT", "REPLICATION_FACTOR", "MIN_INSYNC_REPLICAS")
    said = {
        tuple(service["environment"].get(f"TIDEWHEEL_{name}") for name in variables)
        for service in (*NODES.values(), SERVICES["topics"])
    }
    assert said == {("kafka:9092", "true", "1", "1")}


def test_the_example_of_a_worker_can_be_loaded():
    assert load_worker(SERVICES["worker"]["command"][1]).task_names


def test_no_two_nodes_share_a_folder_or_a_name_however_many_there_are_of_a_service():
    for service in NODES.values():
        assert service["volumes"] == [{"type": "volume", "target": "/var/lib/tidewheel"}]
        assert "TIDEWHEEL_NODE_ID" not in service["environment"]


def test_who_is_waited_for_exists_and_can_become_what_is_waited_for():
    for service in SERVICES.values():
        for other, how in service.get("depends_on", {}).items():
            awaited = SERVICES[other]
            if how["condition"] == "service_completed_successfully":
                assert awaited["restart"] == "no"
            else:
                assert how == {"condition": "service_healthy"}
                assert not awaited.get("healthcheck", {}).get("disable")
                assert "healthcheck" in awaited or awaited["build"]["dockerfile"] == "deploy/docker/Dockerfile"


def test_a_container_of_ours_is_checked_exactly_when_it_has_a_port():
    assert {name for name, service in OURS.items() if "healthcheck" not in service} == {"api"}


def test_every_volume_is_declared_and_used():
    named = {
        volume.partition(":")[0]
        for service in SERVICES.values()
        for volume in service.get("volumes", [])
        if isinstance(volume, str)
    }
    assert named == set(FILE["volumes"]) == {"kafka", "postgres"}


def test_each_image_has_a_version_and_ours_is_built_from_here():
    assert {service["image"] for service in SERVICES.values() if not TAGGED.fullmatch(service["image"])} == set()
    for service in OURS.values():
        context = (COMPOSE.parent / service["build"]["context"]).resolve()
        assert (context, context / service["build"]["dockerfile"]) == (ROOT, DOCKERFILE)


def test_nothing_is_published_beyond_this_machine():
    assert {name: service["ports"] for name, service in SERVICES.items() if "ports" in service} == {
        "api": ["127.0.0.1:8440:8440"]
    }


def test_a_password_is_asked_for_and_never_preset():
    passwords = {
        value
        for service in SERVICES.values()
        for key, value in service.get("environment", {}).items()
        if "PASSWORD" in key
    }
    assert passwords == {"${POSTGRES_PASSWORD:?README.md says how to make one}"}


def test_a_stop_leaves_each_as_long_as_it_needs():
    assert {name: service.get("stop_grace_period") for name, service in SERVICES.items()} == {
        "scheduler": "30s", "dispatcher": "30s", "projector": "30s", "api": "30s",
        "worker": "40s", "topics": None, "kafka": "1m", "postgres": "1m",
    }  # fmt: skip
    assert STOP_SECONDS == 20.0
    assert parsed(SERVICES["worker"]["command"]).params["grace_seconds"] == 30.0


# What differs from the broker of our tests: where it listens and what it keeps; and a fail-over need not take a second.
BROKER_ELSEWHERE = {
    "controller.quorum.voters", "listeners", "advertised.listeners", "log.dirs", "group.min.session.timeout.ms",
    "broker.session.timeout.ms", "broker.heartbeat.interval.ms",
}  # fmt: skip


def test_the_broker_is_set_as_the_one_that_all_our_tests_use():
    lines = re.findall(r"^([a-z.]+)=(.*)$", text_of(DEPLOY / "kafka" / "server.properties"), flags=re.MULTILINE)
    wanted = {
        key: Template(value).substitute(node=1, replicas=1, replicas_in_sync=1)
        for key, value in lines
        if key not in BROKER_ELSEWHERE
    }
    environment = SERVICES["kafka"]["environment"]
    found = {key.removeprefix("KAFKA_").lower().replace("_", "."): value for key, value in environment.items()}
    assert {key: value for key, value in found.items() if key not in BROKER_ELSEWHERE} == wanted | {
        "heap.opts": "-Xmx512m"
    }


def test_the_broker_has_the_version_of_the_one_that_all_our_tests_use():
    version = re.findall(r"kafka_2.13</artifactId>\s*<version>([^<]+)", text_of(DEPLOY / "kafka" / "pom.xml"))[0]
    assert SERVICES["kafka"]["image"] == f"apache/kafka:{version}"


# --- systemd ------------------------------------------------------------------------------------------------------


def unit(path: Path) -> list[tuple[str, str]]:
    """What a unit says, in its order."""
    return re.findall(r"^([A-Za-z]+)=(.*)$", text_of(path), flags=re.MULTILINE)


@pytest.mark.parametrize("path", [SERVE, DEV], ids=lambda path: path.name)
def test_a_unit_is_made_of_sections_and_settings_and_runs_a_command_of_ours(path):
    lines = [line for line in text_of(path).splitlines() if line and not line.startswith("#")]
    assert [line for line in lines if line.startswith("[")] == ["[Unit]", "[Service]", "[Install]"]
    assert [line for line in lines if not re.fullmatch(r"\[[A-Z][a-z]+\]|[A-Z][A-Za-z]+=.*", line)] == []
    program, *arguments = shlex.split(dict(unit(path))["ExecStart"])
    assert program == "/opt/tidewheel/.venv/bin/tidewheel"
    assert parsed(arguments).info_name == {SERVE: "serve", DEV: "dev"}[path]


@pytest.mark.parametrize("path", [SERVE, DEV], ids=lambda path: path.name)
def test_systemd_has_nothing_to_say_against_a_unit(path, tmp_path):
    """Where there is a systemd: it warns of what it does not know and goes on, so its silence is what counts."""
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        return
    here = tmp_path / path.name
    here.write_text(text_of(path).replace("/opt/tidewheel/.venv/bin/tidewheel", sys.executable), encoding="utf-8")
    done = subprocess.run([analyze, "verify", "--man=no", here], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_node_may_do_as_little_as_a_machine_of_its_own():
    serve, dev = (text_of(path).partition("\n# It reads its installation")[2] for path in (SERVE, DEV))
    assert serve == dev
    assert "ProtectSystem=strict" in serve


def test_a_node_starts_again_however_it_ended_and_has_time_to_end():
    said = dict(unit(SERVE))
    assert (said["Restart"], said["RestartSec"], said["StartLimitIntervalSec"]) == ("always", "5", "0")
    assert said["TimeoutStopSec"] == "90"
    assert len(ROLES) * STOP_SECONDS == PROCESS_STOP_SECONDS == 80.0


def test_of_several_processes_each_has_as_long_as_one_alone_and_their_parent_outlasts_them():
    """It waited for 20 s, and its end is theirs: a batch that took longer was torn."""
    settings = ClusterSettings(processes=3)
    parent = processes_of(settings, Telemetry())
    assert {child.drain for child in parent.services if isinstance(child, ChildProcess)} == {80.0}
    assert (parent.stop_seconds, parent.apart) == (82.0, True)
    assert parent.stop_seconds < float(dict(unit(SERVE))["TimeoutStopSec"])


def test_each_instance_has_a_folder_and_an_environment_of_its_own_and_does_not_start_without():
    said = dict(unit(SERVE))
    assert said["StateDirectory"] == "tidewheel-%i"
    assert said["ExecStart"].endswith(" --config /etc/tidewheel/tidewheel.toml --data %S/tidewheel-%i")
    assert said["EnvironmentFile"] == "/etc/tidewheel/%i.environment"


# --- what is written about all of it --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["README.md", "docker/README.md", "docker/Dockerfile", "systemd/README.md"])
def test_every_variable_that_is_named_exists(name):
    named = set(re.findall(r"TIDEWHEEL_[A-Z_]+[A-Z]", text_of(DEPLOY / name)))
    assert named
    assert named - SETTINGS - OF_THE_SDK == set()
