"""`changes` of schedules, queues, tenants, jobs and calendars: who changed what, when and why."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from tidewheel.cli import naming, options, output

COLUMNS = ("VERSION", "CHANGED", "BY", "NOTE", "FIELDS")
OWNED = frozenset({"schedules", "jobs", "calendars"})  # by a tenant, which may stand before the name


def add(group: click.Group, kind: str) -> None:
    """Let a group show the history of its things; `kind` as paths have it."""

    @group.command("changes")
    @click.argument("name")
    @options.cursor
    @options.limit
    @options.as_json
    @options.url
    def changes(*, name: str, as_json: bool, url: str | None, **wanted: Any) -> None:
        """What was done to it, newest first: who changed what, when and why."""
        with options.connect(url) as client:
            tenant, rest = naming.split(client, name) if kind in OWNED else (None, name)
            page = client.changes(kind, rest, tenant=tenant, **wanted)
        output.show_page(page, COLUMNS, _row, as_json=as_json)


def _row(change: Mapping[str, Any]) -> tuple[Any, ...]:
    what = "deleted" if change.get("deleted") else change.get("what", "put")
    fields = ", ".join(change.get("fields") or ()) if what == "put" else what
    when = output.when(change.get("changed_at"))
    return change.get("version"), when, change.get("by") or change.get("source"), change.get("note"), fields
