"""What people and machines get to see: tables and sentences, or the API's own JSON.

Names, notes and errors are of whoever wrote them. On a terminal they are text: what would move its cursor, set its
title or turn the direction of writing is written out, as Python writes it.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tidewheel import definitions
from tidewheel.client import Page
from tidewheel.errors import TidewheelError

STYLES = {
    "succeeded": "green", "completed": "green", "active": "green", "created": "green", "updated": "green",
    "failed": "red", "dead_lettered": "red", "timed_out": "red", "refused": "red", "lost": "red",
    "cancelled": "yellow", "cancelling": "yellow", "expired": "yellow", "skipped": "yellow", "paused": "yellow",
    "running": "cyan", "queued": "cyan", "retry_wait": "cyan", "handed_out": "cyan",
    "present": "green", "draining": "yellow", "silent": "red", "gone": "yellow",
}  # fmt: skip


# Controls, separators of lines, what turns the direction of writing, lone halves of characters.
_ACTIVE = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")


def plain(text: str) -> str:
    """One line of text, with nothing in it that does anything but stand there."""
    return _ACTIVE.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Rows under their headings. On a terminal words that name a state have its colour, and long ones are folded;
    elsewhere one row is one line, for other programs.
    """
    cells = [["" if value is None else plain(str(value)) for value in row] for row in rows]
    if sys.stdout.isatty():
        _print_coloured(columns, cells)
        return
    widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    for row in (columns, *cells):
        click.echo("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())


def show_page(page: Page, columns: Sequence[str], row: Callable[[Any], Sequence[Any]], *, as_json: bool) -> None:
    """One page of a list, and on standard error how to ask for the next one."""
    if as_json:
        show_json(page.body)
        return
    table(columns, map(row, page))
    if page.cursor:
        click.echo(f"There is more: --cursor {page.cursor}", err=True)


def _print_coloured(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    grid = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for column in columns:
        grid.add_column(column, overflow="fold")
    for row in rows:
        grid.add_row(*(Text(text, style=STYLES.get(text, "")) for text in row))
    Console(highlight=False).print(grid)


def facts(pairs: Iterable[tuple[str, Any]]) -> None:
    """A thing's own facts, one a line; those it does not have are left out."""
    known = [(name, value) for name, value in pairs if value not in (None, "", {}, [])]
    width = max((len(name) for name, _ in known), default=0)
    for name, value in known:
        text = f"\n{'':{width}}  ".join(map(plain, str(value).split("\n")))
        click.echo(f"{click.style(name.ljust(width), bold=True)}  {click.style(text, fg=STYLES.get(text))}")


def say(text: str, *, state: str | None = None) -> None:
    """A line for people. `state` is a first word that has a colour."""
    text = _plain_lines(text)
    if state is None:
        click.echo(text)
    else:
        click.echo(f"{click.style(state, fg=STYLES.get(state))} {text}")


def show_json(body: Any) -> None:
    """The API's own JSON, for machines."""
    click.echo(written(body, indent=2))


def written(body: Any, indent: int | None = None) -> str:
    """JSON, with escapes for what does something to a terminal."""
    text = json.dumps(body, indent=indent, ensure_ascii=False)
    return "\n".join(_ACTIVE.sub(lambda found: f"\\u{ord(found[0]):04x}", line) for line in text.split("\n"))


def show_yaml(body: Any) -> None:
    """A definition, as it stands in a file."""
    click.echo(definitions.write([body]).rstrip())


def show_definition(kind: str, name: str, body: Any, *, as_json: bool) -> None:
    """A reference definition: what it is called, its version, and itself."""
    if as_json:
        show_json(body)
        return
    facts(((kind, name), ("version", body.get("version")), ("changed", when(body.get("changed_at")))))
    show_yaml(body.get("definition") or {})


def complain(error: TidewheelError) -> None:
    """What was refused, and each fault with what to do instead."""
    said = _plain_lines(str(error.title if error.faults else error))
    click.echo(f"{click.style('error:', fg='red')} {said}", err=True)
    for fault in error.faults:
        click.echo(f"  {_plain_lines(str(fault))}", err=True)


def when(text: str | None) -> str:
    """An instant for people: in UTC, and saying so."""
    if not text:
        return ""
    at = datetime.fromisoformat(text).astimezone(UTC)
    return f"{at:%Y-%m-%d %H:%M:%S}Z"


def counted(number: int, thing: str) -> str:
    """`1 run`, `2 runs`."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def lasting(start: str | None, end: str | None) -> str:
    """How long something took; nothing when it did not start or end."""
    if not start or not end:
        return ""
    seconds = (datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds()
    if seconds < 60:  # noqa: PLR2004 -- a minute
        return f"{seconds:.1f}s"
    minutes, seconds = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}h{minutes:02}m{seconds:02}s" if hours else f"{minutes}m{seconds:02}s"


def _plain_lines(text: str) -> str:
    return "\n".join(map(plain, text.split("\n")))
