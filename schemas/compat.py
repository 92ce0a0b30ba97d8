"""`python -m schemas.compat [--against REV]`: say where the published schemas fail who was built against the last ones.

Compared with the newest release tag (`v*`), or with REV. Facts stand in the log for a month and changelogs for ever,
and programs of others read them: a new reader must understand every old record, an old reader every new one. So of a
fact nothing may change but new fields that may be absent. Commands come from programs of others: every command that
was right must stay right, so a command may be given more freedom, never less.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from schemas.generate import PUBLISHED

Schema = Mapping[str, Any]

ROOT = PUBLISHED.parents[1]
FOLDERS = ("commands", "definitions", "facts")
_UPPER = ("maximum", "maxLength", "maxItems", "maxProperties")
_LOWER = ("minimum", "minLength", "minItems")


def main(arguments: list[str]) -> int:
    """Say what breaks; 1 when anything does."""
    match arguments:
        case []:
            revision = newest_release()
        case ["--against", named]:
            revision = named
        case _:
            sys.stderr.write("usage: python -m schemas.compat [--against REV]\n")
            return 2
    if not revision:
        sys.stdout.write("There is no release yet (no tag v*): nothing to be compatible with.\n")
        return 0
    found = list(differences(published_at(revision), published_now()))
    sys.stdout.writelines(f"{line}\n" for line in found)
    sys.stdout.write(f"Compared with {revision}: {len(found) or 'nothing'} that breaks others.\n")
    return 1 if found else 0


def differences(before: Mapping[str, Schema], after: Mapping[str, Schema]) -> Iterator[str]:
    """What breaks someone, one line each; both sides by path below `published/`."""
    for name in sorted(before):
        if name not in after:
            yield f"{name}: is gone; a type that was published stays readable for ever"
            continue
        fact = name.startswith("facts/")
        yield from (f"{name}: {what}" for what in Comparison(before[name], after[name], fixed=fact).walk())


class Comparison:
    """Two schemas of one type. `fixed`: it may not get wider either."""

    def __init__(self, before: Schema, after: Schema, *, fixed: bool) -> None:
        self._before = before
        self._after = after
        self._fixed = fixed

    def walk(self) -> Iterator[str]:
        """Every difference that breaks someone."""
        yield from self._node(self._before, self._after, "", frozenset())

    def _node(self, before: Schema, after: Schema, where: str, seen: frozenset[str]) -> Iterator[str]:
        reference = before.get("$ref", "")
        if reference in seen or before.get("x-not-yet"):
            return  # a definition that contains itself was compared on the way in; what was refused may become anything
        before, after = self._resolved(before, self._before), self._resolved(after, self._after)
        seen = seen | {reference} if reference else seen
        yield from self._types(before, after, where)
        yield from self._words(before, after, where)
        yield from self._bounds(before, after, where)
        yield from self._fields(before, after, where, seen)
        for part in ("items", "additionalProperties"):
            if isinstance(before.get(part), dict) and isinstance(after.get(part), dict):
                yield from self._node(before[part], after[part], f"{where}/*", seen)
        yield from self._branches(before, after, where, seen)

    @staticmethod
    def _resolved(node: Schema, document: Schema) -> Schema:
        reference = node.get("$ref", "")
        if not reference.startswith("#/$defs/"):
            return node
        resolved: Schema = document["$defs"][reference.removeprefix("#/$defs/")]
        return resolved

    def _types(self, before: Schema, after: Schema, where: str) -> Iterator[str]:
        old, new = before.get("type"), after.get("type")
        if old == new or (not self._fixed and (new is None or (old == "integer" and new == "number"))):
            return
        yield f"{where or '/'}: was {old or 'anything'}, is {new or 'anything'}; make it a new field, or a new version"

    def _words(self, before: Schema, after: Schema, where: str) -> Iterator[str]:
        old, new = _words(before), _words(after)
        if new is not None:
            for word in sorted((old or set()) - new):
                yield f"{where or '/'}: no longer takes {word!r}; keep reading it"
            if old is None and not self._fixed:
                yield f"{where or '/'}: took any value, takes only {sorted(new)}"
        if self._fixed and old != new:
            for word in sorted((new or set()) - (old or set())):
                yield f"{where or '/'}: may now be {word!r}, which older readers refuse; make it a new version"

    def _bounds(self, before: Schema, after: Schema, where: str) -> Iterator[str]:
        for bound in _UPPER:
            if bound in after and after[bound] < before.get(bound, float("inf")):
                yield f"{where or '/'}: {bound} was {before.get(bound, 'none')}, is {after[bound]}"
        for bound in _LOWER:
            if bound in after and after[bound] > before.get(bound, float("-inf")):
                yield f"{where or '/'}: {bound} was {before.get(bound, 'none')}, is {after[bound]}"
        for exact in ("pattern", "format"):
            if exact in after and after[exact] != before.get(exact):
                yield f"{where or '/'}: {exact} was {before.get(exact, 'none')}, is {after[exact]}"

    def _fields(self, before: Schema, after: Schema, where: str, seen: frozenset[str]) -> Iterator[str]:
        old, new = before.get("properties", {}), after.get("properties", {})
        was_required, is_required = set(before.get("required", ())), set(after.get("required", ()))
        for name in sorted(old):
            if name not in new:
                yield f"{where}/{name}: is gone; fields are never removed or renamed, only left at their default"
            else:
                yield from self._node(old[name], new[name], f"{where}/{name}", seen)
        for name in sorted(is_required - was_required):
            yield f"{where}/{name}: is required now, and old records do not have it; give it a default"
        if self._fixed:
            for name in sorted((was_required - is_required) & new.keys()):
                yield f"{where}/{name}: may be absent now, and older readers need it; always write it"

    def _branches(self, before: Schema, after: Schema, where: str, seen: frozenset[str]) -> Iterator[str]:
        for union in ("anyOf", "oneOf"):
            old, new = before.get(union, ()), after.get(union, ())
            if len(new) < len(old):
                yield f"{where or '/'}: took {len(old)} forms, takes {len(new)}"
            for old_branch, new_branch in zip(old, new, strict=False):
                yield from self._node(old_branch, new_branch, where, seen)


def _words(node: Schema) -> set[str] | None:
    if "const" in node:
        return {node["const"]}
    return set(node["enum"]) if "enum" in node else None


def published_now() -> dict[str, Schema]:
    """What stands in the work tree."""
    return {
        path.relative_to(PUBLISHED).as_posix(): json.loads(path.read_text(encoding="utf-8"))
        for folder in FOLDERS
        for path in sorted((PUBLISHED / folder).glob("*.json"))
    }


def published_at(revision: str) -> dict[str, Schema]:
    """What stood there at a revision."""
    below = PUBLISHED.relative_to(ROOT).as_posix()
    names = _git("ls-tree", "-r", "--name-only", revision, *(f"{below}/{folder}/" for folder in FOLDERS)).split()
    return {name.removeprefix(f"{below}/"): json.loads(_git("show", f"{revision}:{name}")) for name in names}


def newest_release() -> str:
    """The newest release tag, or nothing."""
    return _git("tag", "--list", "v*", "--sort=-version:refname").partition("\n")[0]


def _git(*arguments: str) -> str:
    command = ["git", *arguments]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout  # noqa: S603 -- our own words, and a revision


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
