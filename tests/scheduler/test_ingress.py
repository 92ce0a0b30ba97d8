"""Records of a topic that is bound to the tenant acme: sent on to their owner, or rejected with reason and position."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.record import Record
from scheduler import forwarding, ingress, reading
from schemas import codec, topics
from schemas.commands import Command
from schemas.facts import CommandRejected, Position
from schemas.scheduling import CommandForwarded
from tests.scheduler.harness import at, definition

NOW = at("2024-01-01T10:00:00")
DATA: dict[str, Any] = {"tenant": "acme", "name": "s", "definition": definition()}
EVENT = {"specversion": "1.0", "id": "7", "source": "orders", "type": "tidewheel.schedule.put.v1", "data": DATA}
STOOD = Position(topic="orders.schedule-changes", partition=6, offset=42)
BINARY = {"ce_specversion": "1.0", "ce_id": "7", "ce_source": "orders", "ce_type": "tidewheel.schedule.put.v1"}


def record(value: Any, headers: dict[str, str] | None = None, *, since: str = "2024-01-01T09:59:30") -> Record:
    raw = value if isinstance(value, bytes | None) else orjson.dumps(value)
    pairs = tuple((name, text.encode()) for name, text in (headers or {}).items())
    return Record("orders.schedule-changes", 6, 42, b"any key", raw, pairs, at(since))


def forwarded(value: Any, headers: dict[str, str] | None = None, **more: str) -> CommandForwarded:
    decision = ingress.decide(record(value, headers, **more), "acme", NOW)
    assert isinstance(decision, CommandForwarded)
    return decision


def rejected(value: Any, headers: dict[str, str] | None = None) -> CommandRejected:
    decision = ingress.decide(record(value, headers), "acme", NOW)
    assert isinstance(decision, CommandRejected)
    return decision


def test_a_command_of_the_bound_tenant_goes_on_with_where_and_when_it_stood():
    decision = forwarded(EVENT)
    assert decision.subject == "acme/s"
    assert orjson.loads(forwarding.record_of(decision)) == EVENT | {
        "subject": "acme/s",
        "datacontenttype": "application/json",
    }
    assert forwarding.headers_of(decision) == (
        ("tw-origin", b"orders.schedule-changes-6-42"),
        ("tw-origin-at", b"2024-01-01T09:59:30Z"),
    )


@pytest.mark.parametrize("content_type", ["application/json", "application/json; charset=utf-8", ""])
def test_binary_mode_goes_on_in_structured_form(content_type):
    decision = forwarded(DATA, BINARY | {"content-type": content_type})
    assert orjson.loads(forwarding.record_of(decision)) == EVENT | {
        "subject": "acme/s",
        "datacontenttype": "application/json",
    }


CASES = {
    "nothing": (None, {}, "not_json", "", "not_json"),
    "bytes that are no JSON": (b"\x00\x01", {}, "not_json", "", "not_json"),
    "JSON that is no event": ([1], {}, "not_an_event", "", "not_an_event"),
    "another version of CloudEvents": (
        EVENT | {"specversion": "0.3"}, {}, "not_an_event", "/specversion", "not_an_event"
    ),
    "an event without id": ({**EVENT, "id": ""}, {}, "invalid", "/id", "missing"),
    "data that is no JSON": (
        EVENT | {"datacontenttype": "text/xml"}, {}, "not_an_event", "/datacontenttype", "not_an_event"
    ),
    "binary mode with Avro": (
        DATA, BINARY | {"content-type": "avro/binary"}, "not_an_event", "/content-type", "not_an_event"
    ),
    "an unknown type": (EVENT | {"type": "orders.created"}, {}, "unknown_type", "/type", "unknown_type"),
    "another tenant": (
        EVENT | {"data": DATA | {"tenant": "beta"}}, {}, "foreign_tenant", "/data/tenant", "foreign_tenant"
    ),
    "everyone": (EVENT | {"data": DATA | {"tenant": "_"}}, {}, "invalid", "/data/tenant", "name"),
    "no tenant": (EVENT | {"data": {"name": "s", "definition": {}}}, {}, "invalid", "/data/tenant", "missing"),
    "a subject that says otherwise": (EVENT | {"subject": "acme/t"}, {}, "wrong_subject", "/subject", "wrong_subject"),
    "a definition above its limit": (
        EVENT | {"data": DATA | {"note": "n" * 262_144}}, {}, "invalid", "/data", "too_large"
    ),
    "a record above its limit": (b" " * 1_048_577, {}, "invalid", "", "too_large"),
    "JSON in the depths": (b"[" * 100 + b"]" * 100, {}, "invalid", "", "too_deep"),
}  # fmt: skip


@pytest.mark.parametrize(("value", "headers", "reason", "pointer", "code"), CASES.values(), ids=CASES)
def test_what_cannot_go_on_is_rejected_with_reason_and_position(value, headers, reason, pointer, code):
    decision = rejected(value, headers)
    assert (decision.reason, decision.position, decision.rejected_at) == (reason, STOOD, NOW)
    assert (decision.faults[0].pointer, decision.faults[0].code) == (pointer, code)


def test_a_rejection_is_filed_under_the_bound_tenant_whatever_the_record_claims():
    foreign = rejected(EVENT | {"data": DATA | {"tenant": "beta"}})
    assert (foreign.subject, foreign.command_id, foreign.source) == ("acme/s", "7", "orders")
    assert foreign.faults[0].message == "this topic speaks for acme, not for beta"
    assert foreign.faults[0].remedy == "name the tenant acme, or publish on a topic of beta"
    assert rejected(b"?").subject == "acme/_"


def test_a_rejection_holds_at_most_a_kibibyte_of_what_cannot_be_read():
    assert rejected(b"?" * 5000).raw == "Pz8/" * 341 + "Pw=="
    assert rejected(EVENT | {"type": "x"}).raw is None


@pytest.mark.parametrize("case", ["tw-origin", "TW-Origin"])
def test_headers_of_ours_count_for_nothing_when_a_stranger_writes_them(case):
    claims = {
        case: "elsewhere-0-1",
        "tw-origin-at": "2020-01-01T00:00:00Z",
        "tw-reply-to": "5",
        "tw-seq": "scheduler-0-1",
    }
    decision = forwarded(EVENT, claims)
    assert (decision.position, decision.reply_to) == (STOOD, None)
    assert decision.appended_at == at("2024-01-01T09:59:30")
    assert rejected(b"?", claims).position == STOOD


def test_a_command_has_waited_for_a_week_at_most():
    """A topic that keeps the publisher's own time could claim any instant."""
    assert forwarded(EVENT, since="2023-12-25T10:00:01").appended_at == at("2023-12-25T10:00:01")
    assert forwarded(EVENT, since="1970-01-01T00:00:00").appended_at == at("2023-12-25T10:00:00")


