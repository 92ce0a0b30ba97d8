"""What storms found: a line of JSON for each, whether a storm proves anything, and what all of them add up to.

python -m tests.storm.results storms.jsonl
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

if TYPE_CHECKING:
    from collections.abc import Iterable

PROGRESS = 0.5  # of the calm rate: a storm that brings the line to a stand tries nothing

SUMMED = {
    "kills": "kills",
    "created": "runs created",
    "missing": "missing",
    "duplicated": "duplicated",
    "double_outcomes": "with two outcomes",
    "open_runs": "open",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What a storm found."""

    at: str
    seed: int
    minutes: float
    schedules: int
    brokers: int = 1
    kill_every: float = 3.5
    blows: dict[str, int]
    due: int
    created: int
    skipped: int = 0
    missing: int
    duplicated: int
    double_outcomes: int
    open_runs: int
    calm_rate: float
    storm_rate: float
    settled_seconds: float

    @property
    def kills(self) -> int:
        """How often something was killed, brokers too."""
        return sum(count for blow, count in self.blows.items() if blow.endswith("killed"))


def broken(result: Result) -> str:
    """What was lost or doubled; nothing when all is well."""
    wrong = {
        name: getattr(result, name)
        for name in ("missing", "duplicated", "double_outcomes", "open_runs")
        if getattr(result, name)
    }
    if result.due != result.created + result.skipped:
        wrong["undecided"] = result.due - result.created - result.skipped
    return ", ".join(f"{count} {name}" for name, count in wrong.items())


def idle(result: Result, progress: float = PROGRESS) -> str:
    """Why a storm proves nothing, whatever it found; nothing when it does."""
    if result.storm_rate < result.calm_rate * progress:
        return (
            f"it proves nothing: {result.storm_rate} runs a second were created, less than {progress:.0%} of the "
            f"{result.calm_rate} of the calm before"
        )
    return ""


def told(results: Iterable[Result]) -> str:
    """The sum of all storms, those that prove nothing left out and named."""
    kept, dropped = list[Result](), list[Result]()
    for result in results:
        (dropped if idle(result) else kept).append(result)
    blows: Counter[str] = Counter()
    for result in kept:
        blows.update(result.blows)
    lines = [
        f"{len(kept)} storms, {sum(result.minutes for result in kept):g} minutes, "
        + ", ".join(f"{sum(getattr(result, name) for result in kept):,} {said}" for name, said in SUMMED.items())
    ]
    lines += [f"  {count:>6,} {blow}" for blow, count in sorted(blows.items())]
    lines += [f"  of {result.at}, seed {result.seed}: {idle(result)}" for result in dropped]
    lines += [f"  of {result.at}, seed {result.seed}: {broken(result)}" for result in kept if broken(result)]
    return "\n".join(lines)


def line_of(result: Result) -> str:
    """As it stands in the file."""
    return orjson.dumps(asdict(result)).decode() + "\n"


def read(text: str) -> list[Result]:
    """The results in a file; what later versions add to a line is passed over."""
    known = {field.name for field in fields(Result)}
    documents = [orjson.loads(line) for line in text.splitlines() if line]
    return [Result(**{name: value for name, value in document.items() if name in known}) for document in documents]


if __name__ == "__main__":
    sys.stdout.write(told(read(Path(sys.argv[1]).read_text(encoding="utf-8"))) + "\n")
