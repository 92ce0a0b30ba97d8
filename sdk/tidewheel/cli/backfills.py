"""tidewheel backfills: the occurrences of a past range, a few at a time."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from tidewheel.cli import naming, options, output
from tidewheel.client import Client, Written

COLUMNS = ("TENANT", "SCHEDULE", "BACKFILL", "STATE", "FROM", "TO", "DONE", "RUNS", "LEFT OUT", "EXPECTED")
BAR_CELLS = 20
LOOK_SECONDS = 1.0  # between two looks at one that is watched
OVER = frozenset({"completed", "cancelled"})
COMPLETED = "completed"


@click.group()
def backfills() -> None:
    """The occurrences of a past range, a few at a time."""


@backfills.command()
@click.argument("schedule")
@click.option("--from", "from_", type=options.INSTANT, required=True, help="From this instant on: 2026-03-08, -7d.")
@click.option("--to", type=options.INSTANT, help="Before this instant; now, where it is not given.")
@click.option("--order", type=click.Choice(["oldest", "newest"]), help="Which come first; oldest if not given.")
@click.option("--reprocess", type=click.Choice(["none", "failed", "completed"]), help="Which of those that had a run.")
@click.option("--max-active", type=click.IntRange(1, 256), help="Runs that are open at a time; 1 if not given.")
@click.option("--rate", help="Runs that may begin: 10/s (if not given), 100/m, 5/h.")
@click.option("--as-of", type=click.IntRange(1), help="The version to go by; the current one if not given.")
@click.option("--note", help="Why; kept with its history.")
@click.option("--dry-run", is_flag=True, help="Say what it would do, and do nothing.")
@click.option("--watch", is_flag=True, help="Stay until it is over.")
@options.tenant
@options.as_json
@options.url
def start(
    *, schedule: str, dry_run: bool, watch: bool, tenant: str | None, as_json: bool, url: str | None, **wanted: Any
) -> None:
    """Run the occurrences of a past range of a SCHEDULE."""
    with options.connect(url, tenant) as client:
        tenant, name = naming.split(client, schedule)
        body = client.start_backfill(name, tenant=tenant, dry_run=dry_run or None, **_whole(wanted)).body
        if as_json and not watch:
            output.show_json(body)
        elif dry_run:
            _show_forecast(body)
        elif not as_json:
            _show_started(tenant, name, body)
        if watch and not dry_run:
            _watch(client, tenant, name, str(body["backfill"]), as_json=as_json)


@backfills.command("list")
@click.argument("schedule", required=False)
@click.option("--state", help="Only in this state: running, paused, cancelling, completed, cancelled.")
@options.tenant
@options.cursor
@options.limit
@options.as_json
@options.url
def list_(*, schedule: str | None, tenant: str | None, as_json: bool, url: str | None, **wanted: Any) -> None:
    """Backfills, newest first: of a SCHEDULE, or of all."""
    with options.connect(url, tenant) as client:
        if schedule is None:
            page = client.list_backfills(**wanted)
        else:
            tenant, name = naming.split(client, schedule)
            page = client.list_backfills(name, tenant=tenant, **wanted)
    output.show_page(page, COLUMNS, _row, as_json=as_json)


@backfills.command()
@click.argument("schedule")
@click.argument("backfill")
@options.tenant
@options.as_json
@options.url
def watch(*, schedule: str, backfill: str, tenant: str | None, as_json: bool, url: str | None) -> None:
    """Stay until a BACKFILL of a SCHEDULE is over; 1 when it was cancelled."""
    with options.connect(url, tenant) as client:
        tenant, name = naming.split(client, schedule)
        _watch(client, tenant, name, backfill, as_json=as_json)


def _changing(verb: str, what: str, change: Callable[[Client], Callable[..., Written]]) -> None:
    """One of the commands that change a backfill which is under way."""

    @backfills.command(verb, help=what)
    @click.argument("schedule")
    @click.argument("backfill")
    @click.option("--note", default="", help="Why; kept with its history.")
    @options.tenant
    @options.as_json
    @options.url
    def act(*, schedule: str, backfill: str, note: str, tenant: str | None, as_json: bool, url: str | None) -> None:
        with options.connect(url, tenant) as client:
            tenant, name = naming.split(client, schedule)
            body = change(client)(name, backfill, tenant=tenant, note=note).body
        if as_json:
            output.show_json(body)
            return
        open_ = f", {body['open_runs']} runs are open" if body.get("open_runs") else ""
        note_ = f": {body['note']}" if body.get("note") else ""
        output.say(f"{tenant}/{name} {backfill} is {body.get('state')}{open_}{note_}")


_changing("pause", "No further runs for now; those that are open go on.", lambda client: client.pause_backfill)
_changing("resume", "Go on creating runs.", lambda client: client.resume_backfill)
_changing("cancel", "End it: runs that nobody has begun are cancelled.", lambda client: client.cancel_backfill)


# --- what is shown ------------------------------------------------------------------------------------------------


def _whole(wanted: Mapping[str, Any]) -> dict[str, Any]:
    """Instants that stand so far from now are cut to whole seconds, which is what occurrences have."""
    return {
        key: value.replace(microsecond=0) if isinstance(value, datetime) else value for key, value in wanted.items()
    }


def _show_started(tenant: str, name: str, body: Mapping[str, Any]) -> None:
    span = f"[{output.when(body['from'])}, {output.when(body['to'])})"
    output.say(f"{body['backfill']} of {tenant}/{name} started: {body['occurrences']} occurrences in {span}")
    for warning in body.get("warnings") or ():
        output.say(f"  warning: {warning}")


def _show_forecast(body: Mapping[str, Any]) -> None:
    rest = "" if body["complete"] else f" of {body['looked_at']} that were looked at"
    output.facts(
        (
            ("occurrences", f"{body['occurrences']} in [{output.when(body['from'])}, {output.when(body['to'])})"),
            ("runs", f"{body['runs']}{rest}"),
            ("created for", _counted(body["created"])),
            ("run again", _counted(body["reprocessed"])),
            ("left out", _counted(body["left_out"])),
            ("takes at least", body["shortest"]),
            ("version", body["version"]),
        )
    )
    for warning in body.get("warnings") or ():
        output.say(f"warning: {warning}")


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {what.replace('_', ' ')}" for what, count in counts.items())


def _row(backfill: Mapping[str, Any]) -> tuple[Any, ...]:
    counts = backfill.get("counts") or {}
    return (
        backfill.get("tenant"),
        backfill.get("schedule"),
        backfill.get("backfill"),
        backfill.get("state"),
        output.when(backfill.get("from")),
        output.when(backfill.get("to")),
        _bar(float(backfill.get("done") or 0)),
        counts.get("created", 0) + counts.get("reprocessed", 0),
        _counted(counts.get("left_out") or {}),
        output.when(backfill.get("expected_at") if backfill.get("state") == "running" else None),
    )


def _bar(done: float) -> str:
    full = int(done * BAR_CELLS)
    return f"{'#' * full}{'.' * (BAR_CELLS - full)} {done:4.0%}" if sys.stdout.isatty() else f"{done:.0%}"


def _watch(client: Client, tenant: str, name: str, backfill: str, *, as_json: bool) -> None:
    """A bar that grows, and at last what it came to."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[until]}"))
    with Progress(*columns, console=Console(stderr=True), disable=as_json) as progress:
        bar = progress.add_task(backfill, total=None, until="")
        body = client.get_backfill(name, backfill, tenant=tenant)
        while body["state"] not in OVER:
            progress.update(bar, **_shown(body))
            time.sleep(LOOK_SECONDS)
            body = client.get_backfill(name, backfill, tenant=tenant)
        progress.update(bar, **_shown(body))
    if as_json:
        output.show_json(body)
    else:
        counts = body["counts"]
        said = (_counted(counts["ended"]), _counted(counts["left_out"]) and f"left out {_counted(counts['left_out'])}")
        output.say("; ".join(filter(None, (f"{tenant}/{name} {backfill}", *said))), state=body["state"])
    if body["state"] != COMPLETED:
        click.get_current_context().exit(1)


def _shown(body: Mapping[str, Any]) -> dict[str, Any]:
    total = body.get("occurrences")
    until = f"until {output.when(body['expected_at'])}" if body.get("expected_at") else str(body["state"])
    return {"total": total, "completed": round((total or 0) * float(body["done"])), "until": until}
