"""Laws of backfills, searched with random histories, ranges, outcomes, crashes and ways to cut time into batches."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.facts import (
    BackfillFinished,
    BackfillStarted,
    Cause,
    OccurrenceSkipped,
    RunCreated,
)
from schemas.scheduling import BackfillStepped
from tests.scheduler.harness import Shell, at, definition

START = at("2024-01-01T00:00:00")
LIVE_SECONDS = 40
PATIENCE_SECONDS = 600
OUTCOMES = ["succeeded", "failed", "timed_out", "cancelled", "expired"]

# What is due, said twice: as a trigger, and as a predicate over seconds since START.
TRIGGERS: dict[str, Any] = {
    "every second": ({"cron": "* * * * * *"}, lambda _: True),
    "thirds": ({"cron": "*/3 * * * * *"}, lambda second: second % 3 == 0),
    "every 7 seconds": ({"every": "PT7S", "anchor": "2024-01-01T00:00:03Z"}, lambda second: (second - 3) % 7 == 0),
    "with exclusions": (
        {"cron": "* * * * * *", "exclude": {"cron": ["8-13,21 * * * * *"]}},
        lambda second: not (8 <= second % 60 <= 13 or second % 60 == 21),
    ),
}


@dataclass(frozen=True)
class World:
    """A schedule's past, and a backfill over it."""

    trigger: str
    edited: str | None
    pause: tuple[int, int]
    live: tuple[str, ...]  # how live runs end, in turn; empty: they do not
    span: tuple[int, int]
    order: str
    reprocess: str
    max_active: int
    rate: str
    as_of: int
    again: tuple[str, ...]  # how its own runs end
    cuts_ms: tuple[int, ...]
    lasts_cuts: tuple[int, ...]
    stopped_at: int | None  # paused there, and resumed three cuts later

    def selects(self, second: int) -> bool:
        version = self.trigger if self.as_of == 1 or self.edited is None else self.edited
        return bool(TRIGGERS[version][1](second)) if second >= 3 or version != "every 7 seconds" else False

    def names(self, second: int) -> bool:
        """Whether it is an occurrence at all, excluded or not."""
        version = self.trigger if self.as_of == 1 or self.edited is None else self.edited
        return True if version == "with exclusions" else self.selects(second)


def worlds() -> st.SearchStrategy[World]:
    names = st.sampled_from(sorted(TRIGGERS))
    pause = st.tuples(st.integers(2, 20), st.integers(3, 15)).map(lambda pair: (pair[0], pair[0] + pair[1]))
    span = st.tuples(st.integers(-20, 30), st.integers(1, 40)).map(lambda pair: (pair[0], min(40, pair[0] + pair[1])))
    return st.builds(
        World, names, st.none() | names, pause,
        st.lists(st.sampled_from(["", *OUTCOMES]), min_size=1, max_size=5).map(tuple),
        span, st.sampled_from(["oldest", "newest"]), st.sampled_from(["none", "failed", "completed"]),
        st.integers(1, 4), st.sampled_from(["100/s", "10/s", "2/s", "60/m"]), st.sampled_from([1, 1, 2]),
        st.lists(st.sampled_from(OUTCOMES), min_size=1, max_size=4).map(tuple),
        st.lists(st.integers(1, 1500), min_size=1, max_size=6).map(tuple),
        st.lists(st.integers(0, 4), min_size=1, max_size=4).map(tuple), st.none() | st.integers(1, 20),
    )  # fmt: skip


def lived(world: World) -> tuple[Shell, dict[int, str]]:
    """The schedule's past: what became of each second that had a run, by the outcome of it; open is empty."""
    shell = Shell("2024-01-01T00:00:00")
    shell.put(body=body(world.trigger))
    fates: dict[int, str] = {}
    for second in range(1, LIVE_SECONDS + 1):
        if second == world.pause[0]:
            shell.send("SchedulePause")
        if second == world.pause[1]:
            shell.send("ScheduleResume")
        if second == 25 and world.edited is not None:
            shell.put(body=body(world.edited))
        before = len(shell.facts)
        shell.until(START + timedelta(seconds=second, milliseconds=500))
        for run in [fact for fact in shell.facts[before:] if isinstance(fact, RunCreated)]:
            outcome = world.live[len(fates) % len(world.live)]
            fates[since(run)] = outcome
            if outcome:
                shell.finish(run, outcome)
    return shell, fates


def body(name: str) -> dict[str, Any]:
    trigger = TRIGGERS[name][0]
    made = definition(overlap={"policy": "allow_all"}, labels={"trigger": name})
    return {**made, "trigger": trigger}


def since(run: RunCreated) -> int:
    assert run.nominal_time is not None
    return round((run.nominal_time - START).total_seconds())


def expected(world: World, fates: dict[int, str]) -> tuple[set[int], set[int], int]:
    """Which seconds have their first run, which another one, and how many are left alone: by enumeration."""
    first, again, left = set(), set(), 0
    for second in range(*world.span):
        if not world.names(second):
            continue
        if not world.selects(second):
            left += 1
        elif second not in fates:
            first.add(second)
        elif fates[second] and (
            world.reprocess == "completed" or (world.reprocess == "failed" and fates[second] != "succeeded")
        ):
            again.add(second)
        else:
            left += 1
    return first, again, left


