"""Calendars, queues and tenants at the door: their names, who may name them, how many schedules there may be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from runtime.record import Outgoing, Record
from schemas import topics
from schemas.facts import CatalogEntry
from tests.api.house import House, answer
from tests.projections.histories import at, current, record

pytestmark = pytest.mark.anyio

JOB: dict[str, Any] = {"target": {"type": "task", "name": "mail"}}
NIGHTLY: dict[str, Any] = {"trigger": {"cron": "0 2 * * *"}, "job": {**JOB, "queue": "reports"}}
CALENDAR = "/v1/tenants/acme/calendars/uk"


def entry(kind: str, tenant: str, name: str, definition: Any = None, version: int = 1) -> Outgoing:
    fact = CatalogEntry(
        kind=kind, tenant=tenant, name=name, version=version, changed_at=at(version), definition=definition
    )
    return record(fact, topic=topics.CATALOG, sequence=version)


def accepting(status: int = 201) -> Callable[[dict[str, Any], Record], list[Outgoing]]:
    return lambda command, record: [answer(record, status, body={"version": 1})]


@pytest.mark.parametrize(
    ("path", "kind", "tenant", "name"),
    [
        (CALENDAR, "calendar", "acme", "uk"),
        ("/v1/queues/reports", "queue", "_", "reports"),
        ("/v1/tenants/acme", "tenant", "acme", "_"),
    ],
)
async def test_a_definition_is_put_and_deleted_by_commands_of_its_kind(house, path, kind, tenant, name):
    house.owner = accepting()
    assert (await house.http.put(path, json={"note": "why"}, headers={"If-Match": "3"})).status_code == 201
    await house.http.delete(path)
    put, delete = house.commands()
    assert [put["type"], delete["type"]] == [f"tidewheel.{kind}.put.v1", f"tidewheel.{kind}.delete.v1"]
    assert put["subject"] == f"{tenant}/{name}"
    assert put["data"] == {
        "tenant": tenant, "name": name, "definition": {"note": "why"}, "expected_version": 3
    }  # fmt: skip


@pytest.mark.parametrize(
    ("path", "body", "fault"),
    [
        (CALENDAR, {"date": []}, ("/date", "unknown_field", "did you mean 'dates'?")),
        (CALENDAR, {"dates": ["2026-02-30"]}, ("/dates/0", "date", "write 2026-12-31")),
        ("/v1/queues/reports", {"shard": 1}, ("/shard", "unknown_field", "did you mean 'shards'?")),
        ("/v1/tenants/acme", {"name": "zoo"}, ("/name", "contradiction", "")),
        ("/v1/queues/reports", {"kind": "Tenant"}, ("/kind", "contradiction", "")),
    ],
)
async def test_what_is_wrong_with_a_definition_is_said_at_the_door(house, path, body, fault):
    response = await house.http.put(path, json=body)
    (found,) = response.json()["faults"]
    assert (response.status_code, (found["pointer"], found["code"], found.get("remedy", ""))) == (422, fault)
    assert house.commands() == []


async def test_a_file_document_may_be_sent_as_it_is(house):
    house.owner = accepting()
    assert (await house.http.put("/v1/tenants/acme", json={"kind": "Tenant", "name": "acme"})).status_code == 201
    assert (await house.http.put("/v1/queues/reports", json={"kind": "Queue", "name": "reports"})).status_code == 201


async def test_definitions_are_shown_by_the_names_that_people_use(house):
    house.happened(
        entry("calendar", "acme", "uk", {"dates": ["2026-12-25"]}), entry("queue", "_", "reports", {"shards": 1}),
        entry("tenant", "zoo", "_", {"quota": {}}), entry("queue", "_", "gone", {}),
        entry("queue", "_", "gone", None, 2), current("report"),
    )  # fmt: skip
    calendar = (await house.http.get(CALENDAR)).json()
    assert (calendar["tenant"], calendar["name"], calendar["definition"]) == ("acme", "uk", {"dates": ["2026-12-25"]})
    queue = (await house.http.get("/v1/queues/reports")).json()
    assert ("tenant" in queue, queue["name"], queue["version"]) == (False, "reports", 1)
    tenant = (await house.http.get("/v1/tenants/zoo")).json()
    assert ("tenant" in tenant, tenant["name"]) == (False, "zoo")
    assert (await house.http.get("/v1/queues/gone")).status_code == 404
    assert [each["name"] for each in (await house.http.get("/v1/queues")).json()["queues"]] == ["reports"]
    assert [each["name"] for each in (await house.http.get("/v1/calendars")).json()["calendars"]] == ["uk"]
    assert (await house.http.get("/v1/tenants/zoo/calendars")).json()["calendars"] == []
    assert (await house.http.get("/v1/tenants")).json()["tenants"] == [
        {"name": "acme", "schedules": 1}, {"name": "zoo", "schedules": 0, "version": 1}
    ]  # fmt: skip


async def test_a_plan_of_a_definition_says_what_would_change(house):
    house.happened(entry("queue", "_", "reports", {"note": "", "shards": 1, "weights": {}, "freezes": []}))
    ask = "/v1/tenants/acme/preview"
    same = await house.http.post(ask, json={"kind": "Queue", "name": "reports"})
    other = await house.http.post(ask, json={"kind": "Queue", "name": "reports", "note": "the big machines"})
    new = await house.http.post(ask, json={"kind": "Tenant", "name": "zoo"})
    assert [answer.json()["change"] for answer in (same, other, new)] == ["unchanged", "updated", "created"]
    assert other.json()["fields"] == ["/note"]


async def test_what_names_an_undeclared_tenant_or_queue_is_refused_where_that_is_wanted(tmp_path):
    async with House(tmp_path, require_declared=True) as house:
        house.owner = accepting()
        path = "/v1/tenants/acme/schedules/nightly"
        response = await house.http.put(path, json=NIGHTLY)
        assert response.status_code == 422
        assert [(fault["pointer"], fault["code"], fault["remedy"]) for fault in response.json()["faults"]] == [
            ("/tenant", "undeclared", "put tenant acme first"),
            ("/job/queue", "undeclared", "put queue reports first"),
        ]
        response = await house.http.put("/v1/tenants/acme/jobs/send", json=JOB)
        assert [fault["pointer"] for fault in response.json()["faults"]] == ["/tenant", "/queue"]
        response = await house.http.put(CALENDAR, json={})
        assert [fault["pointer"] for fault in response.json()["faults"]] == ["/tenant"]
        assert house.commands() == []

        assert (await house.http.put("/v1/tenants/acme", json={})).status_code == 201
        house.happened(entry("tenant", "acme", "_", {}), entry("queue", "_", "reports", {}))
        assert (await house.http.put(path, json=NIGHTLY)).status_code == 201


async def test_a_tenant_has_no_more_schedules_than_its_quota_and_may_always_change_those_it_has(house):
    house.owner = accepting()
    house.happened(entry("tenant", "acme", "_", {"quota": {"schedules": 2}}), current("a"), current("b"))
    response = await house.http.put("/v1/tenants/acme/schedules/c", json=NIGHTLY)
    assert (response.status_code, response.json()["code"]) == (409, "quota")
    assert response.json()["faults"][0]["remedy"] == (
        "delete one that is not needed, or raise quota.schedules of the tenant"
    )
    assert (await house.http.put("/v1/tenants/acme/schedules/a", json=NIGHTLY)).status_code == 201
    assert (await house.http.put("/v1/tenants/zoo/schedules/c", json=NIGHTLY)).status_code == 201


def changed(version: int, definition: Any, **said: str) -> Outgoing:
    fact = CatalogEntry(
        kind="queue", tenant="_", name="reports", version=version, changed_at=at(version), definition=definition, **said
    )
    return record(fact, topic=topics.CATALOG, sequence=version)


async def test_who_changes_something_and_why_is_said_beside_it(house):
    house.owner = accepting()
    await house.http.put("/v1/queues/reports?note=the+database+moves&by=ann", json={"paused": {"note": "n"}})
    await house.http.delete("/v1/queues/reports?note=no+more")
    put, delete = house.commands()
    assert (put["data"]["note"], put["data"]["by"]) == ("the database moves", "ann")
    assert put["data"]["definition"] == {"paused": {"note": "n"}}
    assert (delete["data"]["note"], "by" in delete["data"]) == ("no more", False)


async def test_who_changes_a_schedule_and_why_is_said_beside_it_too(house):
    house.owner = accepting()
    path = "/v1/tenants/acme/schedules/nightly"
    await house.http.put(f"{path}?by=ann&note=month%27s+end", json=NIGHTLY)
    await house.http.delete(f"{path}?by=bob&note=no+more&runs=cancel")
    put, delete = house.commands()
    assert (put["data"]["by"], put["data"]["note"]) == ("ann", "month's end")
    assert (delete["data"]["by"], delete["data"]["note"], delete["data"]["runs"]) == ("bob", "no more", "cancel")


async def test_the_changes_of_a_queue_are_told_newest_first_with_what_changed(house):
    house.happened(
        changed(1, {"rate": "5/s"}, by="ann"),
        changed(2, {"rate": "5/s", "weights": {"acme": 3}}, by="bob", note="acme pays more"),
        changed(
            3, {"rate": "5/s", "weights": {"acme": 3}, "paused": {"note": "n"}}, by="ann", note="the database moves"
        ),
        changed(4, None, by="ann"),
    )
    answer_ = (await house.http.get("/v1/queues/reports/changes")).json()
    told = [(each["version"], each["by"], each.get("note"), each.get("fields")) for each in answer_["changes"]]
    assert told == [
        (4, "ann", None, None),
        (3, "ann", "the database moves", ["/paused"]),
        (2, "bob", "acme pays more", ["/weights"]),
        (1, "ann", None, None),
    ]
    assert answer_["changes"][0]["deleted"] is True
    assert answer_["changes"][2]["definition"] == {"rate": "5/s", "weights": {"acme": 3}}
    assert answer_["changes"][3]["changed_at"] == "2026-03-01T00:00:01Z"


async def test_the_oldest_of_a_page_of_changes_knows_what_was_before_it(house):
    house.happened(*(changed(number, {"rate": f"{number}/s"}) for number in range(1, 6)))
    first = (await house.http.get("/v1/queues/reports/changes?limit=2")).json()
    assert [(each["version"], each.get("fields")) for each in first["changes"]] == [(5, ["/rate"]), (4, ["/rate"])]
    rest = (await house.http.get(f"/v1/queues/reports/changes?cursor={first['cursor']}")).json()
    assert [(each["version"], each.get("fields")) for each in rest["changes"]] == [
        (3, ["/rate"]), (2, ["/rate"]), (1, None),
    ]  # fmt: skip


@pytest.mark.parametrize("path", ["/v1/queues/nobody", "/v1/tenants/nobody", "/v1/tenants/acme/calendars/nobody"])
async def test_what_there_never_was_has_no_changes(house, path):
    assert (await house.http.get(f"{path}/changes")).status_code == 404
