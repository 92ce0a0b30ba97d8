"""Records that come in: which are for whom, and what is said about one that cannot be read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from runtime.machine import PARTITION
from runtime.record import Record
from scheduler import reading
from scheduler.core import SchedulerCore
from scheduler.forwarding import Misplaced
from scheduler.partition import CatalogRead
from schemas import codec, topics
from schemas.commands import COMMANDS, Command, SchedulePut
from schemas.facts import CatalogEntry, CommandRejected, Position
from schemas.faults import Refused
from schemas.internal import CommandAnswered
from schemas.scheduling import SCHEDULER_INTERNALS, RunSettled
from tests.scheduler.harness import Shell, at, definition

NOW = at("2024-01-01T10:00:00")
DATA = {"tenant": "acme", "name": "s", "definition": definition()}
EVENT = {"specversion": "1.0", "id": "7", "source": "upstream", "type": "tidewheel.schedule.put.v1", "data": DATA}


def record(value: Any, *, topic: str = topics.SCHEDULE_CHANGES, **headers: str) -> Record:
    raw = value if isinstance(value, bytes) else orjson.dumps(value)
    pairs = tuple((name.replace("_", "-"), text.encode()) for name, text in headers.items())
    return Record(topic, 0, 42, b"k", raw, pairs, NOW)


def refused(value: Any, shell: Shell | None = None, **headers: str) -> list[Any]:
    """What a refused record leaves."""
    shell = shell or Shell("2024-01-01T10:00:00")
    poison = record(value, **headers)
    with pytest.raises(Refused) as refusal:
        shell.core.read(poison)
    return list(shell.core.refuse(poison, refusal.value.faults, shell.moment))


def test_a_command_is_read_with_where_and_when_it_stood():
    read = Shell().core.read(record(EVENT, tw_reply_to="5"))
    assert read is not None
    key, command = read
    assert key == b"s/acme/s"
    assert isinstance(command, Command)
    assert isinstance(command.request, SchedulePut)
    assert (command.id, command.source, command.reply_to) == ("7", "upstream", 5)
    assert (command.position, command.appended_at) == (
        Position(topic=topics.SCHEDULE_CHANGES, partition=0, offset=42),
        NOW,
    )


SAMPLES = sorted(
    path for type_ in COMMANDS for path in (Path(codec.__file__).parent / "golden" / type_).glob("*.json")
)  # fmt: skip


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_glance_tells_whom_each_kind_of_command_is_about(path):
    core, command = Shell().core, record(path.read_bytes(), tw_reply_to="5")
    read = core.read(command)
    assert read is not None
    assert core.about(command) == read[0]


def test_there_is_a_sample_of_each_kind_of_command():
    assert {path.parent.name for path in SAMPLES} == set(COMMANDS)


@pytest.mark.parametrize(
    "value",
    [
        b"{not json", b"[]", b"7", b"null", b'"text"', {}, EVENT | {"type": "tidewheel.schedule.putt.v1"},
        EVENT | {"type": ["tidewheel.schedule.put.v1"]}, EVENT | {"data": None}, EVENT | {"data": "acme"},
        EVENT | {"data": {"tenant": "acme"}}, EVENT | {"data": {"tenant": "acme", "name": 7}},
        EVENT | {"data": {"tenant": "no name!", "name": "s"}},
    ],
)  # fmt: skip
def test_a_glance_tells_nothing_of_what_is_no_command(value):
    assert Shell().core.about(record(value)) is None


def test_a_glance_tells_nothing_of_other_topics_nor_of_a_command_in_binary_mode():
    core = Shell().core
    assert core.about(record(EVENT, topic=topics.RUN_OUTCOMES)) is None
    binary = {"CE_type": "tidewheel.schedule.pause.v1", "CE_id": "7", "CE_source": "upstream"}
    nested = Record(topics.SCHEDULE_CHANGES, 0, 42, b"k", orjson.dumps(EVENT), tuple(
        (name, text.encode()) for name, text in binary.items()
    ), NOW)  # fmt: skip
    assert core.about(nested) is None


def test_a_glance_at_what_names_with_too_much_tells_nothing_and_keeps_none_of_it():
    """What names led to is remembered: a megabyte each would be four gigabytes."""
    before = reading._key_of.cache_info().currsize
    value = orjson.dumps(EVENT | {"data": {"tenant": "acme", "name": "n" * 129}})
    assert Shell().core.about(record(value)) is None
    assert reading._key_of.cache_info().currsize == before


@pytest.mark.parametrize("text", ["16", "-1", "x", "", "99999999999", "²"])
def test_an_address_that_is_none_is_no_address(text):
    read = Shell().core.read(record(EVENT, tw_reply_to=text))
    assert read is not None
    assert read[1].reply_to is None


def test_a_command_in_binary_mode_is_read_alike():
    headers = {"ce_specversion": "1.0", "ce_id": "7", "ce_source": "upstream", "ce_type": "tidewheel.schedule.put.v1"}
    poison = Record(
        topics.SCHEDULE_CHANGES, 0, 1, None, orjson.dumps(DATA), tuple((k, v.encode()) for k, v in headers.items()), NOW
    )
    read = Shell().core.read(poison)
    assert read is not None
    assert read[0] == b"s/acme/s"


def test_a_command_about_a_job_has_the_jobs_key():
    data = {"tenant": "acme", "name": "j", "definition": {"target": {"type": "task", "name": "t"}}}
    read = Shell().core.read(record(EVENT | {"type": "tidewheel.job.put.v1", "data": data}))
    assert read is not None
    assert read[0] == b"j/acme/j"


def test_an_outcome_comes_with_when_it_was_published():
    shell = Shell("2024-01-01T09:59:30")
    shell.put()
    shell.until("2024-01-01T10:00:00")
    before = len(shell.facts)
    shell.finish(shell.last_run())
    (settled,) = shell.facts[before:]
    assert isinstance(settled, RunSettled)
    assert settled.appended_at == NOW


def test_a_catalog_record_is_an_input_of_the_partition():
    entry = CatalogEntry(kind="job", tenant="acme", name="j", version=1, changed_at=NOW, definition={})
    _, value = codec.encode(entry, source="x", time=NOW)
    assert Shell().core.read(record(value, topic=topics.CATALOG)) == (PARTITION, CatalogRead(entry=entry, offset=42))


def test_a_catalog_record_says_which_transaction_wrote_it():
    entry = CatalogEntry(kind="job", tenant="acme", name="j", version=1, changed_at=NOW, definition={})
    _, value = codec.encode(entry, source="x", time=NOW)
    read = Shell().core.read(record(value, topic=topics.CATALOG, tw_seq="scheduler-2-41"))
    assert read == (PARTITION, CatalogRead(entry=entry, offset=42, position="scheduler-2-41"))


def test_a_tombstone_of_the_catalog_says_nothing_new():
    assert Shell().core.read(Record(topics.CATALOG, 0, 1, b"k", None, (), NOW)) is None


# --- refusals -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"\xff\xfe", "not_json"),
        (b"[1, 2]", "not_an_event"),
        (b"", "not_json"),
        (orjson.dumps(EVENT | {"specversion": "0.3"}), "not_an_event"),
        (orjson.dumps(EVENT | {"type": "tidewheel.schedule.explode.v1"}), "unknown_type"),
        (orjson.dumps(EVENT | {"data": {"tenant": "acme"}}), "invalid"),
        (orjson.dumps(EVENT | {"data": [1]}), "invalid"),
        (orjson.dumps(EVENT | {"data": DATA | {"tenant": "_"}}), "invalid"),
        (orjson.dumps(EVENT | {"data": DATA | {"name": "a/b"}}), "invalid"),
        (orjson.dumps(EVENT | {"subject": "other/s"}), "wrong_subject"),
    ],
)
def test_a_record_that_cannot_be_read_is_rejected_with_its_place_and_a_reason(value, reason):
    (fact,) = refused(value)
    assert isinstance(fact, CommandRejected)
    assert fact.reason == reason
    assert fact.position == Position(topic=topics.SCHEDULE_CHANGES, partition=0, offset=42)
    assert fact.faults
    assert fact.rejected_at == NOW


def test_the_head_of_an_unreadable_record_is_kept_and_no_more():
    (fact,) = refused(b"\xff" * 5000)
    assert (fact.tenant, fact.name) == ("_", "_")
    assert len(fact.raw) == 1368  # 1,024 bytes in base64


def test_a_rejection_names_what_the_record_named():
    (fact,) = refused(EVENT | {"type": "tidewheel.schedule.explode.v1"})
    assert (fact.tenant, fact.name, fact.command_id, fact.source) == ("acme", "s", "7", "upstream")
    assert fact.raw is None


def test_whoever_waits_for_an_answer_hears_of_the_refusal():
    _, answer = refused(EVENT | {"type": "tidewheel.schedule.explode.v1"}, tw_reply_to="3")
    assert isinstance(answer, CommandAnswered)
    assert (answer.command_id, answer.reply_to, answer.status) == ("7", 3, 400)
    assert answer.body == {
        "tenant": "acme",
        "name": "s",
        "reason": "unknown_type",
        "detail": "unknown command type 'tidewheel.schedule.explode.v1'",
    }


def test_a_poison_record_costs_itself():
    shell = Shell("2024-01-01T10:00:10")
    shell.put()
    shell.record(topics.SCHEDULE_CHANGES, b"\xff\xfe")
    shell.until("2024-01-01T10:01:00")
    assert shell.created() == ["10:01"]
    assert [type(fact) for fact in shell.to(topics.REJECTIONS)] == [CommandRejected]


def test_every_fact_of_the_core_can_be_published_or_is_its_own(shell_of_many_facts: Shell):
    published = {type(output.fact) for output in shell_of_many_facts.outputs}
    assert {type(fact) for fact in shell_of_many_facts.facts} - published <= set(SCHEDULER_INTERNALS)


@pytest.fixture
def shell_of_many_facts() -> Shell:
    shell = Shell("2024-01-01T10:00:10")
    shell.put()
    shell.until("2024-01-01T10:02:30")
    shell.sleep_until("2024-01-01T12:00:00")
    shell.send("ScheduleTrigger")
    shell.settle()
    shell.send("SchedulePause")
    shell.finish("s.20240101T100100Z")
    shell.put(body=definition("0 0 * * *"), after_catalog="scheduler-0-7")
    shell.until("2024-02-20T12:00:00")
    shell.send("ScheduleDelete", runs="cancel")
    shell.settle()
    return shell


def strand_of(value: Any, topic: str = topics.SCHEDULE_CHANGES, core: SchedulerCore | None = None) -> bytes:
    core, given = core or Shell().core, record(value, topic=topic)
    try:
        read = core.read(given)
    except Refused:
        return core.strand(given, None, None)
    assert read is not None
    return core.strand(given, *read)


def test_what_a_tenant_publishes_keeps_its_order_also_what_is_refused_of_it():
    """So a version that understands more finds each record in the strand in which it was answered."""
    job = {"target": {"type": "task", "name": "work"}}
    assert strand_of(EVENT) == b"acme"
    put = {"tenant": "acme", "name": "j", "definition": job}
    assert strand_of(EVENT | {"type": "tidewheel.job.put.v1", "data": put}) == b"acme"
    assert strand_of(EVENT | {"type": "tidewheel.of.tomorrow.v1"}) == b"acme"
    assert strand_of(EVENT | {"data": DATA | {"definition": 7}}) == b"acme"
    assert strand_of(EVENT | {"data": DATA | {"tenant": "globex"}}) == b"globex"


def test_a_strand_is_the_same_whether_a_record_was_glanced_at_or_understood():
    """Which it is depends on how much is held, and is another thing for a successor."""
    core = Shell().core
    without_an_id = {name: value for name, value in EVENT.items() if name != "id"}
    deep = orjson.dumps(EVENT).replace(b'"acme"', b'"acme","x":' + b"[" * 200 + b"]" * 200)
    for value in (EVENT, without_an_id, deep, EVENT | {"type": "tidewheel.of.tomorrow.v1"}):
        given = record(value)
        assert core.strand(given, core.about(given), None) == strand_of(value) == b"acme"


def test_a_queue_belongs_to_nobody_and_so_does_what_cannot_be_read():
    queue = EVENT | {"type": "tidewheel.queue.put.v1", "data": {"name": "mail", "definition": {}}}
    assert [strand_of(value) for value in (queue, b"{", b"", EVENT | {"data": {"tenant": 7}})] == [b"_"] * 4


def test_a_command_for_another_partition_is_sent_on_in_the_order_of_its_tenant():
    elsewhere = SchedulerCore(topics.Layout(schedule=4, shard=1), 0, "2026a")
    assert strand_of(EVENT, core=elsewhere) == b"acme"
    read = elsewhere.read(record(EVENT))
    assert read is not None
    assert isinstance(read[1], Misplaced)


def test_outcomes_keep_the_order_of_the_log():
    assert Shell().core.strand(record(b"", topic=topics.RUN_OUTCOMES), b"s/acme/s", None) == b""
