"""The worker's file of targets: what it says, and what is said about one that is wrong."""

import base64
import grp
import os
import pwd
from ipaddress import ip_network

import pytest

from tidewheel.targets import settings
from tidewheel.targets.settings import Command, Http, TargetsUnusable, User, read

USER = pwd.getpwuid(os.geteuid())
AS_SELF = f"user: {USER.pw_name}"


def faults(text: str, **environment: str) -> list[str]:
    with pytest.raises(TargetsUnusable) as refused:
        read(text, "targets.yaml", environment)
    return refused.value.faults


def test_a_command_says_all_that_it_needs_and_has_the_rest_by_default():
    found = read(f"commands: {{dump: {{argv: [/bin/echo, hello], {AS_SELF}}}}}", "targets.yaml", {"SECRET": "x"})
    command = found.commands["dump"]
    assert (command.argv, command.cwd, command.grace_seconds) == (("/bin/echo", "hello"), "/", 5.0)
    assert command.env == {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "LANG": "C.UTF-8",
        "HOME": USER.pw_dir,
        "USER": USER.pw_name,
        "LOGNAME": USER.pw_name,
    }
    assert found.http is None


def test_a_command_may_say_where_it_runs_with_what_and_how_much_of_it():
    text = f"""
commands:
  dump:
    argv: [/bin/echo]
    {AS_SELF}
    cwd: /var
    env: {{PGHOST: db}}
    pass_env: [PGPASSWORD, NOT_THERE]
    limits: {{cpu: 10m, memory: 512MiB, file_size: 1GiB, open_files: 64, processes: 32}}
    grace: 20s
    tenants: [acme]
"""
    command = read(text, "targets.yaml", {"PGPASSWORD": "x"}).commands["dump"]
    assert (command.cwd, command.grace_seconds, command.tenants) == ("/var", 20.0, frozenset({"acme"}))
    assert (command.env["PGHOST"], command.env["PGPASSWORD"], "NOT_THERE" in command.env) == ("db", "x", False)
    assert command.limits == {
        "cpu": 600,
        "memory": 536_870_912,
        "file_size": 1_073_741_824,
        "open_files": 64,
        "processes": 32,
    }


def test_every_fault_is_told_with_its_place():
    text = f"""
comands: {{}}
commands:
  shell: {{argv: rm -rf /, {AS_SELF}}}
  gone: {{argv: [/no/such/program], {AS_SELF}}}
  nothing: {{{AS_SELF}}}
  short: {{argv: [/bin/echo], {AS_SELF}, grace: 5, limits: {{memory: much, ram: 1}}}}
  own: {{argv: [/bin/echo], {AS_SELF}, env: {{TIDEWHEEL_RUN_ID: x}}}}
  stranger: {{argv: [/bin/echo], user: nobody-of-that-name}}
  "a b": {{argv: [/bin/echo]}}
"""
    assert faults(text) == [
        "commands/shell/argv: must be a list of texts",
        "commands/gone/argv: '/no/such/program' is no program that can be run here",
        "commands/nothing/argv: is required: the program's whole path, and its words",
        "commands/short/limits/memory: 'much' is not a size: write 512MiB, or bytes",
        "commands/short/limits/ram: is not known here; known are cpu, file_size, memory, open_files, processes",
        "commands/short/grace: '5' is not a duration",
        "commands/own/env: TIDEWHEEL_RUN_ID: TIDEWHEEL_… is what a command is told about its run",
        "commands/stranger/user: there is no user 'nobody-of-that-name' on this machine",
        "commands/a b: a command's name is 1-128 of A-Z a-z 0-9 . _ -, starting with a letter or digit",
        "comands: is not known here; known are commands, http",
    ]


@pytest.mark.parametrize("text", ["[]", "commands: []", "commands: {a: 5}", "a: b: c", "--- {}\n--- {}", ""])
def test_what_is_no_file_of_targets_is_refused(text):
    assert faults(text)


def test_a_file_that_is_not_there_is_said_so(tmp_path):
    with pytest.raises(TargetsUnusable, match="cannot be read"):
        settings.load(tmp_path / "targets.yaml")


def test_a_worker_that_runs_as_root_must_say_as_whom_a_command_runs(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert faults("commands: {it: {argv: [/bin/echo]}}") == [
        "commands/it/user: this worker runs as root: name the user that the command runs as (root, if you mean it)"
    ]
    nobody = read("commands: {it: {argv: [/bin/echo], user: nobody}}", "targets.yaml", {}).commands["it"].user
    entry = pwd.getpwnam("nobody")
    assert nobody == User(
        name="nobody",
        uid=entry.pw_uid,
        gid=entry.pw_gid,
        groups=(grp.getgrgid(entry.pw_gid).gr_gid,),
        home=entry.pw_dir,
    )


def test_a_worker_that_does_not_run_as_root_runs_commands_as_itself_only(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert faults("commands: {it: {argv: [/bin/echo], user: nobody}}") == [
        "commands/it/user: only a worker that runs as root can run a command as nobody"
    ]
    command = read("commands: {it: {argv: [/bin/echo]}}", "targets.yaml", {}).commands["it"]
    assert isinstance(command, Command)
    assert command.user is None


def test_endpoints_are_called_with_care_by_default():
    http = read("http: {}", "targets.yaml", {}).http
    assert http == Http(
        allow=(),
        ports=frozenset({80, 443}),
        plain=False,
        answer_within_seconds=30.0,
        per_host=None,
        completion_url=None,
        ca_file=None,
        secrets={},
    )


def test_how_endpoints_are_called_is_said_and_secrets_come_from_elsewhere(tmp_path):
    key = base64.b64encode(b"k" * 32).decode()
    (tmp_path / "new").write_text(f"whsec_{key}\n")
    text = f"""
http:
  allow: [10.1.0.0/16, "::1/128"]
  ports: [8443]
  plain: true
  answer_within: 20s
  per_host: 3
  completion_url: https://tidewheel.example.org/
  secrets:
    acme/billing: [{{file: {tmp_path / "new"}}}, {{env: OLD}}]
"""
    http = read(text, "targets.yaml", {"OLD": base64.b64encode(b"o" * 24).decode()}).http
    assert http is not None
    assert http.allow == (ip_network("10.1.0.0/16"), ip_network("::1/128"))
    assert (http.ports, http.plain, http.per_host, http.answer_within_seconds) == (frozenset({8443}), True, 3, 20.0)
    assert http.completion_url == "https://tidewheel.example.org"
    assert http.secrets == {"acme/billing": (b"k" * 32, b"o" * 24)}
    assert "kkkk" not in repr(http)


def test_every_fault_of_how_endpoints_are_called_is_told_and_no_secret():
    text = """
http:
  allow: [10.1.0.1/16]
  ports: [0]
  plain: maybe
  completion_url: example.org
  proxy: x
  secrets: {billing: {env: X}, acme/a: whsec_abc, acme/b: {env: SHORT}, acme/c: {env: GONE}, acme/d: {file: /no/file}}
"""
    found = faults(text, SHORT="c2hvcnQtc2VjcmV0")
    assert [fault.partition(": ")[0] for fault in found] == [
        "http/allow",
        "http/ports",
        "http/plain",
        "http/completion_url",
        "http/secrets/billing",
        "http/secrets/acme/a",
        "http/secrets/acme/b",
        "http/secrets/acme/c",
        "http/secrets/acme/d",
        "http/proxy",
    ]
    assert not any("whsec_abc" in fault or "c2hvcnQ" in fault for fault in found)
