"""`docs/guides/names.md`: every name that stands on the wire, with what it says; made of what says it in the code."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator, Mapping
from typing import Any, cast

from schemas import asyncapi, codec, topics
from schemas.commands import COMMANDS
from schemas.facts import FACTS

METHODS = ("GET", "PUT", "POST", "DELETE")
MARK = "<!-- What follows is made by `make generate` of what the code says: change it there. -->\n"


def document(page: str, openapi: Mapping[str, Any] | None) -> str:
    """The page: as it is up to the mark, and what follows made anew."""
    written, mark, _ = page.partition(MARK)
    return "\n".join([written + mark, *_facts(), *_commands(), *_internal(), *_routes(openapi or {})]) + "\n"


def _facts() -> Iterator[str]:
    yield "## Facts\n"
    yield "What has happened, for everybody to read. The full type has `tidewheel.` before and `.v1` behind.\n"
    yield "| fact | on | what it says | fields |\n|---|---|---|---|"
    for type_, fact in codec.TYPES.items():
        if fact in FACTS:
            fields = ", ".join(
                f"`{field.rstrip('_')}`" for field in (each.name for each in dataclasses.fields(cast("Any", fact)))
            )
            yield f"| `{_short(type_)}` | {_places(type_)} | {_said(fact)} | {fields} |"


def _commands() -> Iterator[str]:
    yield "\n## Commands\n\nWhat may be asked for on `schedule-changes`, and what the HTTP API writes there.\n"
    yield "| command | what it asks for |\n|---|---|"
    yield from (f"| `{_short(type_)}` | {_said(model)} |" for type_, model in COMMANDS.items())


def _internal() -> Iterator[str]:
    yield "\n## What owners, workers and nodes tell each other\n"
    yield "Seen in `tidewheel events --json` never, in `/v1/log` and changelogs yes. Documented, and not promised.\n"
    yield "| type | on | what it says |\n|---|---|---|"
    for type_, fact in codec.TYPES.items():
        if fact not in FACTS:
            yield f"| `{_short(type_)}` | {_places(type_) or 'changelogs'} | {_said(fact)} |"


def _routes(openapi: Mapping[str, Any]) -> Iterator[str]:
    yield "\n## HTTP\n"
    yield "| route | what it does |\n|---|---|"
    paths: Mapping[str, Mapping[str, Any]] = openapi.get("paths", {})
    for path in sorted(paths):
        for method in METHODS:
            if (operation := paths[path].get(method.lower())) is not None:
                yield f"| `{method} {path}` | {_cell(operation.get('summary', ''))} |"


def _places(type_: str) -> str:
    """The topics on which it may stand."""
    names = [spec.name for spec in topics.topic_table(topics.Retention())]
    found = [name.removeprefix(topics.PREFIX) for name in names if type_ in asyncapi.messages_of(name)]
    return ", ".join(f"`{name}`" for name in found)


def _short(type_: str) -> str:
    return type_.removeprefix("tidewheel.").rpartition(".v")[0]


def _said(thing: Any) -> str:
    """The first paragraph of what its author says of it."""
    return _cell((inspect.getdoc(thing) or "").partition("\n\n")[0].replace("\n", " "))


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
