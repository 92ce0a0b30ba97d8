"""The files of this repository, as a fresh clone has them."""

from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = (
    "api",
    "dispatcher",
    "node",
    "projections",
    "runtime",
    "scheduler",
    "schemas",
    "sdk/tidewheel",
    "simulation",
)

# What tools leave behind, and what deploy/kafka fetches: not ours to judge.
NOT_OURS = {"__pycache__", "build", "dist", "data", "libs", "node_modules"}
OURS_THOUGH_HIDDEN = {".ci", ".gitignore"}


def files(folder: Path = ROOT) -> Iterator[Path]:
    """Every file that a person wrote or generated and committed, in order of name."""
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") and path.name not in OURS_THOUGH_HIDDEN:
            continue
        if path.is_dir() and path.name not in NOT_OURS:
            yield from files(path)
        elif path.is_file():
            yield path


def sources(*folders: str) -> list[Path]:
    """The Python files below some folders of the repository."""
    return [path for folder in folders for path in files(ROOT / folder) if path.suffix == ".py"]


def name(path: Path) -> str:
    """A file's name as people write it, from the root of the repository."""
    return path.relative_to(ROOT).as_posix()
