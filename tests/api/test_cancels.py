"""Cancels over HTTP: one run or a selection; each answer says what was true of the run."""

from __future__ import annotations

from typing import Any

import pytest

from api import cancels
from schemas.facts import Outcome
from tests.api.house import Owner, answer
from tests.projections.histories import created, finished, started

pytestmark = pytest.mark.anyio

ACME = "/v1/tenants/acme"


async def post(house: Any, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
    response = await house.http.post(path, json=body or {}, headers=headers)
    return response.status_code, response.json()


def forgotten(command: dict[str, Any], record: Any) -> list[Any]:
    """An owner who knows of no such run."""
    return [answer(record, 404, body={"reason": "not_found", "detail": "no such run is open"})]


def says(state: str) -> Owner:
    """An owner who cancels, and says what the run was met as."""

    def owner(command: dict[str, Any], record: Any) -> list[Any]:
        named = {name: command["data"][name] for name in ("tenant", "run_id")}
        return [answer(record, 200, body={**named, "state": state})]

    return owner


def acme(path: str) -> str:
    return f"{ACME}/{path}"


# --- one ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "run_id", ["report.r-47d279e272197ec2", "report.d-0123456789abcdef", "report.m-0000000000000001"]
)
async def test_a_run_whose_owner_has_forgotten_it_is_told_to_be_finished_and_how(house, run_id):
    run = created("report", 0, run_id=run_id)
    house.happened(run, finished(run, 9, Outcome.FAILED))
    house.owner = forgotten
    status, body = await post(house, acme(f"runs/{run_id}:cancel"))
    assert (status, body["state"], body["outcome"], body["run_id"]) == (200, "already_finished", "failed", run_id)


async def test_a_run_that_nobody_knows_is_not_found(house):
    house.owner = forgotten
    status, body = await post(house, acme("runs/report.r-47d279e272197ec2:cancel"))
    assert (status, body["code"]) == (404, "not_found")


async def test_a_forgotten_run_of_another_tenant_is_not_found(house):
    run = created("report", 0, run_id="report.r-47d279e272197ec2")
    house.happened(run, finished(run, 9))
    house.owner = forgotten
    assert (await post(house, "/v1/tenants/umbrella/runs/report.r-47d279e272197ec2:cancel"))[0] == 404


# --- many ---------------------------------------------------------------------------------------------------------


async def test_a_selection_asks_the_open_runs_it_names_the_newest_first_and_counts_what_it_met(house):
    over = created("report", 30)
    house.happened(created("report", 0), over, finished(over, 40), created("load", 60), created("report", 120))
    house.happened(started(created("report", 0), 3))

    def owner(command: dict[str, Any], record: Any) -> list[Any]:
        begun = command["data"]["run_id"] == "report.20260301T000000Z"
        return [*says("cancel_requested" if begun else "cancelled_before_dispatch")(command, record)]

    house.owner = owner
    status, body = await post(house, acme("runs:cancel"), {"selector": {"schedule": "report"}, "note": "wrong data"})
    assert (status, [(each["run_id"], each["state"]) for each in body["runs"]]) == (
        200,
        [
            ("report.20260301T000200Z", "cancelled_before_dispatch"), ("report.20260301T000000Z", "cancel_requested"),
        ],
    )  # fmt: skip
    assert body["counts"] == {"cancel_requested": 1, "cancelled_before_dispatch": 1}
    assert [command["data"]["note"] for command in house.commands()] == ["wrong data", "wrong data"]
    assert "cursor" not in body


async def test_a_selection_may_be_a_queue_a_state_labels_and_a_span_of_creation(house):
    house.happened(created("report", 0, labels={"team": "ops"}), created("load", 60), started(created("load", 60), 63))
    house.owner = says("cancel_requested")
    for selector, names in (
        ({"queue": "default"}, ["load.20260301T000100Z", "report.20260301T000000Z"]),
        ({"queue": "other"}, []),
        ({"state": "running"}, ["load.20260301T000100Z"]),
        ({"state": ["queued", "retry_wait"]}, ["report.20260301T000000Z"]),
        ({"labels": {"team": "ops"}}, ["report.20260301T000000Z"]),
        ({"from": "2026-03-01T00:00:30Z", "to": "2026-03-01T00:01:00Z"}, []),
        ({"from": "2026-03-01T00:01:00Z"}, ["load.20260301T000100Z"]),
    ):
        _, body = await post(house, acme("runs:cancel"), {"selector": selector})
        assert [each["run_id"] for each in body["runs"]] == names, selector


