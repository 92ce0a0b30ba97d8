"""`python -m simulation`: many seeds, or one of them again with its whole story.

A seed that fails prints its options and what did not hold, and the exit code is 1. One that is replayed has the same
history, digit for digit.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path

import click
import orjson

from simulation.about import about
from simulation.cluster import options as drawing
from simulation.cluster.hour import __doc__ as HOUR  # noqa: N812 -- a text, not a module
from simulation.cluster.options import Options
from simulation.cluster.shrinking import shrink
from simulation.cluster.verdict import Outcome, simulate, simulate_untold

FAILURES_TOLD_MAX = 20  # of one seed
SECONDS_OF_AN_HOUR = 3600.0


@click.command()
@click.option("--seeds", default=10, show_default=True, help="How many seeds.")
@click.option("--hours", default=1.0, show_default=True, help="Virtual hours of each seed.")
@click.option("--first", default=1, show_default=True, help="The first seed.")
@click.option("--jobs", default=1, show_default=True, help="How many processes work on the seeds.")
@click.option("--seed", type=int, help="Run this one alone and tell its story.")
@click.option("--options", "line", help="Its options, as they were printed, in place of those that it draws.")
@click.option("--shrink", "shrinks", is_flag=True, help="Look for the smallest options with which the seed fails.")
@click.option("--results", type=click.Path(path_type=Path), help="A file to which one line of JSON is added.")
def main(
    seeds: int, hours: float, first: int, jobs: int, seed: int | None, line: str | None, results: Path | None, *,
    shrinks: bool,
) -> None:  # fmt: skip
    """Simulate whole clusters under seeded faults and judge what they leave behind."""
    if seed is not None or line is not None:
        chosen = drawing.read(line) if line else drawing.draw(seed or 0, hours=hours)
        failed = _shrunk(chosen) if shrinks else _replayed(chosen)
    else:
        click.echo(HOUR)
        tally = Tally()
        for outcome in _outcomes([drawing.draw(number, hours=hours) for number in range(first, first + seeds)], jobs):
            tally.add(outcome)
            if outcome.failed:
                _tell_failure(outcome)
        click.echo(tally.text())
        if results is not None:
            with results.open("ab") as file:
                file.write(orjson.dumps(about() | tally.record(first, hours)) + b"\n")
        failed = bool(tally.failed)
    raise SystemExit(1 if failed else 0)


def _outcomes(all_options: list[Options], jobs: int) -> Iterator[Outcome]:
    if jobs == 1:
        yield from map(simulate, all_options)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield from pool.map(simulate_untold, all_options)


def _replayed(options: Options) -> bool:
    click.echo(HOUR)
    click.echo(f"options: {options.line()}")
    outcome = simulate(options, click.echo)
    click.echo(f"digest: {outcome.digest}")
    for fault, count in outcome.faults.items():
        click.echo(f"  {fault:4} {count:4} times: {drawing.MEANINGS[fault]}")
    _tell_failure(outcome)
    return outcome.failed


def _shrunk(options: Options) -> bool:
    outcome = simulate(options)
    if not outcome.failed:
        click.echo("It does not fail.")
        return False
    kind = kind_of(outcome.failures)
    smaller = shrink(options, lambda tried: kind_of(simulate(tried).failures) == kind, click.echo)
    _tell_failure(simulate(smaller))
    return True


def kind_of(failures: Iterable[str]) -> str:
    """What kind of failure the first one is: its second word, behind who has noticed it."""
    return next((failure.split()[1].rstrip(":") for failure in failures), "")


def _tell_failure(outcome: Outcome) -> None:
    if not outcome.failed:
        click.secho("all invariants held", fg="green")
        return
    click.secho(f"seed {outcome.options.seed} failed: {len(outcome.failures)} violations", fg="red")
    for failure in outcome.failures[:FAILURES_TOLD_MAX]:
        click.echo(f"  {failure}")
    click.echo(f"  again: python -m simulation --options '{outcome.options.line()}'")


@dataclass(slots=True)
class Tally:
    """What all seeds together came to."""

    began: float = field(default_factory=time.monotonic)
    seeds: int = 0
    failed: list[int] = field(default_factory=list)
    virtual_seconds: float = 0.0
    turns: int = 0
    requests: int = 0
    runs: int = 0
    core_seconds: float = 0.0
    violations: int = 0
    faults: Counter[str] = field(default_factory=Counter)

    def add(self, outcome: Outcome) -> None:
        """Count one seed."""
        self.seeds += 1
        self.virtual_seconds += outcome.virtual_seconds
        self.turns += outcome.turns
        self.requests += outcome.requests
        self.runs += outcome.runs
        self.core_seconds += outcome.core_seconds
        self.violations += len(outcome.failures)
        self.faults.update(outcome.faults)
        if outcome.failed:
            self.failed.append(outcome.options.seed)

    @property
    def real_seconds(self) -> float:
        """How long it took."""
        return time.monotonic() - self.began

    def text(self) -> str:
        """For people."""
        real, hours = self.real_seconds, self.virtual_seconds / SECONDS_OF_AN_HOUR
        faults = "\n".join(
            f"    {name:4} {count:6}  {drawing.MEANINGS[name]}" for name, count in sorted(self.faults.items())
        )
        return (
            f"{self.seeds} seeds, {hours:.1f} simulated hours in {real:.0f} s: "
            f"{self.virtual_seconds / real:.0f} times as fast as real time, {self.turns / real:.0f} events/s\n"
            f"  {self.core_seconds / hours:.1f} core-seconds for each hour\n"
            f"  {self.runs} runs created, {self.requests} requests to brokers, {self.violations} violations "
            f"in seeds {self.failed or 'none'}\n"
            f"  faults that happened:\n{faults}"
        )

    def record(self, first: int, hours: float) -> dict[str, object]:
        """For a file of results."""
        real = self.real_seconds
        return {
            "seeds": self.seeds, "first": first, "hours": hours,
            "simulated_hours": round(self.virtual_seconds / SECONDS_OF_AN_HOUR, 2), "real_seconds": round(real, 1),
            "core_seconds": round(self.core_seconds, 1),
            "simulated_per_real": round(self.virtual_seconds / real, 1), "events_per_second": round(self.turns / real),
            "runs": self.runs, "violations": self.violations, "failed_seeds": self.failed,
            "faults": dict(sorted(self.faults.items())),
        }  # fmt: skip


if __name__ == "__main__":
    main()
