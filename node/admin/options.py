"""The options that several of these commands have: which cluster, and whose word. They load nothing of the server."""

from __future__ import annotations

import getpass
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def kafka_options(command: F) -> F:
    """`--config`, `--bootstrap`, `--namespace`."""
    namespace = click.option("--namespace", help="What stands before all names of topics [none].")
    bootstrap = click.option("--bootstrap", metavar="HOST:PORT,…", help="Kafka brokers to ask first [127.0.0.1:9092].")
    config = click.option("--config", type=click.Path(path_type=Path), help="A TOML file of settings.")
    return config(bootstrap(namespace(command)))


def word_options(command: F) -> F:
    """`--role`, `--partition`, `--by`, `--note`, and which cluster."""
    note = click.option("--note", default="", help="Why; it stands on the log.")
    by = click.option(
        "--by", default=_author, show_default="the user's name", help="Who says so; it stands on the log."
    )
    number = click.option("--partition", "number", type=click.IntRange(min=0), help="One partition [all].")
    role = click.option("--role", type=click.Choice(["scheduler", "dispatcher"]), help="One role [both].")
    return role(number(by(note(kafka_options(command)))))


def _author() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"
