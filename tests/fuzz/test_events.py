"""Records: of any bytes and headers a reader makes an input, or a refusal that says where; and so do their owners."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dispatcher import inputs
from runtime.record import SEQUENCE_HEADER, Record
from schemas import codec, commands, topics
from schemas.faults import Refused
from tests.fuzz.budget import examples, no_hang
from tests.fuzz.mutation import HOSTILE, json_values, mutated, with_wrong_values
from tests.scheduler.harness import Shell

GOLDEN = Path(__file__).parents[2] / "schemas" / "golden"
SAMPLES = [orjson.loads(path.read_bytes()) for path in sorted(GOLDEN.glob("*/*.json"))]
COMMANDS = [sample for sample in SAMPLES if sample["type"] in commands.COMMANDS]
REPORTS = [sample for sample in SAMPLES if sample["type"] == "tidewheel.worker.report.v1"]
WHOLE = {"not_json", "not_an_event", "too_deep", "too_large", "wrong_partition"}  # of a whole record: nowhere in it
LAYOUT = topics.Layout(schedule=1, shard=1)
NOW = datetime(2026, 3, 8, 7, tzinfo=UTC)
ATTRIBUTES = ("specversion", "id", "source", "type", "subject", "time", "datacontenttype", "dataschema")

pieces = st.sampled_from([b"{", b"}", b"[", b'"', b",", b"\\ud800", b"\xff", b"\0", b"1e999", b"NaN", b"null", b"-"])
values = json_values(
    texts=st.text(max_size=6) | st.sampled_from([t for t in HOSTILE if t != "\ud800" and len(t) < 100])
)


def documents(samples: list[Any]) -> st.SearchStrategy[bytes]:
    whole = st.sampled_from(samples)
    near = whole.flatmap(lambda sample: with_wrong_values(sample, values)).map(orjson.dumps)
    broken = mutated(whole.map(orjson.dumps), pieces)
    return near | near | broken | st.binary(max_size=60)


KINDS = (b"application/json", b"application/cloudevents+json", b"text/xml", b"1.0", b"\xff", b"", b"3")
header_values = st.sampled_from(KINDS)
OTHERS = (
    "content-type",
    "Content-Type",
    "CE_ID",
    "ce_",
    "tw-reply-to",
    "tw-origin",
    SEQUENCE_HEADER,
    "\u0130",
    "\0",
    "",
)
names = st.sampled_from([*(f"ce_{name}" for name in ATTRIBUTES), *OTHERS])
headers = st.lists(st.tuples(names, header_values | st.none() | st.binary(max_size=8)), max_size=6).map(tuple)


@st.composite
def binary(draw: st.DrawFn) -> tuple[bytes, Any]:
    """The attributes of a sample as headers, its data as the value."""
    sample = draw(st.sampled_from(COMMANDS))
    given = [(f"ce_{name}", sample[name].encode()) for name in ATTRIBUTES if name in sample]
    data = draw(with_wrong_values(sample["data"], values) | st.just(sample["data"]))
    return orjson.dumps(data), (*given, *draw(headers))


def located(refused: Refused) -> None:
    assert refused.faults
    for fault in refused.faults:
        assert fault.message
        assert fault.pointer.startswith("/") or (fault.pointer == "" and fault.code in WHOLE), fault


@given(documents(SAMPLES).flatmap(lambda raw: st.tuples(st.just(raw), headers | st.just(()))) | binary())
@examples(150)
def test_any_record_is_an_event_or_refused_with_a_place(record):
    raw, given_headers = record
    with no_hang():
        try:
            envelope = codec.read_envelope(raw, given_headers)
        except Refused as refused:
            located(refused)
            return
        for read in (codec.decode, commands.read_request):
            try:
                read(envelope)
            except Refused as refused:
                located(refused)


@given(documents(SAMPLES))
@examples(100)
def test_a_record_that_looks_like_ours_is_a_fact_or_refused(raw):
    """A header is all that tells ours from a stranger's."""
    for read in (codec.read_fact, codec.read_carried):
        try:
            fact = read(raw)
        except Refused as refused:
            located(refused)
        else:
            codec.encode(fact, source="s", time=NOW)


@given(
    st.sampled_from([topics.SCHEDULE_CHANGES, topics.SCHEDULE_CHANGES, topics.RUN_OUTCOMES]),
    documents(COMMANDS + [each for each in SAMPLES if each["type"].startswith("tidewheel.run.finished")]),
    headers | st.just(()),
)
@examples(150)
def test_a_scheduler_lives_on_whatever_it_reads(topic, raw, given_headers):
    """What it says of it can be written, and two minutes later it has done what follows."""
    shell = Shell("2026-03-08T07:00:00")
    with no_hang():
        record = Record(topic, 0, 1, None, raw, given_headers, shell.now)
        try:
            read = shell.core.read(record)
        except Refused as refused:
            located(refused)
            for fact in shell.core.refuse(record, refused.faults, shell.moment):
                shell.apply(fact)
        else:
            if read is not None:
                shell.decide(*read)
        shell.until(shell.now + timedelta(minutes=2))
    assert all(len(codec.dump(fact)) < 1024 * 1024 for fact in shell.facts)


@given(documents(REPORTS), headers | st.just(()))
@examples(150)
def test_a_report_is_an_input_or_refused(raw, given_headers):
    record = Record(topics.ATTEMPTS, 0, 1, None, raw, given_headers, NOW)
    try:
        inputs.read(record, LAYOUT, 0)
    except Refused as refused:
        located(refused)


MEGABYTES = {
    "brackets": b"[" * 1_048_576,
    "objects": b'{"a":' * 200_000,
    "escapes": b'"' + b"\\u0000" * 170_000 + b'"',
    "digits": b"9" * 1_048_576,
    "siblings": b"[" + b"{}," * 340_000 + b"{}]",
    "keys": b"{" + b",".join(b'"%d":1' % n for n in range(90_000)) + b"}",
    "blanks": b" " * 1_048_576,
    "bytes": b"\xff" * 1_048_576,
    "quotes": b'"a' * 500_000,
}


@pytest.mark.parametrize("raw", MEGABYTES.values(), ids=list(MEGABYTES))
def test_a_record_of_a_megabyte_costs_no_more_than_looking_at_it(raw):
    with no_hang(5), pytest.raises(Refused) as refused:
        codec.read_envelope(raw, ())
    located(refused.value)
