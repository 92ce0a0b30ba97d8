"""tidewheel calendars: days that schedules exclude by name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Any

import click

from tidewheel import definitions, publicdays
from tidewheel.cli import changes, naming, options, output
from tidewheel.client import ALL_TENANTS

YEARS_MAX = 50  # of one calendar: a few thousand days


class _Years(click.ParamType[range]):
    """A year, or the first and the last of several."""

    name = "years"
    _FORM = re.compile(r"(\d{4})(?:(?:-|\.\.)(\d{4}))?", re.ASCII)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> range:
        if isinstance(value, range):
            return value
        found = self._FORM.fullmatch(value)
        first, last = (int(found[1]), int(found[2] or found[1])) if found else (1, 0)
        if not 0 <= last - first < YEARS_MAX:
            self.fail(f"{value!r} is not a year, or up to {YEARS_MAX} of them: write 2026, or 2026-2028", param, ctx)
        return range(first, last + 1)


_YEARS = _Years()


@click.group()
def calendars() -> None:
    """Calendars: days that schedules exclude by name."""


changes.add(calendars, "calendars")


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
@click.argument("country")
@click.option("--subdivision", help="A part of the country: SCT, BY, CA.")
@click.option("--years", required=True, type=_YEARS, help="2026, or 2026-2028.")
@click.option("--name", help="Of the calendar; by default made of the country.")
@options.tenant
def holidays(*, country: str, subdivision: str | None, years: range, name: str | None, tenant: str | None) -> None:
    """Write a calendar of a country's public holidays to standard output, to be looked at and applied.

    Needs the extra `holidays`. Nothing is sent anywhere.
    """
    try:
        days = publicdays.holidays(country, subdivision, years)
        source = publicdays.version()
    except publicdays.Unknown as error:
        raise click.UsageError(str(error)) from error
    where = "-".join(filter(None, (country, subdivision)))
    head = {"kind": "Calendar", **({"tenant": tenant} if tenant else {}), "name": name or f"{where.lower()}-holidays"}
    note = f"public holidays of {where}, {years[0]} to {years[-1]}, by {source}"
    click.echo(definitions.write([{**head, "note": note}]).rstrip())
    click.echo("dates:" if days else "dates: []")
    for day, said in days.items():
        click.echo(f"- {day.isoformat()}  # {' '.join(said.split())}")


@calendars.command()
@click.argument("names", nargs=-1, required=True)
@options.said
@options.tenant
@options.url
def delete(*, names: tuple[str, ...], note: str, by: str, tenant: str | None, url: str | None) -> None:
    """Remove calendars. Schedules that name them exclude nothing by them."""
    with options.connect(url, tenant) as client:
        naming.delete_each(client, names, partial(client.delete_calendar, note=note, by=by))


def _row(calendar: Mapping[str, Any]) -> tuple[Any, ...]:
    days = (calendar.get("definition") or {}).get("dates") or ()
    ends = (days[0], days[-1]) if days else ("", "")
    changed = output.when(calendar.get("changed_at"))
    return calendar.get("tenant"), calendar.get("name"), calendar.get("version"), len(days), *ends, changed
