"""The worker's file of targets: which commands it allows, and how it calls HTTP endpoints. Read strictly.

    commands:
      nightly-dump:
        argv: [/usr/local/bin/dump, --all]
        user: dumper
        env: {PGHOST: db}
        limits: {memory: 512MiB, cpu: 10m}
    http:
      allow: [10.1.0.0/16]
      secrets:
        acme/billing: {env: BILLING_SECRET}

A fault names the field and what to write instead; a file with faults serves nothing.
"""

from __future__ import annotations

import base64
import grp
import os
import pwd
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any

import yaml

from tidewheel import wire, yamltext
from tidewheel.targets import signing

FILE_BYTES_MAX = 1024 * 1024
COMMANDS_MAX = 500  # each is named in every report
ARGUMENTS_MAX = 256
WORDS_BYTES_MAX = 32 * 1024  # of a command's words and variables: what its guardian reads fits a pipe
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", re.ASCII)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_SHORT = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)", re.ASCII)
_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86_400}
_SIZE = re.compile(r"(\d+)(KiB|MiB|GiB)?", re.ASCII)
_BYTES = {None: 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}

Network = IPv4Network | IPv6Network
ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}


class TargetsUnusable(ValueError):
    """The file of targets can't be used, and why; every fault is told."""

    def __init__(self, file: str, faults: list[str]) -> None:
        super().__init__("\n".join(f"{file}: {fault}" for fault in faults))
        self.faults = faults


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """Whom a command runs as."""

    name: str
    uid: int
    gid: int
    groups: tuple[int, ...]
    home: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command that runs may name. Nothing of a run becomes part of its words: the payload comes on standard input.

    `user` is None where it runs as the worker does. Empty `tenants` means every tenant's runs may name it.
    """

    name: str
    argv: tuple[str, ...]
    cwd: str = "/"
    env: Mapping[str, str] = field(default_factory=lambda: dict(ENVIRONMENT))
    user: User | None = None
    limits: Mapping[str, int] = field(default_factory=dict)
    grace_seconds: float = 5.0
    tenants: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Http:
    """How endpoints are called. `secrets` by `tenant/name`, several at once while one replaces the other."""

    allow: tuple[Network, ...] = ()
    ports: frozenset[int] = frozenset({80, 443})
    plain: bool = False
    answer_within_seconds: float = 30.0
    per_host: int | None = None
    completion_url: str | None = None
    ca_file: str | None = None
    secrets: Mapping[str, tuple[bytes, ...]] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What a worker serves beside tasks. `http` is None where it calls no endpoints."""

    commands: Mapping[str, Command] = field(default_factory=dict)
    http: Http | None = None

    def secrets(self) -> list[str]:
        """What endpoints are signed with, as it may come to stand in a text."""
        keys = [key for keys in (self.http.secrets if self.http else {}).values() for key in keys]
        return [form for key in keys for form in (key.decode("latin-1"), base64.b64encode(key).decode())]


