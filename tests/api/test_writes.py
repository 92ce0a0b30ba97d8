"""A write becomes a command, and the owner's answer becomes the response."""

import asyncio
from typing import Any

import orjson
import pytest

from schemas.facts import CommandRejected, Position
from schemas.faults import Fault
from tests.api.house import answer
from tests.projections import histories
from tests.projections.histories import at, created, record

pytestmark = pytest.mark.anyio

ONE = "/v1/tenants/acme/schedules/report"
DEFINITION: dict[str, Any] = {
    "trigger": {"cron": "0 2 * * *", "timezone": "Europe/London"},
    "job": {"target": {"type": "task", "name": "reports.nightly"}},
}


async def test_a_put_is_a_command_for_the_owner_and_answers_as_the_owner_does(house):
    house.owner = lambda command, record: [answer(record, 201, body={"version": 1, "words": "At 02:00"})]
    response = await house.http.put(ONE, json=DEFINITION)
    assert (response.status_code, response.json()) == (201, {"version": 1, "words": "At 02:00"})
    assert response.headers["Tidewheel-Position"] == "scheduler-0-7"
    assert response.headers["ETag"] == '"1"'
    (command,) = house.commands()
    assert (command["type"], command["source"]) == ("tidewheel.schedule.put.v1", "tidewheel/api")
    assert command["data"] == {"tenant": "acme", "name": "report", "definition": DEFINITION}


async def test_a_job_is_run_by_a_command_for_the_owner_of_its_own_runs(house):
    told = {"tenant": "acme", "name": "mail", "version": 3, "run_id": "_mail.m-0123456789abcdef", "cause": "manual"}
    house.owner = lambda command, record: [answer(record, 201, body=told)]
    given = {
        "payload": {"day": "monday"},
        "overlap": "skip",
        "after_catalog": "scheduler-0-7",
        "note": "once",
        "by": "ann",
    }
    response = await house.http.post("/v1/tenants/acme/jobs/mail:run", json=given, headers={"Idempotency-Key": "k1"})
    assert (response.status_code, response.json()) == (201, told)
    (command,) = house.commands()
    assert (command["type"], command["id"], command["subject"]) == ("tidewheel.job.run.v1", "k1", "acme/_mail")
    assert command["data"] == {"tenant": "acme", "name": "mail", **given}


async def test_what_is_wrong_with_the_run_of_a_job_is_said_at_the_door(house):
    one = "/v1/tenants/acme/jobs/mail:run"
    for body, pointer in (
        ({"paylod": {}}, "/paylod"), ({"overlap": "never"}, "/overlap"), ({"payload": [1]}, "/payload"),
        ({"after_catalog": "there"}, "/after_catalog"),
    ):  # fmt: skip
        response = await house.http.post(one, json=body)
        assert response.status_code == 422, body
        assert [fault["pointer"] for fault in response.json()["faults"]] == [pointer]
    assert (await house.http.post("/v1/tenants/acme/jobs/_mail:run")).status_code == 404
    assert house.commands() == []


async def test_a_run_that_has_no_schedule_is_shown_and_cancelled_like_any_other(house):
    run = created("_mail", 0, run_id="_mail.m-0123456789abcdef", nominal_time=None)
    house.happened(run)
    path = f"/v1/tenants/acme/runs/{run.run_id}"
    shown = (await house.http.get(path)).json()
    assert (shown["schedule"], shown["of_job"], shown["state"]) == ("_mail", "mail", "queued")
    assert [each["run_id"] for each in (await house.http.get("/v1/runs?schedule=_mail")).json()["runs"]] == [run.run_id]
    page = (await house.http.get(f"/runs/acme/{run.run_id}")).text
    assert "job mail</a>" in page
    house.owner = lambda command, record: [answer(record, 200, body={"state": "cancel_requested"})]
    assert (await house.http.post(f"{path}:cancel")).json() == {"state": "cancel_requested"}
    assert house.commands()[-1]["subject"] == "acme/_mail"


