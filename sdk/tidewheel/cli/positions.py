"""What the last command wrote, for the next one to wait for.

Each command is a process of its own: without this, `apply` and then `show` might show what was before. The file is
a convenience: where it can't be read or written, commands work without.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

SERVERS_MAX = 16  # the ones written to last
NoHome = RuntimeError  # what `Path.home` raises for a user who has none, as in a container


def recall(url: str) -> str | None:
    """The position of the last write to a server."""
    return _load().get(url)


def remember(url: str, position: str) -> None:
    """Keep the position of a write."""
    known = _load()
    known.pop(url, None)
    kept = dict([*known.items(), (url, position)][-SERVERS_MAX:])
    with contextlib.suppress(OSError, NoHome):
        path = _path()
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_name(f"{path.name}.{os.getpid()}")
        fresh.write_text(json.dumps(kept), encoding="utf-8")
        fresh.replace(path)


def _load() -> dict[str, str]:
    try:
        known = json.loads(_path().read_text(encoding="utf-8"))
    except (OSError, ValueError, NoHome):
        return {}
    return {str(url): str(position) for url, position in known.items()} if isinstance(known, dict) else {}


def _path() -> Path:
    state = os.environ.get("XDG_STATE_HOME")
    return (Path(state) if state else Path.home() / ".local" / "state") / "tidewheel" / "positions.json"
