"""Laws of the scheduler, searched with random schedules, commands, outcomes and ways to cut time into batches.

The occurrences that should be due are enumerated here, second by second, by predicates that know no trigger.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.machine import Woken
from scheduler import ledger
from schemas import codec, topics
from schemas.facts import (
    CatalogEntry,
    Cause,
    OccurrenceDeferred,
    OccurrenceSkipped,
    RunCancelRequested,
    RunCreated,
    ScheduleAccepted,
    ScheduleDeleted,
    SchedulePaused,
    ScheduleResumed,
)
from schemas.scheduling import RunSettled
from tests.scheduler.harness import Shell, at

START = at("2024-01-01T00:00:00")
END_SECONDS = 30
CUT_MS_MAX = 400  # runs last longer than the time between two batches, as nothing ends before it was created

# What is due, said twice: as a trigger, and as a predicate over seconds since START.
TRIGGERS: dict[str, tuple[dict[str, Any], Callable[[int], bool]]] = {
    "every second": ({"cron": "* * * * * *"}, lambda _: True),
    "even seconds": ({"cron": "*/2 * * * * *"}, lambda second: second % 2 == 0),
    "at 5 and 20": ({"cron": "5,20 * * * * *"}, lambda second: second % 60 in {5, 20}),
    "two lists": ({"cron": ["*/6 * * * * *", "*/4 * * * * *"]}, lambda second: second % 6 == 0 or second % 4 == 0),
    "bounded": (
        {"cron": "*/2 * * * * *", "start_at": "2024-01-01T00:00:06Z", "end_at": "2024-01-01T00:00:20Z"},
        lambda second: second % 2 == 0 and 6 <= second < 20,
    ),
    "with exclusions": ({"cron": "* * * * * *", "exclude": {"cron": ["8-13,21 * * * * *"]}}, lambda _: True),
    # It ends early enough that nothing waits for its jitter at the end.
    "with a jitter": (
        {"cron": "*/3 * * * * *", "jitter": "PT2S", "end_at": "2024-01-01T00:00:22Z"},
        lambda second: second % 3 == 0 and second < 22,
    ),
    "every 7 seconds": ({"every": "PT7S", "anchor": "2024-01-01T00:00:03Z"}, lambda s: s >= 3 and (s - 3) % 7 == 0),
}
OVERLAPS = [
    {"policy": "skip"}, {"policy": "skip", "limit": 2}, {"policy": "buffer_one"}, {"policy": "allow_all"},
    {"policy": "buffer_all", "buffer": 3}, {"policy": "buffer_all"}, {"policy": "cancel_other"},
    {"policy": "cancel_other", "limit": 2}, {"policy": "terminate_other"},
]  # fmt: skip
CATCH_UPS = [{"policy": "skip"}, {"policy": "latest"}, {"policy": "all", "limit": 5, "window": "PT20S"}]
SECONDS = st.sampled_from([1, 2, 5])  # of an interval
STOPS_WITHIN = timedelta(milliseconds=2500)  # of the occurrence, which may come later by its jitter and by one batch
OUTCOMES = ["succeeded", "succeeded", "failed", "timed_out", "cancelled"]
LASTING_MS = [500, 900, 1300, 2600, 5100, 11_000]


@dataclass(frozen=True)
class Change:
    """A command and when it is published, in milliseconds after START."""

    at_ms: int
    kind: str
    data: dict[str, Any]


@dataclass(frozen=True)
class History:
    """What happens to one schedule: commands, how long its runs last, and when nobody is there to decide."""

    changes: tuple[Change, ...]
    lasting_ms: tuple[int, ...]
    outage: tuple[int, int] | None = None
    outcomes: tuple[str, ...] = ("succeeded",)

    def outcome(self, nominal: datetime | None) -> str:
        """How the run of an occurrence ends."""
        return "failed" if nominal is None else self.outcomes[int(nominal.timestamp()) % len(self.outcomes)]

    def lasts(self, nominal: datetime) -> timedelta:
        """How long the run of an occurrence takes."""
        return timedelta(milliseconds=self.lasting_ms[int(nominal.timestamp()) % len(self.lasting_ms)])


def bodies() -> st.SearchStrategy[dict[str, Any]]:
    return st.builds(
        lambda trigger, overlap, catch_up, on_update, failures: {
            "trigger": TRIGGERS[trigger][0],
            "on_update": on_update,
            **({} if failures is None else {"pause_on_failure": failures}),
            "overlap": overlap,
            "catch_up": catch_up,
            "grace": "PT5S",
            "labels": {"trigger": trigger},
            "job": {"target": {"type": "task", "name": "t"}},
        },
        st.sampled_from(sorted(TRIGGERS)),
        st.sampled_from(OVERLAPS),
        st.sampled_from(CATCH_UPS),
        st.sampled_from(["keep", "cancel"]),
        st.sampled_from([None, 1, 2]),
    )


def changes() -> st.SearchStrategy[Change]:
    at_ms = st.integers(0, END_SECONDS * 1000)
    put = st.builds(lambda ms, body: Change(ms, "SchedulePut", {"definition": body}), at_ms, bodies())
    others = st.sampled_from(["SchedulePause", "ScheduleResume", "ScheduleDelete", "ScheduleTrigger"])
    skip = st.builds(
        lambda ms, ahead: Change(ms, "ScheduleSkipOccurrence", _skip(ms, ahead)), at_ms, st.integers(-1, 8)
    )
    return st.one_of(put, skip, st.builds(lambda ms, kind: Change(ms, kind, {}), at_ms, others))


def histories(*, outages: bool = False) -> st.SearchStrategy[History]:
    first = st.builds(lambda body: Change(0, "SchedulePut", {"definition": body}), bodies())
    later = st.lists(changes(), max_size=6).map(lambda found: sorted(found, key=lambda change: change.at_ms))
    outage = st.tuples(st.integers(1, 15), st.integers(6, 13)).map(lambda pair: (pair[0], pair[0] + pair[1]))
    return st.builds(
        lambda one, more, lasting, gone, ends: History((one, *more), tuple(lasting), gone, tuple(ends)),
        first,
        later,
        st.lists(st.sampled_from(LASTING_MS), min_size=1, max_size=4),
        outage if outages else st.none(),
        st.lists(st.sampled_from(OUTCOMES), min_size=1, max_size=5),
    )


def cuts() -> st.SearchStrategy[list[int]]:
    """Lengths of batches, over and over."""
    return st.lists(st.integers(100, CUT_MS_MAX), min_size=1, max_size=5)


# --- living through a history -------------------------------------------------------------------------------------


@dataclass
class Life:
    """A shell that lives through a history; outcomes appear in the log when the runs end."""

    history: History
    waiting: bool = False  # each command names a record of the catalog that is read right behind it
    shell: Shell = field(default_factory=lambda: Shell("2024-01-01T00:00:00"))
    to_come: list[tuple[datetime, int, RunCreated]] = field(default_factory=list)
    sent: int = 0
    seen: int = 0
    begun: int = 0
    freed: datetime = START
    waited: set[datetime] = field(default_factory=set)
    asked: set[str] = field(default_factory=set)
    unbegun: set[str] = field(default_factory=set)  # a newer version ended them

    def through(self, cut_ms: list[int], steps: int | None = None) -> Life:
        """Live to the end, in batches of these lengths, each answering at most so many wakeups."""
        changes_left = list(self.history.changes)
        for horizon in self.horizons(cut_ms):
            if horizon < self.quiet_until(changes_left):
                continue
            self.shell.now = horizon
            while changes_left and changes_left[0].at_ms <= _ms(horizon):
                change = changes_left.pop(0)
                self.send(change)
                self.watch()
            self.read_outcomes(horizon)
            self.shell.settle(*(() if steps is None else (steps,)))
            self.watch()
        self.shell.settle()
        return self

    def send(self, change: Change) -> None:
        self.sent += 1
        position = {"after_catalog": f"scheduler-0-{self.sent}"} if self.waiting else {}
        self.shell.send(change.kind, published=_at_ms(change.at_ms).isoformat(), **change.data, **position)
        if self.waiting:
            self.shell.record(topics.CATALOG, entry(self.sent), tw_seq=f"scheduler-0-{self.sent}")

    def quiet_until(self, changes_left: list[Change]) -> datetime:
        """Before that, a batch would find nothing to do."""
        if self.shell.shared.recovery is not None:
            return START
        instants = [self.shell.next_wakeup(), *(entry[0] for entry in self.to_come)]
        instants += [_at_ms(change.at_ms) for change in changes_left[:1]]
        return min((instant for instant in instants if instant is not None), default=_at_ms(END_SECONDS * 1000))

    def horizons(self, cut_ms: list[int]) -> Iterator[datetime]:
        """The instants at which batches are read: none within an outage, and the first one behind it at its end."""
        now_ms, index, outage = 0, 0, self.history.outage
        while now_ms < END_SECONDS * 1000:
            yield _at_ms(now_ms)
            now_ms += cut_ms[index % len(cut_ms)]
            index += 1
            if outage is not None and outage[0] * 1000 < now_ms < outage[1] * 1000:
                now_ms = outage[1] * 1000
        yield _at_ms(END_SECONDS * 1000)

    def read_outcomes(self, horizon: datetime) -> None:
        ready = sorted(entry for entry in self.to_come if entry[0] <= horizon)
        self.to_come = [entry for entry in self.to_come if entry[0] > horizon]
        for ends_at, _, run in ready:
            outcome = "cancelled" if run.run_id in self.unbegun else self.history.outcome(run.nominal_time)
            self.shell.finish(run, outcome, published=ends_at.isoformat())
        self.watch()

    def watch(self) -> None:
        """Give each new run its end: so long after its own instant, or after the outcome that made room for it."""
        for fact in self.shell.facts[self.seen :]:
            if isinstance(fact, RunSettled):
                self.freed = fact.appended_at
            elif isinstance(fact, OccurrenceDeferred):
                self.waited.add(fact.nominal_time)
                self.stop(fact.nominal_time)
            elif isinstance(fact, RunCancelRequested) and fact.unstarted:
                self.end_unbegun(fact.run_id)
            elif isinstance(fact, RunCancelRequested):
                self.asked.add(fact.run_id)
            elif isinstance(fact, RunCreated):
                self.begun += 1
                self.to_come.append((self.end_of(fact), self.begun, fact))
        self.seen = len(self.shell.facts)

    def stop(self, nominal: datetime) -> None:
        """Those that were asked for an occurrence's sake end soon after it, unless they end sooner by themselves."""
        soon = max(nominal + STOPS_WITHIN, self.shell.now + timedelta(milliseconds=1))
        for index, (ends_at, number, run) in enumerate(self.to_come):
            if run.run_id in self.asked and ends_at > soon:
                self.to_come[index] = (soon, number, run)
        self.asked.clear()

    def end_unbegun(self, run_id: str) -> None:
        """Of the runs that a new version wants gone, those of odd seconds have not begun: they end soon after it."""
        for index, (ends_at, number, run) in enumerate(self.to_come):
            if run.run_id != run_id or run.nominal_time is None or not run.nominal_time.second % 2:
                continue
            newer = [fact for fact in self.shell.all(ScheduleAccepted) if fact.version > run.version]
            asking = next(fact for fact in newer if fact.definition["on_update"] == "cancel")
            soon = max(asking.effective_at + STOPS_WITHIN, self.shell.now + timedelta(milliseconds=1))
            if ends_at > soon:
                self.to_come[index] = (soon, number, run)
                self.unbegun.add(run_id)

    def end_of(self, run: RunCreated) -> datetime:
        if run.nominal_time is None or run.cause is Cause.CATCH_UP:
            return run.created_at + timedelta(milliseconds=700)
        begins = self.freed if run.nominal_time in self.waited else run.due_at
        return begins + self.history.lasts(run.nominal_time)


