"""tidewheel calendars: days that schedules exclude by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from tidewheel.cli import naming, options, output
from tidewheel.client import ALL_TENANTS


@click.group()
def calendars() -> None:
    """Calendars: days that schedules exclude by name."""


@calendars.command("list")
@options.any_tenant
@options.cursor
@options.limit
@options.as_json
@options.url
def list_(*, tenant: str | None, as_json: bool, url: str | None, **wanted: Any) -> None:
    """Calendars by name."""
    with options.connect(url, tenant) as client:
        page = client.list_calendars(tenant=tenant or ALL_TENANTS, **wanted)
    output.show_page(page, ("TENANT", "NAME", "VERSION", "DAYS", "FIRST", "LAST", "CHANGED"), _row, as_json=as_json)


@calendars.command()
@click.argument("name")
@options.tenant
@options.as_json
@options.url
def show(*, name: str, tenant: str | None, as_json: bool, url: str | None) -> None:
    """One calendar as it stands."""
    with options.connect(url, tenant) as client:
        tenant, name = naming.split(client, name)
        body = client.get_calendar(name, tenant=tenant)
    output.show_definition("calendar", f"{tenant}/{name}", body, as_json=as_json)


@calendars.command()
@click.argument("names", nargs=-1, required=True)
@options.tenant
@options.url
def delete(*, names: tuple[str, ...], tenant: str | None, url: str | None) -> None:
    """Remove calendars. Schedules that name them exclude nothing by them."""
    with options.connect(url, tenant) as client:

        def act(tenant: str, name: str) -> str:
            client.delete_calendar(name, tenant=tenant)
            return f"deleted {tenant}/{name}"

        naming.each(client, names, act)


def _row(calendar: Mapping[str, Any]) -> tuple[Any, ...]:
    days = (calendar.get("definition") or {}).get("dates") or ()
    ends = (days[0], days[-1]) if days else ("", "")
    changed = output.when(calendar.get("changed_at"))
    return calendar.get("tenant"), calendar.get("name"), calendar.get("version"), len(days), *ends, changed
