"""Which events a filter wants, and cursors that lead back to exactly one place."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from api.following import CURSOR_LENGTH_MAX, SOURCE_BYTES, Places, Wanted, read_types
from runtime.record import Record, TopicPartition
from schemas import topics
from schemas.facts import ClockHeld, CommandRejected, Fact, Position
from schemas.faults import Refused
from tests.projections.histories import at, created, record, succeeded

COUNTS = dict.fromkeys((topics.RUN_EVENTS, topics.REJECTIONS), 4) | {topics.CATALOG: 1}
RUN = "report.20260301T000010Z"


def stored(fact: Fact) -> Record:
    sent = record(fact)
    return Record(sent.topic, 0, 7, sent.key, sent.value, (), at(0))


def names(facts: list[Any], **wanted: Any) -> list[str]:
    found = [Wanted(**wanted).event(stored(fact)) for fact in facts]
    return [event[0].removeprefix("tidewheel.") for event in found if event is not None]


def test_everything_is_wanted_by_whoever_asks_for_nothing():
    assert len(names([*succeeded("report", 10), *succeeded("other", 10, tenant="beta")])) == 8


def test_a_tenant_sees_its_own_and_nothing_of_partitions():
    held = ClockHeld(reason="r", mark=at(0), wall=at(9), role="scheduler", partition=0)
    refused = CommandRejected(
        tenant="beta", name="report", reason="stale", faults=(), rejected_at=at(0),
        position=Position(topic=topics.SCHEDULE_CHANGES, partition=0, offset=1),
    )  # fmt: skip
    facts = [created("report", 10), created("report", 10, tenant="beta"), held, refused]
    assert names(facts, tenant="acme") == ["run.created.v1"]
    assert names(facts, tenant="beta") == ["run.created.v1", "command.rejected.v1"]
    assert names(facts, tenant="_") == []


def test_a_run_has_its_own_events():
    facts = [*succeeded("report", 10), *succeeded("report", 20)]
    assert len(names(facts, tenant="acme", run_id=RUN)) == 4
    assert names(facts, tenant="acme", run_id="report.20260301T000011Z") == []


def test_types_are_named_short_or_whole():
    assert read_types(["run.finished", "tidewheel.run.created.v1"]) == {
        "tidewheel.run.finished.v1", "tidewheel.run.created.v1",
    }  # fmt: skip
    assert names(succeeded("report", 10), types=read_types(["run.finished"])) == ["run.finished.v1"]


def test_a_type_that_is_none_is_refused_with_the_nearest():
    with pytest.raises(Refused) as refused:
        read_types(["run.finishd"])
    (fault,) = refused.value.faults
    assert (fault.pointer, fault.remedy) == ("/type", "did you mean 'run.finished'?")


@pytest.mark.parametrize("value", [None, b"", b"\xff", b"[]", b'{"type":1}', b'{"type":"t","data":null}', b'"text"'])
def test_what_is_no_event_is_passed_over(value):
    assert Wanted(tenant="acme").event(Record(topics.RUN_EVENTS, 0, 0, b"", value, (), at(0))) is None


@pytest.mark.parametrize("type_", [b"1", b"null", b"[]", b'"run\\ndata: {}"'])
def test_a_type_that_is_none_ends_nobodys_stream(type_):
    value = b'{"type":%b,"data":{"tenant":"acme"}}' % type_
    assert Wanted().event(Record(topics.RUN_EVENTS, 0, 0, b"", value, (), at(0))) is None


def test_an_event_is_one_line_however_it_was_written():
    document = {"type": "tidewheel.run.created.v1", "data": {"tenant": "acme", "note": "two\nlines"}}
    value = orjson.dumps(document, option=orjson.OPT_INDENT_2).replace(b"\n", b"\r\n")
    found = Wanted().event(Record(topics.RUN_EVENTS, 0, 0, b"", value, (), at(0)))
    assert found is not None
    assert b"\n" not in found[1]
    assert b"\r" not in found[1]
    assert orjson.loads(found[1]) == document


def test_a_schedule_of_a_tenant_is_looked_for_in_its_partition_alone():
    """murmur2 of acme/nightly-report is 1 modulo 4, as Java's producers have it."""
    found = Wanted(tenant="acme", schedule="nightly-report").places(COUNTS)
    assert found == [TopicPartition(topics.RUN_EVENTS, 1), TopicPartition(topics.REJECTIONS, 1)]
    assert Wanted(tenant="acme", run_id="nightly-report.20260301T000010Z").places(COUNTS) == found[:1]


def test_only_those_topics_are_read_on_which_a_type_can_stand():
    assert Wanted(types=read_types(["command.rejected"])).places(COUNTS) == [
        TopicPartition(topics.REJECTIONS, number) for number in range(4)
    ]
    assert Wanted(types=read_types(["catalog.entry"])).places(COUNTS) == [TopicPartition(topics.CATALOG, 0)]


PLACES = Places(tuple(TopicPartition("t", number) for number in range(5)), b"source")


@given(st.lists(st.integers(0, 2**63 - 1), min_size=5, max_size=5))
def test_a_cursor_leads_back_to_where_its_reader_stood(offsets):
    positions = dict(zip(PLACES.all, offsets, strict=True))
    assert PLACES.read(PLACES.write(positions)) == positions


@given(st.text(max_size=60) | st.binary(max_size=40).map(lambda raw: raw.hex()))
def test_what_is_no_cursor_is_refused_and_breaks_nothing(text):
    with pytest.raises(Refused) as refused:
        PLACES.read(text)
    assert refused.value.faults[0].pointer == "/cursor"


def test_a_cursor_of_the_largest_layout_is_one_that_we_take_back():
    """1,024 partitions of run-events and of rejections, one of catalog, and 2^35 - 1 records in each."""
    places = Places(tuple(TopicPartition("t", number) for number in range(2_049)), b"source")
    positions = dict.fromkeys(places.all, 34_359_738_367)
    cursor = places.write(positions)
    assert (len(cursor), CURSOR_LENGTH_MAX) == (13_668, 16_384)
    assert places.read(cursor) == positions


def test_a_cursor_of_another_log_is_refused_and_so_is_one_that_was_cut():
    cursor = PLACES.write(dict.fromkeys(PLACES.all, 300))
    with pytest.raises(Refused, match="of this log"):
        Places(PLACES.all, b"others").read(cursor)
    with pytest.raises(Refused):
        PLACES.read(cursor[:-2])
    assert len(PLACES.source) == SOURCE_BYTES
