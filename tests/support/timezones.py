"""Time zone databases that are not the installed one: packages called `tzdata`, which differ from it where a test says.

A process that finds such a folder on its path before the installed packages decides by it.
"""

from __future__ import annotations

import os
import shutil
import struct
from importlib import resources
from pathlib import Path


def package(folder: Path, version: str, **zones: str) -> Path:
    """Make one in a folder: the installed database but for its version, and zones by POSIX rules; `Area__City=rule`."""
    with resources.as_file(resources.files("tzdata")) as installed:
        shutil.copytree(installed, folder / "tzdata", ignore=shutil.ignore_patterns("__pycache__"))
    init = folder / "tzdata" / "__init__.py"
    init.write_text(f'IANA_VERSION = "{version}"\n', encoding="utf-8")
    for name, rule in zones.items():
        (folder / "tzdata" / "zoneinfo" / Path(*name.split("__"))).write_bytes(_compiled(rule))
    return folder


def environment(folder: Path) -> dict[str, str]:
    """What a process needs to decide by the database in a folder."""
    return os.environ | {"PYTHONPATH": os.pathsep.join((str(folder), os.environ.get("PYTHONPATH", "")))}


def _compiled(rule: str) -> bytes:
    """A zone whose clocks have always followed one rule: TZif, version 2, with nothing but its footer."""
    header = struct.pack(">4sc15x6L", b"TZif", b"2", 0, 0, 0, 0, 1, 4)
    hours = int(rule.lstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ"))  # west of Greenwich is positive there
    block = struct.pack(">lBB", -3600 * hours, 0, 0) + b"ZZZ\0"
    return header + block + header + block + f"\n{rule}\n".encode()
