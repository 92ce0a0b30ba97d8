"""What can be looked at from this machine: versions, time zone data, the data folder, the server."""

from __future__ import annotations

import importlib.metadata
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx

from node.doctor import queues
from node.doctor.finding import Finding, Verdict, note, ok, wrong
from node.folder import LOCK, DataFolder, FolderRefused
from node.settings import ClusterSettings, Settings
from scheduler.occurrences import tz_version
from tidewheel import connection

FREE_BYTES_MIN = 1 << 30  # a day of a busy log
PACKAGES = ("tidewheel-server", "tidewheel", "rocksdict", "tzdata", "pydantic", "sqlalchemy", "orjson")
_OS_TZ_FILES = (Path("/usr/share/zoneinfo/tzdata.zi"), Path("/usr/share/zoneinfo/+VERSION"))


def examine(settings: Settings | ClusterSettings, url: str) -> Iterator[Finding]:
    """Everything that can be looked at from here, server running or not."""
    begin = "tidewheel serve" if isinstance(settings, ClusterSettings) else "tidewheel dev"
    yield _versions()
    yield tz_data(tz_version(), _os_tz_version())
    yield from _folder(settings.data, begin)
    server = _server(url, begin)
    yield server
    if server.verdict is Verdict.OK:
        yield from queues.examine(url, settings.partitions)


def tz_data(pinned: str, system: str | None) -> Finding:
    """The data that decides, and what the operating system has."""
    if system is None or system == pinned:
        return ok(f"time zone data {pinned} (pinned package)")
    return note(
        f"time zone data {pinned} (pinned package); the operating system has {system}, which is not used",
        "other programs on this machine may show other local times",
    )


def _versions() -> Finding:
    python = f"Python {sys.version_info.major}.{sys.version_info.minor}.{sys.version_info.micro}"
    found = (f"{name} {importlib.metadata.version(name)}" for name in PACKAGES)
    return ok(", ".join((python, *found)))


def _os_tz_version() -> str | None:
    for file in _OS_TZ_FILES:
        if file.is_file():
            with file.open(encoding="ascii", errors="replace") as lines:
                return lines.readline().removeprefix("# version").strip() or None
    return None


def _folder(path: Path, begin: str) -> Iterator[Finding]:
    if not path.exists():
        yield note(f"{path} does not exist yet", f"`{begin}` makes it")
        return
    free = shutil.disk_usage(path).free
    if free < FREE_BYTES_MIN:
        yield wrong(f"{path}: only {free >> 20} MiB are free", "free at least 1 GiB")
    else:
        yield ok(f"{path}: {free >> 30} GiB are free")
    held = sorted(lock.parent for lock in (*path.glob(LOCK), *path.glob(f"process-*/{LOCK}")))
    for folder in held:
        yield _holder(folder)


def _holder(folder: Path) -> Finding:
    """Who has it. To ask is to take it for a moment."""
    try:
        DataFolder.hold(folder).release()
    except FolderRefused as refusal:
        return ok(str(refusal).rpartition(":")[0])  # without its remedy: it is well that it is in use
    return ok(f"{folder}: no process has it")


def _server(url: str, begin: str) -> Finding:
    try:
        answer = httpx.get(f"{url}/readyz", timeout=3.0, trust_env=not connection.is_here(url))
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        return note(f"no server answers at {url} ({type(error).__name__})", f"start one: {begin}")
    if answer.status_code == httpx.codes.OK:
        return ok(f"the server at {url} is ready")
    return wrong(f"the server at {url} is not ready: {answer.text[:300]}", "its log names the partition that failed")
