"""`python -m simulation.scoreboard [--check]`: the figures of docs/reliability.md, from results kept beside it.

Results are lines of JSON in `docs/results/*.jsonl`, as `make sim`, `make mutants` and `make storm` write them when they
are told to (`RESULTS=`). Nothing is written here that does not stand there.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import orjson

DOCS = Path(__file__).parents[1] / "docs"
DOCUMENT, RESULTS = DOCS / "reliability.md", DOCS / "results"
BEGIN = "<!-- scoreboard: begin (written by `python -m simulation.scoreboard`) -->\n"
END = "<!-- scoreboard: end -->\n"

Line = Mapping[str, Any]


def main(arguments: Sequence[str]) -> int:
    """Write the figures, or with `--check` say whether they are what the results say."""
    document = DOCUMENT.read_text(encoding="utf-8")
    fresh = refreshed(document, read(RESULTS))
    if "--check" in arguments:
        if fresh != document:
            sys.stdout.write(
                "docs/reliability.md does not say what docs/results say: python -m simulation.scoreboard\n"
            )
        return int(fresh != document)
    DOCUMENT.write_text(fresh, encoding="utf-8")
    return 0


def read(folder: Path) -> list[Line]:
    """All results, file by file."""
    return [
        orjson.loads(line) for path in sorted(folder.glob("*.jsonl")) for line in path.read_bytes().splitlines() if line
    ]


def refreshed(document: str, results: Iterable[Line]) -> str:
    """The document with the figures of these results."""
    before, _, rest = document.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + BEGIN + scoreboard(results) + END + after


def scoreboard(results: Iterable[Line]) -> str:
    """What results say, as Markdown."""
    kinds: dict[str, list[Line]] = {"sim": [], "mutants": [], "storm": []}
    for line in results:
        kinds[line.get("kind") or ("sim" if "simulated_hours" in line else "storm")].append(line)
    parts = (simulated(kinds["sim"]), mutants(kinds["mutants"]), storms(kinds["storm"]))
    return "\n" + "\n".join(parts) + "\n"


def simulated(lines: Sequence[Line]) -> str:
    """What was simulated, and which faults really happened."""
    if not lines:
        return "### Simulated hours\n\nNo result is kept yet.\n"
    commits: dict[str, list[Line]] = {}
    for line in lines:
        commits.setdefault(line.get("commit", ""), []).append(line)
    faults: Counter[str] = Counter()
    for line in lines:
        faults.update(line["faults"])
    return "\n".join(
        (
            "### Simulated hours\n",
            _table(
                ("commit", "seeds", "hours", "runs created", "core-seconds an hour", "violations"),
                [_of_commit(commit, slices) for commit, slices in commits.items()],
            ),
            "Faults that really happened, all together:\n",
            _table(("fault", "times"), [(name, _number(faults[name])) for name in _in_order(faults)]),
        )
    )


def _of_commit(commit: str, slices: Sequence[Line]) -> tuple[str, ...]:
    """What slices of one commit came to. A seed has one history there: it counts once."""
    spans = sorted((line["hours"], line["first"], line["first"] + line["seeds"] - 1) for line in slices)
    for (hours, _, last), (other, first, _) in pairwise(spans):
        if commit and hours == other and first <= last:
            raise SystemExit(f"docs/results: seed {first} of {hours} h stands there twice for commit {commit}")
    hours = sum(line["simulated_hours"] for line in slices)
    measured = [line for line in slices if "core_seconds" in line]
    of_those = sum(line["simulated_hours"] for line in measured)
    cost = _number(round(sum(line["core_seconds"] for line in measured) / of_those, 1)) if of_those else ""
    return (
        commit, ", ".join(map(_span, _joined(spans))), _number(round(hours, 1)),
        _number(sum(line["runs"] for line in slices)), cost, _number(sum(line["violations"] for line in slices)),
    )  # fmt: skip


def _joined(spans: Iterable[tuple[float, int, int]]) -> list[tuple[int, int]]:
    """Neighbours are one."""
    joined: list[tuple[int, int]] = []
    for _, first, last in spans:
        if joined and joined[-1][1] + 1 == first:
            joined[-1] = joined[-1][0], last
        else:
            joined.append((first, last))
    return joined


def mutants(lines: Sequence[Line]) -> str:
    """The newest campaign: which part was noticed, by whom, and what survived."""
    if not lines:
        return "### Mutants\n\nNo result is kept yet.\n"
    line = lines[-1]
    of: Mapping[str, Line] = line["of"]
    groups, noticed, judges = Counter[str](), Counter[str](), Counter[str]()
    for outcome in of.values():
        groups[outcome["group"]] += 1
        noticed[outcome["group"]] += outcome["verdict"] != "passed"
        judges.update(
            outcome.get("invariants", ()) or (() if outcome["verdict"] == "passed" else (outcome["verdict"],))
        )
    share = f"{line['noticed']} of {line['mutants']} ({line['noticed'] / line['mutants']:.1%})"
    survived = ", ".join(f"`{name}`" for name in line["survived"]) or "none"
    return "\n".join(
        (
            "### Mutants\n",
            f"On {line['at'][:10]} at {line['commit']}, seeds {_span(line['seeds'])}: {share} noticed.\n",
            _table(("part", "noticed", "of"), [(group, noticed[group], groups[group]) for group in groups]),
            f"Noticed by: {', '.join(f'{name} {judges[name]}' for name in _in_order(judges))}.\n",
            f"Survived: {survived}.\n",
        )
    )


def storms(lines: Sequence[Line]) -> str:
    """Storms on a real broker."""
    if not lines:
        return "### Storms\n\nNo result is kept yet.\n"
    columns = ("date", "minutes", "schedules", "blows", "due", "created", "missing", "doubled", "open", "rate kept")
    rows = [
        (
            line["at"][:10], _number(line["minutes"]), line["schedules"], sum(line["blows"].values()),
            _number(line["due"]), _number(line["created"]), line["missing"],
            line["duplicated"] + line["double_outcomes"], line["open_runs"],
            f"{line['storm_rate'] / line['calm_rate']:.0%}",
        )
        for line in lines
    ]  # fmt: skip
    return "### Storms\n\n" + _table(columns, rows)


def _in_order(names: Iterable[str]) -> list[str]:
    """A2 before A10."""
    return sorted(names, key=lambda name: (name.rstrip("0123456789"), int(name.lstrip(_LETTERS) or 0)))


_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


def _table(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "".join("| " + " | ".join(map(str, line)) + " |\n" for line in lines)


def _span(seeds: Sequence[int]) -> str:
    first, last = seeds
    return str(first) if first == last else f"{first} to {last}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
