"""tidewheel workers: who serves which queue, and what each has in hand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import click

from tidewheel.cli import options, output
from tidewheel.errors import TidewheelError

STATES = ("present", "draining", "silent", "gone")


@click.group()
def workers() -> None:
    """Workers as they were heard of last. `tidewheel worker` starts one."""


@workers.command("list")
@click.option("--queue", help="Only workers of this queue.")
@click.option("--state", type=click.Choice(STATES), help="Only in this state; the gone are listed only so.")
@options.cursor
@options.limit
@options.as_json
@options.url
def list_(*, as_json: bool, url: str | None, **wanted: Any) -> None:
    """Workers by queue and name."""
    with options.connect(url) as client:
        page = client.list_workers(**wanted)
    columns = ("QUEUE", "WORKER", "STATE", "AT WORK", "SLOTS", "STUCK", "TASKS", "TRANSPORT", "HEARD")
    output.show_page(page, columns, _row, as_json=as_json)


@workers.command()
@click.argument("name")
@options.as_json
@options.url
def show(*, name: str, as_json: bool, url: str | None) -> None:
    """A worker by its name or incarnation, in each queue that it serves; also one that is gone."""
    with options.connect(url) as client:
        page = client.list_workers(worker=name)
        if not page.items:
            page = client.list_workers(worker=name, state="gone")
    if not page.items:
        raise TidewheelError(f"no worker {name} was heard of in the last hour; `tidewheel workers list` shows all")
    if as_json:
        output.show_json(page.body)
        return
    for number, worker in enumerate(page):
        if number:
            click.echo()
        output.facts(_facts(worker))
        if worker["attempts"]:
            click.echo()
            output.table(("TENANT", "RUN", "ATTEMPT", "STARTED"), map(_attempt, worker["attempts"]))
        if worker["slots_used"] > len(worker["attempts"]):
            click.echo(f"and {worker['slots_used'] - len(worker['attempts'])} more")


def _row(worker: Mapping[str, Any]) -> tuple[Any, ...]:
    return (
        worker["queue"], worker["worker"], worker["state"], worker["slots_used"], worker.get("slots_total"),
        worker["stuck"] or None, len(worker["tasks"]), worker.get("transport"), output.when(worker["heard_at"]),
    )  # fmt: skip


def _facts(worker: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name in ("worker", "incarnation", "queue", "state", "client", "transport"):
        yield name, worker.get(name)
    slots = f"{worker['slots_used']} at work"
    if "slots_total" in worker:
        slots += f", {worker['slots_free']} free of {worker['slots_total']}"
    yield "slots", slots
    yield "stuck", worker["stuck"] or None
    yield "tasks", ", ".join(worker["tasks"])
    yield "heard of", output.when(worker["heard_at"])
    yield "gone", output.when(worker.get("gone_at"))


def _attempt(attempt: Mapping[str, Any]) -> tuple[Any, ...]:
    return attempt["tenant"], attempt["run_id"], attempt["attempt"], output.when(attempt.get("started_at"))
