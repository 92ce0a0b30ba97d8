"""tidewheel queues: pools of workers that were declared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from tidewheel.cli import changes, naming, options, output


@click.group()
def queues() -> None:
    """Declared queues. One that is not declared has the defaults."""


changes.add(queues, "queues")


@queues.command("list")
@options.cursor
@options.limit
@options.as_json
@options.url
def list_(*, as_json: bool, url: str | None, **wanted: Any) -> None:
    """Queues by name."""
    with options.connect(url) as client:
        page = client.list_queues(**wanted)
    output.show_page(page, ("NAME", "VERSION", "SHARDS", "RATE", "STATE", "CHANGED"), _row, as_json=as_json)


@queues.command()
@click.argument("name")
@options.as_json
@options.url
def show(*, name: str, as_json: bool, url: str | None) -> None:
    """One queue as it is declared."""
    with options.connect(url) as client:
        body = client.get_queue(name)
    output.show_definition("queue", name, body, as_json=as_json)


@queues.command()
@click.argument("name")
@options.as_json
@options.url
def backlog(*, name: str, as_json: bool, url: str | None) -> None:
    """What waits and runs in a queue, by shard. A shard that the queue has no more is leaving until it is empty."""
    with options.connect(url) as client:
        body = client.queue_backlog(name)
    if as_json:
        output.show_json(body)
        return
    shards = body["shards"]
    rows = [_counted(each["shard"], each) for each in shards]
    output.table(("SHARD", "WAITING", "RUNNING", "OLDEST", ""), rows + [_counted("all", body)] * (len(shards) > 1))
    if body.get("at_least"):
        output.say("There are more: only so many are counted.")


@queues.command()
@click.argument("names", nargs=-1, required=True)
@click.option("--note", default="", help="Why; kept with the definition.")
@options.by
@options.url
def pause(*, names: tuple[str, ...], note: str, by: str, url: str | None) -> None:
    """Hand nothing out until they are resumed. What runs goes on, and what is due waits."""
    with options.connect(url) as client:

        def act(name: str) -> str:
            return f"paused {name}, version {client.pause_queue(name, note=note, by=by).body['version']}"

        naming.each_of_nobody(names, act)


@queues.command()
@click.argument("names", nargs=-1, required=True)
@options.said
@options.url
def resume(*, names: tuple[str, ...], note: str, by: str, url: str | None) -> None:
    """Hand out again what waits."""
    with options.connect(url) as client:

        def act(name: str) -> str:
            return f"resumed {name}, version {client.resume_queue(name, note=note, by=by).body['version']}"

        naming.each_of_nobody(names, act)


@queues.command()
@click.argument("names", nargs=-1, required=True)
@options.said
@options.url
def delete(*, names: tuple[str, ...], note: str, by: str, url: str | None) -> None:
    """Remove definitions. The queues go on with the defaults."""
    with options.connect(url) as client:

        def act(name: str) -> str:
            client.delete_queue(name, note=note, by=by)
            return f"deleted {name}"

        naming.each_of_nobody(names, act)


def _counted(name: Any, counts: Mapping[str, Any]) -> tuple[Any, ...]:
    leaving = "leaving" if counts.get("leaving") else ""
    return name, counts["waiting"], counts["running"], output.when(counts.get("oldest_at")), leaving


def _row(queue: Mapping[str, Any]) -> tuple[Any, ...]:
    definition = queue.get("definition") or {}
    state = "active" if definition.get("paused") is None else "paused"
    changed = output.when(queue.get("changed_at"))
    return queue.get("name"), queue.get("version"), definition.get("shards"), definition.get("rate"), state, changed
