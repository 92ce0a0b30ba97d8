"""What the outcome of a run costs that ten schedules follow or wait for, behind 1,000 past runs and behind 100,000.

    outcome   the upstream's owner: the outcome is settled, ten reports are made, evolved and saved
    report    an owner that follows: a report is noted, decided and becomes a run
    waited    the upstream's owner: the outcome is settled, and ten windows that waited for it are judged and answered
    answer    an owner that waits: an answer is heard, and the occurrence has its run

Past runs end in turn well and badly, so that the ledger says something of each. The figures have to be alike: nothing
may look at what is over. Rows stand in order in memory, where reading a few of them costs what they are.
"""

from __future__ import annotations

import time
from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import orjson

from runtime.machine import PARTITION, Moment, Woken
from runtime.record import Record
from scheduler.core import SchedulerCore
from scheduler.links.exchange import LinkRead
from scheduler.occurrences import tz_version
from scheduler.reading import OutcomeRead
from schemas import topics
from schemas.facts import Fact, Outcome, RunCreated, RunFinished
from schemas.linking import EdgeAnnounced, EdgeListed, UpstreamFinished, WindowAsked, WindowJudged

PAST = (1_000, 100_000)  # the second takes a minute
MEASURED = 500  # of which the best fifth counts, which others disturbed least
FOLLOWERS = 10
START = datetime(2026, 1, 1, tzinfo=UTC)
UPSTREAM = b"s/acme/load"
W = TypeVar("W", bound=Fact)
JOB = {"target": {"type": "task", "name": "t"}}


class Rows:
    """One key's rows, in order."""

    def __init__(self) -> None:
        self.data: dict[bytes, bytes] = {}
        self.order: list[bytes] = []
        self.get = self.data.get

    def put(self, row: bytes, value: bytes) -> None:
        """As the port says."""
        if row not in self.data:
            insort(self.order, row)
        self.data[row] = value

    def delete(self, row: bytes) -> None:
        """As the port says."""
        if self.data.pop(row, None) is not None:
            del self.order[bisect_left(self.order, row)]

    def scan(self, start: bytes = b"", end: bytes | None = None, *, reverse: bool = False) -> Iterator[Any]:
        """As the port says."""
        first = bisect_left(self.order, start)
        last = len(self.order) if end is None else bisect_left(self.order, end)
        places = range(last - 1, first - 1, -1) if reverse else range(first, last)
        for place in places:
            yield self.order[place], self.data[self.order[place]]


class Bench:
    """An upstream, those that follow it, and the second that it is."""

    def __init__(self) -> None:
        self.core = SchedulerCore(topics.Layout(schedule=1, shard=4), 0, tz_version())
        self.rows: dict[bytes, Rows] = {}
        self.states: dict[bytes, Any] = {}
        self.now = START
        self.sent: list[Fact] = []
        self.put("load", {"trigger": {"cron": "* * * * * *"}, "overlap": {"policy": "allow_all"}, "job": JOB})

    def state(self, key: bytes) -> Any:
        """Loaded at first use."""
        if key not in self.states:
            self.states[key] = self.core.load(key, self.rows.setdefault(key, Rows()))
        return self.states[key]

    def step(self, key: bytes, input_: Any) -> Sequence[Fact]:
        """Decide, evolve, save, and ask when next."""
        moment = Moment(now=self.now, read_until=self.now)
        facts = self.core.decide(self.state(key), input_, moment, self.state(PARTITION))
        for fact in facts:
            of = self.core.key_of(fact)
            self.sent += [each.fact for each in self.core.route(self.state(of), fact) if each.topic == topics.LINKS]
            self.states[of] = self.core.evolve(self.states[of], fact)
            self.core.save(of, self.states[of], self.rows[of])
        self.core.wakeup(self.states[key])
        return facts

    def put(self, name: str, definition: dict[str, Any]) -> None:
        """One schedule more, and all that owners have to say about it."""
        data = {"tenant": "acme", "name": name, "definition": definition}
        event = {"specversion": "1.0", "id": name, "source": "bench", "type": "tidewheel.schedule.put.v1", "data": data}
        read = self.core.read(Record(topics.SCHEDULE_CHANGES, 0, 0, None, orjson.dumps(event), (), self.now))
        assert read is not None
        self.step(*read)
        while self.sent:
            word = self.sent.pop(0)
            assert isinstance(word, EdgeAnnounced | EdgeListed)
            to = word.upstream if isinstance(word, EdgeAnnounced) else word.downstream
            self.step(f"s/acme/{to}".encode(), LinkRead(word=word, appended_at=self.now))

    def created(self) -> RunCreated:
        """The upstream's next second."""
        self.now += timedelta(seconds=1)
        (run,) = self.step(UPSTREAM, Woken())
        assert isinstance(run, RunCreated)
        return run

    def said(self, kind: type[W]) -> list[W]:
        """What owners have told each other since, each once."""
        found = [word for word in self.sent if isinstance(word, kind)]
        self.sent.clear()
        return found

    def settle(self, key: bytes) -> None:
        """All that is due now of one schedule."""
        while (at := self.core.wakeup(self.state(key)).at) is not None and at <= self.now:
            self.step(key, Woken())

    def ended(self, run: RunCreated, number: int) -> None:
        """Its outcome is read."""
        fact = RunFinished(
            tenant=run.tenant, schedule=run.schedule, run_id=run.run_id, version=run.version, cause=run.cause,
            outcome=Outcome.FAILED if number % 2 else Outcome.SUCCEEDED, attempts=1, created_at=run.created_at,
            finished_at=self.now, nominal_time=run.nominal_time,
        )  # fmt: skip
        self.step(UPSTREAM, OutcomeRead(finished=fact, appended_at=self.now))


