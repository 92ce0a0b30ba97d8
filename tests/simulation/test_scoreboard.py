"""docs/reliability.md says nothing that is not there, and its figures are those of the results beside it."""

import ast
import re
from functools import cache
from pathlib import Path

import orjson
import pytest

from simulation import scoreboard
from simulation.cluster.options import FAULTS, TRIED_APART
from simulation.mutants.trials import ROOT

DOCUMENT = scoreboard.DOCUMENT.read_text(encoding="utf-8")
TESTS = ROOT / "tests"
NAMED = sorted(set(re.findall(r"`((?:\w+/)+test_\w+\.py(?:::\w+)?)`", DOCUMENT)))
BEFORE = DOCUMENT.partition(scoreboard.BEGIN)[0]  # behind it is how often each happened
ROWS = [
    [cell.strip() for cell in line.split("|")] for line in re.findall(r"^\| [A-HJK]\d+ \|.*$", BEFORE, re.MULTILINE)
]
CATALOGUE = [(row[1], row[3]) for row in ROWS]

SIM = {
    "seeds": 100, "first": 1, "hours": 1.0, "simulated_hours": 125.5, "simulated_per_real": 451.8,
    "real_seconds": 1000.0, "events_per_second": 9000,
    "runs": 25000, "violations": 0, "failed_seeds": [], "faults": {"A10": 7, "A2": 1200},
}  # fmt: skip
MUTANTS = {
    "kind": "mutants", "at": "2026-03-02T12:00:00+00:00", "commit": "abc1234", "seeds": [1, 3], "mutants": 3,
    "noticed": 2, "survived": ["c"],
    "of": {
        "a": {"group": "restore", "verdict": "caught", "seed": 1, "invariants": ["I2", "I4"], "seconds": 1.0},
        "b": {"group": "inputs", "verdict": "hung", "seed": 1, "invariants": [], "seconds": 1.0},
        "c": {"group": "restore", "verdict": "passed", "seconds": 1.0},
    },
}  # fmt: skip
STORM = {
    "at": "2026-03-02T12:00:00+00:00", "seed": 3, "minutes": 20.0, "schedules": 300,
    "blows": {"worker killed": 40, "broker killed": 1}, "due": 44400, "created": 42600, "missing": 0, "duplicated": 0,
    "double_outcomes": 0, "open_runs": 0, "calm_rate": 300.0, "storm_rate": 285.0, "settled_seconds": 5.5,
}  # fmt: skip


@pytest.mark.parametrize("named", NAMED)
def test_every_test_that_is_named_exists(named):
    path, _, test = named.partition("::")
    assert (TESTS / path).is_file()
    assert not test or test in functions_in(TESTS / path)


def test_many_tests_are_named():
    assert len(NAMED) > 80


def test_every_fault_of_the_catalogue_has_its_line():
    counts = {"A": 16, "B": 10, "C": 14, "D": 9, "E": 9, "F": 10, "G": 10, "H": 11, "J": 5, "K": 5}
    wanted = [f"{letter}{number}" for letter, count in counts.items() for number in range(1, count + 1)]
    assert [fault for fault, _ in CATALOGUE] == wanted


def test_what_is_said_to_be_simulated_is_an_option_and_every_option_is_said():
    assert {fault for fault, simulated in CATALOGUE if simulated == "yes"} == set(FAULTS) - TRIED_APART


def test_the_figures_are_those_of_the_results_that_are_kept():
    assert scoreboard.refreshed(DOCUMENT, scoreboard.read(scoreboard.RESULTS)) == DOCUMENT


def test_only_what_stands_between_the_marks_is_written():
    before, after = "# Title\n\n", "\n## More\n"
    document = before + scoreboard.BEGIN + "old\n" + scoreboard.END + after

    fresh = scoreboard.refreshed(document, [SIM])

    assert fresh.startswith(before + scoreboard.BEGIN)
    assert fresh.endswith(scoreboard.END + after)
    assert "old" not in fresh


def test_simulated_hours_are_told_by_commit_with_what_happened_in_them():
    """Slices of one commit add up, in whatever order they were made; hours of before a commit was kept stand alone."""
    slices = [
        SIM | {"core_seconds": 627.5, "commit": "abc1234", "first": first, "violations": bad}
        for first, bad in ((301, 2), (101, 0), (1, 0))
    ]
    later = SIM | {"core_seconds": 502.0, "commit": "def5678", "hours": 0.25}

    assert scoreboard.simulated([SIM, *slices, later]) == (
        "### Simulated hours\n\n"
        "| commit | seeds | hours | runs created | core-seconds an hour | violations |\n"
        "| --- | --- | --- | --- | --- | --- |\n"
        "|  | 1 to 100 | 125.5 | 25,000 |  | 0 |\n"
        "| abc1234 | 1 to 200, 301 to 400 | 376.5 | 75,000 | 5 | 2 |\n"
        "| def5678 | 1 to 100 | 125.5 | 25,000 | 4 | 0 |\n"
        "\n"
        "Faults that really happened, all together:\n\n"
        "| fault | times |\n"
        "| --- | --- |\n"
        "| A2 | 6,000 |\n"
        "| A10 | 35 |\n"
    )


def test_a_seed_that_stands_twice_for_one_commit_is_not_counted_twice():
    """It is the same history: somebody has given two slices seeds in common. With other hours it is another one."""
    once = SIM | {"commit": "abc1234"}

    with pytest.raises(SystemExit, match=r"seed 51 of 1\.0 h stands there twice for commit abc1234"):
        scoreboard.simulated([once, once | {"first": 51}])
    assert "1 to 100, 1 to 100" in scoreboard.simulated([once, once | {"hours": 0.25}])


def test_mutants_are_told_by_part_with_their_judges_and_survivors():
    assert scoreboard.mutants([{"kind": "mutants", "of": {}}, MUTANTS]) == (
        "### Mutants\n\n"
        "On 2026-03-02 at abc1234, seeds 1 to 3: 2 of 3 (66.7%) noticed.\n\n"
        "| part | noticed | of |\n"
        "| --- | --- | --- |\n"
        "| restore | 1 | 2 |\n"
        "| inputs | 1 | 1 |\n"
        "\n"
        "Noticed by: I2 1, I4 1, hung 1.\n\n"
        "Survived: `c`.\n"
    )


def test_a_storm_is_told_with_the_rate_it_kept():
    assert scoreboard.storms([STORM]) == (
        "### Storms\n\n"
        "| date | minutes | schedules | blows | due | created | missing | doubled | open | rate kept |\n"
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n"
        "| 2026-03-02 | 20 | 300 | 41 | 44,400 | 42,600 | 0 | 0 | 0 | 95% |\n"
    )


def test_what_was_never_tried_is_said(tmp_path):
    assert scoreboard.scoreboard(scoreboard.read(tmp_path)).count("No result is kept yet.") == 3


def test_results_are_read_from_every_file_line_by_line(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(orjson.dumps(SIM) + b"\n" + orjson.dumps(STORM) + b"\n")
    (tmp_path / "b.jsonl").write_bytes(orjson.dumps(MUTANTS) + b"\n")

    assert scoreboard.read(tmp_path) == [SIM, STORM, MUTANTS]


@cache
def functions_in(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, functions))
