"""What the fuzz of the API found, and stays mended: each request with the answer that it has now."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = pytest.mark.anyio

PAUSE = "/v1/tenants/acme/schedules/report:pause"
REPORT = "/v1/queues/q/workers:report"
COMPLETE = "/v1/leases/q.0.0.k:complete"
JSON = {"content-type": "application/json"}
DEEP = "[" * 17 + "]" * 17
FINISHED = '"finished":[{"lease":"q.0.0.k","outcome":"succeeded","result":RESULT}]'
NO_LEASES = (
    "a b.0.0.k", "../x.0.0.k", ".0.0.k", "\0.0.0.k", "é.0.0.k", "q.\u00b2.0.k", "q.0.\u0663.k", "q.0.0.",
    f"{'q' * 129}.0.0.k",
)  # fmt: skip


def pointers(response: Any) -> list[str]:
    assert response.headers["content-type"] == "application/problem+json"
    return [fault["pointer"] for fault in response.json()["faults"]]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": "http://["}, 403),  # was a bare 500: no origin can be read from it
        ({"origin": "null"}, 403),
        ({"content-length": b"\xb2"}, 400),  # a superscript two is a digit, and no number
        ({"content-length": "1" * 5_000}, 400),
    ],
)
async def test_a_header_that_cannot_be_meant_is_a_problem(house, headers, status):
    response = await house.http.post(PAUSE, headers=headers)
    assert response.status_code == status
    assert response.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize(
    ("field", "pointer"),
    [
        ('"read_up_to":18446744073709551616', "/read_up_to"),  # was a 500: no integer of 64 bits
        ('"read_up_to":9007199254740993', "/read_up_to"),
        ('"slots":"5"', "/slots"),  # was taken for 5, against the published schema
        ('"slots":true', "/slots"),
        ('"slots":1.5', "/slots"),
        ('"number":"1"', "/number"),
        ('"draining":"yes"', "/draining"),
        ('"wait":"1"', "/wait"),
        (f'"held":["{"a" * 257}"]', "/held/0"),  # the owner would have refused the whole report
        (FINISHED.replace("RESULT", DEEP), "/finished/0/result"),
        (FINISHED.replace("RESULT", f'"{"a" * 16_384}"'), "/finished/0/result"),
    ],
)
async def test_a_field_of_a_report_that_does_not_fit_is_named(house, field, pointer):
    body = f'{{"worker":"w","incarnation":"i","slots":1,"tasks":["t"],{field}}}'
    response = await house.http.post(REPORT, content=body, headers=JSON)
    assert (response.status_code, pointers(response)) == (422, [pointer])


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
@pytest.mark.parametrize(
    ("path", "body"),
    [
        (COMPLETE, '{"worker":"w","outcome":"succeeded","result":%s}'),  # was kept as null
        (REPORT, '{"worker":"w","incarnation":"i","slots":1,"tasks":["t"],"wait":%s}'),
    ],
)
async def test_what_is_no_number_of_json_is_no_json(house, path, body, number):
    response = await house.http.post(path, content=body % number, headers=JSON)
    assert (response.status_code, response.json()["code"]) == (400, "not_json")


async def test_a_large_integer_is_a_number_as_json_has_it(house):
    """It was a 500."""
    body = '{"worker":"w","outcome":"succeeded","result":[12345678901234567890123]}'
    response = await house.http.post(COMPLETE, content=body, headers=JSON)
    assert (response.status_code, response.json()) == (200, {"lease": "q.0.0.k", "outcome": "succeeded"})
    assert house.reports()[-1].finished[0].result == [1.2345678901234568e22]


async def test_a_result_that_is_too_deep_for_its_record_is_refused_where_its_worker_hears_of_it(house):
    """The owner would have read none of that report: the run would have been tried again when its lease ended."""
    body = '{"worker":"w","outcome":"succeeded","result":%s}'
    response = await house.http.post(COMPLETE, content=body % DEEP, headers=JSON)
    assert (response.status_code, pointers(response)) == (422, ["/result"])
    assert (await house.http.post(COMPLETE, content=body % DEEP[1:-1], headers=JSON)).status_code == 200


@pytest.mark.parametrize("lease", NO_LEASES)
async def test_a_text_that_no_queue_gave_as_a_lease_is_unknown_and_makes_no_topic(house, lease):
    """A queue of that name was made, or, on Kafka, could not be."""
    before = set(house.log.topics())
    response = await house.http.post("/v1/leases:heartbeat", json={"worker": "w", "leases": [lease]})
    assert response.json() == {"cancelled": [], "lost": [], "unknown": [lease]}
    if "/" not in lease:
        response = await house.http.post(
            f"/v1/leases/{lease.replace(chr(0), '%00')}:complete", json={"worker": "w", "outcome": "succeeded"}
        )
        refusal = (400, "bad_request") if "\0" in lease else (404, "unknown_lease")  # no name in an address has a NUL
        assert (response.status_code, response.json()["code"]) == refusal
    assert set(house.log.topics()) == before


@pytest.mark.parametrize("note", [5, ["x"], "n" * 4097])
async def test_the_note_for_many_is_refused_with_its_place_in_the_body_before_any_is_written(house, note):
    """With no schedule there it was not looked at, with one it was said to stand in /data/note."""
    for verb in ("pause", "resume"):
        response = await house.http.post(f"/v1/tenants/acme/schedules:{verb}", json={"selector": {}, "note": note})
        assert (response.status_code, pointers(response)) == (422, ["/note"])
