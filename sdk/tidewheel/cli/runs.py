"""tidewheel runs: what ran, runs and waits."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import click
from click.core import ParameterSource

from tidewheel.cli import naming, options, output
from tidewheel.client import ALL_TENANTS, Client

COLUMNS = ("TENANT", "RUN", "STATE", "CAUSE", "TIME", "TOOK", "ATTEMPTS")
REQUESTS_MAX = 1_000  # of one command: two hundred thousand runs; whoever has more says it again


@click.group()
def runs() -> None:
    """What ran, runs and waits."""


@runs.command("list")
@options.any_tenant
@click.option("--schedule", help="Only runs of this schedule.")
@click.option("--state", help="Only in this state: queued, running, succeeded, failed, dead_lettered, …")
@click.option("--label", multiple=True, help="Only with this label: team=finance.")
@options.between
@options.cursor
@options.limit
@options.as_json
@options.url
def list_(*, tenant: str | None, as_json: bool, url: str | None, label: tuple[str, ...], **wanted: Any) -> None:
    """Runs, newest first."""
    with options.connect(url, tenant) as client:
        page = client.list_runs(tenant=tenant or ALL_TENANTS, label=list(label) or None, **wanted)
    output.show_page(page, COLUMNS, _row, as_json=as_json)


@runs.command()
@click.argument("run_id")
@options.tenant
@options.as_json
@options.url
def show(*, run_id: str, tenant: str | None, as_json: bool, url: str | None) -> None:
    """One run, its attempts, and what happened to it."""
    with options.connect(url, tenant) as client:
        tenant, run_id = naming.split(client, run_id)
        body = client.get_run(run_id, tenant=tenant)
    if as_json:
        output.show_json(body)
        return
    output.facts(_facts(body))
    _show(body, "attempts", ("ATTEMPT", "STATE", "WORKER", "STARTED", "TOOK", "ERROR"), _attempt)
    _show(body, "events", ("WHEN", "EVENT", ""), _event)


def _show(
    body: Mapping[str, Any], part: str, columns: tuple[str, ...], row: Callable[[Mapping[str, Any]], tuple[Any, ...]]
) -> None:
    """What the answer has of them, and where the others are."""
    if not body.get(part):
        return
    click.echo()
    output.table(columns, map(row, body[part]))
    if cursor := body.get(f"{part}_cursor"):
        path = f"/v1/tenants/{body['tenant']}/runs/{body['run_id']}/{part}"
        click.echo(f"There are more: GET {path}?cursor={cursor}", err=True)


@runs.command()
@click.argument("run_ids", nargs=-1)
@click.option("--all", "all_", is_flag=True, help="All open runs of the tenant, or those that the other options name.")
@click.option("--all-tenants", is_flag=True, help="With --all: of every tenant, such as all that wait in a --queue.")
@click.option("--queue", help="With --all: only runs of this queue.")
@click.option("--schedule", help="With --all: only runs of this schedule.")
@click.option("--state", type=click.Choice(["queued", "running", "retry_wait"]), help="With --all: only in this state.")
@click.option("--label", multiple=True, help="With --all: only with this label: team=finance.")
@options.between
@click.option("--note", default="", help="Why; kept with the run's history.")
@options.tenant
@options.url
def cancel(
    *, run_ids: tuple[str, ...], all_: bool, all_tenants: bool, note: str, tenant: str | None, url: str | None,
    **named: Any,
) -> None:  # fmt: skip
    """Ask runs to end: those named, or with --all those that the options choose. Each answer says what was true."""
    chosen = options.chosen(**named)
    if all_ == bool(run_ids) or ((chosen or all_tenants) and not all_):
        raise click.UsageError("name runs, or give --all, which the other options narrow")
    if all_tenants and click.get_current_context().get_parameter_source("tenant") is ParameterSource.COMMANDLINE:
        raise click.UsageError("--tenant names one, --all-tenants means every one: give one of them")
    with options.connect(url, tenant) as client:
        if all_:
            _cancel_all(client, ALL_TENANTS if all_tenants else client.tenant, chosen, note)
            return

        def act(tenant: str, run_id: str) -> str:
            state = str(client.cancel_run(run_id, tenant=tenant, note=note).body.get("state", "cancelled"))
            return f"{tenant}/{run_id}: {state.replace('_', ' ')}"

        naming.each(client, run_ids, act)


def _cancel_all(client: Client, tenant: str, chosen: Mapping[str, Any], note: str) -> None:
    """One request after another, as far as there are any; then how many were met in which state."""
    counts, cursor = Counter[str](), None
    for _ in range(REQUESTS_MAX):
        body = client.cancel_runs(chosen, tenant=tenant, note=note, cursor=cursor).body
        for each in body["runs"]:
            state, why = each.get("state"), each.get("detail") or each.get("reason")
            said = why if state is None else state.replace("_", " ")
            output.say(f"{each['tenant']}/{each['run_id']}: {said}", state="refused" if state is None else None)
        counts.update(body["counts"])
        cursor = body.get("cursor")
        if cursor is None:
            break
    output.say(", ".join(f"{counts[state]} {state.replace('_', ' ')}" for state in sorted(counts)) or "no open run")
    if counts["refused"] or cursor is not None:
        click.get_current_context().exit(1)


@runs.command()
@click.argument("run_id")
@click.option("--follow", "-f", is_flag=True, help="Stay until the run is over, and show what it writes.")
@click.option("--attempt", type=click.IntRange(1), help="Only of this attempt.")
@click.option("--stream", multiple=True, help="Only this stream: log, stdout, stderr, http, worker.")
@click.option("--since", metavar="INSTANT", help="Only from this instant on: 2026-03-08T02:00:00Z.")
@click.option("--last", type=click.IntRange(1, 2_000), help="Begin with so many of the last lines.")
@options.tenant
@options.as_json
@options.url
def logs(
    *, run_id: str, tenant: str | None, as_json: bool, url: str | None, stream: tuple[str, ...], last: int | None,
    **wanted: Any,
) -> None:  # fmt: skip
    """What the attempts of a run logged, printed and put out; with --follow while it does so.

    With --json each line is an object of the API on a line of its own.
    """
    with options.connect(url, tenant) as client:
        tenant, run_id = naming.split(client, run_id)
        newest: dict[str, Any] = {} if last is None else {"newest": True, "limit": last}
        shown = 0
        for line in client.logs(run_id, tenant=tenant, stream=list(stream) or None, **newest, **wanted):
            if line.get("attempt") != shown and not as_json:
                shown = line["attempt"]
                click.echo(click.style(f"attempt {shown}", bold=True))
            click.echo(output.written(line) if as_json else output.plain(_line(line)))


def _line(line: Mapping[str, Any]) -> str:
    """A line with its instant, and where it comes from."""
    left_out = f"({line['dropped']} lines are missing before this one) " if line.get("dropped") else ""
    cut = f" (and {line['cut']} characters)" if line.get("cut") else ""
    source = f"{line['stream']:<6}" + (f" {line['level']:<7}" if line.get("level") else "")
    return f"{output.when(line['at'])}  {source}  {left_out}{line['text']}{cut}"


@runs.command()
@click.argument("run_ids", nargs=-1, required=True)
@options.again
@options.tenant
@options.url
def rerun(*, run_ids: tuple[str, ...], tenant: str | None, url: str | None, **how: Any) -> None:
    """Another run of runs that are over; the old ones stay as they ended."""
    with options.connect(url, tenant) as client:

        def act(tenant: str, run_id: str) -> str:
            return f"{tenant}/{run_id} runs again as {client.rerun(run_id, tenant=tenant, **how).body.get('run_id')}"

        naming.each(client, run_ids, act)


def _row(run: Mapping[str, Any]) -> tuple[Any, ...]:
    return (
        run.get("tenant"),
        run.get("run_id"),
        run.get("state"),
        run.get("cause"),
        output.when(run.get("nominal_time") or run.get("created_at")),
        output.lasting(run.get("started_at"), run.get("finished_at")),
        run.get("attempt_count"),
    )


def _facts(run: Mapping[str, Any]) -> list[tuple[str, Any]]:
    error, waiting = run.get("error") or {}, run.get("waiting")
    return [
        ("run", f"{run.get('tenant')}/{run.get('run_id')}"),
        ("schedule", run.get("schedule")),
        ("state", run.get("state")),
        ("cause", run.get("cause")),
        ("version", run.get("version")),
        ("of", run.get("of")),
        ("run again as", ", ".join(f"{each['run_id']} ({each['state']})" for each in run.get("reruns") or ()) or None),
        ("queue", run.get("queue")),
        ("nominal", output.when(run.get("nominal_time"))),
        ("created", output.when(run.get("created_at"))),
        ("started", output.when(run.get("started_at"))),
        ("finished", output.when(run.get("finished_at"))),
        ("took", output.lasting(run.get("started_at"), run.get("finished_at"))),
        ("waits", f"{waiting['reason']} since {output.when(waiting.get('since'))}" if waiting else None),
        ("begins by", output.when(run.get("start_by_at"))),
        ("next attempt", output.when(run.get("retry_at"))),
        ("reason", run.get("reason")),
        ("result", None if run.get("result") is None else json.dumps(run["result"], ensure_ascii=False)),
        ("error", f"{error.get('type')}: {error.get('message', '')}" if error else None),
    ]


def _attempt(attempt: Mapping[str, Any]) -> tuple[Any, ...]:
    error = attempt.get("error") or {}
    return (
        attempt.get("attempt"),
        attempt.get("state"),
        attempt.get("worker"),
        output.when(attempt.get("started_at") or attempt.get("handed_out_at")),
        output.lasting(attempt.get("started_at"), attempt.get("finished_at")),
        f"{error.get('type')}: {error.get('message', '')}" if error else None,
    )


def _event(event: Mapping[str, Any]) -> tuple[Any, ...]:
    data = event.get("data") or {}
    told = [str(data[key]) for key in ("outcome", "reason", "attempt", "worker") if data.get(key) is not None]
    kind = str(event.get("type", "")).removeprefix("tidewheel.").removesuffix(".v1")
    return output.when(event.get("time")), kind, ", ".join(told)