async def test_a_definition_file_may_say_its_own_name_if_it_is_the_one_of_the_path(house):
    house.owner = lambda command, record: [answer(record, 201)]
    named = {"kind": "Schedule", "tenant": "acme", "name": "report", **DEFINITION}
    assert (await house.http.put(ONE, json=named)).status_code == 201
    assert house.commands()[0]["data"]["definition"] == DEFINITION
    response = await house.http.put(ONE, json={**named, "name": "other"})
    assert response.status_code == 422
    assert response.json()["faults"][0]["pointer"] == "/name"


async def test_every_fault_of_a_definition_is_told_at_once_with_a_pointer_into_the_body(house):
    wrong = {
        "trigger": {"cron": "0 2 * * *", "timezon": "UTC"},
        "graze": "PT1M",
        "job": {"target": {"type": "task", "name": "x"}},
    }
    response = await house.http.put(ONE, json=wrong)
    assert response.status_code == 422
    assert response.headers["content-type"] == "application/problem+json"
    faults = {fault["pointer"]: fault for fault in response.json()["faults"]}
    assert set(faults) == {"/trigger/timezon", "/graze"}
    assert faults["/graze"]["remedy"] == "did you mean 'grace'?"
    assert house.commands() == []


async def test_faults_of_the_shape_do_not_hide_those_of_the_trigger(house):
    """Whoever mends a file wants them all: the unknown field, the trigger that never fires, what is too long."""
    wrong = {
        "trigger": {"cron": "0 2 31 2 *", "timezone": "Europe/Londn"},
        "catchup": {"policy": "all"},
        "job": {"target": {"type": "task", "name": "x"}, "log_retention": "31d"},
    }
    faults = {fault["pointer"]: fault for fault in (await house.http.put(ONE, json=wrong)).json()["faults"]}
    assert set(faults) == {"/catchup", "/job/log_retention", "/trigger/cron", "/trigger/timezone"}
    assert faults["/job/log_retention"]["code"] == "range"
    assert "Europe/London" in faults["/trigger/timezone"]["remedy"]


async def test_the_faults_that_the_owner_finds_point_into_the_body_too(house):
    fault = Fault(pointer="/data/definition/trigger/cron", code="cron", message="has 4 fields", remedy="write 5")
    house.owner = lambda command, record: [answer(record, 422, body={"reason": "invalid"}, faults=(fault,))]
    response = await house.http.put(ONE, json=DEFINITION)
    assert (response.status_code, response.json()["code"]) == (422, "invalid")
    assert response.json()["faults"] == [
        {"pointer": "/trigger/cron", "code": "cron", "message": "has 4 fields", "remedy": "write 5"}
    ]


async def test_if_match_makes_the_write_depend_on_the_version(house):
    house.owner = lambda command, record: [answer(record, 412, body={"reason": "version_mismatch", "version": 4})]
    response = await house.http.put(ONE, json=DEFINITION, headers={"If-Match": '"3"'})
    assert (response.status_code, response.json()["code"], response.json()["version"]) == (412, "version_mismatch", 4)
    assert house.commands()[0]["data"]["expected_version"] == 3


async def test_if_none_match_star_means_that_there_must_be_none_yet(house):
    house.owner = lambda command, record: [answer(record, 201)]
    await house.http.put(ONE, json=DEFINITION, headers={"If-None-Match": "*"})
    assert house.commands()[0]["data"]["expected_version"] == 0


@pytest.mark.parametrize(
    ("headers", "code"),
    [({"If-Match": '"three"'}, "if_match"), ({"Idempotency-Key": "a b"}, "idempotency_key")],
)
async def test_a_precondition_that_cannot_be_meant_is_refused(house, headers, code):
    response = await house.http.put(ONE, json=DEFINITION, headers=headers)
    assert (response.status_code, response.json()["code"]) == (400, code)


async def test_the_clients_key_names_the_command(house):
    house.owner = lambda command, record: [answer(record, 201)]
    await house.http.put(ONE, json=DEFINITION, headers={"Idempotency-Key": "deploy-17"})
    assert house.commands()[0]["id"] == "deploy-17"


