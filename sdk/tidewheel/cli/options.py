"""Options that several commands share, and the client they lead to."""

from __future__ import annotations

import getpass
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import click

from tidewheel.cli import positions
from tidewheel.client import Client

F = TypeVar("F", bound=Callable[..., Any])


def _user() -> str:
    """Nobody, where the system has no name for the user."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


url = click.option("--url", envvar="TIDEWHEEL_URL", help="The server's address.")
as_json = click.option("--json", "as_json", is_flag=True, help="Print the API's own JSON.")
tenant = click.option("--tenant", envvar="TIDEWHEEL_TENANT", help="The tenant; `default` where none is given.")
# Not from the environment: without it a list shows all tenants.
any_tenant = click.option("--tenant", help="Only this tenant; all where none is given.")
limit = click.option("--limit", type=click.IntRange(1, 500), help="At most this many.")
by = click.option("--by", default=_user, show_default="the user's name", help="Who says so.")
cursor = click.option("--cursor", help="Go on where a list ended.")


def said(function: F) -> F:
    """--note and --by of what stands among the changes of a thing."""
    return click.option("--note", default="", help="Why; it stands among the changes.")(by(function))


def between(function: F) -> F:
    """--from and --to."""
    upper = click.option("--to", "to", type=INSTANT, help="Before this instant.")
    lower = click.option("--from", "from_", type=INSTANT, help="From this instant on: 2026-03-08T02:00Z, -24h, +7d.")
    return lower(upper(function))


def chosen(
    *, label: tuple[str, ...] = (), from_: datetime | None = None, to: datetime | None = None, **named: Any
) -> dict[str, Any]:
    """The selector that options amount to; what is not given is not in it."""
    pairs = [text.partition("=") for text in label]
    if not all(key and equals for key, equals, _ in pairs):
        raise click.UsageError("a label is written team=finance")
    for name, value in named.items():
        if value == "":
            raise click.UsageError(f"--{name} is empty: name one, or leave it out")
    said = {**named, "from": from_, "to": to, "labels": {key: value for key, _, value in pairs}}
    return {key: value for key, value in said.items() if value}


def again(function: F) -> F:
    """How a run is run again."""
    words = "Whose job it has: the old run's (if not given), or the schedule's as it stands."
    definition = click.option("--definition", type=click.Choice(["same", "current"]), help=words)
    note = click.option("--note", default="", help="Why; it stands in the command.")
    return definition(note(function))


def payload(payload: str | None) -> dict[str, Any] | None:
    """What --payload says: a JSON object, if anything."""
    if payload is None:
        return None
    try:
        value = json.loads(payload)
    except ValueError as error:
        raise click.UsageError(f"--payload is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise click.UsageError("--payload must be a JSON object")
    return value


@contextmanager
def connect(url: str | None, tenant: str | None = None) -> Iterator[Client]:
    """A client that reads what earlier commands have written."""
    with Client(url, tenant) as client:
        client.position = before = positions.recall(client.url)
        try:
            yield client
        finally:
            if client.position is not None and client.position != before:
                positions.remember(client.url, client.position)


class _Instant(click.ParamType[datetime]):
    """RFC 3339, a date (its midnight in UTC), or a distance from now."""

    name = "instant"
    _DISTANCE = re.compile(r"([+-])(\d{1,6})([smhdw])", re.ASCII)
    _UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days", "w": "weeks"}  # noqa: RUF012 -- never changed

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        if isinstance(value, datetime):
            return value
        distance = self._DISTANCE.fullmatch(value)
        if distance:
            sign, count, unit = distance.groups()
            return datetime.now(UTC) + timedelta(**{self._UNITS[unit]: int(sign + count)})
        try:
            at = datetime.fromisoformat(value)
        except ValueError:
            self.fail(f"{value!r} is not an instant: write 2026-03-08T02:00Z, 2026-03-08, -24h or +7d", param, ctx)
        if at.tzinfo is None and "T" in value.upper():
            self.fail(f"{value!r} has no offset: add Z, or one such as +02:00", param, ctx)
        return at.replace(tzinfo=at.tzinfo or UTC)


INSTANT = _Instant()
