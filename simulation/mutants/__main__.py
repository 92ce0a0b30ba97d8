"""`python -m simulation.mutants --seeds N --jobs 2 [--only NAME] [--results FILE] [--minutes M] [--again]`.

With a file of results the campaign goes on where it stopped: who was noticed is not tried again, unless its patch has
changed or `--again` asks for it. Exit 0: enough of all mutants were noticed. 1: too few. 2: some could not be tried,
because the unchanged packages do not pass themselves.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

import orjson

from simulation.about import about
from simulation.mutants import campaign
from simulation.mutants.campaign import Campaign, Known, Outcome
from simulation.mutants.patching import Mutant
from simulation.mutants.trials import copied, mutants, tried

ENOUGH, TOO_FEW, NOTHING_SAID = 0, 1, 2


@dataclass(slots=True)
class Kept:
    """The newest result of each mutant, in memory and in a file of one line, which is replaced whole each time."""

    path: Path | None
    all_mutants: Sequence[Mutant]
    known: Known = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def read(self) -> None:
        """What is known from before."""
        if self.path is not None and self.path.exists():
            self.known = orjson.loads(self.path.read_bytes())["of"]

    def add(self, outcome: Outcome) -> None:
        """Keep what became of a mutant; of one that could not be tried nothing is known that was not before."""
        if outcome.trials:
            with self._lock:
                self.known[outcome.mutant.name] = campaign.result(outcome, **about())
                self._write()

    def summary(self) -> dict[str, object]:
        """All that is known."""
        return campaign.summary(self.all_mutants, self.known, **about())

    def _write(self) -> None:
        if self.path is not None:
            fresh = self.path.with_suffix(".new")
            fresh.write_bytes(orjson.dumps(self.summary()) + b"\n")
            fresh.replace(self.path)


def main(arguments: Sequence[str] | None = None) -> int:
    """Try the mutants that were asked for."""
    asked = _parser().parse_args(arguments)
    kept = Kept(asked.results, mutants())
    kept.read()
    chosen = _chosen(kept.all_mutants, asked.only)
    chosen = chosen if asked.again else campaign.left(chosen, kept.known)
    seeds, until = range(asked.first, asked.first + asked.seeds), time.monotonic() + 60 * asked.minutes
    _say(f"{len(chosen)} of {len(kept.all_mutants)} mutants to be tried, seeds {seeds[0]} to {seeds[-1]}.")
    trying = Campaign(copied, tried)

    def told(outcome: Outcome) -> None:
        kept.add(outcome)
        _say(campaign.line(outcome))

    for first in range(0, len(chosen), asked.jobs):
        if time.monotonic() < until:
            trying.run(chosen[first : first + asked.jobs], seeds, kept.known, jobs=asked.jobs, told=told)
    for (profile, seed), plain in sorted(trying.unsound.items()):
        _say(f"The packages as they are do not pass {profile} {seed}: {plain.verdict} {plain.said}")
    said = kept.summary()
    for line in ("", *campaign.table(kept.all_mutants, said)):
        _say(line)
    if trying.unsound:
        return NOTHING_SAID
    return ENOUGH if campaign.share(said) >= campaign.SHARE_MIN else TOO_FEW


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m simulation.mutants", description="Run the simulation on mutants.")
    parser.add_argument("--seeds", type=int, default=3, help="how many seeds each mutant may survive")
    parser.add_argument("--first", type=int, default=1, help="the first of them")
    parser.add_argument("--jobs", type=int, default=2, help="how many mutants at a time")
    parser.add_argument("--only", action="append", default=[], help="the name of a mutant, or of a group; repeatable")
    parser.add_argument("--results", type=Path, help="a file that keeps the newest result of each mutant")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="no mutant is begun after so many")
    parser.add_argument("--again", action="store_true", help="try those too that were noticed before")
    return parser


def _chosen(known: Sequence[Mutant], only: Sequence[str]) -> list[Mutant]:
    chosen = [mutant for mutant in known if not only or mutant.name in only or mutant.group in only]
    if not chosen:
        raise SystemExit(f"no mutant and no group is called {' or '.join(only)}")
    return chosen


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main())