async def test_who_does_not_want_to_wait_is_told_where_to_ask(house):
    house.owner = lambda command, record: []
    headers = {"Prefer": "respond-async", "Idempotency-Key": "k/1"}
    response = await house.http.put(ONE, json=DEFINITION, headers=headers)
    assert (response.status_code, response.headers["Location"]) == (202, "/v1/commands/k%2F1")
    assert (await house.http.get("/v1/commands/k%2F1")).status_code == 404


async def test_a_command_that_still_waits_is_pending(house):
    asked, may_answer = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def owner(_command, record):
        loop.call_soon_threadsafe(asked.set)
        asyncio.run_coroutine_threadsafe(may_answer.wait(), loop).result()
        return [answer(record, 200)]

    house.owner = owner
    waiting = asyncio.create_task(house.http.delete(ONE, headers={"Idempotency-Key": "k-2"}))
    await asked.wait()
    assert (await house.http.get("/v1/commands/k-2")).json() == {"command_id": "k-2", "state": "pending"}
    may_answer.set()
    assert (await waiting).status_code == 200


async def test_a_command_that_was_decided_just_now_is_not_unknown(house):
    house.log.append([record(created("report", 60, command_id="k-5"))])
    assert (await house.http.get("/v1/commands/k-5")).json()["state"] == "accepted"


async def test_the_outcome_of_a_command_can_be_asked_for_later(house):
    run = created("report", 60, command_id="k-3")
    refusal = CommandRejected(
        tenant="acme", name="report", reason="overlap", faults=(), rejected_at=at(1), command_id="k-4",
        position=Position(topic="t", partition=0, offset=1), source="tidewheel/api",
    )  # fmt: skip
    house.happened(run, record(refusal, topic="tidewheel.rejections"))
    accepted = (await house.http.get("/v1/commands/k-3")).json()
    assert (accepted["state"], accepted["run_id"]) == ("accepted", "report.20260301T000100Z")
    rejected = (await house.http.get("/v1/commands/k-4")).json()
    assert (rejected["state"], rejected["reason"]) == ("rejected", "overlap")


@pytest.mark.parametrize(
    ("path", "body", "type_", "data"),
    [
        (f"{ONE}:pause", {"note": "freeze"}, "schedule.pause", {"note": "freeze"}),
        (f"{ONE}:resume", None, "schedule.resume", {}),
        (f"{ONE}:trigger", {"payload": {"day": "x"}, "overlap": "skip"}, "schedule.trigger",
         {"payload": {"day": "x"}, "overlap": "skip"}),
        (f"{ONE}:skip", {"nominal_time": "2026-03-01T02:00:00Z", "note": "holiday", "by": "ada"},
         "schedule.skip_occurrence", {"nominal_time": "2026-03-01T02:00:00Z", "note": "holiday", "by": "ada"}),
        ("/v1/tenants/acme/runs/report.20260301T000100Z:cancel", {"note": "enough"}, "run.cancel",
         {"run_id": "report.20260301T000100Z", "note": "enough"}),
    ],
)  # fmt: skip
async def test_verbs_are_commands(house, path, body, type_, data):
    house.owner = lambda command, record: [answer(record, 200, body={"done": True})]
    response = await house.http.post(path, json=body) if body is not None else await house.http.post(path)
    assert (response.status_code, response.json()) == (200, {"done": True})
    (command,) = house.commands()
    assert command["type"] == f"tidewheel.{type_}.v1"
    assert command["data"] == {"tenant": "acme", "name": "report", **data}


async def test_a_field_that_a_verb_does_not_know_is_refused_with_the_nearest_one(house):
    response = await house.http.post(f"{ONE}:trigger", json={"payloat": {}})
    assert response.status_code == 422
    assert response.json()["faults"][0]["remedy"] == "did you mean 'payload'?"


async def test_a_delete_may_cancel_the_runs(house):
    house.owner = lambda command, record: [answer(record, 200)]
    await house.http.delete(f"{ONE}?runs=cancel")
    assert house.commands()[0]["data"] == {"tenant": "acme", "name": "report", "runs": "cancel"}
    response = await house.http.delete(f"{ONE}?runs=canzel")
    assert response.json()["faults"][0]["pointer"] == "/runs"


