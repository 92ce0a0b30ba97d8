"""A topic of others, on a log: what stands there reaches schedule-changes or rejections once, whoever is killed."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from node.cluster import ingress_services
from node.ingress import Binding, IngressPartition, IngressService, of_others
from node.settings import ClusterSettings, SettingsError, read_as
from runtime.clock import SystemClock
from runtime.log import Fenced
from runtime.logs.embedded import EmbeddedLog
from runtime.logs.kafka.settings import KafkaSettings, member_config, owner_config
from runtime.logs.simulated import SimulatedLog
from runtime.record import Outgoing, Record, TopicPartition
from runtime.telemetry import Telemetry
from schemas import codec, topics
from schemas.facts import CommandRejected
from schemas.topics import Cleanup, Family, TopicSpec
from simulation.clock import ManualClock
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from runtime.log import Log

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
SECONDS = 20.0
THEIRS = TopicSpec(
    name="orders.changes", key="", family=Family.ONE, cleanup=Cleanup.DELETE, retention=timedelta(hours=1)
)
BINDING = Binding(topic="orders.changes", tenant="acme", namespace="", partitions=4)
EVENT = {"specversion": "1.0", "source": "orders", "type": "tidewheel.schedule.pause.v1"}


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOON)


@pytest.fixture
def log(clock: ManualClock) -> SimulatedLog:
    log = SimulatedLog(7, clock)
    layout = topics.Layout(schedule=4, shard=1)
    log.create({spec: layout.partitions(spec.family) for spec in topics.topic_table(topics.Retention())})
    log.create({THEIRS: 3})
    return log


def partition(log: Log, clock: ManualClock, number: int = 2) -> IngressPartition:
    return IngressPartition(BINDING, number, log, now=clock.now, telemetry=Telemetry())


def publish(log: Log, *ids: str, number: int = 2) -> None:
    for id_ in ids:
        event = EVENT | {"id": id_, "data": {"tenant": "acme", "name": "s"}}
        log.append([Outgoing("orders.changes", number, None, orjson.dumps(event))])


def read(log: Log, topic: str) -> list[Record]:
    places = [TopicPartition(topic, number) for number in range(log.partitions(topic))]
    reader = log.open_reader({place: log.begin_offset(place) for place in places})
    found: list[Record] = []
    while batch := reader.poll(records_max=1000, bytes_max=1 << 20, timeout=0.0):
        found += batch
    reader.close()
    return found


def ids(log: Log) -> list[Any]:
    return [orjson.loads(record.value or b"")["id"] for record in read(log, topics.SCHEDULE_CHANGES)]


def run(work: IngressPartition) -> None:
    """Until there is nothing more to read."""
    while work.step(0.0):
        pass


def test_a_record_reaches_the_partition_of_its_owner_with_where_and_when_it_stood(log, clock):
    publish(log, "a")
    clock.advance(timedelta(seconds=30))
    work = partition(log, clock)
    work.open()
    run(work)
    (found,) = read(log, topics.SCHEDULE_CHANGES)
    assert (found.partition, found.key) == (2, b"acme/s"), "acme/s belongs to partition 2 of four"
    assert found.headers == (("tw-origin", b"orders.changes-2-0"), ("tw-origin-at", b"2026-03-01T12:00:00Z"))


def test_a_successor_goes_on_behind_what_was_sent_on_and_its_predecessor_is_fenced(log, clock):
    publish(log, "a", "b")
    first = partition(log, clock)
    first.open()
    run(first)
    publish(log, "c")
    second = partition(log, clock)
    second.open()
    with pytest.raises(Fenced):
        first.step(0.0)
    run(second)
    assert ids(log) == ["a", "b", "c"]


def test_what_is_killed_before_its_commit_has_sent_nothing(log, clock):
    publish(log, "a")
    killed = partition(log, clock)
    killed.open()
    assert killed._producer is not None
    killed._producer.begin()
    killed._producer.send([Outgoing(topics.SCHEDULE_CHANGES, 2, b"acme/s", b"{}")])
    after = partition(log, clock)
    after.open()
    run(after)
    assert ids(log) == ["a"]


def test_a_rejected_record_does_not_hold_up_those_behind_it(log, clock):
    log.append([Outgoing("orders.changes", 2, None, b"?")])
    publish(log, "a")
    work = partition(log, clock)
    work.open()
    run(work)
    assert ids(log) == ["a"]
    (rejection,) = read(log, topics.REJECTIONS)
    fact = codec.read_fact(rejection.value or b"")
    assert isinstance(fact, CommandRejected)
    assert (fact.reason, fact.position.offset, rejection.key) == ("not_json", 0, b"acme/_")


def test_what_was_deleted_unread_is_named_and_reading_goes_on_from_the_oldest(log, clock):
    publish(log, "a")
    before = partition(log, clock)
    before.open()
    run(before)
    before.close()
    publish(log, "b", "c")
    clock.advance(timedelta(hours=2))
    publish(log, "d")
    log.maintain()
    after = partition(log, clock)
    after.open()
    run(after)
    assert ids(log) == ["a", "d"]
    (rejection,) = read(log, topics.REJECTIONS)
    fact = codec.read_fact(rejection.value or b"")
    assert isinstance(fact, CommandRejected)
    assert (fact.reason, fact.faults[0].message) == (
        "records_lost",
        "records 1 to 2 of orders.changes-2 were deleted before they were read",
    )


# --- as a service ---


def test_a_topic_that_is_not_there_is_waited_for_and_holds_up_nobody(tmp_path: Path):
    log = EmbeddedLog(tmp_path, SystemClock())
    layout = topics.Layout(schedule=4, shard=1)
    log.create({spec: layout.partitions(spec.family) for spec in topics.topic_table(topics.Retention())})
    waits = threading.Event()
    service = IngressService(BINDING, log, member="m", clock=SystemClock(), telemetry=Telemetry(logger=_Heard(waits)))
    service.start()
    assert service.ready(SECONDS)
    assert waits.wait(SECONDS)
    assert service.failure is None
    log.create({THEIRS: 3})
    publish(log, "a", number=0)
    publish(log, "b", number=1)
    eventually(lambda: sorted(ids(log)) == ["a", "b"], within=SECONDS, what="both are sent on")
    assert service.stop(SECONDS)
    log.close()


class _Heard:
    """A logger that says when somebody waits for a topic."""

    def __init__(self, waits: threading.Event) -> None:
        self._waits = waits

    def warning(self, event: str, **fields: Any) -> None:
        assert (event, fields["topic"], fields["reason"]) == (
            "ingress_waits", "orders.changes", "there is no topic orders.changes",
        )  # fmt: skip
        self._waits.set()

    def info(self, _event: str, **_fields: Any) -> None:
        pass


def test_a_name_that_another_process_has_is_not_waited_for():
    """Two processes of one name would take turns for ever."""
    service = IngressService(BINDING, _Taken(), member="m", clock=SystemClock(), telemetry=Telemetry())  # type: ignore[arg-type]
    service.start()
    assert service.stopped(SECONDS)
    assert isinstance(service.failure, Fenced)


class _Taken:
    """A log whose groups know another process by our name."""

    def join(self, *_: object, **__: object) -> None:
        raise Fenced("another process has this name")


# --- settings ---


def test_topics_are_bound_in_a_table_of_the_file(tmp_path: Path):
    file = tmp_path / "tidewheel.toml"
    file.write_text('[ingress]\n"orders.schedule-changes" = "acme"\n', encoding="utf-8")
    assert read_as(ClusterSettings, file, {}).ingress == {"orders.schedule-changes": "acme"}


@pytest.mark.parametrize(
    ("topic", "tenant", "wrong"),
    [
        ("a/b", "acme", "ingress: 'a/b' is no topic: at most 249 of A-Z a-z 0-9 . _ -"),
        ("orders", "", "ingress: orders: '' is no tenant: at most 128 of A-Z a-z 0-9 . _ -"),
        ("orders", "_", "ingress: orders: '_' is no tenant: at most 128 of A-Z a-z 0-9 . _ -"),
        (
            "test.tidewheel.schedule-changes", "acme",
            "ingress: test.tidewheel.schedule-changes is a topic of Tidewheel itself; bind one that others write to",
        ),
    ],
)  # fmt: skip
def test_a_binding_that_cannot_be_is_refused(topic, tenant, wrong):
    with pytest.raises(SettingsError) as refusal:
        read_as(ClusterSettings, None, {"namespace": "test.", "ingress": {topic: tenant}})
    assert str(refusal.value) == wrong


def test_others_topics_have_their_own_names_and_groups_and_ids_are_ours():
    settings = of_others(KafkaSettings(bootstrap="localhost:9092", namespace="test."))
    assert settings.namespace == ""
    assert member_config(settings, "ingress.orders", "m")["group.id"] == "test.tidewheel.ingress.orders"
    assert owner_config(settings, "ingress.orders.0")["transactional.id"] == "test.tidewheel.ingress.orders.0"


def test_a_process_without_the_scheduler_reads_no_topic_of_others():
    settings = ClusterSettings(ingress={"orders": "acme"}, roles=("api",))
    assert ingress_services(settings, Telemetry(), name="n", undo=ExitStack()) == ()
