"""What Debian's packages have cron do for a month, Tidewheel does: run by run, through two changes of clocks."""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest

from node.audit import audit
from node.audit.source import LogSource
from node.roles import SCHEDULER
from runtime.logs.simulated import SimulatedLog
from runtime.partition import Partition
from runtime.processor import Processor, World
from runtime.record import Outgoing, TopicPartition
from runtime.stores.memory import MemoryStore
from runtime.telemetry import Telemetry
from scheduler import SchedulerCore
from scheduler.occurrences import tz_version
from schemas import codec, topics
from schemas.facts import OccurrenceSkipped, Outcome, RunCreated, RunFinished
from simulation.clock import ManualClock
from tests.acceptance import cron_by_hand
from tidewheel.importers import crontab

CRONTABS = sorted(path for path in (Path(__file__).parent / "crontabs").iterdir() if path.suffix != ".md")
START, END = datetime(2026, 3, 7, tzinfo=UTC), datetime(2026, 4, 6, tzinfo=UTC)
ZONES = ["America/New_York", "Europe/London"]  # clocks go forward on 8 and on 29 March
# Entries of every minute or every five have half the runs of a month; a day around each change says as much of them.
FREQUENT = 200  # runs a day
STEP = timedelta(hours=6)
LAYOUT = topics.Layout(schedule=1, shard=1)
DAY = timedelta(days=1)


def imported(zone: str) -> crontab.Imported:
    sources = [crontab.Source(path=place_of(path.name), text=path.read_text("utf-8")) for path in CRONTABS]
    return crontab.convert(sources, crontab.Settings(tenant="debian", timezone=zone))


def place_of(name: str) -> str:
    package, _, file = name.partition(".")
    if file == "example-crontab":
        return f"/usr/share/doc/{package}/examples/crontab"
    return "/etc/crontab" if file == "crontab" else f"/etc/cron.d/{file}"


class Machine:
    """The scheduler's own shell on a simulated log; whatever it creates has succeeded a moment later."""

    def __init__(self, documents: Iterable[Mapping[str, Any]], start: datetime) -> None:
        self.clock = ManualClock(start)
        self.log = SimulatedLog(1, self.clock)
        self.log.create({spec: LAYOUT.partitions(spec.family) for spec in topics.topic_table(topics.Retention())})
        partition = Partition(role="scheduler", number=0, inputs=SCHEDULER, layout=LAYOUT)
        core = SchedulerCore(LAYOUT, 0, tz_version())
        world = World(clock=self.clock, entropy=lambda: bytes(16), telemetry=Telemetry())
        self.processor = Processor(core, partition, self.log, MemoryStore(), world)
        self.processor.open()
        self.runs: list[tuple[str, datetime]] = []
        self.created = self.log.open_reader({TopicPartition(topics.RUNS, 0): 0})
        self.log.append([put(document) for document in documents])
        self.settle()

    def live(self, until: datetime) -> None:
        while self.clock.now() < until:
            self.clock.advance_to(min(self.clock.now() + STEP, until))
            self.settle()
            self.log.append(self.outcomes())
            self.settle()

    def settle(self) -> None:
        while self.processor.step(0.0):
            pass

    def outcomes(self) -> list[Outgoing]:
        found: list[Outgoing] = []
        while records := self.created.poll(records_max=5000, bytes_max=1 << 26, timeout=0.0):
            for record in records:
                run = codec.read_fact(record.value or b"")
                assert isinstance(run, RunCreated)
                assert run.nominal_time is not None
                self.runs.append((run.schedule, run.nominal_time))
                _, value = codec.encode(succeeded(run), source="tests", time=self.clock.now())
                found.append(Outgoing(topics.RUN_OUTCOMES, 0, record.key, value))
        return found

    def skipped(self) -> int:
        entries = LogSource(self.log).entries(topics.RUN_EVENTS, 0, 0)
        return sum(entry.value["type"] == OccurrenceSkipped.TYPE for entry in entries)


