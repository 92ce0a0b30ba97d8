"""tidewheel schedules: when what runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

import click

from tidewheel.cli import changes, naming, options, output
from tidewheel.client import ALL_TENANTS, Client

ALL_MAX = 100_000  # schedules that --all acts on: a bound for a list that never ends
EXPLAINED = ("NOMINAL", "LOCAL", "DUE", "VERSION", "DECISION", "REASON", "DETAIL")
COLUMNS = ("TENANT", "NAME", "STATE", "TRIGGER", "ZONE", "NEXT", "LAST")


@click.group()
def schedules() -> None:
    """When what runs."""


changes.add(schedules, "schedules")


@schedules.command("list")
@options.any_tenant
@click.option("--label", multiple=True, help="Only with this label: team=finance.")
@click.option("--state", help="Only in this state: active, paused, deleted.")
@options.cursor
@options.limit
@options.as_json
@options.url
def list_(*, tenant: str | None, as_json: bool, url: str | None, label: tuple[str, ...], **wanted: Any) -> None:
    """Schedules by name."""
    with options.connect(url, tenant) as client:
        page = client.list_schedules(tenant=tenant or ALL_TENANTS, label=list(label) or None, **wanted)
    output.show_page(page, COLUMNS, _row, as_json=as_json)


@schedules.command()
@click.argument("name")
@options.tenant
@options.as_json
@options.url
def show(*, name: str, tenant: str | None, as_json: bool, url: str | None) -> None:
    """One schedule as it stands."""
    with options.connect(url, tenant) as client:
        tenant, name = naming.split(client, name)
        body = client.get_schedule(name, tenant=tenant)
    if as_json:
        output.show_json(body)
        return
    last = body.get("last_run") or {}
    output.facts(
        (
            ("schedule", f"{body.get('tenant', tenant)}/{body.get('name', name)}"),
            ("state", body.get("state")),
            ("version", body.get("version")),
            ("in words", body.get("words")),
            ("next", ", ".join(map(output.when, body.get("next") or ()))),
            ("held", _held(body.get("held"))),
            ("in force since", output.when(body.get("effective_at"))),
            ("last run", last.get("run_id")),
            ("last outcome", last.get("outcome")),
        )
    )
    output.show_yaml(body.get("definition") or {})


def _held(held: Mapping[str, Any] | None) -> str | None:
    """What a freeze holds of it."""
    if held is None:
        return None
    return f"{held['pending']} until {output.when(held['until'])}, {held['detail']}"


@schedules.command()
@click.argument("names", nargs=-1)
@click.option("--all", "every", is_flag=True, help="All schedules of the tenant.")
@click.option("--note", default="", help="Why; kept with the schedule's history.")
@options.by
@options.tenant
@options.url
def pause(*, names: tuple[str, ...], every: bool, note: str, by: str, tenant: str | None, url: str | None) -> None:
    """Skip occurrences from now on; running runs go on."""
    _explicit(names, every=every, tenant=tenant)
    with options.connect(url, tenant) as client:

        def act(tenant: str, name: str) -> str:
            return (
                f"paused {tenant}/{name}{_version(client.pause_schedule(name, tenant=tenant, note=note, by=by).body)}"
            )

        naming.each(client, _all_of(client, state="active") if every else names, act)


@schedules.command()
@click.argument("names", nargs=-1)
@click.option("--all", "every", is_flag=True, help="All paused schedules of the tenant.")
@click.option("--backfill", is_flag=True, help="Run what was skipped meanwhile, beside what comes.")
@click.option("--note", default="", help="Why; kept with the schedule's history.")
@options.by
@options.tenant
@options.url
def resume(
    *, names: tuple[str, ...], every: bool, backfill: bool, note: str, by: str, tenant: str | None, url: str | None
) -> None:
    """Occurrences have runs again from now on; those skipped meanwhile do not come back by themselves."""
    _explicit(names, every=every, tenant=tenant)
    with options.connect(url, tenant) as client:

        def act(tenant: str, name: str) -> str:
            body = client.resume_schedule(name, tenant=tenant, note=note, by=by, backfill=backfill).body
            started = body.get("backfill") or {}
            also = f", backfill {started['backfill']} of {started['occurrences']} started" if started else ""
            return f"resumed {tenant}/{name}{_version(body)}{also}"

        naming.each(client, _all_of(client, state="paused") if every else names, act)


@schedules.command()
@click.argument("name")
@click.option("--payload", help="JSON instead of the definition's payload.")
@click.option("--overlap", type=click.Choice(["allow_all", "skip"]), help="What to do while a run is active.")
@options.tenant
@options.as_json
@options.url
def trigger(
    *,
    name: str,
    payload: str | None,
    overlap: str | None,
    tenant: str | None,
    as_json: bool,
    url: str | None,
) -> None:
    """One run now."""
    with options.connect(url, tenant) as client:
        tenant, name = naming.split(client, name)
        written = client.trigger_schedule(name, tenant=tenant, payload=options.payload(payload), overlap=overlap)
    if as_json:
        output.show_json(written.body)
    else:
        output.say(f"triggered {tenant}/{name}: {written.body.get('run_id') or 'no run'}")


@schedules.command()
@click.argument("name")
@click.option("--at", "nominal", type=options.INSTANT, required=True, help="Which one: its instant, as `explain` says.")
@click.option("--note", default="", help="Why; stands with the decision.")
@options.tenant
@options.as_json
@options.url
def skip(*, name: str, nominal: datetime, note: str, tenant: str | None, as_json: bool, url: str | None) -> None:
    """One occurrence to come has no run."""
    with options.connect(url, tenant) as client:
        tenant, name = naming.split(client, name)
        written = client.skip_occurrence(name, nominal, tenant=tenant, note=note)
    if as_json:
        output.show_json(written.body)
    else:
        output.say(f"{tenant}/{name}: {output.when(written.body.get('nominal_time'))} will have no run")


@schedules.command()
@click.argument("names", nargs=-1, required=True)
@click.option("--runs", type=click.Choice(["keep", "cancel"]), default="keep", help="What happens to open runs.")
@click.option("--note", default="", help="Why; it stands among the changes of the schedule.")
@options.by
@options.tenant
@options.url
def delete(*, names: tuple[str, ...], runs: str, note: str, by: str, tenant: str | None, url: str | None) -> None:
    """End schedules; queued and running runs finish unless --runs cancel asks them to stop."""
    with options.connect(url, tenant) as client:
        end = partial(client.delete_schedule, cancel_runs=runs == "cancel", note=note, by=by)
        naming.delete_each(client, names, end)


@schedules.command()
@click.argument("name")
@options.between
@options.limit
@options.tenant
@options.as_json
@options.url
def explain(
    *,
    name: str,
    from_: datetime | None,
    to: datetime | None,
    limit: int | None,
    tenant: str | None,
    as_json: bool,
    url: str | None,
) -> None:
    """Each occurrence, past and to come, with what was decided and why."""
    with options.connect(url, tenant) as client:
        tenant, name = naming.split(client, name)
        body = client.occurrences(name, tenant=tenant, from_=from_, to=to, limit=limit)
    if as_json:
        output.show_json(body)
        return
    occurrences = body.get("occurrences", ())
    output.table(EXPLAINED, map(_occurrence, occurrences))
    for rule in dict.fromkeys(map(_rests_on, occurrences)):
        if rule:
            output.say(rule)
    if body.get("beyond_history"):
        output.say(f"what was decided before {output.when(body.get('kept_since'))} is not kept")
    if body.get("truncated"):
        click.echo("There is more: --limit, or a shorter range", err=True)


def _row(schedule: Mapping[str, Any]) -> tuple[Any, ...]:
    return (
        schedule.get("tenant"),
        schedule.get("name"),
        schedule.get("state"),
        _trigger((schedule.get("definition") or {}).get("trigger") or {}),
        schedule.get("timezone"),
        output.when(schedule.get("next_run_at")),
        (schedule.get("last_run") or {}).get("outcome"),
    )


def _trigger(trigger: Mapping[str, Any]) -> str:
    for kind in ("cron", "every", "rrule"):
        if trigger.get(kind):
            return _crons(trigger[kind]) if kind == "cron" else f"{kind} {trigger[kind]}"
    return f"at {len(trigger['at'])} instants" if trigger.get("at") else ""


def _crons(cron: str | Sequence[str]) -> str:
    expressions = [cron] if isinstance(cron, str) else cron
    more = f" and {len(expressions) - 1} more" if len(expressions) > 1 else ""
    return " ".join(expressions[0].split()) + more


def _occurrence(occurrence: Mapping[str, Any]) -> tuple[Any, ...]:
    span = occurrence.get("range") or {}
    told = ("blocked_by", "detail", "note")
    return (
        output.when(occurrence.get("nominal_time") or span.get("from") or occurrence.get("decided_at")),
        occurrence.get("local_time"),
        output.when(occurrence.get("due_at")),
        occurrence.get("version"),
        occurrence.get("decision"),
        occurrence.get("reason"),
        f"{span['count']} until {output.when(span['to'])}{_after(occurrence.get('detail'))}"
        if span
        else _said(occurrence, next(filter(None, map(occurrence.get, told)), None)),
    )


def _said(occurrence: Mapping[str, Any], why: str | None) -> str | None:
    """A run with what is to be said of it; or why there is none, and since when and until when it waits."""
    if occurrence.get("run_id"):
        return f"{occurrence['run_id']}{''.join(map(_after, _of_run(occurrence)))}"
    if not (why and occurrence.get("since")):
        return why
    until = f", until {output.when(occurrence['until'])} at the latest" if occurrence.get("until") else ""
    return f"{why} since {output.when(occurrence['since'])}{until}"


def _of_run(occurrence: Mapping[str, Any]) -> Iterator[str | None]:
    """What it went on without; by when it has to begin; for which reason it is over, where there is one."""
    yield occurrence.get("detail")
    if occurrence.get("start_by_at"):
        yield f"begins by {output.when(occurrence['start_by_at'])}, or expires"
    if occurrence.get("outcome_reason"):
        yield f"{occurrence.get('state')}: {occurrence['outcome_reason']}"


def _after(detail: str | None) -> str:
    return f" {detail}" if detail else ""


def _rests_on(occurrence: Mapping[str, Any]) -> str:
    if not occurrence.get("rule"):
        return ""
    return f"version {occurrence.get('version')}: {occurrence['rule']}, tz {occurrence.get('tz_version')}"


def _explicit(names: tuple[str, ...], *, every: bool, tenant: str | None) -> None:
    if bool(names) is every:
        raise click.UsageError("name schedules, or say --all")
    if every and not tenant:
        raise click.UsageError("--all needs --tenant: it never means all tenants")


def _all_of(client: Client, *, state: str) -> Iterator[str]:
    """The names of a tenant's schedules, page by page."""
    cursor: str | None = None
    for _ in range(ALL_MAX // 500):
        page = client.list_schedules(state=state, limit=500, cursor=cursor)
        yield from (str(schedule["name"]) for schedule in page)
        cursor = page.cursor
        if cursor is None:
            return


def _version(body: Mapping[str, Any]) -> str:
    return f" (version {body['version']})" if body.get("version") else ""
