"""`python -m simulation.mutants --seeds N --jobs 2 [--only NAME] [--results FILE]`.

Exit 0: enough were noticed. 1: too few. 2: the unchanged packages do not pass, so that nothing can be said.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import orjson

from simulation.mutants import campaign
from simulation.mutants.patching import Mutant
from simulation.mutants.trials import ROOT, Verdict, mutants

ENOUGH, TOO_FEW, NOTHING_SAID = 0, 1, 2
SECONDS_MAX = 900.0  # of an unchanged run: what is slower is no test that anybody runs


def main(arguments: Sequence[str] | None = None) -> int:
    """Try the mutants that were asked for."""
    asked = _parser().parse_args(arguments)
    seeds = range(asked.first, asked.first + asked.seeds)
    chosen = _chosen(asked.only)
    _say(f"{len(chosen)} mutants, seeds {seeds[0]} to {seeds[-1]}. First the packages as they are.")
    plain = campaign.unchanged(chosen, seeds, timeout=SECONDS_MAX)
    last = plain[-1]
    if last.verdict is not Verdict.PASSED:
        _say(f"They do not pass themselves: {last.profile} {last.seed} {last.verdict}: {last.said}")
        return NOTHING_SAID
    _say(f"They pass {len(plain)} runs, in {sum(trial.seconds for trial in plain):.0f} s.")
    outcomes = campaign.run(
        chosen, seeds, jobs=asked.jobs, timeout=campaign.patience(plain), told=lambda one: _say(campaign.line(one))
    )
    for line in ("", *campaign.table(outcomes)):
        _say(line)
    if asked.results:
        about = {"at": datetime.now(UTC).isoformat(timespec="seconds"), "commit": _commit()}
        _append(asked.results, orjson.dumps(campaign.result(outcomes, seeds, **about)))
    return ENOUGH if campaign.share(outcomes) >= campaign.SHARE_MIN else TOO_FEW


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m simulation.mutants", description="Run the simulation on mutants.")
    parser.add_argument("--seeds", type=int, default=3, help="how many seeds each mutant may survive")
    parser.add_argument("--first", type=int, default=1, help="the first of them")
    parser.add_argument("--jobs", type=int, default=2, help="how many mutants at a time")
    parser.add_argument("--only", action="append", default=[], help="the name of a mutant, or of a group; repeatable")
    parser.add_argument("--results", type=Path, help="a file to which one line of JSON is appended")
    return parser


def _chosen(only: Sequence[str]) -> list[Mutant]:
    known = mutants()
    chosen = [mutant for mutant in known if not only or mutant.name in only or mutant.group in only]
    if not chosen:
        raise SystemExit(f"no mutant and no group is called {' or '.join(only)}")
    return chosen


def _commit() -> str:
    """Of what was tried; empty where there is no repository."""
    asked = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],  # noqa: S607 -- whichever git there is
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return asked.stdout.strip()


def _append(path: Path, line: bytes) -> None:
    with path.open("ab") as file:
        file.write(line + b"\n")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main())
