"""Laws of occurrences that wait: what becomes of each does not depend on when owners came to hear of one another."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from schemas import codec, topics
from schemas.facts import Cause, OccurrenceSkipped, RunCreated
from tests.scheduler.harness import Shell, at, definition

START = at("2024-01-01T10:00:00")
MINUTES = 20  # in which something happens
END_SECONDS = (MINUTES + 60) * 60  # the longest deadline is over by then
UNTIL = {"end_at": "2024-01-01T10:20:31Z"}  # nothing of `report` is due behind it
DELAY_SECONDS_MAX = 8  # of a word; a question and its answer are known before the next thing happens, at a full minute
LOAD, LOAD_RARER = "*/2 * * * *", "*/4 * * * *"
REPORT = "30 */5 * * * *"
ALL = {"overlap": {"policy": "allow_all"}, "grace": "PT2H"}


@dataclass(frozen=True)
class Edge:
    """What `report` waits for, of `load` and `prices` alike."""

    span: str | None
    offset: str
    condition: str
    on_unmet: str
    deadline: str


@dataclass(frozen=True)
class History:
    """What happens, minute by minute; `fates` are outcomes and minutes of the upstreams' runs, in their order."""

    edge: Edge
    fates: tuple[tuple[str, int], ...]
    happenings: tuple[tuple[int, str], ...]


@dataclass(frozen=True)
class Way:
    """How the line behaves: seconds between batches and of a word's delay, and what is read twice, in turn."""

    cuts: tuple[int, ...] = (1,)
    delays: tuple[int, ...] = (0,)
    twice: tuple[bool, ...] = (False,)
    restarts: tuple[bool, ...] = (False,)


CALM = Way()
WHAT = [
    "pause load", "resume load", "delete load", "put load", "put load rarer", "backfill load", "rerun load",
    "rerun load", "skip load", "put report without", "put report with load", "put report", "put report to follow",
    "delete prices", "end load", "pause report", "resume report",
]  # fmt: skip
AT_ONCE, STOPS = {"rerun", "backfill", "skip"}, {"pause report", "resume report"}
EDGES = st.builds(
    Edge,
    span=st.sampled_from([None, "PT1M", "PT4M", "PT9M"]),
    offset=st.sampled_from(["PT0S", "-PT3M", "PT2M"]),
    condition=st.sampled_from(["succeeded", "finished"]),
    on_unmet=st.sampled_from(["wait", "wait", "skip", "run_anyway"]),
    deadline=st.sampled_from(["PT1M10S", "PT4M10S", "PT15M10S"]),
)
FATES = st.lists(
    st.tuples(st.sampled_from(["succeeded", "succeeded", "succeeded", "failed", "cancelled"]), st.integers(1, 5)),
    min_size=1, max_size=5,
).map(tuple)  # fmt: skip
HAPPENINGS = st.lists(
    st.tuples(st.integers(1, MINUTES), st.sampled_from(WHAT)), max_size=6, unique_by=lambda each: each[0]
).map(lambda found: tuple(sorted(found)))
HISTORIES = st.builds(History, edge=EDGES, fates=FATES, happenings=HAPPENINGS)

PATIENT = HISTORIES.map(
    lambda history: replace(
        history,
        edge=replace(history.edge, on_unmet="wait", deadline="PT40M10S"),
        # What is done again depends on what is known by then, and a pause on what waits.
        happenings=tuple(
            each for each in history.happenings if each[1].split()[0] not in AT_ONCE and each[1] not in STOPS
        ),
    )
)


def _some(values: st.SearchStrategy[Any]) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(values, min_size=1, max_size=5).map(tuple)


WAYS = st.builds(
    Way,
    cuts=_some(st.integers(1, DELAY_SECONDS_MAX)),
    delays=_some(st.integers(0, DELAY_SECONDS_MAX)),
    twice=_some(st.booleans()),
    restarts=_some(st.booleans()),
)
OUTAGES = st.builds(
    Way,
    cuts=_some(st.integers(1, 600)),
    delays=_some(st.integers(0, 120)),
    twice=_some(st.booleans()),
    restarts=_some(st.booleans()),
)