def measured(past: int) -> tuple[float, float]:
    """Microseconds of an outcome and of a report, behind so many past runs."""
    bench = Bench()
    for number in range(past):
        bench.ended(bench.created(), number)
    after = [{"schedule": "load", "mode": "run", "condition": "finished"}]
    for number in range(FOLLOWERS):
        bench.put(f"follower-{number}", {"after": after, "overlap": {"policy": "allow_all"}, "job": JOB})
    outcomes, reports = [], []
    for number in range(MEASURED):
        run = bench.created()
        began = time.perf_counter()
        bench.ended(run, number)
        outcomes.append(time.perf_counter() - began)
        told = [word for word in bench.sent if isinstance(word, UpstreamFinished)]
        assert len(told) == FOLLOWERS
        bench.sent.clear()
        key = f"s/acme/{told[0].downstream}".encode()
        began = time.perf_counter()
        bench.step(key, LinkRead(word=told[0], appended_at=bench.now))
        facts = bench.step(key, Woken())
        reports.append(time.perf_counter() - began)
        assert any(isinstance(fact, RunCreated) for fact in facts)
    return _best(outcomes), _best(reports)


def waited(past: int) -> tuple[float, float]:
    """Microseconds of an outcome that ten wait for, and of what one of them makes of its answer.

    Each looks back on an hour, of which the last run alone is open.
    """
    bench = Bench()
    for _ in range(past):
        bench.ended(bench.created(), 0)
    after = [{"schedule": "load", "mode": "interval", "span": "PT1H"}]
    body = {"trigger": {"cron": "* * * * * *"}, "after": after, "overlap": {"policy": "allow_all"}, "job": JOB}
    for number in range(FOLLOWERS):
        bench.put(f"waiting-{number}", body)
    outcomes, answers = [], []
    for _ in range(MEASURED):
        run = bench.created()
        for number in range(FOLLOWERS):
            bench.step(f"s/acme/waiting-{number}".encode(), Woken())
        for question in bench.said(WindowAsked):
            bench.step(UPSTREAM, LinkRead(word=question, appended_at=bench.now))
        bench.settle(UPSTREAM)
        for word in bench.said(WindowJudged):
            bench.step(f"s/acme/{word.downstream}".encode(), LinkRead(word=word, appended_at=bench.now))
        began = time.perf_counter()
        bench.ended(run, 0)
        bench.settle(UPSTREAM)
        outcomes.append(time.perf_counter() - began)
        told = bench.said(WindowJudged)
        assert len(told) == FOLLOWERS
        for number, word in enumerate(told):
            key = f"s/acme/{word.downstream}".encode()
            began = time.perf_counter()
            bench.step(key, LinkRead(word=word, appended_at=bench.now))
            facts = bench.step(key, Woken())
            if not number:
                answers.append(time.perf_counter() - began)
            assert any(isinstance(fact, RunCreated) for fact in facts)
    return _best(outcomes), _best(answers)


def _best(seconds: list[float]) -> float:
    fifth = sorted(seconds)[: MEASURED // 5]
    return 1e6 * sum(fifth) / len(fifth)


def main() -> None:
    """Print both figures behind a few and behind many past runs."""
    for past in PAST:
        outcome, report = measured(past)
        print(f"{past:>7,} past runs: outcome {outcome:6.0f} µs to {FOLLOWERS} followers, report {report:5.0f} µs")
        outcome, answer = waited(past)
        print(f"{'':>18} waited  {outcome:6.0f} µs by {FOLLOWERS} schedules,  answer {answer:5.0f} µs")
