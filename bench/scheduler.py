"""What a run costs in the scheduler's core: 1,000 schedules of `* * * * * *`, driven by rows in a dict.

    decide    the occurrence is decided, its fact evolved, the state saved, the next wakeup asked for
    settle    the outcome is read and evolved (per run as well)
    route     where its facts go
    encode    its facts as records, once each: decision record and outputs share the bytes
    idle      a wakeup question with nothing due

The floor is `orjson` alone, writing the same records from ready-made dicts.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson

from runtime.machine import PARTITION, Moment, Woken
from runtime.record import Record
from scheduler.core import SchedulerCore
from scheduler.occurrences import tz_version
from scheduler.reading import OutcomeRead
from schemas import codec, topics
from schemas.facts import Fact, Outcome, RunCreated, RunFinished

SCHEDULES = 1_000
SECONDS = 12  # some two seconds of work on a slow core
START = datetime(2026, 1, 1, tzinfo=UTC)
SOURCE = "tidewheel/scheduler/0"
WOKEN = Woken()
KINDS = ("decide", "settle", "route", "encode", "idle", "floor")


class Rows:
    """One key's rows in a dict."""

    def __init__(self) -> None:
        self.data: dict[bytes, bytes] = {}
        self.get = self.data.get
        self.put = self.data.__setitem__

    def delete(self, row: bytes) -> None:
        """As the port says."""
        self.data.pop(row, None)

    def scan(self, start: bytes = b"", end: bytes | None = None, *, reverse: bool = False) -> Iterator[Any]:
        """As the port says."""
        found = [item for item in self.data.items() if start <= item[0] and (end is None or item[0] < end)]
        return iter(sorted(found, reverse=reverse))


class Bench:
    """All states of one partition, and the time spent by kind of work."""

    def __init__(self) -> None:
        self.core = SchedulerCore(topics.Layout(schedule=1, shard=4), 0, tz_version())
        self.rows: dict[bytes, Rows] = {}
        self.states: dict[bytes, Any] = {}
        self.spent: dict[str, float] = dict.fromkeys(KINDS, float("inf"))
        self.keys: list[bytes] = []
        self.runs = 0
        self.bytes = 0

    def state(self, key: bytes) -> Any:
        """Loaded at first use."""
        if key not in self.states:
            self.states[key] = self.core.load(key, self.rows.setdefault(key, Rows()))
        return self.states[key]

    def apply(self, facts: Any) -> None:
        """Evolve facts and save what they changed."""
        core = self.core
        for fact in facts:
            key = core.key_of(fact)
            self.states[key] = core.evolve(self.state(key), fact)
            core.save(key, self.states[key], self.rows[key])

    def put(self, number: int) -> None:
        """One schedule more."""
        definition = {"trigger": {"cron": "* * * * * *"}, "job": {"target": {"type": "task", "name": "reports.one"}}}
        data = {"tenant": "acme", "name": f"every-second-{number}", "definition": definition}
        event = {"specversion": "1.0", "id": "1", "source": "bench", "type": "tidewheel.schedule.put.v1", "data": data}
        read = self.core.read(Record(topics.SCHEDULE_CHANGES, 0, number, None, orjson.dumps(event), (), START))
        assert read is not None
        self.keys.append(read[0])
        self.apply(self.core.decide(self.state(read[0]), read[1], moment(START), self.state(PARTITION)))

    def second(self, now: datetime) -> None:
        """Every schedule is due once; then every run ends. As in a processor, all of it happens at one moment."""
        at = moment(now)
        facts = self.timed("decide", lambda: [self.create(key, at) for key in self.keys])
        self.runs += len(facts)
        self.timed("route", lambda: [self.core.route(self.states[self.core.key_of(fact)], fact) for fact in facts])
        self.timed("idle", lambda: [self.core.wakeup(self.states[key]) for key in self.keys])
        settled = self.timed("settle", lambda: [self.settle(fact, at) for fact in facts])
        written: list[Fact] = [*facts, *settled]
        encoded = self.timed("encode", lambda: [codec.encode(fact, source=SOURCE, time=now)[1] for fact in written])
        self.bytes += sum(map(len, encoded))
        plain = [orjson.loads(value) for value in encoded]
        self.timed("floor", lambda: [orjson.dumps(document) for document in plain])

    def create(self, key: bytes, at: Moment) -> RunCreated:
        """One occurrence becomes a run."""
        facts = self.core.decide(self.states[key], WOKEN, at, self.states[PARTITION])
        self.apply(facts)
        self.core.wakeup(self.states[key])
        (fact,) = facts
        assert isinstance(fact, RunCreated)
        return fact

    def settle(self, run: RunCreated, at: Moment) -> Fact:
        """One run ends."""
        key = self.core.key_of(run)
        outcome = OutcomeRead(finished=finished(run, at.now), appended_at=at.now + timedelta(milliseconds=200))
        (fact,) = self.core.decide(self.states[key], outcome, at, self.states[PARTITION])
        self.apply((fact,))
        return fact

    def timed(self, kind: str, work: Callable[[], Any]) -> Any:
        """Its result; the time of the best second is noted, which is the one that others disturbed least."""
        began = time.perf_counter()
        result = work()
        self.spent[kind] = min(self.spent[kind], time.perf_counter() - began)
        return result


def moment(now: datetime) -> Moment:
    """All that is in the log has been read."""
    return Moment(now=now, read_until=now)


def finished(run: RunCreated, now: datetime) -> RunFinished:
    """Success."""
    return RunFinished(
        tenant=run.tenant, schedule=run.schedule, run_id=run.run_id, version=run.version, cause=run.cause,
        outcome=Outcome.SUCCEEDED, attempts=1, created_at=run.created_at, finished_at=now,
        nominal_time=run.nominal_time,
    )  # fmt: skip


def main() -> None:
    """Print microseconds per run, runs per second, and how far that is from the floor."""
    bench = Bench()
    for number in range(SCHEDULES):
        bench.put(number)
    for number in range(1, SECONDS + 1):
        bench.second(START + timedelta(seconds=number))
    each = {kind: seconds / SCHEDULES * 1e6 for kind, seconds in bench.spent.items()}
    for kind, micros in each.items():
        print(f"{kind:>8}  {micros:7.1f} µs a run")
    whole = each["decide"] + each["route"] + each["encode"] + each["settle"]
    row = sum(len(bench.rows[key].data[b"s"]) for key in bench.keys) / len(bench.keys)
    print(
        f"{1e6 / whole:8,.0f} runs/s in all; {1e6 / each['decide']:,.0f}/s deciding; floor {1e6 / each['floor']:,.0f}/s"
    )
    print(f"{row:8.0f} bytes of state a schedule; {bench.bytes / bench.runs:,.0f} bytes of facts a run")
