"""A process of `serve` on a broker: its clock is accepted while it runs, and a gap before it is started again."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import TopicPartition as Wire
from confluent_kafka.admin import AdminClient

from runtime import footer as framing
from runtime.clock import SystemClock
from runtime.footer import Footer, InputPosition
from runtime.logs.kafka.log import KafkaLog
from runtime.logs.kafka.settings import KafkaSettings
from runtime.record import Outgoing, TopicPartition
from schemas import codec, topics
from schemas.facts import ClockReleased, Fact, GapAccepted
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

    from runtime.log import Reader

TIDEWHEEL = str(Path(sys.executable).parent / "tidewheel")
LAYOUT = topics.Layout(schedule=1, shard=1)
CHANGES = TopicPartition(topics.SCHEDULE_CHANGES, 0)
CHANGELOG = TopicPartition(topics.changelog_topic("scheduler"), 0)
STORY = TopicPartition(topics.RUN_EVENTS, 0)
AWAY = timedelta(days=500)


class Site:
    """One node of one partition, on a cluster that stood still for five hundred days."""

    def __init__(self, bootstrap: str, namespace: str, folder: Path) -> None:
        self.settings = KafkaSettings(
            bootstrap=bootstrap, namespace=namespace, replication_factor=1, min_insync_replicas=1
        )
        self.folder, self.config = folder, folder / "tidewheel.toml"
        self.config.write_text(
            f'bootstrap = "{bootstrap}"\nnamespace = "{namespace}"\npartitions = 1\nroles = "scheduler"\n'
            f'replication_factor = 1\nmin_insync_replicas = 1\ndata = "{folder / "data"}"\n',
            encoding="utf-8",
        )
        self.log = KafkaLog(self.settings, SystemClock())
        self.log.create({spec: LAYOUT.partitions(spec.family) for spec in topics.topic_table(topics.Retention())})

    def stand_still(self) -> None:
        """Leave a footer of long ago behind."""
        inputs = (topics.SCHEDULE_CHANGES, topics.RUN_OUTCOMES, topics.LINKS, topics.CATALOG)
        then = SystemClock().now() - AWAY
        footer = Footer(
            role="scheduler", partition=0, epoch=0, sequence=1, clock_mark=then, decided_until=then,
            positions=tuple(
                InputPosition(topic=topic, partition=0, offset=0, topic_id=self.log.topic_id(topic)) for topic in inputs
            ),
            facts=0, outputs=0, rows=0, decision_parts=0, changelog_id=self.log.topic_id(CHANGELOG.topic),
        )  # fmt: skip
        with closing(self.log.open_producer("scheduler.0", group="scheduler")) as producer:
            producer.begin()
            producer.send([Outgoing(*CHANGELOG, framing.FOOTER_KEY, framing.footer_bytes(footer))])
            producer.commit({})

    @contextmanager
    def serving(self) -> Iterator[None]:
        """The process runs."""
        command = [TIDEWHEEL, "serve", "--config", str(self.config)]
        with (self.folder / "output").open("ab") as output:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
        try:
            yield
        finally:
            process.terminate()
            process.wait(60)

    def admin(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = [TIDEWHEEL, "admin", *arguments, "--config", str(self.config), "--role", "scheduler", "--by", "ada"]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def lose_what_nobody_read(self) -> None:
        """Two commands, and an administrator who deletes them."""
        self.log.append([Outgoing(*CHANGES, b"acme/a", b"{}"), Outgoing(*CHANGES, b"acme/a", b"{}")])
        wire = Wire(self.settings.namespace + CHANGES.topic, 0, -1)
        admin = AdminClient({"bootstrap.servers": self.settings.bootstrap})
        for deleted in admin.delete_records([wire]).values():
            deleted.result(30)

    def facts(self, reader: Reader) -> list[Fact]:
        records = reader.poll(records_max=100, bytes_max=1 << 20, timeout=0.5)
        return [codec.read_fact(record.value or b"") for record in records]


@pytest.fixture
def site(broker: str, topic_prefix: str, tmp_path: Path) -> Iterator[Site]:
    site = Site(broker, topic_prefix, tmp_path)
    with closing(site.log):
        yield site


@pytest.mark.timeout(180)
def test_an_operator_accepts_a_clock_and_then_a_gap_of_a_real_process(site: Site) -> None:
    """Both are facts of the partition, with who said so."""
    site.stand_still()
    told: list[Fact] = []
    with closing(site.log.open_reader({STORY: 0})) as reader:

        def has_told(type_: type[Fact]) -> bool:
            told.extend(site.facts(reader))
            return any(isinstance(fact, type_) for fact in told)

        with site.serving():
            said = site.admin("clock", "accept", "--partition", "0", "--wait", "60")
            assert said.returncode == 0, said.stdout + said.stderr
            assert "scheduler 0 is released: the wall clock is 500 days ahead of the clock mark\n" in said.stdout
            eventually(lambda: has_told(ClockReleased), within=30, what="the fact of it")
        site.lose_what_nobody_read()
        said = site.admin("accept-gap", "--note", "an accident", "--yes")
        assert said.returncode == 0, said.stdout + said.stderr
        assert "tidewheel.schedule-changes  0          0 to 1  2 " in said.stdout
        with site.serving():
            eventually(lambda: has_told(GapAccepted), within=60, what="the partition goes on")
    (released,) = [fact for fact in told if isinstance(fact, ClockReleased)]
    assert released.accepted_by == "ada"
    (gap,) = [fact for fact in told if isinstance(fact, GapAccepted)]
    assert (gap.accepted_by, gap.note, gap.lost_from, gap.lost_to) == ("ada", "an accident", 0, 2)
