"""Folders of stores that cannot be trusted, kept for a look: `<name>.quarantined-<n>` beside where they were."""

from __future__ import annotations

import shutil
from pathlib import Path

from runtime.store import StoreError

KEPT_MAX = 2  # the newest ones: whoever looks wants the last damage and the one before, and a disk has an end
_MARK = ".quarantined-"


def set_aside(folder: Path) -> Path:
    """Rename a folder out of its place; where it is now. The oldest of too many kept ones goes."""
    kept = _kept(folder)
    aside = folder.with_name(f"{folder.name}{_MARK}{_number(kept[-1]) + 1 if kept else 1}")
    try:
        folder.rename(aside)
    except OSError as error:
        raise StoreError(f"{folder} cannot be set aside: {error}") from error
    for oldest in [*kept, aside][:-KEPT_MAX]:
        shutil.rmtree(oldest, ignore_errors=True)  # What is left of it is tried again the next time.
    return aside


def _kept(folder: Path) -> list[Path]:
    """Those of this folder, the oldest first."""
    found = [path for path in folder.parent.glob(f"{folder.name}{_MARK}*") if path.name.rpartition("-")[2].isdecimal()]
    return sorted(found, key=_number)


def _number(path: Path) -> int:
    return int(path.name.rpartition("-")[2])
