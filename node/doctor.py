"""What could be wrong with this machine and this data folder, each finding with its remedy."""

from __future__ import annotations

import importlib.metadata
import shutil
import sys
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import httpx

from node.folder import DataFolder, FolderRefused
from scheduler.occurrences import tz_version

if TYPE_CHECKING:
    from collections.abc import Iterator

    from node.settings import Settings

FREE_BYTES_MIN = 1 << 30  # a day of a busy log
PACKAGES = ("tidewheel-server", "tidewheel", "rocksdict", "tzdata", "pydantic", "sqlalchemy", "orjson")
_OS_TZ_FILES = (Path("/usr/share/zoneinfo/tzdata.zi"), Path("/usr/share/zoneinfo/+VERSION"))


class Verdict(StrEnum):
    """How a finding should be taken."""

    OK = "ok"
    NOTE = "note"
    WRONG = "wrong"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing looked at."""

    verdict: Verdict
    what: str
    remedy: str = ""


def examine(settings: Settings, url: str) -> Iterator[Finding]:
    """Everything that can be looked at from here, server running or not."""
    yield _versions()
    yield _tz_data()
    yield from _folder(settings.data)
    yield from _server(url)


def _versions() -> Finding:
    python = f"Python {sys.version_info.major}.{sys.version_info.minor}.{sys.version_info.micro}"
    found = (f"{name} {importlib.metadata.version(name)}" for name in PACKAGES)
    return Finding(verdict=Verdict.OK, what=", ".join((python, *found)))


def _tz_data() -> Finding:
    pinned, system = tz_version(), _os_tz_version()
    if system is None or system == pinned:
        return Finding(verdict=Verdict.OK, what=f"time zone data {pinned} (pinned package)")
    return Finding(
        verdict=Verdict.NOTE,
        what=f"time zone data {pinned} (pinned package); the operating system has {system}, which is not used",
        remedy="other programs on this machine may show other local times",
    )


def _os_tz_version() -> str | None:
    for file in _OS_TZ_FILES:
        if file.is_file():
            with file.open(encoding="ascii", errors="replace") as lines:
                return lines.readline().removeprefix("# version").strip() or None
    return None


def _folder(path: Path) -> Iterator[Finding]:
    if not path.exists():
        yield Finding(verdict=Verdict.NOTE, what=f"{path} does not exist yet", remedy="`tidewheel dev` makes it")
        return
    free = shutil.disk_usage(path).free
    if free < FREE_BYTES_MIN:
        yield Finding(
            verdict=Verdict.WRONG, what=f"{path}: only {free >> 20} MiB are free", remedy="free at least 1 GiB"
        )
    else:
        yield Finding(verdict=Verdict.OK, what=f"{path}: {free >> 30} GiB are free")
    try:
        DataFolder.hold(path).release()
    except FolderRefused as refusal:
        yield Finding(verdict=Verdict.OK, what=f"in use: {refusal}")
    else:
        yield Finding(verdict=Verdict.OK, what=f"{path}: no process has it")


def _server(url: str) -> Iterator[Finding]:
    try:
        answer = httpx.get(f"{url}/readyz", timeout=3.0)
    except httpx.HTTPError as error:
        yield Finding(
            verdict=Verdict.NOTE, what=f"no server answers at {url} ({type(error).__name__})",
            remedy="start one: tidewheel dev",
        )  # fmt: skip
        return
    if answer.status_code == httpx.codes.OK:
        yield Finding(verdict=Verdict.OK, what=f"the server at {url} is ready")
    else:
        yield Finding(
            verdict=Verdict.WRONG, what=f"the server at {url} is not ready: {answer.text[:300]}",
            remedy="its log names the partition that failed",
        )  # fmt: skip