@dataclass
class Life:
    """The owners of `report` and of what it waits for, and the log between them."""

    history: History
    way: Way
    shell: Shell = field(default_factory=lambda: Shell(START.isoformat()))
    words: list[tuple[datetime, Any]] = field(default_factory=list)
    ends: list[tuple[datetime, str, str]] = field(default_factory=list)
    seen: int = 0
    said: int = 0

    def through(self) -> list[str]:
        """Live to the end; what became of each occurrence of `report`."""
        for name, body in (("load", load()), ("prices", load("*/3 * * * *")), ("report", self.report())):
            self.shell.put(name, body)
        to_come, passed, batch = list(self.history.happenings), 0, 0
        while passed < END_SECONDS:
            passed += self.way.cuts[batch % len(self.way.cuts)]
            batch += 1
            now = START + timedelta(seconds=passed)
            if now < self.quiet_until(to_come):
                continue
            self.shell.now = now
            read = [each for each in to_come if minute(each[0]) <= now]
            del to_come[: len(read)]
            self.read(read)
            self.shell.settle()
            self.watch()
            if self.way.restarts[batch % len(self.way.restarts)]:
                self.shell.reload()
        self.shell.reload()
        assert self.shell.schedule("report").links.awaits.count == 0
        return self.told()

    def quiet_until(self, to_come: list[tuple[int, str]]) -> datetime:
        instants: list[datetime | None] = [self.shell.next_wakeup(), *(minute(each[0]) for each in to_come[:1])]
        instants += [appended_at for appended_at, _ in self.words]
        instants += [ends_at for ends_at, _, _ in self.ends]
        return min((instant for instant in instants if instant is not None), default=at("2025-01-01"))

    def read(self, happenings: list[tuple[int, str]]) -> None:
        """A batch: topic by topic, not in the order in which it all happened."""
        now = self.shell.now
        for at_minute, what in happenings:
            self.command(what, minute(at_minute).isoformat())
        for ends_at, run_id, outcome in sorted(each for each in self.ends if each[0] <= now):
            self.shell.finish(run_id, outcome, published=ends_at.isoformat())
        self.ends = [each for each in self.ends if each[0] > now]
        for appended_at, word in [each for each in self.words if each[0] <= now]:
            self.said += 1
            for _ in range(2 if self.way.twice[self.said % len(self.way.twice)] else 1):
                self.shell.record(topics.LINKS, word, published=appended_at.isoformat())
        self.words = [each for each in self.words if each[0] > now]
        self.watch()

    def watch(self) -> None:
        """What owners said to each other is on its way, and what was begun will end at a full minute."""
        for output in self.shell.outputs:
            if output.topic == topics.LINKS:
                delay = self.way.delays[len(self.words) % len(self.way.delays)]
                appended_at = self.shell.now + timedelta(seconds=delay, milliseconds=1)
                last = max((each[0] for each in self.words), default=appended_at)
                _, value = codec.encode(output.fact, source="x", time=self.shell.now)
                self.words.append((max(appended_at, last), codec.parse(value)))
        self.shell.outputs = []
        for run in self.shell.facts[self.seen :]:
            if isinstance(run, RunCreated) and run.schedule != "report":
                outcome, minutes = self.fate(run)
                self.ends.append((run.created_at.replace(second=0) + timedelta(minutes=minutes), run.run_id, outcome))
        self.seen = len(self.shell.facts)

    def fate(self, run: RunCreated) -> tuple[str, int]:
        """By its occurrence, so that it does not matter which run was seen first; what is done again succeeds."""
        if run.cause in {Cause.RERUN, Cause.BACKFILL}:
            return "succeeded", 1
        assert run.nominal_time is not None, "nobody started any by hand"
        place = int((run.nominal_time - START).total_seconds()) // 60
        return self.history.fates[place % len(self.history.fates)]

    def command(self, what: str, published: str) -> None:
        verb, name, *how = what.split()
        match verb, name, how:
            case "put", "load", _:
                self.shell.put(name, load(LOAD_RARER if how else LOAD), published=published)
            case "put", "report", ["without"]:
                self.shell.put(name, definition(REPORT, trigger=UNTIL, **ALL), published=published)
            case "put", "report", ["with", "load"]:
                self.shell.put(name, self.report("load"), published=published)
            case "put", "report", ["to", "follow"]:
                after = [{"schedule": "load", "mode": "run", "condition": "failed"}]
                self.shell.put(name, definition(REPORT, after=after, trigger=UNTIL, **ALL), published=published)
            case "put", "report", _:
                self.shell.put(name, self.report(), published=published)
            case "end", _, _:
                self.shell.put(name, load(trigger={"end_at": "2024-01-01T10:12:00Z"}), published=published)
            case "rerun", _, _:
                found = [run.run_id for run in self.shell.all(RunCreated, name) if self.fate(run)[0] == "failed"]
                for run_id in found[-1:]:
                    whole = codec.parse(codec.encode(self.shell.run(run_id), source="x", time=START)[1])["data"]
                    self.shell.send("RunRerun", name=name, run_id=run_id, run=whole, published=published)
            case "skip", _, _:
                nominal = (at(published) + timedelta(minutes=2)).strftime("%Y-%m-%dT%H:%M:%SZ")
                self.shell.send("ScheduleSkipOccurrence", name=name, nominal_time=nominal, published=published)
            case "backfill", _, _:
                span = {"from": "2024-01-01T09:50:00Z", "to": at(published).strftime("%Y-%m-%dT%H:%M:%SZ")}
                self.shell.send("BackfillStart", name=name, reprocess="failed", published=published, **span)
            case _:
                self.shell.send(f"Schedule{verb.title()}", name=name, published=published)

    def report(self, *upstreams: str) -> dict[str, Any]:
        edge = {key: value for key, value in vars(self.history.edge).items() if value is not None}
        after = [{"schedule": name, "mode": "interval", **edge} for name in upstreams or ("load", "prices")]
        return definition(REPORT, after=after, trigger=UNTIL, **ALL)

    def told(self) -> list[str]:
        found = [f"{run.nominal_time} created" for run in self.shell.all(RunCreated, "report") if run.nominal_time]
        found += [
            f"{skip.nominal_time or skip.range} {skip.reason} {skip.detail}"
            for skip in self.shell.all(OccurrenceSkipped, "report")
            if skip.upstream is None
        ]
        return sorted(found)


def load(cron: str = LOAD, **more: Any) -> dict[str, Any]:
    return definition(cron, **ALL, **{"trigger": {"end_at": "2024-01-01T10:30:00Z"}, **more})


def minute(number: int) -> datetime:
    return START + timedelta(minutes=number)


@settings(max_examples=25, deadline=None)
@given(HISTORIES, WAYS)
def test_what_becomes_of_an_occurrence_does_not_depend_on_how_words_were_cut_delayed_and_repeated(history, way):
    """Nor on who took over in between."""
    assert Life(history, way).through() == Life(history, CALM).through()


@settings(max_examples=15, deadline=None)
@given(PATIENT, OUTAGES)
def test_who_waits_long_enough_comes_to_the_same_after_outages(history, way):
    """Answers are late then, and no deadline was over before: what is asked for when it is mended is mended."""
    assert Life(history, way).through() == Life(history, CALM).through()
