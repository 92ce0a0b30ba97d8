"""tidewheel dead-letters: runs that were given up, and what becomes of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import click

from tidewheel.cli import naming, options, output
from tidewheel.client import Client

COLUMNS = ("TENANT", "RUN", "GIVEN UP", "ATTEMPTS", "REASON", "ERROR", "REDRIVEN AS")
REQUESTS_MAX = 1_000  # of one command: fifty thousand dead letters; whoever has more narrows the choice


@click.group("dead-letters")
def dead_letters() -> None:
    """Runs that were given up, and what becomes of them."""


@dead_letters.command("list")
@click.option("--schedule", help="Only runs of this schedule.")
@click.option("--label", multiple=True, help="Only with this label: team=finance.")
@options.between
@options.tenant
@options.cursor
@options.limit
@options.as_json
@options.url
def list_(*, tenant: str | None, as_json: bool, url: str | None, label: tuple[str, ...], **wanted: Any) -> None:
    """Dead letters, newest first."""
    with options.connect(url, tenant) as client:
        page = client.list_dead_letters(label=list(label) or None, **wanted)
    output.show_page(page, COLUMNS, _row, as_json=as_json)


@dead_letters.command()
@click.argument("run_ids", nargs=-1)
@click.option("--all", "all_", is_flag=True, help="All of the tenant, or of those that the other options name.")
@click.option("--schedule", help="With --all: only runs of this schedule.")
@click.option("--label", multiple=True, help="With --all: only with this label: team=finance.")
@options.between
@options.again
@options.tenant
@options.url
def redrive(
    *, run_ids: tuple[str, ...], all_: bool, schedule: str | None, label: tuple[str, ...], from_: datetime | None,
    to: datetime | None, tenant: str | None, url: str | None, **how: Any,
) -> None:  # fmt: skip
    """Another run of dead letters, once each: those named, or with --all those that the options choose."""
    chosen = options.chosen(schedule=schedule, label=label, from_=from_, to=to)
    if all_ == bool(run_ids) or (chosen and not all_):
        raise click.UsageError("name runs, or give --all, which --schedule, --label, --from and --to narrow")
    with options.connect(url, tenant) as client:
        if all_:
            _redrive_all(client, chosen, how)
            return

        def act(tenant: str, run_id: str) -> str:
            body = client.redrive(run_id, tenant=tenant, **how).body
            return f"{tenant}/{run_id} redriven as {body.get('run_id')}"

        naming.each(client, run_ids, act)


def _redrive_all(client: Client, chosen: Mapping[str, Any], how: Mapping[str, Any]) -> None:
    redriven = refused = 0
    for body in _answers(client, chosen, how):
        for each in body["redriven"]:
            output.say(f"{client.tenant}/{each['of']} redriven as {each.get('run_id', 'its owner will say')}")
        for each in body["refused"]:
            why = each.get("detail") or each.get("reason")
            output.say(f"{client.tenant}/{each['of']}: {why}", state="refused")
        redriven, refused = redriven + len(body["redriven"]), refused + len(body["refused"])
        if body.get("stopped") and not body.get("cursor"):  # of a server that had none for it
            output.say(f"stopped: {body['stopped']}", state="refused")
            refused += 1
    output.say(f"{redriven} redriven, {refused} not")
    if refused:
        click.get_current_context().exit(1)


def _answers(client: Client, chosen: Mapping[str, Any], how: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """One request after another, as far as there are any."""
    cursor = None
    for _ in range(REQUESTS_MAX):
        body = client.redrive_all(chosen, definition=how["definition"], note=how["note"], cursor=cursor).body
        yield body
        cursor = body.get("cursor")
        if cursor is None:
            return


def _row(letter: Mapping[str, Any]) -> tuple[Any, ...]:
    error = letter.get("error") or {}
    return (
        letter.get("tenant"),
        letter.get("run_id"),
        output.when(letter.get("finished_at")),
        letter.get("attempt_count"),
        letter.get("reason"),
        f"{error.get('type')}: {error.get('message', '')}" if error else None,
        letter.get("redriven_as"),
    )
