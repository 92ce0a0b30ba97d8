"""Laws of runs that follow: each report is decided once, however time was cut and whatever was read twice."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from schemas import codec, topics
from schemas.facts import OccurrenceSkipped, Outcome, RunCreated
from schemas.linking import TriggerDeferred, UpstreamFinished
from schemas.scheduling import RunSettled
from tests.scheduler.harness import Shell, at, definition

START = at("2024-01-01T00:00:00")
END_MS = 8_000
CUT_MS_MAX = 400  # runs last longer than the time between two batches, as nothing ends before it was created
OVERLAPS: list[dict[str, Any]] = [
    {"policy": "skip"}, {"policy": "skip", "limit": 2}, {"policy": "buffer_one"},
    {"policy": "buffer_all", "buffer": 3}, {"policy": "cancel_other"}, {"policy": "allow_all"},
]  # fmt: skip
CHANGES = {"pause": "SchedulePause", "resume": "ScheduleResume"}


@dataclass(frozen=True)
class Happening:
    """At an instant, in milliseconds after START, an upstream reports, or somebody changes the follower."""

    at_ms: int
    what: str  # pause, resume, or an outcome


@dataclass(frozen=True)
class History:
    """What a follower lives through, and how long its runs last."""

    overlap: dict[str, Any]
    condition: str
    ticks: bool  # whether it has instants of its own, every three seconds
    lasting_ms: int
    happenings: tuple[Happening, ...]


def happenings() -> st.SearchStrategy[tuple[Happening, ...]]:
    what = st.sampled_from(["pause", "resume", "succeeded", "succeeded", "succeeded", "failed", "cancelled"])
    each = st.builds(Happening, at_ms=st.integers(0, END_MS - 1), what=what)
    found = st.lists(each, max_size=10, unique_by=lambda one: one.at_ms)
    return found.map(lambda one: tuple(sorted(one, key=lambda happening: happening.at_ms)))


HISTORIES = st.builds(
    History,
    overlap=st.sampled_from(OVERLAPS),
    condition=st.sampled_from(["succeeded", "finished", "failed"]),
    ticks=st.booleans(),
    lasting_ms=st.sampled_from([501, 1301, 4801]),
    happenings=happenings(),
)
CUTS = st.lists(st.integers(50, CUT_MS_MAX), min_size=1, max_size=5)


@dataclass
class Life:
    """The owner of a follower, and the log that it reads batch by batch."""

    history: History
    twice: bool = False
    shell: Shell = field(default_factory=lambda: Shell("2024-01-01T00:00:00"))
    outcomes: list[tuple[datetime, str]] = field(default_factory=list)
    seen: int = 0
    freed: datetime = START

    def through(self, cuts: list[int]) -> list[str]:
        """Live to the end; what became of all that was due."""
        self.shell.put("report", self.definition())
        self.shell.deliver()
        to_come, now_ms, index = list(self.history.happenings), 0, 0
        while now_ms < 6 * END_MS:
            now_ms += cuts[index % len(cuts)]
            index += 1
            if after(now_ms) < self.quiet_until(to_come):
                continue
            self.shell.now = after(now_ms)
            read = [happening for happening in to_come if happening.at_ms <= now_ms]
            del to_come[: len(read)]
            self.read(read)
            self.shell.settle()
            self.watch()
        return self.told()

    def quiet_until(self, to_come: list[Happening]) -> datetime:
        """Before that, a batch would find nothing to do."""
        instants = [self.shell.next_wakeup(), *(after(each.at_ms) for each in to_come[:1])]
        instants += [ends_at for ends_at, _ in self.outcomes]
        return min((instant for instant in instants if instant is not None), default=after(10 * END_MS))

    def definition(self) -> dict[str, Any]:
        edge = {"schedule": "load", "mode": "run", "condition": self.history.condition}
        ticks = definition("*/3 * * * * *", trigger={"end_at": "2024-01-01T00:00:08Z"}) if self.history.ticks else {}
        job = {"target": {"type": "task", "name": "t"}}
        return {**ticks, "after": [edge], "job": job, "overlap": self.history.overlap, "grace": "PT1H"}

    def read(self, happenings: list[Happening]) -> None:
        """A batch: topic by topic, not in the order in which it all happened."""
        for happening in happenings:
            if happening.what in CHANGES:
                self.shell.send(CHANGES[happening.what], name="report", published=after(happening.at_ms).isoformat())
        for ends_at, run_id in sorted(each for each in self.outcomes if each[0] <= self.shell.now):
            self.shell.finish(run_id, published=ends_at.isoformat())
        self.outcomes = [each for each in self.outcomes if each[0] > self.shell.now]
        for happening in happenings:
            if happening.what not in CHANGES:
                for _ in range(2 if self.twice else 1):
                    self.shell.record(topics.LINKS, word(happening), published=after(happening.at_ms).isoformat())
        self.watch()

    def watch(self) -> None:
        """A run ends so long after what led to it, or after the outcome that made room for it."""
        waited = {fact.upstream.run_id for fact in self.shell.all(TriggerDeferred, "report")}
        for fact in self.shell.facts[self.seen :]:
            if isinstance(fact, RunSettled):
                self.freed = fact.appended_at
            elif isinstance(fact, RunCreated):
                begins = fact.due_at if fact.upstream is None else fact.upstream.finished_at
                if fact.upstream is not None and fact.upstream.run_id in waited:
                    begins = self.freed
                ends_at = max(begins, self.freed if fact.upstream is None else begins)
                self.outcomes.append((ends_at + timedelta(milliseconds=self.history.lasting_ms), fact.run_id))
        self.seen = len(self.shell.facts)

    def told(self) -> list[str]:
        found = []
        for fact in self.shell.facts:
            if isinstance(fact, RunCreated):
                found.append(f"{fact.run_id} created")
            elif isinstance(fact, OccurrenceSkipped):
                what = fact.nominal_time if fact.upstream is None else fact.upstream.run_id
                found.append(f"{what} {fact.reason} {fact.blocked_by}")
        return found


def after(ms: int) -> datetime:
    return START + timedelta(milliseconds=ms)


def word(happening: Happening) -> Any:
    """What the upstream's owner says; its reports are counted, here by their instants."""
    fact = UpstreamFinished(
        tenant="acme", schedule="load", downstream="report", sequence=1, number=happening.at_ms + 1,
        run_id=f"load.m-{happening.at_ms:016x}", outcome=Outcome(happening.what), finished_at=after(happening.at_ms),
        chain=("load",),
    )  # fmt: skip
    return codec.parse(codec.encode(fact, source="x", time=START)[1])


