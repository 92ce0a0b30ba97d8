"""Names as people give them: `nightly`, or `acme/nightly` with the tenant in front."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import click

from tidewheel.cli import output
from tidewheel.client import Client
from tidewheel.errors import TidewheelError, Unreachable


def split(client: Client, name: str) -> tuple[str, str]:
    """Tenant and name; the client's own tenant where none is given."""
    tenant, slash, rest = name.partition("/")
    return (tenant, rest) if slash else (client.tenant, name)


def each(client: Client, names: Iterable[str], act: Callable[[str, str], str]) -> None:
    """Do something to each named thing, and say what was done. One refusal keeps no other from being done."""
    each_of_nobody(("/".join(split(client, given)) for given in names), lambda whole: act(*whole.split("/", 1)))


def delete_each(client: Client, names: Iterable[str], delete: Callable[..., object]) -> None:
    """Delete each named thing by a method of the client."""

    def act(tenant: str, name: str) -> str:
        delete(name, tenant=tenant)
        return f"deleted {tenant}/{name}"

    each(client, names, act)


def each_of_nobody(names: Iterable[str], act: Callable[[str], str]) -> None:
    """The same for what belongs to no tenant."""
    refused = False
    for name in names:
        try:
            output.say(act(name))
        except Unreachable:
            raise
        except TidewheelError as error:
            refused = True
            output.say(f"{name}: {error.title if error.faults else error}", state="refused")
            for fault in error.faults:
                output.say(f"  {fault}")
    if refused:
        click.get_current_context().exit(1)
