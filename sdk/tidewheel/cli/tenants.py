"""tidewheel tenants: owners of schedules, and what they may have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from tidewheel.cli import changes, naming, options, output


@click.group()
def tenants() -> None:
    """Owners of schedules. One that is not declared has no quotas."""


changes.add(tenants, "tenants")


@tenants.command("list")
@options.as_json
@options.url
def list_(*, as_json: bool, url: str | None) -> None:
    """Tenants that have schedules or are declared."""
    with options.connect(url) as client:
        page = client.list_tenants()
    output.show_page(page, ("NAME", "SCHEDULES", "VERSION"), _row, as_json=as_json)


@tenants.command()
@click.argument("name")
@options.as_json
@options.url
def show(*, name: str, as_json: bool, url: str | None) -> None:
    """One tenant as it is declared."""
    with options.connect(url) as client:
        body = client.get_tenant(name)
    output.show_definition("tenant", name, body, as_json=as_json)


@tenants.command()
@click.argument("names", nargs=-1, required=True)
@options.said
@options.url
def delete(*, names: tuple[str, ...], note: str, by: str, url: str | None) -> None:
    """Remove definitions. What the tenants have stays, without quotas."""
    with options.connect(url) as client:

        def act(name: str) -> str:
            client.delete_tenant(name, note=note, by=by)
            return f"deleted {name}"

        naming.each_of_nobody(names, act)


def _row(tenant: Mapping[str, Any]) -> tuple[Any, ...]:
    return tenant.get("name"), tenant.get("schedules"), tenant.get("version", "-")
