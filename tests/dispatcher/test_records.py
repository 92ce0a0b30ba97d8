"""What is read from `runs` and `attempts`, and what becomes of what cannot be."""

import base64
from typing import Any

import orjson
import pytest

from dispatcher.core import DispatcherCore
from dispatcher.inputs import UnknownInput, partition_of, shard_key
from runtime.machine import NEVER, PARTITION, Moment, Reached
from runtime.record import SEQUENCE_HEADER, Record
from schemas import codec, topics
from schemas.facts import CommandRejected, Fact
from schemas.faults import Refused
from schemas.internal import BreakerResetRequested, FinishedLease, LeaseNotice, WorkerReport
from schemas.topics import Layout
from tests.dispatcher.harness import LAYOUT, T0, Bench, MemoryRows, cancel, inquiry, run

HERE = partition_of("mail", 0, LAYOUT)
CORE = DispatcherCore(LAYOUT, HERE)
MOMENT = Moment(now=T0, read_until=T0)


def record(fact: Fact, topic: str = topics.RUNS, partition: int = HERE) -> Record:
    _, value = codec.encode(fact, source="tidewheel/test", time=T0)
    return Record(topic, partition, 17, b"", value, (), T0)


def report(**given: Any) -> WorkerReport:
    fields: dict[str, Any] = {
        "queue": "mail", "shard": 0, "worker": "w", "incarnation": "i", "number": 1, "inbox": 0, "read_up_to": -1,
        "slots": 1, "tasks": ("t",),
    }  # fmt: skip
    return WorkerReport(**{**fields, **given})


@pytest.mark.parametrize("fact", [run(1), cancel(), inquiry(run(1))], ids=lambda fact: type(fact).__name__)
def test_runs_holds_created_runs_cancels_and_inquiries(fact):
    assert CORE.read(record(fact)) == (b"q/mail/0", fact)


def test_attempts_holds_worker_reports():
    assert CORE.read(record(report(), topics.ATTEMPTS)) == (b"q/mail/0", report())


OURS = ((SEQUENCE_HEADER, b"scheduler-0-1"),)  # what our own processes give each of their records


@pytest.mark.parametrize("fact", [run(1), cancel(), inquiry(run(1))], ids=lambda fact: type(fact).__name__)
def test_a_record_of_our_own_processes_is_read_like_any_other(fact):
    assert CORE.read(record(fact)._replace(headers=OURS)) == (b"q/mail/0", fact)


@pytest.mark.parametrize("value", [None, b"", b"\xff\x00", b"[]", b"null", b'{"specversion":"1.0"}', b"{" * 40])
def test_poison_is_refused_whoever_it_says_it_is_from(value):
    with pytest.raises(Refused):
        CORE.read(Record(topics.RUNS, HERE, 17, None, value, OURS, T0))


def test_a_newer_type_of_our_own_processes_stops_the_partition():
    envelope = {"specversion": "1.0", "id": "1", "source": "s", "type": "tidewheel.run.paused.v1", "data": {}}
    with pytest.raises(UnknownInput, match=r"tidewheel\.run\.paused\.v1"):
        CORE.read(Record(topics.RUNS, HERE, 17, None, orjson.dumps(envelope), OURS, T0))


def _spaced(value: bytes) -> bytes:
    return orjson.dumps(orjson.loads(value), option=orjson.OPT_INDENT_2)


def _with_more(value: bytes) -> bytes:
    return value[:-1] + b',"traceparent":"00-1"}'


def _turned_around(value: bytes) -> bytes:
    return orjson.dumps(dict(reversed(orjson.loads(value).items())))


@pytest.mark.parametrize("form", [bytes, _spaced, _with_more, _turned_around])
def test_a_runs_row_holds_its_canonical_json_in_whatever_form_it_came(form):
    bench, fact = Bench(), run(1)
    _, value = codec.encode(fact, source="tidewheel/test", time=T0)
    read = bench.core.read(Record(topics.RUNS, HERE, 17, b"", form(value), OURS, T0))
    assert read == (bench.key, fact)
    bench.core.evolve(bench.state, read[1])
    bench.core.save(bench.key, bench.state, bench.rows)
    _, body = bench.rows.rows[b"r/acme/" + fact.run_id.encode()].split(b"\n")
    assert value.endswith(b',"data":' + body + b"}")


def test_what_stands_on_another_topic_is_not_for_the_dispatcher():
    assert CORE.read(record(run(1), topics.RUN_EVENTS)) is None


def test_shards_of_a_queue_stand_in_partitions_that_follow_each_other():
    layout = Layout(shard=4)
    first = partition_of("mail", 0, layout)
    assert [partition_of("mail", shard, layout) for shard in range(5)] == [(first + shard) % 4 for shard in range(5)]
    assert shard_key("mail", 3) == b"q/mail/3"


@pytest.mark.parametrize("fact", [run(1), report()], ids=lambda fact: type(fact).__name__)
def test_a_record_in_another_shards_partition_is_refused(fact):
    elsewhere = DispatcherCore(LAYOUT, (HERE + 1) % 4)
    topic = topics.ATTEMPTS if isinstance(fact, WorkerReport) else topics.RUNS
    with pytest.raises(Refused) as refusal:
        elsewhere.read(record(fact, topic, (HERE + 1) % 4))
    assert refusal.value.faults[0].code == "wrong_partition"


