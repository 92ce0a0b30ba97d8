"""Calendars, queues and tenants are read with their defaults, or refused with every fault: field, problem, remedy."""

from datetime import timedelta
from typing import Any

import pytest

from schemas import commands, definitions, rates, references
from schemas.envelope import Envelope
from schemas.faults import Refused


def faults(kind: str, data: Any, *, strict: bool = True) -> list[tuple[str, str, str]]:
    with pytest.raises(Refused) as refused:
        definitions.read_as(references.KINDS[kind], data, strict=strict)
    return [(fault.pointer, fault.code, fault.remedy) for fault in refused.value.faults]


def normal(kind: str, data: Any) -> dict[str, Any]:
    model, warnings = definitions.read_as(references.KINDS[kind], data, strict=True)
    assert warnings == ()
    return definitions.normal_form(model)


def test_the_normal_form_says_every_default():
    assert normal("calendar", {}) == {"note": "", "dates": []}
    assert normal("queue", {}) == {"note": "", "shards": 1, "weights": {}, "freezes": []}
    assert normal("tenant", {}) == {"note": "", "quota": {"queues": {}}, "freezes": []}


def test_a_calendar_is_its_days_in_order_each_once():
    days = ["2026-12-25", "2026-01-01", "2026-12-25"]
    assert normal("calendar", {"dates": days})["dates"] == ["2026-01-01", "2026-12-25"]


def test_a_calendar_has_a_bound():
    days = ["2026-12-25"] * 10_001
    assert faults("calendar", {"dates": days}) == [("/dates", "too_long", "")]


def test_a_day_that_is_none_is_named():
    assert faults("calendar", {"dates": ["2026-12-25", "2026-02-30"]}) == [("/dates/1", "date", "write 2026-12-31")]


def test_an_unknown_field_is_refused_at_the_door_wherever_it_stands_and_kept_on_the_topic():
    tenant = {"quota": {"queues": {"a/b": {}, "default": {"runing": 3}}, "schedule": 1}}
    assert faults("tenant", tenant) == [
        ("/quota/queues/default/runing", "unknown_field", "did you mean 'running'?"),
        ("/quota/schedule", "unknown_field", "did you mean 'schedules'?"),
        ("/quota/queues/a~1b", "name", ""),
    ]
    _, warnings = definitions.read_as(references.Queue, {"wieghts": {}}, strict=False)
    assert warnings == ("/wieghts: unknown field 'wieghts'; did you mean 'weights'?",)


def test_a_queue_is_paused_with_a_note_and_a_tenant_in_a_queue():
    assert normal("queue", {"paused": {}})["paused"] == {"note": ""}
    tenant = {"quota": {"queues": {"*": {"paused": {"note": "drained"}}}}}
    assert normal("tenant", tenant)["quota"]["queues"] == {"*": {"paused": {"note": "drained"}}}
    assert faults("queue", {"paused": {"since": 1}}) == [("/paused/since", "unknown_field", "known here: note")]
    assert [fault[:2] for fault in faults("queue", {"paused": True})] == [("/paused", "type")]


@pytest.mark.parametrize(
    ("freeze", "code"),
    [
        ({}, "one_kind"),
        ({"from": "2026-12-20T00:00:00Z"}, "one_kind"),
        ({"cron": "0 2 * * *"}, "one_kind"),
        ({"from": "2026-12-20T00:00:00Z", "to": "2026-12-21T00:00:00Z", "cron": "0 2 * * *"}, "one_kind"),
        ({"from": "2026-12-20T00:00:00Z", "to": "2026-12-20T00:00:00Z"}, "range"),
        ({"cron": "0 2 * * *", "duration": "P32D"}, "range"),
    ],
)
def test_a_freeze_is_one_window_or_one_that_comes_again(freeze, code):
    assert [fault[:2] for fault in faults("tenant", {"freezes": [freeze]})] == [("/freezes/0", code)]


@pytest.mark.parametrize(
    ("text", "count", "per"),
    [("10/s", 10, timedelta(seconds=1)), ("600/m", 600, timedelta(minutes=1)), ("1/h", 1, timedelta(hours=1))],
)
def test_a_rate_is_so_many_in_a_time(text, count, per):
    assert rates.parse(text) == rates.Rate(count=count, per=per)


@pytest.mark.parametrize("text", ["", "10", "0/s", "10/d", "1.5/s", "10 / s", "-1/s", "\u0661/s"])
def test_what_is_no_rate_is_refused_with_what_is(text):
    with pytest.raises(ValueError, match="write 10/s, 600/m or 5000/h"):
        rates.parse(text)
    assert ("/rate", "rate", "") in faults("queue", {"rate": text})


def read(type_: str, data: Any) -> commands.Request:
    return commands.read_request(Envelope(id="1", source="s", type=type_, subject="", data=data))


def test_a_queue_is_nobodys_and_a_tenants_own_definition_is_called_by_no_name():
    queue = read("tidewheel.queue.put.v1", {"name": "reports", "definition": {}})
    tenant = read("tidewheel.tenant.delete.v1", {"tenant": "acme"})
    assert (queue.tenant, queue.name, tenant.tenant, tenant.name) == ("_", "reports", "acme", "_")


@pytest.mark.parametrize(
    ("type_", "data", "pointer"),
    [
        ("tidewheel.queue.put.v1", {"tenant": "acme", "name": "reports", "definition": {}}, "/data/tenant"),
        ("tidewheel.queue.delete.v1", {"name": "_"}, "/data/name"),
        ("tidewheel.tenant.put.v1", {"tenant": "acme", "name": "reports", "definition": {}}, "/data/name"),
        ("tidewheel.tenant.delete.v1", {"tenant": "_"}, "/data/tenant"),
        ("tidewheel.calendar.put.v1", {"tenant": "_", "name": "uk", "definition": {}}, "/data/tenant"),
    ],
)
def test_other_names_of_queues_and_tenants_are_refused(type_, data, pointer):
    with pytest.raises(Refused) as refused:
        read(type_, data)
    assert [fault.pointer for fault in refused.value.faults] == [pointer]
