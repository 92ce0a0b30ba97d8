"""tidewheel jobs: what schedules may name."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import click

from tidewheel.cli import changes, naming, options, output
from tidewheel.client import ALL_TENANTS


@click.group()
def jobs() -> None:
    """Registered jobs: what schedules may name."""


changes.add(jobs, "jobs")


@jobs.command("list")
@options.any_tenant
@options.cursor
@options.limit
@options.as_json
@options.url
def list_(*, tenant: str | None, as_json: bool, url: str | None, **wanted: Any) -> None:
    """Jobs by name."""
    with options.connect(url, tenant) as client:
        page = client.list_jobs(tenant=tenant or ALL_TENANTS, **wanted)
    output.show_page(page, ("TENANT", "NAME", "VERSION", "QUEUE", "TARGET", "CHANGED"), _row, as_json=as_json)


@jobs.command()
@click.argument("name")
@options.tenant
@options.as_json
@options.url
def show(*, name: str, tenant: str | None, as_json: bool, url: str | None) -> None:
    """One job as it stands."""
    with options.connect(url, tenant) as client:
        tenant, name = naming.split(client, name)
        body = client.get_job(name, tenant=tenant)
    output.show_definition("job", f"{tenant}/{name}", body, as_json=as_json)


@jobs.command()
@click.argument("name")
@click.option("--payload", help="JSON instead of the definition's payload.")
@click.option("--overlap", type=click.Choice(["allow_all", "skip"]), help="skip: none while another such run is open.")
@options.tenant
@options.as_json
@options.url
def run(
    *, name: str, payload: str | None, overlap: str | None, tenant: str | None, as_json: bool, url: str | None
) -> None:  # fmt: skip
    """One run of a job by itself, of no schedule."""
    with options.connect(url, tenant) as client:
        tenant, name = naming.split(client, name)
        written = client.run_job(name, tenant=tenant, payload=options.payload(payload), overlap=overlap)
    if as_json:
        output.show_json(written.body)
    else:
        output.say(f"runs {tenant}/{name}: {written.body.get('run_id') or 'not decided yet'}")


@jobs.command()
@click.argument("names", nargs=-1, required=True)
@options.said
@options.tenant
@options.url
def delete(*, names: tuple[str, ...], note: str, by: str, tenant: str | None, url: str | None) -> None:
    """Remove jobs. Schedules that name them skip their occurrences (`no_job`)."""
    with options.connect(url, tenant) as client:
        naming.delete_each(client, names, partial(client.delete_job, note=note, by=by))


def _row(job: Mapping[str, Any]) -> tuple[Any, ...]:
    definition = job.get("definition") or {}
    target = definition.get("target") or {}
    return (
        job.get("tenant"),
        job.get("name"),
        job.get("version"),
        definition.get("queue"),
        f"{target.get('type', '')} {target.get('name') or target.get('url') or ''}".strip(),
        output.when(job.get("changed_at")),
    )