def test_records_that_were_deleted_unread_are_named():
    decision = ingress.lost(STOOD, 50, "acme", NOW)
    assert (decision.reason, decision.subject, decision.position) == ("records_lost", "acme/_", STOOD)
    assert decision.faults[0].message == (
        "records 42 to 49 of orders.schedule-changes-6 were deleted before they were read"
    )


def test_a_topic_that_was_made_anew_is_read_anew_and_that_is_said():
    assert ingress.lost(STOOD, 0, "acme", NOW).faults[0].message == (
        "orders.schedule-changes-6 had been read up to 42 and ends before it: it is read anew, from 0"
    )


# --- laws ---

NAMED: dict[str, Any] = {"tenant": "acme", "name": "s"}
PAUSE: dict[str, Any] = EVENT | {"type": "tidewheel.schedule.pause.v1", "data": NAMED, "subject": "acme/s"}

leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=20)
trees = st.recursive(leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner))


def nearly(good: dict[str, Any], strange: st.SearchStrategy[Any] = trees) -> st.SearchStrategy[dict[str, Any]]:
    """As it is, or with one field replaced or added."""
    names = st.sampled_from([*good, "time", "by", "note", "source_version"])
    return st.dictionaries(names, strange, max_size=1).map(lambda changes: good | changes)


bodies = st.builds(lambda event, data: event | {"data": data}, nearly(PAUSE), nearly(NAMED))
raw = st.none() | st.binary(max_size=200) | st.text(max_size=50).map(str.encode)
attributes = {name: text.encode() for name, text in (BINARY | {"ce_type": "tidewheel.schedule.pause.v1"}).items()}
ours = st.lists(
    st.tuples(st.sampled_from(["tw-origin", "tw-origin-at", "tw-reply-to", "Content-Type"]), raw), max_size=2
).map(tuple)
structured = st.tuples(bodies.map(json.dumps).map(str.encode), ours)
binary = st.tuples(
    nearly(NAMED).map(json.dumps).map(str.encode), nearly(attributes, raw).map(lambda them: tuple(them.items()))
)


@settings(max_examples=400)
@given(structured | binary | st.tuples(raw, ours))
def test_whatever_a_stranger_writes_goes_on_to_an_owner_who_can_read_it_or_is_rejected_for_acme(written):
    """No record stops the line; what goes on is what an owner reads as it was first read, from where it stood."""
    value, headers = written
    stranger = Record("orders", 6, 42, b"k", value, headers, at("2024-01-01T09:59:30"))
    decision = ingress.decide(stranger, "acme", NOW)
    assert (decision.tenant, decision.position) == ("acme", Position(topic="orders", partition=6, offset=42))
    if isinstance(decision, CommandRejected):
        assert codec.read_fact(codec.encode(decision, source="ingress", time=NOW)[1]) == decision
        return
    sent = Record(
        topics.SCHEDULE_CHANGES, 0, 5, b"acme/s", forwarding.record_of(decision), forwarding.headers_of(decision), NOW
    )
    read = reading.read(sent, 0, topics.Layout(schedule=1, shard=1))
    assert read is not None
    assert isinstance(read[1], Command)
    assert (read[1].id, read[1].source, read[1].position) == (decision.command_id, decision.source, decision.position)
    assert read[1].appended_at == at("2024-01-01T09:59:30")
