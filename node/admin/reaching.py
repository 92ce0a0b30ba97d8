"""How commands that ask a cluster are told which one, and how they say that it cannot be asked."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import click

from node import settings as configuration
from node.folder import DataFolder, FolderRefused
from node.settings import ClusterSettings
from runtime.clock import SystemClock
from runtime.log import Log, LogError
from runtime.logs.embedded import EmbeddedLog
from runtime.logs.kafka.administration import Administration, Away
from runtime.logs.kafka.log import KafkaLog
from runtime.logs.kafka.settings import SettingsRefused
from schemas.frozen import frozen
from schemas.topics import Layout

UNREACHABLE = 3  # contract: exit codes


@frozen
class Operated:
    """A log that an operator works on, and how many partitions its topics were made with."""

    log: Log
    layout: Layout


class NobodyThere(click.ClickException):
    """No broker answers."""

    exit_code = UNREACHABLE


def cluster_settings(flags: Mapping[str, Any]) -> ClusterSettings:
    """Settings of `serve` from `config`, the environment and the other flags; wrong ones are wrong usage."""
    given = dict(flags)
    try:
        return configuration.read_as(ClusterSettings, given.pop("config", None), given)
    except (configuration.SettingsError, SettingsRefused) as error:
        raise click.UsageError(str(error)) from error


def names_a_cluster(config: Path | None) -> bool:
    """Whether a file of settings is for processes on Kafka: it sets what only those have."""
    if config is None or not config.is_file():
        return False
    only_theirs = ClusterSettings.model_fields.keys() - configuration.Settings.model_fields.keys()
    try:
        return bool(only_theirs & tomllib.loads(config.read_text(encoding="utf-8")).keys())
    except tomllib.TOMLDecodeError as error:
        raise click.UsageError(f"config: {config} is not TOML: {error}") from error


@contextmanager
def reached(settings: ClusterSettings) -> Iterator[Administration]:
    """A cluster to be asked, in which at least one broker answers; what it cannot do becomes an exit code."""
    with complaining():
        administration = Administration(settings.log)
        administration.cluster()
        yield administration


@contextmanager
def operated(data: Path | None, flags: Mapping[str, Any]) -> Iterator[Operated]:
    """A log to be read and told something: a cluster's, or a stopped folder's, which is held meanwhile."""
    with complaining(), ExitStack() as undo:
        if data is None:
            settings = cluster_settings(flags)
            Administration(settings.log).cluster()
            log: Log = KafkaLog(settings.log, SystemClock())
            undo.callback(log.close)
            yield Operated(log=log, layout=settings.layout)
            return
        if flags.get("bootstrap") or flags.get("config"):
            raise click.UsageError("--data: a folder or a cluster, not both")
        folder = DataFolder.hold(data)
        undo.callback(folder.release)
        layout = folder.layout()
        log = EmbeddedLog(data / "log", SystemClock())
        undo.callback(log.close)
        yield Operated(log=log, layout=layout)


@contextmanager
def complaining() -> Iterator[None]:
    """What a log refuses, in words and with the right exit code."""
    try:
        yield
    except Away as error:
        raise NobodyThere(str(error)) from error
    except SettingsRefused as error:
        raise click.UsageError(str(error)) from error
    except (LogError, FolderRefused) as error:
        raise click.ClickException(str(error)) from error