def put(document: Mapping[str, Any]) -> Outgoing:
    # Time passes in steps of hours here; nothing that comes in one is late.
    definition = {key: value for key, value in document.items() if key not in ("kind", "tenant", "name")}
    data = {"tenant": document["tenant"], "name": document["name"], "definition": definition | {"grace": "P1D"}}
    event = {"specversion": "1.0", "id": document["name"], "source": "tests", "type": "tidewheel.schedule.put.v1"}
    key = f"{document['tenant']}/{document['name']}".encode()
    return Outgoing(topics.SCHEDULE_CHANGES, 0, key, orjson.dumps(event | {"data": data}))


def succeeded(run: RunCreated) -> RunFinished:
    return RunFinished(
        tenant=run.tenant,
        schedule=run.schedule,
        run_id=run.run_id,
        version=run.version,
        cause=run.cause,
        outcome=Outcome.SUCCEEDED,
        attempts=1,
        created_at=run.created_at,
        finished_at=run.created_at,
        nominal_time=run.nominal_time,
    )


def by_hand(documents: Iterable[Mapping[str, Any]]) -> dict[str, cron_by_hand.Entry]:
    return {document["name"]: cron_by_hand.read(document["trigger"]["cron"]) for document in documents}


def is_frequent(document: Mapping[str, Any]) -> bool:
    entry = cron_by_hand.read(document["trigger"]["cron"])
    return len(entry.minutes) * len(entry.hours) > FREQUENT


@pytest.fixture(scope="module", params=ZONES)
def month(request: pytest.FixtureRequest) -> tuple[str, list[dict[str, Any]], Machine]:
    """All entries but the frequent ones, and the month they made."""
    zone: str = request.param
    documents = [document for document in imported(zone).documents if not is_frequent(document)]
    machine = Machine(documents, START)
    machine.live(END)
    return zone, documents, machine


def test_every_entry_of_every_package_becomes_a_schedule():
    found = imported("UTC")
    assert len(CRONTABS) == 25
    assert len(found.documents) == 48
    left_out = [remark for remark in found.remarks if remark.left_out]
    assert [(remark.path, "@reboot" in remark.text) for remark in left_out] == [
        ("/etc/cron.d/ganeti", True),
        ("/etc/cron.d/logcheck", True),
    ]


def test_each_minute_at_which_cron_runs_something_has_its_run_and_no_other_has(month):
    zone, documents, machine = month
    expected = sorted(cron_by_hand.walk(by_hand(documents), zone, START, END))
    assert Counter(name for name, _ in expected) == Counter(name for name, _ in machine.runs)
    assert sorted(machine.runs) == expected
    assert machine.skipped() == 0


def test_the_audit_agrees(month):
    _, documents, machine = month
    report = audit(LogSource(machine.log))
    assert report.clean
    assert report.schedules == len(documents)
    assert report.due == report.created == len(machine.runs)


def test_an_entry_whose_time_the_clocks_jump_over_runs_when_they_have_jumped(month):
    """45 2 on 8 March in New York, 45 1 and 24 1 on 29 March in London: at the first instant after the gap."""
    zone, _, machine = month
    jump = datetime(2026, 3, 8, 7, tzinfo=UTC) if zone == "America/New_York" else datetime(2026, 3, 29, 1, tzinfo=UTC)
    shifted = {
        "America/New_York": {"ganeti-ganeti-cleaner-13"},
        "Europe/London": {"ganeti-ganeti-cleaner", "amavisd-new-amavisd-new-cronjob-6"},
    }
    at_the_jump = {name for name, instant in machine.runs if instant == jump}
    assert shifted[zone] <= at_the_jump


@pytest.mark.parametrize(("zone", "day"), [(ZONES[0], "2026-03-08"), (ZONES[1], "2026-03-29")])
def test_an_entry_of_every_few_minutes_follows_the_clock_through_its_changes(zone, day):
    start = datetime.fromisoformat(day).replace(tzinfo=UTC) - timedelta(hours=1)
    documents = [document for document in imported(zone).documents if is_frequent(document)]
    machine = Machine(documents, start)
    machine.live(start + DAY)
    assert sorted(machine.runs) == sorted(cron_by_hand.walk(by_hand(documents), zone, start, start + DAY))
    assert Counter(Counter(name for name, _ in machine.runs).values()) == {1440: 1, 288: 5}
