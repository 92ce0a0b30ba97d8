"""Facts become records and come back whole; bytes and ids are functions of content."""

import contextlib
import typing
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from datetime import UTC, datetime, timedelta, timezone
from enum import Enum
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas import codec
from schemas.facts import (
    AttemptStarted,
    CatalogEntry,
    Cause,
    CommandRejected,
    ErrorInfo,
    JobSnapshot,
    NominalRange,
    OccurrenceSkipped,
    Outcome,
    Position,
    RetryPolicy,
    RunCreated,
    RunFinished,
    SkipReason,
    TzAdopted,
)
from schemas.faults import Fault, Refused
from schemas.frozen import frozen

AT = datetime(2026, 3, 8, 7, 0, 0, 250000, tzinfo=UTC)
NOMINAL = datetime(2026, 3, 8, 7, tzinfo=UTC)
JOB = JobSnapshot(
    queue="default",
    target={"type": "task", "name": "reports.nightly"},
    payload={"b": 1, "a": None},
    priority="normal",
    timeout=timedelta(hours=1),
    deadline=timedelta(days=7),
    lease=timedelta(seconds=30),
    retry=RetryPolicy(
        max_attempts=3, initial=timedelta(seconds=1), factor=2.0, max=timedelta(minutes=5), jitter="full"
    ),
)
CREATED = RunCreated(
    tenant="acme",
    schedule="nightly",
    run_id="nightly.20260308T070000Z",
    version=3,
    cause=Cause.SCHEDULE,
    created_at=AT,
    due_at=NOMINAL,
    deadline_at=NOMINAL + timedelta(days=7),
    shard=0,
    job=JOB,
    rule="live",
    tz_version="2026a",
    nominal_time=NOMINAL,
)
FINISHED = RunFinished(
    tenant="acme",
    schedule="nightly",
    run_id="nightly.20260308T070000Z",
    version=3,
    cause=Cause.SCHEDULE,
    outcome=Outcome.SUCCEEDED,
    attempts=1,
    created_at=AT,
    finished_at=AT,
    result={"rows": 3},
)
SKIPPED = OccurrenceSkipped(
    tenant="acme",
    schedule="nightly",
    version=3,
    reason=SkipReason.PAUSED,
    decided_at=AT,
    rule="paused",
    tz_version="2026a",
    range=NominalRange(from_=NOMINAL, to=NOMINAL + timedelta(days=1), count=24),
)


def test_a_record_is_a_structured_cloudevent_with_canonical_data():
    id_, record = codec.encode(SKIPPED, source="tidewheel/scheduler/0", time=AT)
    assert record == (
        b'{"specversion":"1.0","type":"tidewheel.occurrence.skipped.v1","source":"tidewheel/scheduler/0",'
        b'"time":"2026-03-08T07:00:00.250000Z","datacontenttype":"application/json","subject":"acme/nightly",'
        b'"id":"' + id_.encode() + b'","data":{"decided_at":"2026-03-08T07:00:00.250000Z",'
        b'"range":{"count":24,"from":"2026-03-08T07:00:00Z","to":"2026-03-09T07:00:00Z"},'
        b'"reason":"paused","rule":"paused","schedule":"nightly","tenant":"acme","tz_version":"2026a","version":3}}'
    )
    assert id_ == "f1fa115433ed49e228605d11b43b348e"
    assert record.decode().startswith(codec.beginning("tidewheel.occurrence.skipped.v1"))


def test_canonical_data_sorts_keys_at_every_level_and_leaves_defaults_out():
    assert codec.dump(CREATED) == (
        b'{"cause":"schedule","created_at":"2026-03-08T07:00:00.250000Z","deadline_at":"2026-03-15T07:00:00Z",'
        b'"due_at":"2026-03-08T07:00:00Z","job":{"deadline":"P7D","lease":"PT30S","payload":{"a":null,"b":1},'
        b'"priority":"normal","queue":"default","retry":{"factor":2.0,"initial":"PT1S","jitter":"full","max":"PT5M",'
        b'"max_attempts":3},"target":{"name":"reports.nightly","type":"task"},"timeout":"PT1H"},'
        b'"nominal_time":"2026-03-08T07:00:00Z","rule":"live","run_id":"nightly.20260308T070000Z",'
        b'"schedule":"nightly","shard":0,"tenant":"acme","tz_version":"2026a","version":3}'
    )


