"""When results were made and of which commit, as each of them says."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).parents[1]


def about() -> dict[str, str]:
    """`at` and `commit`; the commit is empty where there is no repository."""
    asked = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],  # noqa: S607 -- whichever git there is
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return {"at": datetime.now(UTC).isoformat(timespec="seconds"), "commit": asked.stdout.strip()}