def load(path: Path, environment: Mapping[str, str] | None = None) -> Settings:
    """The settings of a file; TargetsUnusable with every fault of it."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TargetsUnusable(str(path), [f"cannot be read: {error}"]) from error
    return read(text, str(path), os.environ if environment is None else environment)


def read(text: str, file: str, environment: Mapping[str, str]) -> Settings:
    """The settings of a text; TargetsUnusable with every fault of it."""
    if len(text) > FILE_BYTES_MAX:
        raise TargetsUnusable(file, [f"has over {FILE_BYTES_MAX} characters"])
    try:
        documents = [document for _, document in yamltext.documents(text)]
    except yaml.MarkedYAMLError as error:
        raise TargetsUnusable(file, [str(error)]) from error
    if len(documents) != 1:
        raise TargetsUnusable(file, ["must hold one document"])
    faults: list[str] = []
    top = _Fields(documents[0], "", faults)
    settings = Settings(
        commands={command.name: command for command in _commands(top, environment)},
        http=_http(_Fields(top.take("http"), "http", faults), environment) if top.has("http") else None,
    )
    top.end()
    if faults:
        raise TargetsUnusable(file, faults)
    return settings


# --- commands ------------------------------------------------------------------------------------------------------


def _commands(top: _Fields, environment: Mapping[str, str]) -> Iterator[Command]:
    given = top.take("commands", {})
    if not isinstance(given, dict) or len(given) > COMMANDS_MAX:
        top.fault("commands", f"must be an object of at most {COMMANDS_MAX} commands")
        return
    for name, body in given.items():
        where = f"commands/{name}"
        if not NAME.fullmatch(name):
            top.fault(where, "a command's name is 1-128 of A-Z a-z 0-9 . _ -, starting with a letter or digit")
            continue
        fields = _Fields(body, where, top.faults)
        yield _command(name, fields, environment)
        fields.end()


def _command(name: str, fields: _Fields, environment: Mapping[str, str]) -> Command:
    user = fields.read("user", _user, None)
    running_as_root = os.geteuid() == 0
    if running_as_root and user is None and not fields.is_wrong("user"):
        fields.fault("user", "this worker runs as root: name the user that the command runs as (root, if you mean it)")
    if user is not None and not running_as_root and user.uid != os.geteuid():
        fields.fault("user", f"only a worker that runs as root can run a command as {user.name}")
    env = {**ENVIRONMENT, **({} if user is None else {"HOME": user.home, "USER": user.name, "LOGNAME": user.name})}
    env |= {key: environment[key] for key in fields.read("pass_env", _names, ()) if key in environment}
    env |= fields.read("env", _variables, {})
    argv: tuple[str, ...] = fields.read("argv", _argv, ()) if fields.has("argv") else ()
    if not argv and not fields.is_wrong("argv"):
        fields.fault("argv", "is required: the program's whole path, and its words")
    if sum(len(text.encode()) for text in (*argv, *env, *env.values())) > WORDS_BYTES_MAX:
        fields.fault("env", f"words and variables have over {WORDS_BYTES_MAX} bytes together")
    return Command(
        name=name,
        argv=argv,
        cwd=fields.read("cwd", _folder, "/"),
        env=env,
        user=user if running_as_root else None,
        limits=_limits(_Fields(fields.take("limits", {}), f"{fields.where}/limits", fields.faults)),
        grace_seconds=fields.read("grace", _duration, 5.0),
        tenants=frozenset(fields.read("tenants", _names, ())),
    )


def _limits(fields: _Fields) -> dict[str, int]:
    readers: dict[str, Callable[[Any], int]] = {
        "cpu": lambda value: max(1, round(_duration(value))),
        "memory": _size,
        "file_size": _size,
        "open_files": _count,
        "processes": _count,
    }
    limits = {name: fields.read(name, reader, 0) for name, reader in readers.items() if fields.has(name)}
    fields.end()
    return limits


def _argv(value: Any) -> tuple[str, ...]:
    words = _texts(value)
    if not words or len(words) > ARGUMENTS_MAX:
        raise ValueError(f"must be a list of 1-{ARGUMENTS_MAX} words, the program first")
    if not Path(words[0]).is_absolute():
        raise ValueError(f"must begin with the program's whole path, not {words[0]!r}: nothing is searched for")
    if not os.access(words[0], os.X_OK) or Path(words[0]).is_dir():
        raise ValueError(f"{words[0]!r} is no program that can be run here")
    return words


def _user(value: Any) -> User:
    try:
        entry = pwd.getpwnam(value)
    except (KeyError, TypeError) as error:
        raise ValueError(f"there is no user {value!r} on this machine") from error
    groups = tuple(sorted({entry.pw_gid, *(group.gr_gid for group in grp.getgrall() if value in group.gr_mem)}))
    return User(name=value, uid=entry.pw_uid, gid=entry.pw_gid, groups=groups, home=entry.pw_dir)


# --- http ----------------------------------------------------------------------------------------------------------


def _http(fields: _Fields, environment: Mapping[str, str]) -> Http:
    http = Http(
        allow=fields.read("allow", _networks, ()),
        ports=fields.read("ports", _ports, Http().ports),
        plain=fields.read("plain", _truth, default=False),
        answer_within_seconds=fields.read("answer_within", _duration, 30.0),
        per_host=fields.read("per_host", _count, None),
        completion_url=fields.read("completion_url", _url, None),
        ca_file=fields.read("ca_file", _file, None),
        secrets=dict(_secrets(fields, environment)),
    )
    fields.end()
    return http


def _secrets(fields: _Fields, environment: Mapping[str, str]) -> Iterator[tuple[str, tuple[bytes, ...]]]:
    given = fields.take("secrets", {})
    if not isinstance(given, dict):
        fields.fault("secrets", "must be an object: {acme/billing: {env: BILLING_SECRET}}")
        return
    for name, sources in given.items():
        tenant, _, secret = name.partition("/")
        if not (NAME.fullmatch(tenant) and NAME.fullmatch(secret)):
            fields.fault(f"secrets/{name}", "is called tenant/name: one tenant's runs may use it")
            continue
        found = []
        for source in sources if isinstance(sources, list) else [sources]:
            try:
                found.append(signing.key_of(_secret(source, environment)))
            except ValueError as error:
                fields.fault(f"secrets/{name}", str(error))
        yield name, tuple(found)


def _secret(source: Any, environment: Mapping[str, str]) -> str:
    """The text of a secret, from where the file says that it is: never from the file itself."""
    match source:
        case {"env": str(variable)} if len(source) == 1:
            if variable not in environment:
                raise ValueError(f"the environment has no {variable}")
            return environment[variable].strip()
        case {"file": str(path)} if len(source) == 1:
            try:
                return Path(path).read_text(encoding="utf-8").strip()
            except (OSError, UnicodeDecodeError) as error:
                raise ValueError(f"cannot be read: {error}") from error
        case _:
            raise ValueError("must be {env: VARIABLE} or {file: /path}: secrets do not stand in this file")


def _networks(value: Any) -> tuple[Network, ...]:
    try:
        return tuple(ip_network(text) for text in _texts(value))
    except ValueError as error:
        raise ValueError(f"must be a list of networks, [10.1.0.0/16, 192.0.2.7/32]: {error}") from error


def _ports(value: Any) -> frozenset[int]:
    if not isinstance(value, list) or not all(type(port) is int and 0 < port < 2**16 for port in value):
        raise ValueError("must be a list of ports, [443, 8443]")
    return frozenset(value)


def _url(value: Any) -> str:
    if not isinstance(value, str) or not value.startswith(("http://", "https://")):
        raise ValueError("must be the address of the server's API as endpoints reach it: https://tidewheel.example.org")
    return value.rstrip("/")


# --- single values ---------------------------------------------------------------------------------------------------


class _Fields:
    """The fields of one object: what is wrong with each is noted, and what nobody asked for."""

    def __init__(self, value: Any, where: str, faults: list[str]) -> None:
        self.where, self.faults = where, faults
        self._left: dict[str, Any] = dict(value) if isinstance(value, dict) else {}
        self._known: list[str] = []
        self._wrong: set[str] = set()
        if not isinstance(value, dict) and not (value is None and where == "http"):
            self.faults.append(f"{where or '/'}: must be an object")

    def has(self, name: str) -> bool:
        self._known.append(name)
        return name in self._left

    def take(self, name: str, default: Any = None) -> Any:
        self._known.append(name)
        return self._left.pop(name, default)

    def read(self, name: str, reader: Callable[[Any], Any], default: Any) -> Any:
        if not self.has(name):
            return default
        try:
            return reader(self.take(name))
        except ValueError as error:
            self.fault(name, str(error))
            return default

    def fault(self, name: str, message: str) -> None:
        self._wrong.add(name)
        self.faults.append(f"{'/'.join(filter(None, (self.where, name)))}: {message}")

    def is_wrong(self, name: str) -> bool:
        return name in self._wrong

    def end(self) -> None:
        for name in self._left:
            known = ", ".join(sorted(dict.fromkeys(self._known)))
            self.fault(name, f"is not known here; known are {known}")


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(text, str) and "\0" not in text for text in value):
        raise ValueError("must be a list of texts")
    return tuple(value)


def _names(value: Any) -> tuple[str, ...]:
    names = _texts(value)
    if not all(map(NAME.fullmatch, names)) and not all(map(_VARIABLE.fullmatch, names)):
        raise ValueError("must be a list of names")
    return names


def _variables(value: Any) -> dict[str, str]:
    if not isinstance(value, dict) or not all(
        _VARIABLE.fullmatch(name) and isinstance(text, str) and "\0" not in text for name, text in value.items()
    ):
        raise ValueError('must be an object of texts, {PGPORT: "5432"}')
    if reserved := [name for name in value if name.startswith("TIDEWHEEL_")]:
        raise ValueError(f"{', '.join(reserved)}: TIDEWHEEL_… is what a command is told about its run")
    return value


def _duration(value: Any) -> float:
    found = _SHORT.fullmatch(value) if isinstance(value, str) else None
    seconds = float(found[1]) * _SECONDS[found[2]] if found else wire.seconds(str(value))
    if seconds <= 0:
        raise ValueError("must be longer than nothing")
    return seconds


def _size(value: Any) -> int:
    found = _SIZE.fullmatch(str(value)) if not isinstance(value, bool) else None
    if found is None or int(found[1]) == 0:
        raise ValueError(f"{value!r} is not a size: write 512MiB, or bytes")
    return int(found[1]) * _BYTES[found[2]]


def _count(value: Any) -> int:
    if type(value) is not int or value < 1:
        raise ValueError("must be a whole number from 1")
    return value


def _truth(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("must be true or false")
    return value


def _folder(value: Any) -> str:
    if not isinstance(value, str) or not Path(value).is_absolute():
        raise ValueError("must be the whole path of a folder")
    return value


def _file(value: Any) -> str:
    if not isinstance(value, str) or not Path(value).is_file():
        raise ValueError("must be the path of a file")
    return value