def test_the_id_depends_on_content_alone():
    first, _ = codec.encode(SKIPPED, source="tidewheel/scheduler/0", time=AT)
    second, _ = codec.encode(SKIPPED, source="tidewheel/scheduler/9", time=AT + timedelta(days=1))
    assert first == second == codec.identify(SKIPPED)
    assert codec.identify(replace(SKIPPED, rule="other")) != first


def test_the_order_in_which_others_wrote_their_keys_changes_nothing():
    one = replace(CREATED, labels={"a": "1", "b": "2"}, job=replace(JOB, payload={"x": {"p": 1, "q": 2}, "y": 1}))
    two = replace(CREATED, labels={"b": "2", "a": "1"}, job=replace(JOB, payload={"y": 1, "x": {"q": 2, "p": 1}}))
    assert codec.dump(one) == codec.dump(two)


def test_an_instant_of_another_zone_is_written_in_utc():
    there = AT.astimezone(timezone(timedelta(hours=-5)))
    assert codec.dump(replace(FINISHED, finished_at=there)) == codec.dump(FINISHED)


def test_an_instant_without_a_zone_is_a_bug_that_stops():
    with pytest.raises(AssertionError, match="has no zone"):
        codec.dump(replace(FINISHED, finished_at=AT.replace(tzinfo=None)))


def test_a_repeat_goes_by_the_id_of_the_first_and_keeps_it_when_read():
    id_, _ = codec.encode(FINISHED, source="s", time=AT)
    repeat = replace(FINISHED, repeat=True, result=None, known_id=id_)
    repeated, record = codec.encode(repeat, source="s", time=AT)
    assert repeated == id_
    read = codec.read_fact(record)
    assert read == repeat
    assert codec.identify(read) == id_


def test_an_outcome_of_a_newer_version_keeps_the_id_that_its_consumers_know():
    """What this version does not know is not in what it has read: its content would give another id."""
    document = orjson.loads(codec.encode(FINISHED, source="s", time=AT)[1])
    newer = orjson.dumps(document | {"id": "b" * 32, "data": document["data"] | {"newer": 1}})
    read = codec.read_fact(newer)
    assert read == FINISHED
    assert codec.identify(read) == "b" * 32


def test_an_outcome_that_only_a_decision_record_holds_has_the_id_of_its_content():
    read = codec.read_fact(codec.unpublished(FINISHED, source="s", time=AT))
    assert codec.identify(read) == codec.identify(FINISHED)


def test_plain_data_is_for_any_json_writer_and_loads_again():
    plain = codec.plain(CREATED)
    assert plain["job"]["timeout"] == "PT1H"
    assert plain["created_at"] == AT
    assert codec.load(RunCreated, orjson.loads(orjson.dumps(plain))) == CREATED


# --- reading -------------------------------------------------------------------------------------------------------


def refusal(cls: type, data: Any, pointer: str = "/data") -> tuple[str, str, str]:
    with pytest.raises(Refused) as refused:
        codec.load(cls, data, pointer)
    (fault,) = refused.value.faults
    return fault.pointer, fault.code, fault.message


def test_what_does_not_fit_is_named_by_its_pointer():
    good = orjson.loads(codec.dump(CREATED))
    assert refusal(RunCreated, {**good, "version": "3"}) == (
        "/data/version",
        "type",
        "must be an integer, not a string",
    )
    assert refusal(RunCreated, {**good, "version": True}) == (
        "/data/version",
        "type",
        "must be an integer, not true or false",
    )
    assert refusal(RunCreated, {**good, "job": {**good["job"], "retry": 5}}) == (
        "/data/job/retry",
        "type",
        "must be an object, not a number",
    )
    assert refusal(RunCreated, {**good, "labels": {"a/b": 5}})[0] == "/data/labels/a~1b"
    assert refusal(RunCreated, [], "/x") == ("/x", "type", "must be an object, not a list")
    assert refusal(CommandRejected, {**orjson.loads(codec.dump(REJECTED)), "faults": [{}]})[0] == "/data/faults/0/code"


