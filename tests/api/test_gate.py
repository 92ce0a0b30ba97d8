"""What every request passes first, and what every error looks like."""

from collections.abc import AsyncIterator

import httpx
import pytest

from api.gate import BODY_BYTES_MAX
from tests.projections import histories

pytestmark = pytest.mark.anyio

ONE = "/v1/tenants/acme/schedules/report"


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:8440", "localhost:1", "[::1]:8440", "LOCALHOST"])
async def test_this_machine_may_be_called_by_its_names(house, host):
    assert (await house.http.get("/healthz", headers={"host": host})).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8440", "127.0.0.1.evil.example", "", "localhost:x"])
async def test_a_name_that_somebody_else_made_for_this_machine_is_refused(house, host):
    response = await house.http.get("/healthz", headers={"host": host})
    assert (response.status_code, response.json()["code"]) == (421, "wrong_host")


async def test_another_sites_page_may_not_change_anything(house):
    for origin in ("https://evil.example", "http://127.0.0.1:9999", "null"):
        response = await house.http.post(f"{ONE}:pause", headers={"origin": origin})
        assert (response.status_code, response.json()["code"]) == (403, "wrong_origin")
    assert house.commands() == []


async def test_our_own_page_may(house):
    response = await house.http.post(
        f"{ONE}:pause", headers={"origin": "http://127.0.0.1:8440", "prefer": "respond-async"}
    )
    assert response.status_code == 202


async def test_a_form_that_any_page_can_send_is_not_json(house):
    response = await house.http.post(f"{ONE}:trigger", content=b"{}", headers={"content-type": "text/plain"})
    assert (response.status_code, response.json()["code"]) == (415, "unsupported_media_type")


async def test_a_body_over_the_limit_is_refused_before_it_is_read(house):
    response = await house.http.put(ONE, json={"note": "x" * BODY_BYTES_MAX})
    assert (response.status_code, response.json()["code"]) == (413, "too_large")


async def test_a_body_that_does_not_say_its_length_ends_at_the_limit_too(house):
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(5):
            yield b" " * (BODY_BYTES_MAX // 4)

    response = await house.http.put(ONE, content=chunks(), headers={"content-type": "application/json"})
    assert response.status_code == 413


@pytest.mark.parametrize(
    "path",
    ["/v1/runs?label=a%00%3Dx", "/v1/runs?schedule=%00", "/v1/tenants/acme/runs/a%00.1", "/v1/workers?queue=a%00"],
)
async def test_a_nul_in_an_address_is_refused_before_a_database_is_asked_for_it(house, path):
    response = await house.http.get(path)
    assert (response.status_code, response.json()["code"]) == (400, "bad_request")


async def test_what_is_not_json_is_said_so(house):
    response = await house.http.put(ONE, content=b"{no", headers={"content-type": "application/json"})
    assert (response.status_code, response.json()["code"]) == (400, "not_json")


async def test_json_that_is_nested_too_deep_is_refused(house):
    deep = b"[" * 100 + b"]" * 100
    response = await house.http.put(
        ONE, content=b'{"note":' + deep + b"}", headers={"content-type": "application/json"}
    )
    assert (response.status_code, response.json()["faults"][0]["code"]) == (422, "too_deep")


async def test_a_path_that_is_not_there_is_a_problem(house):
    response = await house.http.get("/v2/anything")
    assert (response.status_code, response.headers["content-type"]) == (404, "application/problem+json")
    assert response.json() == {
        "type": "urn:tidewheel:problem:not_found",
        "title": "Not Found",
        "status": 404,
        "code": "not_found",
        "detail": "There is nothing at /v2/anything.",
    }


async def test_a_method_that_is_not_possible_is_a_problem_that_says_which_are(house):
    response = await house.http.patch(ONE)
    assert (response.status_code, response.json()["code"]) == (405, "method_not_allowed")
    assert "allow" in response.headers


async def test_a_query_parameter_that_does_not_fit_is_a_problem_that_names_it(house):
    response = await house.http.get("/v1/runs?limit=many")
    assert response.status_code == 400
    assert response.json()["faults"][0]["pointer"] == "/limit"


async def test_our_own_mistakes_are_said_without_their_insides(house):
    house.engine.dispose()
    with house.engine.change() as connection:
        connection.exec_driver_sql("DROP TABLE runs")
    response = await house.http.get("/v1/runs")
    assert (response.status_code, response.json()["code"]) == (500, "internal")
    assert "runs" not in response.json()["detail"]


async def test_every_answer_forbids_to_be_framed_or_guessed_at(house):
    for path in ("/healthz", "/nowhere", "/v1/runs"):
        headers = (await house.http.get(path)).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert "unsafe-inline" not in headers["content-security-policy"]


async def test_it_is_ready_when_everything_is_and_else_says_what_is_not(house):
    response = await house.http.get("/readyz")
    assert (response.status_code, response.json()["status"]) == (200, "ready")
    house.unready = {"scheduler-0": "restoring"}
    response = await house.http.get("/readyz")
    assert (response.status_code, response.json()["unready"]) == (503, {"scheduler-0": "restoring"})


async def test_requests_are_counted_by_route_not_by_path(house):
    house.happened(histories.current("report"))
    await house.http.get(ONE)
    figures = (await house.http.get("/metrics")).text
    line = 'tidewheel_http_requests_total{method="GET",route="/v1/tenants/{tenant}/schedules/{name}",status="200"} 1.0'
    assert line in figures.splitlines()


async def test_a_method_that_somebody_made_up_has_no_series_of_its_own(house):
    for method in ("BREW", "WHEN"):
        await house.http.request(method, ONE)
    figures = (await house.http.get("/metrics")).text
    counted = [
        line for line in figures.splitlines() if line.startswith('tidewheel_http_requests_total{method="_other"')
    ]
    assert [line.rpartition(" ")[2] for line in counted] == ["2.0"]
    assert "BREW" not in figures


async def test_the_openapi_document_names_every_route(house):
    document = (await house.http.get("/openapi.json")).json()
    assert document["openapi"].startswith("3.")
    assert "/v1/queues/{queue}/workers:report" in document["paths"]
    assert "Trigger" in document["components"]["schemas"]
    ids = [operation["operationId"] for path in document["paths"].values() for operation in path.values()]
    assert len(ids) == len(set(ids))


async def test_a_head_request_is_no_mistake_of_ours(house):
    response = await house.http.head("/healthz")
    assert response.status_code < 500
    assert isinstance(response, httpx.Response)
