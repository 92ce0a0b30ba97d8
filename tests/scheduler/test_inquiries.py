"""When runs without an outcome are asked after, and that it costs little however many of them there are.

A schedule's open runs have no order of age, so to find whom to ask all of them are looked at. That is worth it for many
at once: with so many open, the first one that wants to be asked after waits for others, a quarter of a second for each
open run, in steps of sixteen, ten minutes at most; some schedules up to a fourth less, so that they take turns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from scheduler import keys, sweeps
from scheduler.state import ScheduleState, Sweep
from schemas.facts import RunCreated
from schemas.internal import RunInquired
from tests.scheduler.harness import TZ, Rows, Shell, at, definition

KEY = b"s/acme/s"
SECOND = timedelta(seconds=1)
LONGEST = timedelta(minutes=10)
WANTED = [timedelta(minutes=minutes) for minutes in (10, 30, 70, 150)]  # after its creation, as the design says


class CountedRows(Rows):
    """Rows that count how many open runs were looked at."""

    def __init__(self) -> None:
        super().__init__()
        self.looked_at = 0

    def scan(self, start: bytes = b"", end: bytes | None = None, *, reverse: bool = False) -> Iterator[Any]:
        for row, value in super().scan(start, end, reverse=reverse):
            self.looked_at += row.startswith(keys.RUN)
            yield row, value


def storm(runs: int, *, every: int = 1) -> tuple[Shell, CountedRows]:
    """So many runs, one every so many seconds from ten o'clock on, of which nobody says anything."""
    shell, rows = Shell("2024-01-01T09:59:59.500"), CountedRows()
    shell.rows[KEY] = rows
    trigger = {"every": f"PT{every}S", "anchor": "2024-01-01T10:00:00Z", "end_at": _after(runs * every)}
    shell.put(body={**definition(overlap={"policy": "allow_all"}), "trigger": trigger})
    return shell, rows


def _after(seconds: int) -> str:
    return f"{at('2024-01-01T10:00:00') + seconds * SECOND:%Y-%m-%dT%H:%M:%SZ}"


def asked(shell: Shell) -> dict[str, int]:
    """How many runs were asked after when."""
    return dict(Counter(f"{fact.inquired_at:%H:%M:%S}" for fact in shell.facts if isinstance(fact, RunInquired)))


def test_few_open_runs_are_each_asked_after_at_their_instant():
    shell, rows = storm(3)
    shell.until("2024-01-01T10:29:59")
    assert asked(shell) == {"10:10:00": 1, "10:10:01": 1, "10:10:02": 1}
    assert rows.looked_at == 9


def test_with_many_open_the_first_one_waits_until_there_are_more_to_ask_after():
    """Forty are two sixteens: eight seconds, of which `acme/s` has 63 of 1,024 parts less."""
    shell, rows = storm(40)
    shell.until("2024-01-01T10:29:59")
    assert asked(shell) == {"10:10:07": 8, "10:10:15": 8, "10:10:23": 8, "10:10:31": 8, "10:10:39": 8}
    assert rows.looked_at == 5 * 40


@pytest.mark.parametrize(
    ("open_runs", "cursor", "waits_ms"),
    [
        (1, "", 0),
        (15, "", 0),
        (16, "", 3_754),
        (31, "", 3_754),
        (40, "", 7_508),
        (2_399, "", 559_333),
        (2_400, "", 563_086),
        (1_000_000, "", 563_086),
        (1_000_000, "s.20240101T100000Z", 0),
    ],
)
def test_a_walk_waits_longer_for_more_runs_up_to_ten_minutes_and_not_in_between(
    open_runs: int, cursor: str, waits_ms: int
):  # fmt: skip
    state = ScheduleState(tenant="acme", name="s", open_runs=open_runs, inquiry=Sweep(at_ms=1_000, cursor=cursor))
    assert sweeps.inquiry_ms(state) == 1_000 + waits_ms


def test_schedules_that_began_together_do_not_walk_together():
    """Their walks are spread over a fourth of the wait: in no tenth of it is more than a fifth of them."""
    walk = Sweep(at_ms=0)
    instants = [
        sweeps.inquiry_ms(ScheduleState(tenant="acme", name=f"s{number}", open_runs=5_000, inquiry=walk)) or 0
        for number in range(100)
    ]
    assert min(instants) > 450_000
    assert max(instants) <= 600_000
    assert max(Counter((instant - 450_001) // 15_000 for instant in instants).values()) <= 20


def test_those_that_end_meanwhile_are_not_asked_after_and_the_others_are_no_later_for_it():
    shell, _ = storm(40)
    shell.until("2024-01-01T10:10:04")
    for run in shell.all(RunCreated)[:30]:
        shell.finish(run)
    shell.until("2024-01-01T10:29:59")
    assert asked(shell) == {f"10:10:{second}": 1 for second in range(30, 40)}, "ten are few"


def test_a_walk_that_is_under_way_goes_on_at_once_though_there_are_more_runs_by_then():
    shell, _ = storm(100)
    shell.until("2024-01-01T10:10:22")
    shell.sleep_until("2024-01-01T10:10:23")
    shell.settle(steps=1)
    assert shell.schedule().inquiry.cursor == "s.20240101T100103Z", "sixty-four are a page"
    for _ in range(20):
        shell.send("ScheduleTrigger")
    shell.settle()
    assert asked(shell) == {"10:10:23": 24}
    assert shell.schedule().inquiry.cursor == ""


@settings(max_examples=10, deadline=None)
@given(runs=st.integers(1, 150), every=st.sampled_from([1, 2, 7, 30]), ends=st.integers(0, 12))
@example(runs=300, every=1, ends=0)
def test_what_asking_costs_is_bounded_by_those_asked_after_and_by_time(runs: int, every: int, ends: int):
    """Over an hour: 16 looks for each one asked after and 11 a second. Each is asked after once for each of its
    instants, and no later than a quarter of a second for each open run, and ten minutes, behind it.
    """  # fmt: skip
    shell, rows = storm(runs, every=every)
    started = at("2024-01-01T10:00:00")
    for minute in range(1, 61):
        shell.until(started + minute * timedelta(minutes=1))
        if ends and minute % ends == 0:
            for run_id in sorted(_open(shell))[::3]:
                shell.finish(run_id)
    told = shell.all(RunInquired)
    assert rows.looked_at <= 16 * len(told) + 11 * 3600
    bound = min(LONGEST, runs * timedelta(milliseconds=250))
    for fact in told:
        late = min(age for wanted in WANTED if (age := fact.inquired_at - fact.run.created_at - wanted) >= 0 * SECOND)
        assert late <= bound
    counted = Counter(fact.run.run_id for fact in told)
    for run_id in _open(shell):
        age = shell.now - shell.run(run_id).created_at
        assert sum(wanted + bound <= age for wanted in WANTED) <= counted[run_id] <= sum(w <= age for w in WANTED)


def _open(shell: Shell) -> list[str]:
    return [row[len(keys.RUN) :].decode() for row in shell.rows[KEY].data if row.startswith(keys.RUN)]


def test_the_wakeups_of_a_version_that_asked_at_once_are_derived_anew():
    """A store that such a version left has another instant in its index than the state wants now."""
    assert Shell().core.derivation not in ("", TZ)
