"""A record of a stranger is an event or a refusal with a reason, never anything else."""

import contextlib
import string
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.envelope import Envelope, parse, read_envelope, write_envelope
from schemas.faults import Refused

EVENT: dict[str, Any] = {
    "specversion": "1.0",
    "id": "c-1",
    "source": "https://billing.acme.example",
    "type": "tidewheel.schedule.pause.v1",
    "subject": "acme/nightly",
    "time": "2026-03-08T07:00:00Z",
    "datacontenttype": "application/json",
    "data": {"tenant": "acme", "name": "nightly"},
}
READ = Envelope(
    id="c-1",
    source="https://billing.acme.example",
    type="tidewheel.schedule.pause.v1",
    subject="acme/nightly",
    data={"tenant": "acme", "name": "nightly"},
    time=datetime(2026, 3, 8, 7, tzinfo=UTC),
)
BINARY = (
    ("ce_specversion", b"1.0"),
    ("ce_id", b"c-1"),
    ("ce_source", b"https://billing.acme.example"),
    ("ce_type", b"tidewheel.schedule.pause.v1"),
    ("ce_subject", b"acme/nightly"),
    ("ce_time", b"2026-03-08T07:00:00Z"),
    ("content-type", b"application/json; charset=utf-8"),
)


def refusal(value: bytes | None, headers: Any = ()) -> tuple[str, str]:
    with pytest.raises(Refused) as refused:
        read_envelope(value, headers)
    (fault,) = refused.value.faults
    return fault.pointer, fault.code


def without(name: str) -> bytes:
    return orjson.dumps({key: value for key, value in EVENT.items() if key != name})


def test_a_structured_event_is_read():
    assert read_envelope(orjson.dumps(EVENT), ()) == READ
    assert read_envelope(orjson.dumps(EVENT), (("content-type", b"application/cloudevents+json"),)) == READ


def test_an_event_in_binary_mode_is_read_from_its_headers():
    assert read_envelope(b'{"tenant":"acme","name":"nightly"}', BINARY) == READ
    assert (
        read_envelope(b'{"tenant":"acme","name":"nightly"}', tuple((name.upper(), value) for name, value in BINARY))
        == READ
    )


def test_headers_of_others_and_null_headers_are_left_alone():
    headers = (("traceparent", b"\xff\xfe"), ("ce_extension", None), ("tw-reply-to", b"3"))
    assert read_envelope(orjson.dumps(EVENT), headers) == READ  # type: ignore[arg-type]


def test_subject_and_time_may_be_absent_and_attributes_of_extensions_present():
    read = read_envelope(
        orjson.dumps({"specversion": "1.0", "id": "1", "source": "s", "type": "t", "x": 1, "data": None}), ()
    )
    assert (read.subject, read.time, read.data) == ("", None, None)


@pytest.mark.parametrize("name", ["id", "source", "type"])
def test_what_an_event_must_have_is_asked_for(name):
    assert refusal(without(name)) == (f"/{name}", "missing")


def test_what_is_not_an_event_says_why():
    assert refusal(None) == ("", "not_json")
    assert refusal(b"") == ("", "not_json")
    assert refusal(b"[]") == ("", "not_an_event")
    assert refusal(b"{}") == ("/specversion", "not_an_event")
    assert refusal(orjson.dumps({**EVENT, "specversion": "0.3"})) == ("/specversion", "not_an_event")
    assert refusal(orjson.dumps({**EVENT, "id": 5})) == ("/id", "type")
    assert refusal(orjson.dumps({**EVENT, "subject": None})) == ("/subject", "type")
    assert refusal(orjson.dumps({**EVENT, "time": "soon"})) == ("/time", "instant")
    assert refusal(orjson.dumps({**EVENT, "time": ["soon"]})) == ("/time", "type")
    assert refusal(orjson.dumps({**EVENT, "id": "x" * 1025})) == ("/id", "too_long")


def test_only_json_is_taken():
    assert refusal(orjson.dumps({**EVENT, "datacontenttype": "text/xml"})) == ("/datacontenttype", "not_an_event")
    assert refusal(orjson.dumps({**EVENT, "datacontenttype": 5})) == ("/datacontenttype", "not_an_event")
    assert refusal(orjson.dumps({**EVENT, "data_base64": "AA=="})) == ("/data_base64", "not_an_event")
    assert refusal(b"{}", (*BINARY[:-1], ("content-type", b"avro/binary"))) == ("/content-type", "not_an_event")
    assert refusal(b"[]", (("content-type", b"application/cloudevents-batch+json"),)) == (
        "/content-type",
        "not_an_event",
    )
    assert refusal(b"{}", (("ce_type", b"\xff"),)) == ("", "not_an_event")


@pytest.mark.parametrize(
    "raw", [b'{"x": NaN}', b'{"x": Infinity}', b'{"x": 1', b"\xff\xfe", b'{"x": "\\ud800"}', b"'x'", b"[" * 100_000]
)
def test_what_is_not_json_is_refused(raw):
    assert refusal(raw) == ("", "not_json")


def test_a_huge_number_is_what_a_double_makes_of_it_and_one_beyond_is_refused():
    assert parse(b"123456789012345678901234567890") == 1.2345678901234568e29
    assert refusal(b'{"x": 1e400}') == ("", "not_json")


def test_a_record_over_a_mebibyte_is_refused_before_it_is_read():
    assert refusal(b"x" * (1024 * 1024 + 1)) == ("", "too_large")


def test_a_record_may_be_nested_as_deep_as_a_payload_and_all_around_it_and_no_deeper():
    assert parse(b"[" * 24 + b"]" * 24)
    assert refusal(b"[" * 25 + b"]" * 25) == ("", "too_deep")
    assert parse(b"[" + b"[]," * 1000 + b"[]]")
    assert parse(b'"' + b"[" * 1000 + b'"') == "[" * 1000


NAMES = st.sampled_from([*EVENT, "data_base64"])
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(string.printable, max_size=10)


@given(st.binary(max_size=200) | st.dictionaries(NAMES, LEAVES).map(repr).map(str.encode))
def test_any_bytes_are_an_event_or_a_refusal(raw):
    with contextlib.suppress(Refused):
        read_envelope(raw, ())


@given(
    st.dictionaries(NAMES, LEAVES.filter(lambda leaf: not isinstance(leaf, (int, float)))),
    st.lists(st.tuples(st.sampled_from(["ce_type", "ce_id", "CE_TIME", "content-type", "x"]), st.binary(max_size=10))),
)
def test_any_event_with_any_headers_is_an_event_or_a_refusal(changed, headers):
    with contextlib.suppress(Refused):
        read_envelope(orjson.dumps(EVENT | changed), tuple(headers))


def test_an_event_that_is_written_is_the_event_that_was_read():
    assert orjson.loads(write_envelope(READ)) == EVENT
    assert read_envelope(write_envelope(READ), ()) == READ


def test_what_an_event_does_not_say_is_not_written():
    bare = Envelope(id="1", source="s", type="t", subject="", data=None)
    assert read_envelope(write_envelope(bare), ()) == bare
    assert "time" not in orjson.loads(write_envelope(bare))
