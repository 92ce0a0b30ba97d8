"""Reruns and redrives over HTTP: the API brings the run, its owner answers."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from api import reruns
from schemas import codec
from schemas.facts import Cause, Outcome, RunCreated
from schemas.faults import Fault
from tests.api.house import answer
from tests.projections.histories import created, finished, started

pytestmark = pytest.mark.anyio

ACME = "/v1/tenants/acme"
OLD = "report.20260301T000000Z"


def accept(command: dict[str, Any], record: Any) -> list[Any]:
    """An owner who makes a run of each command."""
    return [answer(record, 201, body={"run_id": f"report.r-{command['id'][:16]}", "of": command["data"]["run_id"]})]


def dead(second: float, **fields: Any) -> tuple[RunCreated, Any]:
    """A run that was given up."""
    run = created("report", second, **fields)
    return run, finished(run, second + 9, Outcome.DEAD_LETTERED)


def again(of: str, rule: str, run_id: str = "report.r-1", second: float = 100) -> RunCreated:
    return created("report", second, run_id=run_id, of=of, cause=Cause.RERUN, rule=rule)


async def post(house: Any, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
    response = await house.http.post(f"{ACME}/{path}", json=body or {}, headers=headers)
    return response.status_code, response.json()


# --- one ----------------------------------------------------------------------------------------------------------


async def test_a_rerun_is_a_command_that_brings_the_run_as_it_was_created(house):
    run = created("report", 0)
    house.happened(run, finished(run, 9, Outcome.FAILED))
    house.owner = accept
    how = {"definition": "current", "payload": {"day": "x"}, "note": "fixed"}
    status, body = await post(house, f"runs/{OLD}:rerun", how)
    assert (status, body["of"]) == (201, OLD)
    (command,) = house.commands()
    assert (command["type"], command["subject"]) == ("tidewheel.run.rerun.v1", "acme/report")
    brought = command["data"].pop("run")
    assert codec.load(RunCreated, brought) == run
    assert command["data"] == {"tenant": "acme", "name": "report", "run_id": OLD, "outcome": "failed", **how}


async def test_a_redrive_is_of_a_dead_letter(house):
    house.happened(*dead(0))
    house.owner = accept
    assert (await post(house, f"dead-letters/{OLD}:redrive"))[0] == 201
    (command,) = house.commands()
    assert (command["type"], command["data"]["outcome"]) == ("tidewheel.run.redrive.v1", "dead_lettered")


@pytest.mark.parametrize("path", [f"runs/{OLD}:rerun", f"dead-letters/{OLD}:redrive"])
async def test_a_run_that_is_still_open_is_refused_with_its_state(house, path):
    house.happened(created("report", 0))
    status, body = await post(house, path)
    assert (status, body["code"], body["state"]) == (409, "run_open", "queued")
    house.happened(started(created("report", 0), 3))
    assert (await post(house, path))[1]["state"] == "running"
    assert house.commands() == []


async def test_what_is_no_dead_letter_is_not_redriven(house):
    run = created("report", 0)
    house.happened(run, finished(run, 9, Outcome.FAILED))
    status, body = await post(house, f"dead-letters/{OLD}:redrive")
    assert (status, body["code"], body["state"]) == (409, "not_dead_lettered", "failed")


async def test_a_dead_letter_that_was_redriven_is_refused_and_names_its_run(house):
    house.happened(*dead(0), again(OLD, "rerun", "report.r-0"), again(OLD, "redrive"))
    status, body = await post(house, f"dead-letters/{OLD}:redrive")
    assert (status, body["code"], body["redriven_as"]) == (409, "already_redriven", "report.r-1")
    house.owner = accept
    assert (await post(house, f"runs/{OLD}:rerun"))[0] == 201, "who wants the old one again says so"


async def test_the_command_that_has_redriven_a_dead_letter_is_left_to_its_owner_when_it_comes_again(house):
    house.happened(*dead(0), again(OLD, "redrive", "report.r-47d279e272197ec2"))
    house.owner = accept
    assert (await post(house, f"dead-letters/{OLD}:redrive", **{"Idempotency-Key": "k1"}))[0] == 201
    assert (await post(house, f"dead-letters/{OLD}:redrive", **{"Idempotency-Key": "k2"}))[0] == 409


async def test_what_nobody_knows_is_not_found_and_what_nobody_keeps_is_gone(house):
    for path in (f"runs/{OLD}:rerun", f"dead-letters/{OLD}:redrive", "runs/x:rerun", f"runs/{'x' * 400}.1:rerun"):
        assert (await post(house, path))[0] == 404
    house.happened(finished(created("report", 0), 9, Outcome.DEAD_LETTERED))
    status, body = await post(house, f"runs/{OLD}:rerun")
    assert (status, body["code"]) == (410, "history_trimmed")


async def test_what_no_rerun_can_mean_is_refused_with_its_field(house):
    house.happened(*dead(0))
    for body, pointer in (({"payloat": {}}, "/payloat"), ({"definition": "x"}, "/definition"), ({"run": {}}, "/run")):
        status, said = await post(house, f"runs/{OLD}:rerun", body)
        assert (status, said["faults"][0]["pointer"]) == (422, pointer)
    fault = Fault(pointer="/data/definition", code="no_job", message="is not registered")
    house.owner = lambda command, record: [answer(record, 409, body={"reason": "no_job"}, faults=(fault,))]
    status, said = await post(house, f"runs/{OLD}:rerun", {"definition": "current"})
    assert (status, said["code"], said["faults"][0]["pointer"]) == (409, "no_job", "/definition")


# --- lists --------------------------------------------------------------------------------------------------------


async def test_the_list_of_dead_letters_is_narrowed_and_says_what_was_redriven(house):
    other = created("load", 30)
    house.happened(*dead(0), *dead(60, labels={"team": "ops"}), again(OLD, "redrive"))
    house.happened(other, finished(other, 40, Outcome.DEAD_LETTERED))
    shown = (await house.http.get(f"{ACME}/dead-letters")).json()["dead_letters"]
    assert [(each["run_id"], each.get("redriven_as")) for each in shown] == [
        ("report.20260301T000100Z", None), ("load.20260301T000030Z", None), (OLD, "report.r-1"),
    ]  # fmt: skip
    for query, names in (
        ("schedule=load", ["load.20260301T000030Z"]),
        ("label=team=ops", ["report.20260301T000100Z"]),
        ("from=2026-03-01T00:00:30Z&to=2026-03-01T00:01:00Z", ["load.20260301T000030Z"]),
    ):
        shown = (await house.http.get(f"{ACME}/dead-letters?{query}")).json()["dead_letters"]
        assert [each["run_id"] for each in shown] == names


async def test_a_run_shows_the_runs_of_it(house):
    house.happened(*dead(0), again(OLD, "redrive"), again(OLD, "rerun", "report.r-2", 200))
    shown = (await house.http.get(f"{ACME}/runs/{OLD}")).json()
    assert [(each["run_id"], each["rule"], each["state"]) for each in shown["reruns"]] == [
        ("report.r-1", "redrive", "queued"), ("report.r-2", "rerun", "queued"),
    ]  # fmt: skip
    assert (await house.http.get(f"{ACME}/runs/report.r-1")).json()["of"] == OLD
    page = (await house.http.get(f"/runs/acme/{OLD}")).text
    assert "Run again as" in page
    assert "report.r-2" in page


# --- many ---------------------------------------------------------------------------------------------------------


async def test_a_selection_is_redriven_in_the_order_of_creation_and_the_answer_says_what_was_not(house):
    house.happened(*dead(0), *dead(60), *dead(120), again("report.20260301T000100Z", "redrive"))

    def owner(command: dict[str, Any], record: Any) -> list[Any]:
        if command["data"]["run_id"] == OLD:
            return [answer(record, 409, body={"reason": "no_job", "detail": "put it first"})]
        return accept(command, record)

    house.owner = owner
    status, body = await post(house, "dead-letters:redrive", {"selector": {"schedule": "report"}, "note": "fixed"})
    assert (status, [(each["of"], each["status"]) for each in body["redriven"]]) == (
        200, [("report.20260301T000200Z", 201)],
    )  # fmt: skip
    assert [(each["of"], each["reason"]) for each in body["refused"]] == [
        (OLD, "no_job"), ("report.20260301T000100Z", "already_redriven"),
    ]  # fmt: skip
    assert [command["data"]["note"] for command in house.commands()] == ["fixed", "fixed"]
    assert "cursor" not in body


async def test_a_selection_is_bounded_and_goes_on_by_its_cursor(house):
    house.happened(*dead(0), *dead(60), *dead(120))
    house.owner = accept
    taken = []
    body: dict[str, Any] = {"cursor": None}
    while "cursor" in body:
        ask = {"selector": {}, "limit": 2, **({"cursor": body["cursor"]} if body["cursor"] else {})}
        _, body = await post(house, "dead-letters:redrive", ask)
        taken.append([each["of"][-10:] for each in body["redriven"]])
    assert taken == [["01T000000Z", "01T000100Z"], ["01T000200Z"]]


async def test_a_selection_that_takes_too_long_goes_on_behind_those_it_has_redriven(house, monkeypatch):
    """It had no cursor, so who went on by it left all the others; who began anew was told of refusals first."""
    monkeypatch.setattr(reruns, "ANSWER_SECONDS", 0.0)
    house.happened(*dead(0), *dead(60), *dead(120))
    house.owner = accept
    taken = []
    body: dict[str, Any] = {"cursor": None}
    while "cursor" in body:
        ask = {"selector": {}, **({"cursor": body["cursor"]} if body["cursor"] else {})}
        _, body = await post(house, "dead-letters:redrive", ask)
        taken += [*(each["of"][-7:] for each in body["redriven"]), body.get("stopped", "all")]
    on = "it takes too long; go on by the cursor"
    assert taken == ["000000Z", on, "000100Z", on, "000200Z", "all"]


async def test_a_repeated_selection_is_the_same_commands(house):
    house.happened(*dead(0), *dead(60))
    house.owner = accept
    for _ in range(2):
        await post(house, "dead-letters:redrive", {"selector": {}}, **{"Idempotency-Key": "night"})
    ids = [command["id"] for command in house.commands()]
    assert (len(ids), len(set(ids)), ids[:2]) == (4, 2, ids[2:])


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/selector"),
        ({"selector": {"label": {}}}, "/selector/label"),
        ({"selector": {"labels": {"a": 1}}}, "/selector/labels"),
        ({"selector": {"schedule": 1}}, "/selector/schedule"),
        ({"selector": {"from": "noon"}}, "/selector/from"),
        ({"selector": {}, "limit": 51}, "/limit"),
        ({"selector": {}, "limit": True}, "/limit"),
        ({"selector": {}, "cursor": 5}, "/cursor"),
        ({"selector": {}, "cursor": ""}, "/cursor"),
        ({"selector": {}, "payload": {}}, "/payload"),
    ],
)
async def test_a_selection_that_cannot_be_meant_is_refused(house, body, pointer):
    status, said = await post(house, "dead-letters:redrive", body)
    assert (status, said["faults"][0]["pointer"]) == (422, pointer)
    assert orjson.dumps(house.commands()) == b"[]"
