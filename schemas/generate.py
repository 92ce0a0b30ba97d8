"""`python -m schemas.generate [--check]`: write what is published, or say what of it is stale.

Besides, `sdk/tidewheel/_wire.py` has the types of what workers read and write, made from the same schemas, and
`docs/guides/names.md` every name with what it says.

Below `schemas/published/` stand a JSON Schema for each type (commands, facts, definitions), `asyncapi.json` with
every topic, and `openapi.json` once there is an HTTP API. They are committed: what others build on is read in a
review like any other change.
"""

from __future__ import annotations

import importlib
import json
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from schemas import asyncapi, codec, jsonschema, names, wiretypes
from schemas.commands import COMMANDS
from schemas.facts import FACTS
from schemas.internal import HandOut, LeaseNotice, QueueLayout, WorkerReport

HERE = Path(__file__).parent
PUBLISHED = HERE / "published"
SDK_TYPES = HERE.parent / "sdk" / "tidewheel" / "_wire.py"
NAMES = HERE.parent / "docs" / "guides" / "names.md"


def main(arguments: list[str]) -> int:
    """Write, or with `--check` compare; 1 when something is stale."""
    if arguments not in ([], ["--check"]):
        print("usage: python -m schemas.generate [--check]", file=sys.stderr)
        return 2
    wanted = documents()
    besides = {SDK_TYPES: sdk_types(), NAMES: names.document(NAMES.read_text(encoding="utf-8"), _openapi())}
    stale = [f"schemas/published/{name}" for name in stale_files(PUBLISHED, wanted)]
    stale += [
        path.relative_to(HERE.parent).as_posix() for path, text in besides.items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]  # fmt: skip
    if "--check" in arguments:
        for name in stale:
            print(f"stale: {name}: run `make generate`", file=sys.stderr)
        return 1 if stale else 0
    write(PUBLISHED, wanted)
    for path, text in besides.items():
        path.write_text(text, encoding="utf-8")
    print(f"schemas/published: {len(wanted)} files, {len(stale)} of them new or changed")
    return 0


def documents() -> dict[str, str]:
    """Every published file's text by its path below `published/`."""
    schemas: dict[str, Any] = {"cloudevent.json": jsonschema.CLOUDEVENT}
    for type_, fact in codec.TYPES.items():
        schemas[asyncapi.schema_path(type_)] = jsonschema.of_fact(fact, internal=fact not in FACTS)
    for type_, model in COMMANDS.items():
        schemas[asyncapi.schema_path(type_)] = jsonschema.of_command(type_, model)
    for name in jsonschema.DEFINITIONS:
        schemas[f"definitions/{name}.json"] = jsonschema.of_definition(name)
    schemas["definitions/file.json"] = jsonschema.of_definition_file()
    schemas["asyncapi.json"] = asyncapi.document(_version())
    if (openapi := _openapi()) is not None:
        schemas["openapi.json"] = openapi
    return {name: _text(schema) for name, schema in sorted(schemas.items())}


def sdk_types() -> str:
    """The text of the SDK's wire types."""
    spoken = (WorkerReport, HandOut, LeaseNotice, QueueLayout)
    return wiretypes.source({fact.__name__: jsonschema.of_fact(fact, internal=True) for fact in spoken})


def stale_files(folder: Path, wanted: Mapping[str, str]) -> list[str]:
    """The names of files that are missing, differ or are not wanted any more."""
    present = {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.json"))
    }
    return sorted(name for name in present.keys() | wanted.keys() if present.get(name) != wanted.get(name))


def write(folder: Path, wanted: Mapping[str, str]) -> None:
    """Make the folder hold the wanted files and no others."""
    for name in stale_files(folder, wanted):
        path = folder / name
        if name in wanted:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(wanted[name], encoding="utf-8")
        else:
            path.unlink()


def _openapi() -> dict[str, Any] | None:
    # The generator alone looks upward, by name and when it runs: schemas never depend on the API.
    make = getattr(importlib.import_module("api"), "openapi_document", None)
    return None if make is None else make()


def _version() -> str:
    """That of the release to come: without what marks a build of it."""
    with (HERE.parent / "pyproject.toml").open("rb") as file:
        version: str = tomllib.load(file)["project"]["version"]
    return version.partition(".dev")[0]


def _text(document: Any) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
