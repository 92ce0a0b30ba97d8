"""tidewheel forecast: how many runs the days to come will bring, and which minutes are crowded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import click

from tidewheel.cli import options, output

SHARES_SHOWN = 3
BAR_WIDTH = 40


@click.command()
@click.option("--days", type=click.IntRange(1, 31), help="How many [7].")
@click.option("--queue", help="Runs of this queue only.")
@options.any_tenant
@options.as_json
@options.url
def forecast(*, days: int | None, queue: str | None, tenant: str | None, as_json: bool, url: str | None) -> None:
    """The load that the schedules in force ask for: crowded minutes, queues, and each day."""
    with options.connect(url, tenant) as client:
        body = client.forecast(days=days, queue=queue, tenant=tenant)
    if as_json:
        output.show_json(body)
        return
    paused = f", {body['paused']} more are paused" if body.get("paused") else ""
    output.say(
        f"{output.counted(body['occurrences'], 'run')} of {output.counted(body['schedules'], 'schedule')}, "
        f"{output.when(body['from'])} to {output.when(body['to'])}{paused}"
    )
    output.table(("CROWDED", "RUNS", "OF"), map(_crowded, body.get("crowded") or ()))
    output.table(("QUEUE", "TENANT", "SCHEDULES", "RUNS", "BUSIEST", "RUNS"), map(_place, body.get("queues") or ()))
    output.table(("DAY", "RUNS", "BUSIEST MINUTE", ""), _days(body.get("hours") or ()))
    cut = body.get("not_counted_whole") or {}
    if cut.get("schedules"):
        output.say(f"{cut['schedules']} schedules are not counted to the end, first {', '.join(cut['first'][:5])}")


def _crowded(minute: Mapping[str, Any]) -> tuple[Any, ...]:
    shares = minute.get("of") or ()
    named = ", ".join(f"{each['count']} {each['queue']} ({each['tenant']})" for each in shares[:SHARES_SHOWN])
    return output.when(minute["at"]), minute["count"], named


def _place(place: Mapping[str, Any]) -> tuple[Any, ...]:
    busiest = place.get("busiest") or {}
    at = output.when(busiest.get("at"))
    return place["queue"], place["tenant"], place["schedules"], place["occurrences"], at, busiest.get("count")


def _days(hours: Iterable[Mapping[str, Any]]) -> list[tuple[Any, ...]]:
    """Each UTC day: its runs, and a bar that is as long as it is full beside the others."""
    runs: dict[str, int] = {}
    busiest: dict[str, int] = {}
    for hour in hours:
        day = hour["at"][:10]
        runs[day] = runs.get(day, 0) + hour["count"]
        busiest[day] = max(busiest.get(day, 0), hour["busiest"])
    most = max(runs.values(), default=1)
    return [(day, count, busiest[day], "#" * max(1, count * BAR_WIDTH // most)) for day, count in runs.items()]