REJECTED = CommandRejected(
    tenant="acme",
    name="nightly",
    reason="invalid",
    faults=(Fault(pointer="/data", code="missing", message="is required"),),
    position=Position(topic="tidewheel.schedule-changes", partition=0, offset=7),
    rejected_at=AT,
)


def test_an_absent_or_null_field_without_default_is_refused():
    good = orjson.loads(codec.dump(SKIPPED))
    assert refusal(OccurrenceSkipped, {**good, "rule": None}) == ("/data/rule", "type", "must be a string, not null")
    del good["rule"]
    assert refusal(OccurrenceSkipped, good) == ("/data/rule", "missing", "is required: a string")


def test_null_means_the_default_where_there_is_one():
    good = orjson.loads(codec.dump(SKIPPED))
    assert codec.load(OccurrenceSkipped, {**good, "detail": None, "nominal_time": None}) == SKIPPED


def test_an_unknown_word_is_refused_with_the_known_ones():
    good = orjson.loads(codec.dump(FINISHED))
    _, code, message = refusal(RunFinished, {**good, "outcome": "vanished"})
    assert code == "type"
    assert message.startswith("must be one of cancelled, dead_lettered, expired, failed, succeeded, timed_out")


@pytest.mark.parametrize(
    "text", ["yesterday", "2026-03-08T07:00:00", "2026-03-08", "2026-13-08T07:00:00Z", "", "9999-12-31T23:59:59-01:00"]
)
def test_what_names_no_instant_is_refused(text):
    good = orjson.loads(codec.dump(FINISHED))
    assert refusal(RunFinished, {**good, "finished_at": text})[:2] == ("/data/finished_at", "instant")


def test_an_instant_is_read_with_any_offset():
    good = orjson.loads(codec.dump(FINISHED))
    assert codec.load(RunFinished, {**good, "finished_at": "2026-03-08T02:00:00.25-05:00"}) == FINISHED
    assert codec.load(RunFinished, {**good, "finished_at": "2026-03-08t07:00:00.250z"}) == FINISHED


def test_fields_of_newer_writers_are_left_alone():
    good = orjson.loads(codec.dump(FINISHED))
    assert codec.load(RunFinished, {**good, "invented_later": {"x": 1}}) == FINISHED


def test_numbers_and_truths_that_compare_equal_stay_what_they_are():
    """Job snapshots are read once and shared: 1, 1.0 and true must not be taken for each other."""
    payloads: list[dict[str, Any]] = [{"n": 1}, {"n": 1.0}, {"n": True}]
    records = [codec.dump(replace(CREATED, job=replace(JOB, payload=payload))) for payload in payloads]
    read = [codec.load(RunCreated, orjson.loads(record)).job.payload["n"] for record in records]
    assert [(type(value), value) for value in read] == [(int, 1), (float, 1.0), (bool, True)]


def test_job_snapshots_that_are_equal_are_one_object_after_reading():
    first, second = (codec.read_fact(codec.encode(CREATED, source="s", time=AT)[1]) for _ in range(2))
    assert isinstance(first, RunCreated)
    assert isinstance(second, RunCreated)
    assert first.job is second.job


def test_many_different_job_snapshots_are_each_written_as_themselves():
    for number in range(3000):
        job = replace(JOB, version=number)
        assert orjson.loads(codec.dump(replace(CREATED, job=job)))["job"]["version"] == number


def test_a_record_of_an_unknown_type_is_refused():
    _, record = codec.encode(SKIPPED, source="s", time=AT)
    with pytest.raises(Refused, match=r"unknown type 'tidewheel.occurrence.skipped.v9'"):
        codec.read_fact(record.replace(b"skipped.v1", b"skipped.v9"))


