"""Freezes come and go as they like: what holds in any case of what they hold."""

from datetime import timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.facts import OccurrenceDeferred, OccurrenceSkipped, RunCreated
from tests.scheduler.freezing import freeze, hourly
from tests.scheduler.harness import Shell, at

BEGIN = at("2026-12-20T00:30:00")
windows = st.lists(st.tuples(st.integers(0, 20), st.integers(1, 6), st.sampled_from(["defer", "skip"])), max_size=3)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("live"), st.integers(1, 300)),
        st.tuples(st.just("nap"), st.integers(1, 300)),
        st.tuples(st.just("freeze"), windows),
        st.tuples(st.sampled_from(["pause", "resume", "edit", "delete", "end_one", "reload"]), st.just(0)),
    ),
    max_size=14,
)


def spans(drawn: list[tuple[int, int, str]]) -> list[dict[str, Any]]:
    return [
        {
            "from": f"{BEGIN + timedelta(hours=hour):%Y-%m-%dT%H:%M:%SZ}",
            "to": f"{BEGIN + timedelta(hours=hour + hours):%Y-%m-%dT%H:%M:%SZ}",
            "action": action,
        }
        for hour, hours, action in drawn
    ]


class Play:
    """A schedule of every twenty minutes and a tenant's freezes, which come and go."""

    def __init__(self, catch_up: str, overlap: str, first: list[Any], jitter: int, max_runs: int | None) -> None:
        self.shell = Shell(BEGIN.isoformat())
        self.in_force: list[dict[str, Any]] = []
        self.seen = 0
        self.put(first)
        self.jitter, self.max_runs = timedelta(minutes=jitter), max_runs
        trigger: dict[str, Any] = {"jitter": f"{jitter}m"} if jitter else {}
        trigger |= {} if max_runs is None else {"max_runs": max_runs}
        self.body = hourly(
            "*/20 * * * *", trigger=trigger, catch_up={"policy": catch_up, "limit": 4}, overlap={"policy": overlap}
        )  # fmt: skip
        self.lives = [BEGIN]  # when it was made, deleted, made anew, …
        self.shell.put(body=self.body)

    @property
    def is_there(self) -> bool:
        return len(self.lives) % 2 == 1

    def put(self, drawn: list[Any]) -> None:
        self.in_force = spans(drawn)
        freeze(self.shell, *self.in_force)

    def step(self, what: str, value: Any) -> None:
        shell = self.shell
        match what:
            case "live":
                shell.until(shell.now + timedelta(minutes=value))
            case "nap":
                shell.now += timedelta(minutes=value)
            case "freeze":
                self.put(value)
            case "reload":
                shell.reload()
            case "end_one":
                self.end_one()
            case "edit":
                self.edit()
            case "delete":
                if self.is_there:
                    self.lives.append(shell.now)
                shell.send("ScheduleDelete")
            case _:
                shell.send("SchedulePause" if what == "pause" else "ScheduleResume")
        shell.settle()
        self.check_new_runs()

    def edit(self) -> None:
        if not self.is_there:
            self.lives.append(self.shell.now)
        self.shell.put(body={**self.body, "note": f"{len(self.shell.facts)}"})

    def end_one(self) -> None:
        if found := self.shell.all(RunCreated):
            self.shell.finish(found[-1])

    def check_new_runs(self) -> None:
        """None has begun in a window that defers."""
        found = self.shell.all(RunCreated)
        defers = [each for each in self.in_force if each["action"] == "defer"]
        for run in found[self.seen :]:
            assert not any(at(each["from"]) <= run.created_at < at(each["to"]) for each in defers), run
        self.seen = len(found)

    def check_all(self) -> None:
        """What was due has a run, a reason for none, or waits; and none of these twice."""
        shell = self.shell
        shell.reload()
        nominal = [BEGIN + timedelta(minutes=10 + 20 * number) for number in range(10_000)]
        nominal = [each for each in nominal if each <= shell.now]
        decided = [run.nominal_time for run in shell.all(RunCreated)]
        for fact in shell.all(OccurrenceSkipped):
            if fact.range is None:
                decided.append(fact.nominal_time)
            else:
                decided += [each for each in nominal if fact.range.from_ <= each < fact.range.to]
        waiting = {each.nominal_time for each in shell.all(OccurrenceDeferred)} - set(decided)
        assert len(decided) == len(set(decided))
        assert len(waiting) == shell.schedule().backlog_count + shell.schedule().waiting_count
        known = set(decided) | waiting
        for life in range(0, len(self.lives), 2):
            begin, *end = self.lives[life : life + 2]
            due = [each for each in nominal if begin < each and (not end or each <= end[0])]
            self.check_life(known, due, shell.now if end else shell.now - self.jitter)
            known -= set(due)
        assert known == set()

    def check_life(self, known: set[Any], due: list[Any], over: Any) -> None:
        """All that was due and whose jitter is over: as far as `max_runs` lets it."""
        missing = [each for each in due if each <= over and each not in known]
        made = sum(run.nominal_time in due for run in self.shell.all(RunCreated))
        if self.max_runs is None:
            assert missing == []
            return
        assert made <= self.max_runs
        if missing:
            assert made == self.max_runs
            assert not [each for each in due if each > missing[0] and each in known]


@settings(max_examples=60, deadline=None)
@given(
    steps=steps,
    catch_up=st.sampled_from(["latest", "all", "skip"]),
    overlap=st.sampled_from(["allow_all", "skip", "buffer_one", "buffer_all", "cancel_other"]),
    first=windows,
    jitter=st.sampled_from([0, 0, 15]),
    max_runs=st.sampled_from([None, None, 1, 5]),
)
def test_each_occurrence_has_one_decision_however_freezes_come_and_go_and_none_begins_in_a_window(
    steps: list[Any], catch_up: str, overlap: str, first: list[Any], jitter: int, max_runs: int | None
):
    play = Play(catch_up, overlap, first, jitter, max_runs)
    for what, value in steps:
        play.step(what, value)
    play.check_all()
