"""Breakers over HTTP: which are not closed, and closing them."""

from __future__ import annotations

from typing import Any

import pytest

from schemas.facts import BreakerChanged, BreakerReason, BreakerState
from tests.api.house import answer
from tests.projections.histories import at

pytestmark = pytest.mark.anyio


def changed(breaker: str, state: BreakerState, tenant: str = "acme", queue: str = "mail") -> BreakerChanged:
    return BreakerChanged(
        tenant=tenant, queue=queue, shard=0, breaker=breaker, state=state, reason=BreakerReason.FAILURES,
        changed_at=at(0), since=at(0), until=at(30), failures=20, attempts=25,
    )  # fmt: skip


async def names(house: Any, path: str) -> list[str]:
    return [each["breaker"] for each in (await house.http.get(path)).json()["breakers"]]


async def test_the_list_has_what_is_not_closed_with_since_when_and_why(house):
    house.happened(
        changed("job:a", BreakerState.OPEN), changed("job:b", BreakerState.CLOSED),
        changed("job:c", BreakerState.HALF_OPEN, queue="other"), changed("host:x", BreakerState.OPEN, "umbrella"),
    )  # fmt: skip
    shown = (await house.http.get("/v1/tenants/acme/breakers?queue=mail")).json()["breakers"]
    assert shown == [
        {
            "tenant": "acme", "queue": "mail", "breaker": "job:a", "state": "open", "reason": "failures",
            "since": "2026-03-01T00:00:00Z", "until": "2026-03-01T00:00:30Z", "changed_at": "2026-03-01T00:00:00Z",
            "failures": 20, "ended": 25,
        }
    ]  # fmt: skip
    assert await names(house, "/v1/tenants/acme/breakers") == ["job:a", "job:c"]
    assert await names(house, "/v1/breakers?state=open") == ["job:a", "host:x"]
    assert await names(house, "/v1/breakers?state=closed") == ["job:b"]
    assert (await house.http.get("/v1/breakers?state=opn")).status_code == 422


async def test_a_reset_is_a_command_of_the_tenant_and_its_dispatcher_answers(house):
    body = {"tenant": "acme", "queue": "mail", "reset": [{"breaker": "job:a", "was": "open"}], "left": 0}
    house.owner = lambda command, record: [answer(record, 200, body=body)]
    asked = {"queue": "mail", "breaker": "job:a", "note": "mended"}
    response = await house.http.post("/v1/tenants/acme/breakers:reset", json=asked)
    assert (response.status_code, response.json()) == (200, body)
    (command,) = house.commands()
    assert (command["type"], command["subject"]) == ("tidewheel.breaker.reset.v1", "acme/_")
    assert command["data"] == {"tenant": "acme", "name": "_", **asked}


async def test_what_several_shards_answer_is_one_answer(house):
    """In whatever order they come, and one of them twice; more than one may be closed in each."""

    def part(record: Any, number: int, *breakers: str) -> Any:
        said = [{"breaker": each, "was": "open", "shard": number} for each in breakers]
        body = {"tenant": "acme", "queue": "mail", "reset": said, "left": number}
        return answer(record, 200, body=body, part=number, parts=3)

    house.owner = lambda command, record: [
        part(record, 2, "job:a"), part(record, 2, "job:a"), part(record, 0, "job:a", "job:b"), part(record, 1),
    ]  # fmt: skip
    response = await house.http.post("/v1/tenants/acme/breakers:reset", json={"queue": "mail", "all": True})
    assert (response.status_code, response.json()) == (200, {
        "tenant": "acme", "queue": "mail", "left": 3,
        "reset": [
            {"breaker": "job:a", "was": "open", "shard": 0}, {"breaker": "job:b", "was": "open", "shard": 0},
            {"breaker": "job:a", "was": "open", "shard": 2},
        ],
    })  # fmt: skip


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({}, "/queue"),
        ({"queue": "mail", "job": "a"}, "/job"),
        ({"queue": "a b"}, "/queue"),
        ({"queue": 1}, "/queue"),
        ({"queue": "mail"}, "/breaker"),
        ({"queue": "mail", "breaker": ""}, "/breaker"),
        ({"queue": "mail", "breaker": "job:a", "all": True}, "/all"),
        ({"queue": "mail", "all": False}, "/breaker"),
    ],
)
async def test_a_reset_that_cannot_be_meant_is_refused(house, body, pointer):
    response = await house.http.post("/v1/tenants/acme/breakers:reset", json=body)
    assert (response.status_code, response.json()["faults"][0]["pointer"]) == (422, pointer)
    assert house.commands() == []


async def test_an_empty_name_closes_nothing_and_says_what_would_close_all(house):
    """As a script has it whose variable is not set: it closed every breaker of the tenant in the queue."""
    refused = await house.http.post("/v1/tenants/acme/breakers:reset", json={"queue": "mail", "breaker": ""})
    assert refused.json()["faults"] == [
        {
            "pointer": "/breaker", "code": "empty", "message": "is empty and names no breaker",
            "remedy": 'name one, such as job:send-report, or say "all": true',
        }
    ]  # fmt: skip
    house.owner = lambda command, record: [answer(record, 200, body={})]
    asked = {"queue": "mail", "all": True}
    assert (await house.http.post("/v1/tenants/acme/breakers:reset", json=asked)).status_code == 200
    (command,) = house.commands()
    assert command["data"] == {"tenant": "acme", "name": "_", **asked}