async def test_a_queue_of_all_tenants_is_emptied_by_one_selection(house):
    house.happened(created("report", 0), created("report", 60, tenant="umbrella"))
    house.owner = says("cancelled_before_dispatch")
    _, body = await post(house, "/v1/runs:cancel", {"selector": {"queue": "default"}})
    assert sorted((each["tenant"], each["run_id"], each["state"]) for each in body["runs"]) == [
        ("acme", "report.20260301T000000Z", "cancelled_before_dispatch"),
        ("umbrella", "report.20260301T000100Z", "cancelled_before_dispatch"),
    ]


async def test_a_selection_is_bounded_and_goes_on_by_its_cursor(house):
    house.happened(*(created("report", second) for second in (0, 60, 120)))
    house.owner = says("cancel_requested")
    taken = []
    body: dict[str, Any] = {"cursor": None}
    while "cursor" in body:
        ask = {"selector": {}, "limit": 2, **({"cursor": body["cursor"]} if body["cursor"] else {})}
        _, body = await post(house, acme("runs:cancel"), ask)
        taken.append([each["run_id"][-10:] for each in body["runs"]])
    assert taken == [["01T000200Z", "01T000100Z"], ["01T000000Z"]]


async def test_a_selection_that_takes_too_long_goes_on_behind_those_it_has_asked_though_they_are_still_open(
    house, monkeypatch
):
    monkeypatch.setattr(cancels, "ANSWER_SECONDS", 0.0)
    house.happened(*(created("report", 60 * minute) for minute in range(12)))
    _, first = await post(house, acme("runs:cancel"), {"selector": {}})
    assert ([each["run_id"][-7:] for each in first["runs"]], first["stopped"]) == (
        ["001100Z", "001000Z", "000900Z", "000800Z", "000700Z", "000600Z", "000500Z", "000400Z", "000300Z", "000200Z"],
        "it takes too long; go on by the cursor",
    )
    _, second = await post(house, acme("runs:cancel"), {"selector": {}, "cursor": first["cursor"]})
    assert [each["run_id"][-7:] for each in second["runs"]] == ["000100Z", "000000Z"]
    assert "cursor" not in second


async def test_a_repeated_selection_is_the_same_commands(house):
    house.happened(created("report", 0))
    house.owner = says("cancel_requested")
    for _ in range(2):
        await post(house, acme("runs:cancel"), {"selector": {}}, **{"Idempotency-Key": "night"})
    first, again = house.commands()
    assert first["id"] == again["id"]


async def test_a_run_that_ended_meanwhile_is_counted_as_finished_and_a_refusal_as_refused(house):
    house.happened(created("report", 0), created("load", 60))

    def owner(command: dict[str, Any], record: Any) -> list[Any]:
        if command["data"]["name"] == "report":
            return forgotten(command, record)
        return [answer(record, 429, body={"reason": "too_many_delayed", "detail": "send it again"})]

    house.owner = owner
    _, body = await post(house, acme("runs:cancel"), {"selector": {}})
    assert body["counts"] == {"already_finished": 1, "refused": 1}
    assert [each.get("reason") for each in body["runs"]] == ["too_many_delayed", None]


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/selector"),
        ({"selector": {"queu": "x"}}, "/selector/queu"),
        ({"selector": {"queue": 1}}, "/selector/queue"),
        ({"selector": {"state": "failed"}}, "/selector/state"),
        ({"selector": {"state": 1}}, "/selector/state"),
        ({"selector": {"state": []}}, "/selector/state"),  # a program's empty list means none, and never all
        ({"selector": {"schedule": "a\0"}}, "/selector/schedule"),
        ({"selector": {"labels": {"a\0": "x"}}}, "/selector/labels"),
        ({"selector": {"labels": {"a": "x\0"}}}, "/selector/labels"),
        ({"selector": {"labels": {"a": 1}}}, "/selector/labels"),
        ({"selector": {}, "limit": 201}, "/limit"),
        ({"selector": {}, "cursor": 5}, "/cursor"),
        ({"selector": {}, "cursor": ["a"]}, "/cursor"),
        ({"selector": {}, "payload": {}}, "/payload"),
    ],
)
async def test_a_selection_that_cannot_be_meant_is_refused(house, body, pointer):
    status, said = await post(house, acme("runs:cancel"), body)
    assert (status, said["faults"][0]["pointer"]) == (422, pointer)
    assert house.commands() == []
