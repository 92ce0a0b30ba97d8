"""tidewheel breakers: jobs and hosts of which nothing is handed out, because too much of it failed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from tidewheel.cli import options, output
from tidewheel.client import ALL_TENANTS

COLUMNS = ("TENANT", "QUEUE", "BREAKER", "STATE", "SINCE", "UNTIL", "FAILED", "ERROR")


@click.group()
def breakers() -> None:
    """Jobs and hosts of which nothing is handed out, because too much of it failed."""


@breakers.command("list")
@options.any_tenant
@click.option("--queue", help="Only in this queue.")
@click.option("--state", type=click.Choice(["open", "half_open", "closed"]), help="Those not closed if not given.")
@options.cursor
@options.limit
@options.as_json
@options.url
def list_(*, tenant: str | None, as_json: bool, url: str | None, **wanted: Any) -> None:
    """Breakers, with since when and why they hold runs."""
    with options.connect(url, tenant) as client:
        page = client.list_breakers(tenant=tenant or ALL_TENANTS, **wanted)
    output.show_page(page, COLUMNS, _row, as_json=as_json)


@breakers.command()
@click.argument("breaker", required=False)
@click.option("--all", "all_", is_flag=True, help="All of the tenant in the queue.")
@click.option("--queue", default="default", show_default=True)
@click.option("--note", default="", help="Why; it stands in the record.")
@options.by
@options.tenant
@options.url
def reset(
    *, breaker: str | None, all_: bool, queue: str, note: str, by: str, tenant: str | None, url: str | None
) -> None:  # fmt: skip
    """Close BREAKER (job:send-report, schedule:nightly, host:api.example.com): all that waits behind it may go."""
    if all_ == bool(breaker):
        raise click.UsageError("name a breaker, or give --all")
    with options.connect(url, tenant) as client:
        body = client.reset_breaker(queue, breaker, note=note, by=by).body
    for each in body.get("reset") or ():
        since = output.when(each.get("since"))
        output.say(f"{client.tenant}/{each['breaker']} closed; it was {each['was'].replace('_', ' ')} since {since}")
    if not body.get("reset"):
        output.say("nothing was open")
    if body.get("left"):
        output.say(f"{body['left']} are left; say it again")


def _row(breaker: Mapping[str, Any]) -> tuple[Any, ...]:
    error, failures = breaker.get("error") or {}, breaker.get("failures")
    return (
        breaker.get("tenant"),
        breaker.get("queue"),
        breaker.get("breaker"),
        breaker.get("state"),
        output.when(breaker.get("since")),
        output.when(breaker.get("until")),
        f"{failures} of {breaker.get('ended')}" if failures else None,
        f"{error.get('type')}: {error.get('message', '')}" if error else None,
    )