def entry(number: int) -> Any:
    """A record of the catalog about a job that nobody uses."""
    fact = CatalogEntry(kind="job", tenant="acme", name="j", version=number, changed_at=START, definition={})
    return codec.parse(codec.encode(fact, source="x", time=START)[1])


def _skip(ms: int, ahead: int) -> dict[str, Any]:
    return {"nominal_time": _at_ms((ms // 1000 + ahead) * 1000).isoformat()}


def _at_ms(ms: int) -> datetime:
    return START + timedelta(milliseconds=ms)


def _ms(instant: datetime) -> int:
    return round((instant - START).total_seconds() * 1000)


# --- what was decided, and what should have been due ---------------------------------------------------------------


def decisions(shell: Shell) -> dict[int, list[str]]:
    """For each second after START, what was finally decided about it."""
    found: dict[int, list[str]] = {}
    for fact in shell.facts:
        if isinstance(fact, RunCreated) and fact.nominal_time is not None:
            found.setdefault(_ms(fact.nominal_time) // 1000, []).append(f"created v{fact.version} {fact.cause.value}")
        elif isinstance(fact, OccurrenceSkipped):
            for second in _skipped_seconds(fact):
                found.setdefault(second, []).append(f"skipped v{fact.version} {fact.reason.value}")
    return found


def _skipped_seconds(fact: OccurrenceSkipped) -> list[int]:
    if fact.range is None:
        assert fact.nominal_time is not None
        return [_ms(fact.nominal_time) // 1000]
    predicate = TRIGGERS[LABELS[fact.version]][1]
    first, end = _ms(fact.range.from_) // 1000, _ms(fact.range.to) // 1000
    seconds = [second for second in range(first, end) if predicate(second)]
    assert len(seconds) == fact.range.count, "a range counts what lies in it"
    return seconds


LABELS: dict[int, str] = {}  # of the history that is being looked at: version -> which predicate it is


def due(shell: Shell) -> dict[int, int]:
    """Seconds after START that were due, with the version that each belongs to, from what commands became."""
    timeline: list[tuple[datetime, int | None]] = []
    for fact in shell.facts:
        match fact:
            case ScheduleAccepted() | SchedulePaused() | ScheduleResumed():
                timeline.append((fact.effective_at, fact.version))
            case ScheduleDeleted():
                timeline.append((fact.effective_at, None))
            case _:
                pass
    timeline.sort(key=lambda entry: entry[0])  # a pause of its own may stand behind what takes effect after it
    found = {}
    for second in range(END_SECONDS + 1):
        before = [version for instant, version in timeline if instant < _at_ms(second * 1000)]
        if before and before[-1] is not None and TRIGGERS[LABELS[before[-1]]][1](second):
            found[second] = before[-1]
    return found


def chains() -> st.SearchStrategy[History]:
    """Histories of a schedule whose interval counts from the end of the run before, most of its life."""
    trigger = {"every": "PT2S", "from": "finish"}
    chained = st.builds(lambda body, second: body | {"trigger": trigger | {"every": f"PT{second}S"}}, bodies(), SECONDS)
    others = st.sampled_from(["SchedulePause", "ScheduleResume", "ScheduleTrigger", "ScheduleDelete"])
    at_ms = st.integers(0, END_SECONDS * 1000)
    put = st.builds(
        lambda ms, body: Change(ms, "SchedulePut", {"definition": body}), at_ms, st.one_of(chained, bodies())
    )
    change = st.one_of(put, st.builds(lambda ms, kind: Change(ms, kind, {}), at_ms, others))
    return st.builds(
        lambda body, more, lasting, ends: History(
            (Change(0, "SchedulePut", {"definition": body}), *sorted(more, key=lambda change: change.at_ms)),
            tuple(lasting),
            outcomes=tuple(ends),
        ),
        chained,
        st.lists(change, max_size=4),
        st.lists(st.sampled_from(LASTING_MS), min_size=1, max_size=4),
        st.lists(st.sampled_from(OUTCOMES), min_size=1, max_size=5),
    )


def lived(history: History, cut_ms: list[int], steps: int | None = None, *, waiting: bool = False) -> Shell:
    shell = Life(history, waiting).through(cut_ms, steps).shell
    LABELS.clear()
    for fact in shell.all(ScheduleAccepted):
        LABELS[fact.version] = fact.definition["labels"]["trigger"]
    return shell


def waiting(shell: Shell) -> set[int]:
    """Seconds that still wait for a run to end."""
    decided = decisions(shell)
    return {_ms(f.nominal_time) // 1000 for f in shell.all(OccurrenceDeferred)} - set(decided)


def instants(shell: Shell) -> list[tuple[str, ...]]:
    """What was decided about which instants: ranges by their ends, as their instants follow from outcomes."""
    found = [(run.nominal_time, "created", run.version) for run in shell.all(RunCreated) if run.nominal_time]
    for fact in shell.all(OccurrenceSkipped):
        begin = fact.nominal_time if fact.range is None else fact.range.from_
        assert begin is not None, "nothing is dropped on a clock that never moves"
        found.append((begin, fact.reason.value, fact.version))
    return [(str(nominal), what, str(version)) for nominal, what, version in sorted(found, key=str)]


# --- laws ---------------------------------------------------------------------------------------------------------


@settings(max_examples=25)
@given(histories(outages=True), cuts(), st.sampled_from([None, 1, 3]))
def test_every_due_occurrence_has_exactly_one_decision_or_waits_and_nothing_else_has_any(history, cut_ms, steps):
    shell = lived(history, cut_ms, steps)
    decided, expected = decisions(shell), due(shell)
    assert {second: len(found) for second, found in decided.items()} == dict.fromkeys(decided, 1)
    assert set(decided) | waiting(shell) == set(expected)
    for second, (decision,) in decided.items():
        assert f" v{expected[second]} " in decision


@settings(max_examples=60)
@given(histories(), cuts(), cuts(), st.sampled_from([None, 2]))
def test_decisions_do_not_depend_on_how_time_was_cut(history, one, other, steps):
    assert decisions(lived(history, one)) == decisions(lived(history, other, steps))


@settings(max_examples=60)
@given(chains(), cuts(), cuts(), st.sampled_from([None, 2]))
def test_intervals_that_count_from_the_end_of_a_run_do_not_depend_on_it_either(history, one, other, steps):
    assert instants(lived(history, one)) == instants(lived(history, other, steps))


@settings(max_examples=40)
@given(histories(), cuts(), cuts(), st.sampled_from([None, 2]))
def test_decisions_do_not_depend_on_whether_commands_waited_for_what_their_senders_had_seen(history, one, other, steps):
    assert decisions(lived(history, one)) == decisions(lived(history, other, steps, waiting=True))


@settings(max_examples=25)
@given(histories(outages=True), cuts(), st.sampled_from([1, 2, 5]))
def test_what_an_outage_made_late_is_decided_alike_in_however_many_batches(history, cut_ms, steps):
    whole, in_pieces = lived(history, cut_ms), lived(history, cut_ms, steps)
    until = history.outage[1] if history.outage else 0
    late = [{s: found for s, found in decisions(shell).items() if s < until - 7} for shell in (whole, in_pieces)]
    assert late[0] == late[1]


@settings(max_examples=25)
@given(histories(outages=True), cuts())
def test_runs_never_come_early_nor_more_at_a_time_than_their_version_allows(history, cut_ms):
    shell = lived(history, cut_ms)
    limits = {
        fact.version: (fact.definition["overlap"]["policy"], fact.definition["overlap"]["limit"])
        for fact in shell.all(ScheduleAccepted)
    }
    active: set[str] = set()
    for fact in shell.facts:
        if isinstance(fact, RunSettled):
            active.discard(fact.run_id)
        elif isinstance(fact, RunCreated):
            assert fact.created_at >= fact.due_at
            policy, limit = limits[fact.version]
            if fact.nominal_time is not None:
                assert policy == "allow_all" or len(active) < limit
                active.add(fact.run_id)


@settings(max_examples=25)
@given(histories(outages=True), cuts())
def test_state_is_a_fold_of_facts_and_rows_say_everything(history, cut_ms):
    shell = lived(history, cut_ms)
    folded = Shell("2024-01-01T00:00:00")
    for fact in shell.facts:
        folded.apply(fact)
    assert folded.states == {key: shell.states[key] for key in folded.states}
    assert {k: rows.data for k, rows in folded.rows.items()} == {k: shell.rows[k].data for k in folded.rows}
    shell.reload()


@settings(max_examples=25)
@given(histories(outages=True), cuts())
def test_the_ledger_tells_the_same_story(history, cut_ms):
    shell = lived(history, cut_ms)
    state = shell.schedule()
    told = {}
    for second in due(shell):
        segment = ledger.look_up(state, _ms(_at_ms(second * 1000)) // 1000 + int(START.timestamp()))
        if segment is not None:
            told[second] = f"{segment.decision} v{segment.version}"
    expected = {second: " ".join(found[0].split(" ")[:2]) for second, found in decisions(shell).items()}
    expected |= {second: f"waiting v{due(shell)[second]}" for second in waiting(shell)}
    assert told == expected


@settings(max_examples=25)
@given(histories(outages=True), cuts())
def test_a_wakeup_that_is_due_decides_something_and_one_that_is_not_decides_nothing(history, cut_ms):
    shell = lived(history, cut_ms)
    for key, state in shell.states.items():
        wakeup = shell.core.wakeup(state).at
        assert wakeup is None or wakeup > shell.now
        if key:
            assert not list(shell.core.decide(state, Woken(), shell.moment, shell.shared))
