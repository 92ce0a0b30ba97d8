"""`changes` of schedules, queues, tenants, jobs and calendars: who changed what, when and why."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from tidewheel.cli import naming, options, output

F = TypeVar("F", bound=Callable[..., Any])
COLUMNS = ("VERSION", "CHANGED", "BY", "NOTE", "FIELDS")
OWNED = frozenset({"schedules", "jobs", "calendars"})  # by a tenant, which may stand before the name


def add(group: click.Group, kind: str) -> None:
    """Let a group show the history of its things; `kind` as paths have it."""
    whose = options.tenant if kind in OWNED else _nobodys

    @group.command("changes")
    @click.argument("name")
    @options.cursor
    @options.limit
    @whose
    @options.as_json
    @options.url
    def changes(*, name: str, as_json: bool, url: str | None, tenant: str | None = None, **wanted: Any) -> None:
        """What was done to it, newest first: who changed what, when and why."""
        with options.connect(url, tenant) as client:
            tenant, rest = naming.split(client, name) if kind in OWNED else (None, name)
            page = client.changes(kind, rest, tenant=tenant, **wanted)
        output.show_page(page, COLUMNS, _row, as_json=as_json)


def _nobodys(function: F) -> F:
    """A queue has no tenant, and a tenant is called by its own name."""
    return function


def _row(change: Mapping[str, Any]) -> tuple[Any, ...]:
    what = "deleted" if change.get("deleted") else change.get("what", "put")
    fields = ", ".join(change.get("fields") or ()) if what == "put" else what
    when = output.when(change.get("changed_at"))
    return change.get("version"), when, change.get("by") or change.get("source"), change.get("note"), fields
