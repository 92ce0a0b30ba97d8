"""A command names its thing in the body; what is wrong with it is said by field."""

import contextlib
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas import commands
from schemas.envelope import Envelope
from schemas.faults import Refused
from tests.schemas.test_golden import GOLDEN


def read(type_: str, data: Any, subject: str = "") -> commands.Request:
    return commands.read_request(Envelope(id="1", source="s", type=type_, subject=subject, data=data))


def refusal(type_: str, data: Any, subject: str = "") -> list[tuple[str, str, str]]:
    with pytest.raises(Refused) as refused:
        read(type_, data, subject)
    return [(fault.pointer, fault.code, fault.remedy) for fault in refused.value.faults]


NIGHTLY: dict[str, Any] = {"tenant": "acme", "name": "nightly"}
PAUSE = "tidewheel.schedule.pause.v1"


def test_a_command_is_read_with_what_every_command_may_carry():
    request = read(PAUSE, NIGHTLY | {"expected_version": 3, "source_version": 12, "by": "ada", "note": "month end"})
    assert isinstance(request, commands.SchedulePause)
    assert (request.tenant, request.name, request.expected_version, request.source_version) == (
        "acme",
        "nightly",
        3,
        12,
    )


def test_an_unknown_type_is_refused_with_the_nearest_known_one():
    assert refusal("tidewheel.schedule.puase.v1", {}) == [("/type", "unknown_type", f"did you mean {PAUSE!r}?")]


def test_the_body_says_whose_the_thing_is():
    assert [fault[:2] for fault in refusal(PAUSE, {})] == [("/data/tenant", "missing"), ("/data/name", "missing")]
    assert [fault[:2] for fault in refusal(PAUSE, {"tenant": "_", "name": "a b"})] == [
        ("/data/tenant", "name"),
        ("/data/name", "name"),
    ]
    assert refusal(PAUSE, None)[0][:2] == ("/data", "type")


def test_a_subject_that_names_another_thing_is_refused():
    assert read(PAUSE, NIGHTLY, "acme/nightly")
    assert read(PAUSE, NIGHTLY, "whatever")
    assert refusal(PAUSE, NIGHTLY, "acme/hourly") == [("/subject", "wrong_subject", "name the same thing in both")]


def test_a_run_is_cancelled_by_its_own_schedule():
    cancel = "tidewheel.run.cancel.v1"
    assert read(cancel, NIGHTLY | {"run_id": "nightly.20260308T070000Z"})
    assert refusal(cancel, NIGHTLY | {"run_id": "hourly.20260308T070000Z"})[0][:2] == ("/data/run_id", "wrong_schedule")


@pytest.mark.parametrize("kind", ["rerun", "redrive"])
def test_a_rerun_brings_the_run_that_it_names(kind):
    type_ = f"tidewheel.run.{kind}.v1"
    run = orjson.loads((GOLDEN / type_ / "1.json").read_bytes())["data"]["run"]
    brought = {"tenant": "acme", "name": "nightly-report", "run_id": run["run_id"], "run": run}
    assert read(type_, brought)
    assert refusal(type_, brought | {"run": run | {"run_id": "nightly-report.1"}})[0][:2] == ("/data/run", "wrong_run")
    assert refusal(type_, brought | {"run": run | {"tenant": "other"}})[0][:2] == ("/data/run", "wrong_run")
    assert refusal(type_, brought | {"run": run | {"version": "x"}})[0][:2] == ("/data/run/version", "type")
    assert refusal(type_, brought | {"run_id": "other.1"})[0][:2] == ("/data/run_id", "wrong_schedule")
    large = run | {"job": run["job"] | {"payload": {"text": "x" * 70_000}}}
    assert refusal(type_, brought | {"run": large})[0][:2] == ("/data/run/job/payload", "too_large")


def test_a_backfill_on_resume_is_a_yes_or_a_no():
    resume = "tidewheel.schedule.resume.v1"
    assert read(resume, NIGHTLY | {"backfill": True})
    assert refusal(resume, NIGHTLY | {"backfill": "no"})[0][:2] == ("/data/backfill", "type")


START = "tidewheel.backfill.start.v1"
RANGE = NIGHTLY | {"from": "2026-03-01T00:00:00Z", "to": "2026-03-08T00:00:00+01:00"}


def test_a_backfill_says_which_range_and_the_rest_has_careful_defaults():
    request = read(START, RANGE)
    assert isinstance(request, commands.BackfillStart)
    of_any = {"expected_version", "source_version", "after_catalog"}
    assert request.model_dump(mode="json", exclude=of_any) == NIGHTLY | {
        "from": "2026-03-01T00:00:00Z", "to": "2026-03-07T23:00:00Z", "order": "oldest", "reprocess": "none",
        "max_active": 1, "rate": "10/s", "as_of": None, "dry_run": False, "by": "", "note": "",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("more", "pointer", "code", "remedy"),
    [
        ({"to": "2026-03-01T00:00:00Z"}, "/data/to", "range", "ranges are [from, to)"),
        ({"to": "2026-02-01T00:00:00Z"}, "/data/to", "range", "ranges are [from, to)"),
        ({"from": "2026-03-01T00:00:00"}, "/data/from", "instant", ""),
        ({"from": "2026-03-01T00:00:00.5Z"}, "/data/from", "instant", ""),
        ({"order": "oldst"}, "/data/order", "unknown_value", "did you mean 'oldest'?"),
        ({"reprocess": "all"}, "/data/reprocess", "unknown_value", ""),
        ({"max_active": 0}, "/data/max_active", "range", ""),
        ({"max_active": 257}, "/data/max_active", "range", ""),
        ({"rate": "101/s"}, "/data/rate", "rate", "give at most 100/s"),
        ({"rate": "fast"}, "/data/rate", "rate", ""),
        ({"rate": 10}, "/data/rate", "type", ""),
        ({"as_of": 0}, "/data/as_of", "range", ""),
        ({"dry_run": "yes"}, "/data/dry_run", "type", ""),
    ],
)
def test_what_no_backfill_can_mean_is_refused_with_its_field(more, pointer, code, remedy):
    assert refusal(START, RANGE | more) == [(pointer, code, remedy)]


def test_a_payload_of_a_trigger_has_the_limits_of_any_payload():
    trigger = "tidewheel.schedule.trigger.v1"
    assert refusal(trigger, NIGHTLY | {"payload": {"x": "y" * 70_000}})[0][:2] == ("/data/payload", "too_large")


def test_a_version_is_a_number_that_every_reader_and_database_can_hold():
    assert refusal(PAUSE, NIGHTLY | {"source_version": 2**60})[0][:2] == ("/data/source_version", "range")
    assert refusal(PAUSE, NIGHTLY | {"source_version": "12"})[0][:2] == ("/data/source_version", "type")


def test_a_command_of_a_megabyte_is_refused_before_it_is_looked_at():
    assert refusal(PAUSE, NIGHTLY | {"note": "x" * 300_000})[0][:2] == ("/data", "too_large")


LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
BODIES = st.dictionaries(
    st.sampled_from(
        ["tenant", "name", "definition", "payload", "run_id", "backfill", "runs", "expected_version", "by"]
    ),
    st.recursive(
        LEAVES, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner, max_size=2)
    ),
)


@given(st.sampled_from(sorted(commands.COMMANDS)), BODIES | LEAVES, st.booleans())
def test_whatever_a_body_holds_it_is_a_request_or_a_refusal(type_, body, named):
    with contextlib.suppress(Refused):
        read(type_, body | NIGHTLY if named and isinstance(body, dict) else body)