@pytest.mark.parametrize("levels", [25, 300])
def test_a_record_that_only_looks_like_our_own_brings_no_payload_too_deep_to_write(levels):
    _, record = codec.encode(replace(CREATED, job=replace(JOB, payload={"x": 0})), source="tests", time=AT)
    nested = b"[" * levels + b"]" * levels
    with pytest.raises(Refused) as caught:
        codec.read_fact(record.replace(b'{"x":0}', b'{"x":%b}' % nested))
    assert [(fault.pointer, fault.code) for fault in caught.value.faults] == [("/data/job", "too_deep")]


def test_a_class_may_contain_itself():
    tree = Tree(name="root", below=(Tree(name="leaf"),), named={"x": Tree(name="y")})
    assert codec.dump(tree) == b'{"below":[{"name":"leaf"}],"name":"root","named":{"x":{"name":"y"}}}'
    assert codec.load(Tree, orjson.loads(codec.dump(tree))) == tree


@frozen
class Tree:
    name: str
    below: "tuple[Tree, ...]" = ()
    named: "typing.Mapping[str, Tree]" = field(default_factory=dict)


def test_a_plain_dataclass_is_as_good():
    assert codec.load(Plain, orjson.loads(codec.dump(Plain(until=AT)))) == Plain(until=AT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plain:
    until: datetime
    count: int | None = None


# --- laws ----------------------------------------------------------------------------------------------------------

INSTANTS = st.datetimes(datetime(1970, 1, 1), datetime(9000, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 -- the strategy adds the zone
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
SCALARS: dict[Any, st.SearchStrategy[Any]] = {
    str: st.text(max_size=10),
    int: st.integers(-(2**53), 2**53),
    float: st.floats(allow_nan=False, allow_infinity=False),
    bool: st.booleans(),
    datetime: INSTANTS,
    timedelta: st.timedeltas(timedelta(0), timedelta(days=3660)),
    typing.Any: JSON,
}


def values_of(hint: Any) -> st.SearchStrategy[Any]:
    """Every value that an annotation of a fact allows."""
    arguments = typing.get_args(hint)
    if hint in SCALARS:
        return SCALARS[hint]
    if type(None) in arguments:
        return st.none() | values_of(next(part for part in arguments if part is not type(None)))
    if isinstance(hint, type) and issubclass(hint, Enum):
        return st.sampled_from(list(hint))
    if is_dataclass(hint):
        return objects_of(hint)
    if typing.get_origin(hint) is tuple:
        return st.lists(values_of(arguments[0]), max_size=2).map(tuple)
    return st.dictionaries(st.text(max_size=5), values_of(arguments[1]), max_size=3)


def objects_of(cls: Any) -> st.SearchStrategy[Any]:
    hints = typing.get_type_hints(cls)
    wired = [each for each in fields(cls) if each.metadata.get("wire", True)]
    required = {
        each.name: values_of(hints[each.name])
        for each in wired
        if each.default is MISSING and each.default_factory is MISSING
    }
    optional = {each.name: values_of(hints[each.name]) for each in wired if each.name not in required}
    return st.fixed_dictionaries(required, optional=optional).map(lambda given: cls(**given))


@pytest.mark.parametrize("cls", codec.TYPES.values(), ids=lambda cls: cls.__name__)
@settings(max_examples=8)
@given(data=st.data())
def test_every_fact_comes_back_from_its_record_and_is_written_alike_again(cls, data):
    fact = data.draw(objects_of(cls))
    id_, record = codec.encode(fact, source="tidewheel/scheduler/0", time=AT)
    read = codec.read_fact(record)
    assert read == fact
    assert codec.encode(read, source="tidewheel/scheduler/0", time=AT) == (id_, record)


@pytest.mark.parametrize(
    "cls", [RunCreated, RunFinished, CommandRejected, CatalogEntry, TzAdopted, AttemptStarted, ErrorInfo]
)
@settings(max_examples=40)
@given(data=st.data())
def test_whatever_json_a_record_holds_it_is_a_fact_or_a_refusal(cls, data):
    known = [each.name for each in fields(cls)]
    document = data.draw(JSON | st.dictionaries(st.sampled_from(known), JSON))
    with contextlib.suppress(Refused):
        assert isinstance(codec.load(cls, document), cls)
