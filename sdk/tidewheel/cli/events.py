"""tidewheel events: what happens, as it happens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import click

from tidewheel.cli import options, output
from tidewheel.client import ALL_TENANTS
from tidewheel.eventstream import Event

LAST = 100  # of each partition, where nobody says how many: what a person can look through
TOLD = ("reason", "outcome", "note", "by", "worker")  # what a line says of an event beside its names


@click.command()
@click.option("--follow", "-f", is_flag=True, help="Stay, and show what happens until Ctrl-C.")
@click.option("--schedule", help="Only of this schedule.")
@click.option("--run", help="Only of this run.")
@click.option("--type", "type_", multiple=True, help="Only of this type: run.finished, schedule.paused, …")
@click.option("--last", type=click.IntRange(0, 10_000), help="Begin so many before the end of each partition [100].")
@click.option("--cursor", help="Go on behind an event, as --json names it.")
@options.any_tenant
@options.as_json
@options.url
def events(
    *, follow: bool, cursor: str | None, tenant: str | None, as_json: bool, url: str | None, last: int | None,
    **wanted: Any,
) -> None:  # fmt: skip
    """What happened last, and with --follow what happens from now on.

    Events of one schedule come in their order; what is shown and not followed is sorted by time. With --json each is
    one line, a CloudEvent with the cursor behind it, in the order of those. The same event may stand there twice after
    a failure: its `id` is the same. Schedules and runs may be named with their tenant: acme/nightly.
    """
    last = LAST if last is None and cursor is None else last
    for name in ("schedule", "run"):
        whose, slash, rest = (wanted[name] or "").partition("/")
        if slash:
            tenant, wanted[name] = whose, rest
    with options.connect(url) as client:
        found = client.events(tenant=tenant or ALL_TENANTS, follow=follow, cursor=cursor, last=last, **wanted)
        _show(found if follow or as_json else sorted(found, key=_time), as_json=as_json)


def _show(found: Iterable[Event], *, as_json: bool) -> None:
    for event in found:
        if as_json:
            click.echo(output.written({"cursor": event.cursor, **event.body}))
        else:
            click.echo(output.plain(_line(event.body)))


def _time(event: Event) -> str:
    """RFC 3339 in UTC sorts as it is written, down to its seconds; neighbours stay as they came."""
    return str(event.body.get("time", ""))[:19]


def _line(body: Mapping[str, Any]) -> str:
    data = body.get("data") or {}
    kind = str(body.get("type", "")).removeprefix("tidewheel.").rpartition(".v")[0]
    what = data.get("run_id") or data.get("nominal_time") or data.get("backfill") or ""
    told = ", ".join(f"{name} {data[name]}" for name in TOLD if data.get(name))
    return f"{output.when(body.get('time'))}  {kind:<22}  {body.get('subject', '')}  {what}  {told}".rstrip()
