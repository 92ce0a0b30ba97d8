"""What Debian's packages have cron do for a month, Tidewheel does: run by run, through two changes of clocks."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest

from node.audit import audit
from node.audit.source import LogSource
from node.roles import SCHEDULER
from runtime.log import Reader
from runtime.logs.simulated import SimulatedLog
from runtime.partition import Partition
from runtime.processor import Processor, World
from runtime.record import SEQUENCE_HEADER, Outgoing, Record, TopicPartition
from runtime.stores.memory import MemoryStore
from runtime.telemetry import Telemetry
from scheduler import SchedulerCore
from scheduler.occurrences import tz_version
from schemas import topics
from simulation.clock import ManualClock
from tests.acceptance import cron_by_hand
from tidewheel.importers import crontab
from tidewheel.importers.report import Imported

CRONTABS = sorted(path for path in (Path(__file__).parent / "crontabs").iterdir() if path.suffix != ".md")
START, END = datetime(2026, 3, 7, tzinfo=UTC), datetime(2026, 4, 6, tzinfo=UTC)
ZONES = ["America/New_York", "Europe/London"]  # clocks go forward on 8 and on 29 March
# A month is a hundred thousand runs: with longer steps more of them are open at a time, with shorter ones more is
# committed; either takes longer.
STEP = timedelta(minutes=30)
LAYOUT = topics.Layout(schedule=1, shard=1)
# The audit is to see every run of the month, so none goes by age.
RETENTION = topics.Retention(history=timedelta(days=60), runs=timedelta(days=60))
# Both zones together take about a minute and a half of one core, and a gigabyte; a busy machine takes longer.
pytestmark = pytest.mark.timeout(600)


def imported(zone: str) -> Imported:
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
        self.log.create({spec: LAYOUT.partitions(spec.family) for spec in topics.topic_table(RETENTION)})
        partition = Partition(role="scheduler", number=0, inputs=SCHEDULER, layout=LAYOUT)
        core = SchedulerCore(LAYOUT, 0, tz_version())
        world = World(clock=self.clock, entropy=lambda: bytes(16), telemetry=Telemetry())
        self.processor = Processor(core, partition, self.log, MemoryStore(), world)
        self.processor.open()
        self.runs: list[tuple[str, datetime]] = []  # schedule and nominal time
        self.created = self.log.open_reader({TopicPartition(topics.RUNS, 0): 0})
        self.log.append([put(document) for document in documents])
        self.settle()

    def live(self, until: datetime) -> None:
        while (now := self.clock.now()) < until:
            self.clock.advance_to(min(now + STEP, until))
            self.settle()
            self.log.append(list(self.outcomes()))
            self.settle()
            if self.clock.now().date() > now.date():
                self.log.maintain()  # Superseded rows would nearly double a month's memory.

    def settle(self) -> None:
        while self.processor.step(0.0):
            pass

    def outcomes(self) -> Iterator[Outgoing]:
        for record in unread(self.created):
            event = orjson.loads(record.value or b"")
            assert event["type"] == "tidewheel.run.created.v1"
            run = event["data"]
            self.runs.append((run["schedule"], datetime.fromisoformat(run["nominal_time"])))
            yield succeeded(run)

    def told(self) -> Counter[str]:
        """How often the story tells of what."""
        story = self.log.open_reader({TopicPartition(topics.RUN_EVENTS, 0): 0})
        return Counter(orjson.loads(record.value or b"")["type"] for record in unread(story))


def unread(reader: Reader) -> Iterator[Record]:
    while records := reader.poll(records_max=5000, bytes_max=1 << 26, timeout=0.0):
        yield from records


def put(document: Mapping[str, Any]) -> Outgoing:
    # Time passes in steps of half an hour here; nothing that comes in one is late.
    definition = {key: value for key, value in document.items() if key not in ("kind", "tenant", "name")}
    data = {"tenant": document["tenant"], "name": document["name"], "definition": definition | {"grace": "PT1H"}}
    event = cloud_event("tidewheel.schedule.put.v1", document["name"], data)
    return Outgoing(topics.SCHEDULE_CHANGES, 0, f"{data['tenant']}/{data['name']}".encode(), event)


def succeeded(run: Mapping[str, Any]) -> Outgoing:
    """The outcome of a run, as a dispatcher's transaction leaves it behind."""
    same = ("tenant", "schedule", "run_id", "version", "cause", "created_at", "nominal_time")
    data = {name: run[name] for name in same}
    data |= {"outcome": "succeeded", "attempts": 1, "finished_at": run["created_at"]}
    event = cloud_event("tidewheel.run.finished.v1", f"{run['run_id']} finished", data)
    key, headers = f"{run['tenant']}/{run['schedule']}".encode(), ((SEQUENCE_HEADER, b"dispatcher-0-1"),)
    return Outgoing(topics.RUN_OUTCOMES, 0, key, event, headers)


def cloud_event(type_: str, id_: str, data: Mapping[str, Any]) -> bytes:
    return orjson.dumps({"specversion": "1.0", "id": id_, "source": "tests", "type": type_, "data": data})


def by_hand(documents: Iterable[Mapping[str, Any]]) -> dict[str, cron_by_hand.Entry]:
    return {document["name"]: cron_by_hand.read(document["trigger"]["cron"]) for document in documents}


@dataclass(frozen=True)
class Month:
    """All entries of all packages in one zone, and what they made of a month."""

    zone: str
    documents: list[dict[str, Any]]
    machine: Machine


@pytest.fixture(scope="module", params=ZONES)
def month(request: pytest.FixtureRequest) -> Month:
    documents = list(imported(request.param).documents)
    machine = Machine(documents, START)
    machine.live(END)
    return Month(request.param, documents, machine)


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
    expected = Counter(cron_by_hand.walk(by_hand(month.documents), month.zone, START, END))
    created = Counter(month.machine.runs)
    missing, unexpected = expected - created, created - expected
    assert (missing, unexpected) == (Counter(), Counter())
    assert set(expected.values()) == {1}
    told = month.machine.told()
    assert told["tidewheel.run.created.v1"] == len(expected)
    assert told["tidewheel.occurrence.skipped.v1"] == 0


def test_the_audit_agrees(month):
    report = audit(LogSource(month.machine.log))
    assert report.clean
    assert report.schedules == 48
    assert report.due == report.created == len(month.machine.runs)
    assert report.open_runs == 0


def test_an_entry_of_every_few_minutes_follows_the_clock_through_its_changes(month):
    """30 days of 1,440 minutes: the hour that clocks leave out is no time that passes."""
    runs = Counter(name for name, _ in month.machine.runs)
    every_five = ["cacti-php", "dma-dma", "ganeti-ganeti-watcher", "munin-node-if", "munin-if"]
    assert runs["mailman3-web-flock"] == 43_200
    assert {name: runs[name] for name in every_five} == dict.fromkeys(every_five, 8_640)


def test_an_entry_whose_time_the_clocks_jump_over_runs_when_they_have_jumped(month):
    """45 2 on 8 March in New York, 45 1 and 24 1 on 29 March in London: at the first instant after the gap."""
    jumps = {
        "America/New_York": datetime(2026, 3, 8, 7, tzinfo=UTC),
        "Europe/London": datetime(2026, 3, 29, 1, tzinfo=UTC),
    }
    shifted = {
        "America/New_York": {"ganeti-ganeti-cleaner-13"},
        "Europe/London": {"ganeti-ganeti-cleaner", "amavisd-new-amavisd-new-cronjob-6"},
    }
    at_the_jump = {name for name, instant in month.machine.runs if instant == jumps[month.zone]}
    assert shifted[month.zone] <= at_the_jump