def backfilled(shell: Shell, world: World, *, crashing: bool) -> None:
    """Let it run to its end, in the batches that the world says."""
    finishing: list[tuple[int, RunCreated, str]] = []
    known: set[str] = set()
    backfill = shell.all(BackfillStarted)[-1].backfill
    for cut in range(100_000):
        if not shell.schedule().backfills:
            return
        assert (shell.now - START).total_seconds() < PATIENCE_SECONDS, "this would go on for ever"
        shell.now += timedelta(milliseconds=world.cuts_ms[cut % len(world.cuts_ms)])
        if cut == world.stopped_at:
            shell.send("BackfillPause", backfill=backfill)
        if world.stopped_at is not None and cut == world.stopped_at + 3:
            shell.send("BackfillResume", backfill=backfill)
        shell.settle()
        for run in shell.all(RunCreated):
            if run.cause is Cause.BACKFILL and run.run_id not in known:
                known.add(run.run_id)
                lasts = world.lasts_cuts[len(known) % len(world.lasts_cuts)]
                finishing.append((cut + lasts, run, world.again[len(known) % len(world.again)]))
        assert sum(each.counts.active for each in shell.schedule().backfills) <= world.max_active
        for _, run, outcome in [each for each in finishing if each[0] <= cut]:
            shell.finish(run, outcome)
        finishing = [each for each in finishing if each[0] > cut]
        if crashing:
            shell.reload()


@settings(max_examples=40, deadline=None)
@given(worlds())
def test_each_occurrence_of_the_range_has_exactly_one_decision_however_time_and_crashes_cut_it(world):
    shell, fates = lived(world)
    first, again, left = expected(world, fates)
    span = {"from": text(world.span[0]), "to": text(world.span[1])}
    how = {"order": world.order, "reprocess": world.reprocess, "max_active": world.max_active, "rate": world.rate}
    as_of = min(world.as_of, shell.schedule().version)
    shell.send("BackfillStart", **span, **how, as_of=as_of, dry_run=True)
    forecast = shell.answer()
    shell.send("BackfillStart", **span, **how, as_of=as_of)
    if not first and not again and not left:
        assert (shell.answer().status, shell.answer().body["reason"]) == (422, "no_occurrence")
        return
    live = len(shell.facts)
    backfilled(shell, world, crashing=len(world.cuts_ms) % 2 == 0)
    made = [fact for fact in shell.facts[live:] if isinstance(fact, RunCreated) and fact.cause is Cause.BACKFILL]
    assert Counter(since(run) for run in made if run.of is None) == Counter(first)
    assert Counter(since(run) for run in made if run.of is not None) == Counter(again)
    assert all(run.of == f"s.{run.nominal_time:%Y%m%dT%H%M%SZ}" for run in made if run.of is not None)
    steps = [fact for fact in shell.facts[live:] if isinstance(fact, BackfillStepped)]
    assert sum(sum(step.left_out.values()) for step in steps) == left
    finished = shell.all(BackfillFinished)[0]
    counts = finished.counts
    assert (finished.outcome, counts.created, counts.reprocessed, sum(counts.left_out.values())) == (
        "completed", len(first), len(again), left,
    )  # fmt: skip
    assert finished.decided == finished.occurrences == len(first) + len(again) + left
    assert sum(counts.ended.values()) == len(made)
    # The dry run said so before, by the same walk.
    assert (forecast.body["runs"], forecast.body["complete"]) == (len(made), True)
    assert sum(forecast.body["left_out"].values()) == left
    # The order is the one that was asked for, and the rate was kept.
    order = [since(run) for run in made]
    assert order == sorted(order, reverse=world.order == "newest")
    apart = {"100/s": 10, "10/s": 100, "2/s": 500, "60/m": 1000}[world.rate]
    instants = [run.created_at for run in made]
    assert all(later - sooner >= timedelta(milliseconds=apart) for sooner, later in pairwise(instants))


@settings(max_examples=20, deadline=None)
@given(worlds())
def test_a_second_backfill_of_the_range_finds_nothing_left_to_do_and_the_schedule_never_noticed(world):
    shell, _ = lived(world)
    alone, _ = lived(world)
    span = {"from": text(world.span[0]), "to": text(world.span[1])}
    shell.send("BackfillStart", **span, max_active=world.max_active, rate=world.rate, order=world.order)
    if shell.answer().status != 201:
        return
    backfilled(shell, world, crashing=False)
    shell.send("BackfillStart", **span, dry_run=True)
    assert shell.answer().body["runs"] == 0
    alone.until(shell.now)
    assert live_decisions(shell) == live_decisions(alone)


def live_decisions(shell: Shell) -> list[str]:
    """What the schedule itself decided, whenever it came to it."""
    runs = [(run.run_id, run.cause.value) for run in shell.all(RunCreated) if run.cause is not Cause.BACKFILL]
    skips = [(fact.nominal_time, fact.range, fact.reason) for fact in shell.all(OccurrenceSkipped) if not fact.range]
    return sorted(map(str, runs)) + sorted(map(str, skips))


def text(second: int) -> str:
    instant: datetime = START + timedelta(seconds=second)
    return instant.strftime("%Y-%m-%dT%H:%M:%SZ")