@settings(max_examples=25, deadline=None)
@given(HISTORIES.filter(lambda history: not history.ticks), CUTS)
def test_decisions_do_not_depend_on_how_time_was_cut(history, cuts):
    assert Life(history).through(cuts) == Life(history).through([50])


@settings(max_examples=20, deadline=None)
@given(HISTORIES, CUTS)
def test_each_report_that_meets_the_condition_is_decided_once(history, cuts):
    """Whatever is read twice; and another process that takes over finds it so."""
    life = Life(history, twice=True)
    told = life.through(cuts)
    wanted = {
        "succeeded": {"succeeded"}, "failed": {"failed"}, "finished": {"succeeded", "failed", "cancelled"}
    }[history.condition]  # fmt: skip
    reports = {f"load.m-{each.at_ms:016x}" for each in history.happenings if each.what in wanted}
    runs = [run.upstream.run_id for run in life.shell.all(RunCreated, "report") if run.upstream is not None]
    skips = [skip.upstream.run_id for skip in life.shell.all(OccurrenceSkipped, "report") if skip.upstream is not None]
    assert sorted([*runs, *skips]) == sorted(reports)
    assert len(told) == len(set(told))
    life.shell.reload()
    assert life.shell.schedule("report").active == 0


@settings(max_examples=20, deadline=None)
@given(HISTORIES, CUTS)
def test_no_more_runs_are_active_than_may_be(history, cuts):
    life = Life(history)
    life.through(cuts)
    limit = 10**6 if history.overlap["policy"] == "allow_all" else history.overlap.get("limit", 1)
    active: set[str] = set()
    for fact in life.shell.facts:
        if isinstance(fact, RunCreated):
            active.add(fact.run_id)
        elif isinstance(fact, RunSettled):
            active.discard(fact.run_id)
        assert len(active) <= limit