async def test_jobs_are_put_and_deleted_by_commands_of_their_own(house):
    house.owner = lambda command, record: [answer(record, 201, body={"version": 1})]
    job = {"target": {"type": "task", "name": "mail"}}
    assert (await house.http.put("/v1/tenants/acme/jobs/send", json=job)).status_code == 201
    await house.http.delete("/v1/tenants/acme/jobs/send")
    assert [command["type"] for command in house.commands()] == ["tidewheel.job.put.v1", "tidewheel.job.delete.v1"]


async def test_a_selector_pauses_each_schedule_that_it_names(house):
    house.happened(
        histories.current("a", labels={"team": "ops"}), histories.current("b"),
        histories.current("c", labels={"team": "ops"}),
    )  # fmt: skip
    house.owner = lambda command, record: [answer(record, 200, body={"state": "paused"})]
    response = await house.http.post("/v1/tenants/acme/schedules:pause", json={"selector": {"labels": {"team": "ops"}}})
    assert response.json() == {
        "schedules": [
            {"name": "a", "state": "paused", "status": 200},
            {"name": "c", "state": "paused", "status": 200},
        ]
    }


async def test_a_selector_must_be_given_so_that_all_is_never_an_accident(house):
    response = await house.http.post("/v1/tenants/acme/schedules:pause", json={})
    assert (response.status_code, response.json()["faults"][0]["pointer"]) == (422, "/selector")


async def test_who_pauses_many_and_why_is_said_of_each_and_refused_before_any(house):
    house.happened(histories.current("a"), histories.current("b"))
    house.owner = lambda command, record: [answer(record, 200, body={"state": "paused"})]
    many = "/v1/tenants/acme/schedules:pause"
    refused = await house.http.post(many, json={"selector": {}, "by": "x" * 257, "note": 7})
    assert [fault["pointer"] for fault in refused.json()["faults"]] == ["/note", "/by"]
    assert house.commands() == []
    await house.http.post(many, json={"selector": {}, "by": "ann", "note": "move"})
    said = [(command["data"]["name"], command["data"]["by"], command["data"]["note"]) for command in house.commands()]
    assert said == [("a", "ann", "move"), ("b", "ann", "move")]


@pytest.mark.parametrize("labels", [{"team": "a\0"}, {"team\0": "a"}, {"team": 1}, ["team"]])
async def test_labels_of_a_selector_are_texts_that_a_database_can_look_for(house, labels):
    response = await house.http.post("/v1/tenants/acme/schedules:pause", json={"selector": {"labels": labels}})
    assert (response.status_code, response.json()["faults"][0]["pointer"]) == (422, "/selector/labels")


async def test_answers_find_their_requests_among_many(house):
    house.owner = lambda command, record: [answer(record, 200, body={"name": command["data"]["name"]})]
    names = [f"s{number}" for number in range(50)]
    responses = await asyncio.gather(*(house.http.post(f"/v1/tenants/acme/schedules/{name}:pause") for name in names))
    assert [response.json()["name"] for response in responses] == names


async def test_the_same_key_twice_at_the_same_time_is_answered_twice(house):
    house.owner = lambda command, record: [answer(record, 200, body={"ok": 1})]
    headers = {"Idempotency-Key": "once"}
    responses = await asyncio.gather(*(house.http.post(f"{ONE}:pause", headers=headers) for _ in range(2)))
    assert [response.status_code for response in responses] == [200, 200]


async def test_one_key_for_several_schedules_at_the_same_time_gets_each_its_own_answer(house):
    def owner(command, record):
        data = command["data"]
        return [answer(record, 200, body={"tenant": data["tenant"], "name": data["name"]})]

    house.owner = owner
    names = ["a", "b", "c"]
    headers = {"Idempotency-Key": "deploy-17"}
    responses = await asyncio.gather(
        *(house.http.post(f"/v1/tenants/acme/schedules/{name}:pause", headers=headers) for name in names)
    )
    assert [response.json()["name"] for response in responses] == names


async def test_a_name_that_cannot_be_one_is_not_found(house):
    response = await house.http.put("/v1/tenants/acme/schedules/_bad", content=orjson.dumps(DEFINITION),
                                    headers={"content-type": "application/json"})  # fmt: skip
    assert response.status_code == 404
