"""Occurrences per second: ours, croniter and cronsim, on expressions and zones that people really use.

    make bench ONLY=occurrences

`walk` is one long iteration, `ask` is `next_after` from each answer, as a scheduler asks. The others have one way each:
an iterator. Time is this process's own (CPU); every figure is the best of some short rounds, since other work on the
machine only ever slows a round.
"""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from time import process_time
from zoneinfo import ZoneInfo

from croniter import croniter
from cronsim import CronSim
from rich.console import Console
from rich.table import Table

from scheduler.occurrences import CronTrigger, between, parse, zone

START = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp())
UNTIL = START + 400 * 365 * 86_400  # enough that no walk of a round comes to an end
ROUNDS = 5
BUNCH = 20
ROUND_SECONDS = 0.04  # 8 cases x 4 ways x 5 rounds: the whole run takes some ten seconds
CASES = [
    ("0 2 * * *", "UTC"),
    ("0 2 * * *", "Europe/London"),
    ("*/15 * * * *", "America/New_York"),
    ("0 9 * * 1-5", "Europe/Berlin"),
    ("* * * * *", "Asia/Kolkata"),
    ("30 8,12,18 1,15 * *", "America/Sao_Paulo"),
    ("0 0 L * *", "Asia/Tokyo"),
    ("0 0 29 2 *", "UTC"),
]


def main() -> None:
    table = Table("expression", "zone", *(f"{way}/s" for way in WAYS), "walk/croniter", "walk/cronsim", "ask/croniter")
    for text, name in CASES:
        rate = {way: best_rate(partial(begin, text, name)) for way, begin in WAYS.items()}
        ratios = [rate["walk"] / rate["croniter"], rate["walk"] / rate["cronsim"], rate["ask"] / rate["croniter"]]
        table.add_row(text, name, *(f"{rate[way]:,.0f}" for way in WAYS), *(f"{ratio:,.0f}x" for ratio in ratios))
    Console(width=160).print(table)


def best_rate(begin: Callable[[], Iterator[object]]) -> float:
    return max(rate_of(begin()) for _ in range(ROUNDS))


def rate_of(answers: Iterator[object]) -> float:
    """Answers per second, counted in bunches so that looking at the clock costs nothing."""
    count, spent, began = 0, 0.0, process_time()
    while spent < ROUND_SECONDS and (got := sum(1 for _ in islice(answers, BUNCH))):
        count, spent = count + got, process_time() - began
    return count / spent


def walk(text: str, name: str) -> Iterator[object]:
    return between(CronTrigger(parse(text), zone(name)), START, UNTIL)


def ask(text: str, name: str) -> Iterator[object]:
    trigger = CronTrigger(parse(text), zone(name))
    due = trigger.next_after(START)
    while due is not None:
        yield due
        due = trigger.next_after(due)


def by_croniter(text: str, name: str) -> Iterator[object]:
    return croniter(text, datetime.fromtimestamp(START, ZoneInfo(name)), ret_type=datetime)  # type: ignore[no-any-return]


def by_cronsim(text: str, name: str) -> Iterator[object]:
    return CronSim(text, datetime.fromtimestamp(START, ZoneInfo(name)))


WAYS = {"walk": walk, "ask": ask, "croniter": by_croniter, "cronsim": by_cronsim}