@pytest.mark.parametrize("value", [None, b"", b"\xff\x00", b"[]", b"null", b'{"specversion":"1.0"}', b"{" * 40])
@pytest.mark.parametrize("topic", [topics.RUNS, topics.ATTEMPTS])
def test_poison_is_refused(value, topic):
    with pytest.raises(Refused):
        CORE.read(Record(topic, HERE, 17, None, value, (), T0))


def test_a_type_of_a_newer_version_on_runs_stops_the_partition():
    envelope = {"specversion": "1.0", "id": "1", "source": "s", "type": "tidewheel.run.paused.v1", "data": {}}
    with pytest.raises(UnknownInput, match=r"tidewheel\.run\.paused\.v1"):
        CORE.read(Record(topics.RUNS, HERE, 17, None, orjson.dumps(envelope), (), T0))
    with pytest.raises(Refused):
        CORE.read(Record(topics.ATTEMPTS, HERE, 17, None, orjson.dumps(envelope), (), T0))


def test_nothing_but_reports_is_taken_from_attempts():
    with pytest.raises(Refused):
        CORE.read(record(run(1), topics.ATTEMPTS))


@pytest.mark.parametrize(
    ("given", "pointer"),
    [
        ({"shard": 64}, "/data/shard"),  # in this partition, as every fourth one
        ({"shard": -4}, "/data/shard"),
        ({"worker": ""}, "/data/worker"),
        ({"worker": "w" * 257}, "/data/worker"),
        ({"incarnation": "i" * 257}, "/data/incarnation"),
        ({"inbox": 8}, "/data/inbox"),
        ({"inbox": -1}, "/data/inbox"),
        ({"slots": -1}, "/data/slots"),
        ({"slots": 10_001}, "/data/slots"),
        ({"tasks": ("t" * 257,)}, "/data/tasks"),
        ({"tasks": ("t",) * 2001}, "/data/tasks"),
        ({"held": ("x" * 257,)}, "/data/held"),
        ({"started": ("x" * 257,)}, "/data/started"),
        ({"finished": (FinishedLease(lease="x" * 257, outcome="failed"),)}, "/data/finished"),
        ({"finished": (FinishedLease(lease="x", outcome="lost"),)}, "/data/finished/0/outcome"),
        ({"queue": "../mail"}, "/data/queue"),
    ],
)
def test_everything_in_a_report_has_a_bound(given, pointer):
    with pytest.raises(Refused) as refusal:
        CORE.read(record(report(**given), topics.ATTEMPTS))
    assert [fault.pointer for fault in refusal.value.faults] == [pointer]


def test_a_refusal_says_where_the_record_stood_and_quotes_its_head():
    raw = Record(topics.RUNS, HERE, 17, None, b"x" * 5000, (), T0)
    with pytest.raises(Refused) as refusal:
        CORE.read(raw)
    (fact,) = CORE.refuse(raw, refusal.value.faults, MOMENT)
    assert isinstance(fact, CommandRejected)
    assert (fact.position.topic, fact.position.partition, fact.position.offset) == (topics.RUNS, HERE, 17)
    assert (fact.reason, fact.subject) == ("not_json", f"_/dispatcher-{HERE}")
    assert fact.raw == base64.b64encode(b"x" * 1024).decode()
    (output,) = CORE.route(CORE.load(PARTITION, MemoryRows()), fact)
    assert (output.topic, output.key) == (topics.REJECTIONS, f"_/dispatcher-{HERE}")


def test_a_refused_report_is_not_quoted_because_it_may_hold_keys_of_leases():
    raw = record(report(inbox=99, held=("mail.0.0.secret",)), topics.ATTEMPTS)
    with pytest.raises(Refused) as refusal:
        CORE.read(raw)
    (fact,) = CORE.refuse(raw, refusal.value.faults, MOMENT)
    assert isinstance(fact, CommandRejected)
    assert "secret" not in str(codec.plain(fact))
    assert fact.raw is None


def test_what_a_partition_shares_decides_nothing_and_wants_nothing():
    shared = CORE.load(PARTITION, MemoryRows())
    assert CORE.decide(shared, Reached(until=T0), MOMENT, shared) == ()
    notice = LeaseNotice(queue="mail", incarnation="i", inbox=0)
    assert CORE.key_of(notice) == PARTITION
    assert CORE.evolve(shared, notice) is shared
    assert CORE.wakeup(shared) == NEVER


def test_the_key_of_a_fact_that_changes_a_shard_names_the_shard():
    bench = Bench()
    bench.give(run(1))
    bench.at(5)
    assert {CORE.key_of(fact) for fact in bench.facts} == {b"q/mail/0"}


def strand_of(given: Record) -> bytes:
    read = CORE.read(given)
    assert read is not None
    return CORE.strand(given, *read)


def test_what_is_said_of_a_tenants_runs_keeps_its_order_and_no_other():
    """A cancel behind its run, an inquiry behind both; another tenant's runs go their own way."""
    reset = BreakerResetRequested(tenant="acme", queue="mail", shard=0, requested_at=T0, breaker="")
    for fact in (run(1), cancel(), inquiry(run(1)), reset):
        assert strand_of(record(fact)) == b"acme"
    assert strand_of(record(run(1, tenant="globex"))) == b"globex"


def test_reports_keep_the_order_of_the_log_and_what_is_refused_is_in_nobodys_way():
    assert strand_of(record(report(), topics.ATTEMPTS)) == b""
    assert CORE.strand(Record(topics.RUNS, HERE, 17, None, b"{", (), T0), None, None) == b""
