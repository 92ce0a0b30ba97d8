"""Unified diffs, applied by what their lines say and not by the numbers above them.

A patch that is kept for long meets code that has moved. So a hunk fits where its lines stand in the file, wherever that
is now, provided that they stand there exactly once: anything else is `DoesNotFit`, and somebody has to look at it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

HUNK, OLD, NEW = "@@", "--- a/", "+++ b/"


class DoesNotFit(Exception):
    """The code that a patch changes is not there, or there more than once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hunk:
    """Neighbouring lines as they are, and as they become."""

    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What a patch does to one file."""

    path: str
    hunks: tuple[Hunk, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One seeded bug. `under` names the profiles that could bring it to light, the likeliest first."""

    name: str
    group: str
    breaks: str
    caught_by: tuple[str, ...]
    needs: str
    under: tuple[str, ...]
    changes: tuple[Change, ...]
    digest: str = ""  # of the diff: another one is another bug under an old name


def read(path: Path) -> Mutant:
    """A patch with what it says of itself."""
    said, _, diff = path.read_text(encoding="utf-8").partition("\n\n")
    fields = dict(line.split(": ", 1) for line in said.splitlines())
    return Mutant(
        name=path.stem, group=fields["group"], breaks=fields["breaks"],
        caught_by=tuple(fields["caught-by"].split()), needs=fields.get("needs", ""),
        under=tuple(fields.get("under", "calm").split()), changes=changes(diff),
        digest=hashlib.sha256(diff.strip().encode()).hexdigest()[:12],
    )  # fmt: skip


def changes(diff: str) -> tuple[Change, ...]:
    """What a diff says, file by file."""
    files: list[tuple[str, list[list[str]]]] = []
    for line in diff.rstrip().splitlines():
        if line.startswith(OLD):
            files.append((line.removeprefix(OLD), []))
        elif line.startswith(HUNK):
            files[-1][1].append([])
        elif not line.startswith(NEW):
            files[-1][1][-1].append(line)
    return tuple(Change(path=path, hunks=tuple(map(_hunk, hunks))) for path, hunks in files)


def patched(source: str, change: Change) -> str:
    """A file after a change; `DoesNotFit` when it is not the one that was meant."""
    for hunk in change.hunks:
        found = ("\n" + source).count("\n" + hunk.before)
        if found != 1:
            raise DoesNotFit(f"{change.path} has these lines {found} times:\n{hunk.before}")
        at = ("\n" + source).index("\n" + hunk.before)
        source = source[:at] + hunk.after + source[at + len(hunk.before) :]
    return source


def apply(mutant: Mutant, root: Path) -> list[Path]:
    """Change the files under `root`; which ones."""
    written = []
    for change in mutant.changes:
        path = root / change.path
        text = patched(path.read_text(encoding="utf-8"), change)
        path.write_text(text, encoding="utf-8")
        written.append(path)
    return written


def _hunk(lines: list[str]) -> Hunk:
    """A diff marks each line by its first character; an empty one stands for an empty line of context."""
    before = "".join(f"{line[1:]}\n" for line in lines if line[:1] in {"", " ", "-"})
    after = "".join(f"{line[1:]}\n" for line in lines if line[:1] in {"", " ", "+"})
    return Hunk(before=before, after=after)
