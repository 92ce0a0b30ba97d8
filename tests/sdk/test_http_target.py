"""Runs as HTTP requests: what is sent and to whom, what counts as success, and what no endpoint can do to a worker."""

import asyncio
import base64
import gzip
import hashlib
import hmac
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from ipaddress import ip_network
from typing import Any

import pytest

from tests.sdk.fake_server import DEADLINE_SECONDS, Hangup, Request, Response, Server, over_http, run
from tidewheel import Worker
from tidewheel.targets.settings import Http, Settings

pytestmark = [pytest.mark.anyio, over_http]

LOOPBACK = ip_network("127.0.0.0/8")
KEY = b"0123456789abcdef0123456789abcdef"


def calling(url: str, payload: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
    """A run that calls an endpoint."""
    about = {name: fields.pop(name) for name in ("method", "headers", "secret") if name in fields}
    target: dict[str, Any] = {"type": "http", "url": url, "method": "POST", "headers": {}} | about
    return run("", job={"queue": "default", "target": target, "payload": payload or {}}, **fields)


@pytest.fixture
async def call(queue):
    """Start a worker that may call this machine, as the settings say."""
    workers = []

    async def call(url: str, **settings: Any) -> Worker:
        port = int(url.rsplit(":", 1)[1].partition("/")[0])
        here: dict[str, Any] = {"allow": (LOOPBACK,), "plain": True, "ports": frozenset({port})}
        http = Http(**here | settings)
        worker = Worker(**queue.options, name="w1", slots=4, grace_seconds=0.0)
        worker.serve(Settings(http=http))
        await worker.start()
        workers.append(worker)
        return worker

    yield call
    for worker in workers:
        if worker.running:
            await worker.stop()


@pytest.fixture
async def endpoint():
    """An endpoint with scripted answers, and the requests that it got."""
    endpoint = Endpoint()
    async with Server(endpoint.answer) as server:
        endpoint.url = server.url
        yield endpoint


class Endpoint:
    def __init__(self) -> None:
        self.url = ""
        self.requests: list[Request] = []
        self.script: Callable[[Request], Awaitable[Response]] = self.plainly
        self.response = Response()

    async def answer(self, request: Request) -> Response:
        self.requests.append(request)
        return await self.script(request)

    async def plainly(self, request: Request) -> Response:
        return self.response


@asynccontextmanager
async def speaking(*parts: bytes, until: asyncio.Event | None = None):
    """The URL of a server that says these bytes to whoever asks, and then waits."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        try:
            for part in parts:
                writer.write(part)
                await writer.drain()
            if until is not None:
                await until.wait()
        except ConnectionError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        if until is not None:
            until.set()


# --- what is sent ---


async def test_the_payload_is_the_body_and_the_facts_of_the_run_are_headers(queue, call, endpoint):
    await call(endpoint.url)
    again = {"attempt": 2, "may_have_run": True}
    job = calling(f"{endpoint.url}/hook?x=1", {"day": "2026-03-08"}, headers={"X-Team": "finance"}, handout=again)
    [lease] = await queue.hand_out(job)
    assert await queue.finished(lease) == {"lease": lease, "outcome": "succeeded", "result": {"status": 200}}
    [request] = endpoint.requests
    assert (request.method, request.path, request.body) == ("POST", "/hook?x=1", b'{"day":"2026-03-08"}')
    names = (
        "content-type", "x-team", "webhook-id", "tidewheel-run-id", "tidewheel-tenant", "tidewheel-schedule",
        "tidewheel-attempt", "tidewheel-may-have-run", "tidewheel-fencing-token", "tidewheel-idempotency-key",
        "tidewheel-nominal-time", "accept-encoding",
    )  # fmt: skip
    assert {name: request.headers.get(name) for name in names} == {
        "content-type": "application/json",
        "x-team": "finance",
        "webhook-id": "nightly.20260308T020000Z",
        "tidewheel-run-id": "nightly.20260308T020000Z",
        "tidewheel-tenant": "acme",
        "tidewheel-schedule": "nightly",
        "tidewheel-attempt": "2",
        "tidewheel-may-have-run": "true",
        "tidewheel-fencing-token": "1",
        "tidewheel-idempotency-key": "nightly.20260308T020000Z",
        "tidewheel-nominal-time": "2026-03-08T02:00:00Z",
        "accept-encoding": "identity",
    }
    assert "webhook-signature" not in request.headers


async def test_a_named_secret_signs_id_time_and_body_and_an_old_one_beside_the_new_one_signs_too(queue, call, endpoint):
    old = b"f" * 24
    await call(endpoint.url, secrets={"acme/billing": (KEY, old)})
    [lease] = await queue.hand_out(calling(endpoint.url, {"a": 1}, secret="billing"))
    await queue.finished(lease)
    headers = endpoint.requests[0].headers
    content = f"nightly.20260308T020000Z.{headers['webhook-timestamp']}.".encode() + b'{"a":1}'
    made = [base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode() for key in (KEY, old)]
    assert headers["webhook-signature"] == f"v1,{made[0]} v1,{made[1]}"


async def test_a_secret_of_another_tenant_is_none(queue, call, endpoint):
    await call(endpoint.url, secrets={"umbrella/billing": (KEY,)})
    [lease] = await queue.hand_out(calling(endpoint.url, secret="billing"))
    assert (await queue.finished(lease))["error"] == {
        "type": "http:refused",
        "message": "this worker has no secret 'billing' of tenant 'acme'",
    }
    assert endpoint.requests == []


async def test_a_request_without_a_body_carries_no_payload(queue, call, endpoint):
    await call(endpoint.url)
    [lease, other] = await queue.hand_out(
        calling(endpoint.url, method="GET"), calling(endpoint.url, {"a": 1}, method="DELETE")
    )
    assert (await queue.finished(lease))["outcome"] == "succeeded"
    assert (await queue.finished(other))["error"]["type"] == "PayloadMisfit"
    assert [(request.method, request.body) for request in endpoint.requests] == [("GET", b"")]


async def test_requests_to_one_host_share_a_connection(queue, call):
    connections = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(writer)
        try:
            while True:
                await reader.readuntil(b"\r\n\r\n{}")
                writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    await call(url)
    for _ in range(3):
        [lease] = await queue.hand_out(calling(url))
        assert (await queue.finished(lease))["result"] == {"status": 204}
    assert len(connections) == 1
    server.close()


# --- what the answer means ---


@pytest.mark.parametrize(
    ("response", "entry"),
    [
        (Response({"rows": 3}), {"outcome": "succeeded", "result": {"status": 200, "body": {"rows": 3}}}),
        (Response(status=204), {"outcome": "succeeded", "result": {"status": 204}}),
        (Response(status=202), {"outcome": "succeeded", "result": {"status": 202}}),
        (Response(status=301, headers={"Location": "http://169.254.169.254/"}), "http:301"),
        (Response({"title": "gone"}, status=404), "http:404"),
        (Response(status=429, headers={"Retry-After": "120"}), ("http:429", "PT120S")),
        (Response(status=500), "http:500"),
        (Response(status=503, headers={"Retry-After": "soon"}), "http:503"),
    ],
    ids=lambda value: str(value.status) if isinstance(value, Response) else "",
)
async def test_b_o29_only_2xx_is_a_success_and_the_status_is_told(queue, call, endpoint, response, entry):
    """Redirects are not followed; what Retry-After asks for is passed on."""
    endpoint.response = response
    await call(endpoint.url)
    [lease] = await queue.hand_out(calling(f"{endpoint.url}/hook?token=secret"))
    found = await queue.finished(lease)
    if isinstance(entry, dict):
        assert found == {"lease": lease, **entry}
        return
    kind, later = entry if isinstance(entry, tuple) else (entry, None)
    assert (found["outcome"], found["error"]["type"], found.get("retry_after")) == ("failed", kind, later)
    assert f"{endpoint.url}/hook answered {response.status}" in found["error"]["message"]
    assert "secret" not in found["error"]["message"]
    assert len(endpoint.requests) == 1


async def test_b_o29_a_connection_that_is_closed_without_an_answer_has_an_unknown_outcome(queue, call, endpoint):
    async def hang_up(request: Request) -> Response:
        raise Hangup

    endpoint.script = hang_up
    await call(endpoint.url)
    [lease] = await queue.hand_out(calling(endpoint.url))
    error = (await queue.finished(lease))["error"]
    assert (error["type"], "it may have done the work" in error["message"]) == ("http:broken", True)


async def test_b_o29_without_an_answer_the_attempt_fails_when_its_time_is_over(queue, call, endpoint):
    over = asyncio.Event()

    async def silently(request: Request) -> Response:
        await over.wait()
        return Response()

    endpoint.script = silently
    await call(endpoint.url, answer_within_seconds=0.2)
    [lease] = await queue.hand_out(calling(endpoint.url))
    error = (await queue.finished(lease))["error"]
    assert error["type"] == "http:timeout"
    assert error["message"].endswith("had not answered wholly after 0.2 s: it may have done the work")
    over.set()


async def test_an_endpoint_that_is_not_there_cannot_be_reached(queue, call):
    await call("http://127.0.0.1:1")
    [lease] = await queue.hand_out(calling("http://127.0.0.1:1"))
    assert (await queue.finished(lease))["error"]["type"] == "http:unreachable"


@pytest.mark.parametrize(
    "parts",
    [
        (b"HTTP/1.1 200 OK\r\n",),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n", b"x"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
    ],
    ids=["headers", "body", "chunks"],
)
async def test_an_answer_that_trickles_ends_with_the_whole_time(queue, call, parts):
    """A timeout between two bytes would never end it."""
    async with speaking(*parts, until=asyncio.Event()) as url:
        await call(url, answer_within_seconds=0.3)
        [lease] = await queue.hand_out(calling(url))
        assert (await queue.finished(lease))["error"]["type"] == "http:timeout"


async def test_an_answer_without_end_is_cut_off_and_counts_by_its_status(queue, call):
    chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    async with speaking(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", *[chunk] * 64) as url:
        await call(url)
        [lease] = await queue.hand_out(calling(url))
        result = (await queue.finished(lease))["result"]
    assert (result["status"], result["body_bytes"], len(result["body"])) == (200, 1_048_576, 2048)


async def test_an_encoded_answer_is_not_decoded(queue, call):
    bomb = gzip.compress(b"0" * 10_000_000)
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(bomb)
    async with speaking(head, bomb) as url:
        await call(url)
        [lease] = await queue.hand_out(calling(url))
        result = (await queue.finished(lease))["result"]
    assert result == {
        "status": 200,
        "body": "(gzip was not asked for, and is not decoded)",
        "body_bytes": len(bomb),
    }


async def test_endless_headers_are_no_answer(queue, call):
    lines = [b"HTTP/1.1 200 OK\r\n", *(b"X-%d: %s\r\n" % (number, b"x" * 1000) for number in range(20)), b"\r\n"]
    async with speaking(b"".join(lines)) as url:
        await call(url)
        [lease] = await queue.hand_out(calling(url))
        assert (await queue.finished(lease))["error"]["type"] == "http:broken"


@pytest.mark.parametrize("body", [b'{"a": NaN}', b"[" * 40 + b"]" * 40, b"not json", b'"' + b"x" * 20_000 + b'"'])
async def test_an_answer_that_cannot_be_a_result_as_it_is_becomes_text_and_the_run_has_succeeded(queue, call, body):
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
    async with speaking(head, body) as url:
        await call(url)
        [lease] = await queue.hand_out(calling(url))
        found = await queue.finished(lease)
    assert found["result"] == {"status": 200, "body": body.decode()[:2048], "body_bytes": len(body)}


# --- later ---


async def test_with_a_completion_url_202_means_later_and_the_attempt_goes_on_until_the_owner_ends_it(
    queue, call, endpoint
):
    endpoint.response = Response(status=202)
    await call(endpoint.url, completion_url="https://tidewheel.example.org")
    [lease] = await queue.hand_out(calling(endpoint.url))
    await queue.until(lambda: endpoint.requests and lease in queue.reports[-1]["held"])
    completion = endpoint.requests[0].headers["tidewheel-completion-url"]
    assert completion == f"https://tidewheel.example.org/v1/leases/{lease}:complete"
    await queue.say(lost=[lease])
    last = await queue.until(lambda: queue.reports[-1]["slots"] == 4 and queue.reports[-1])
    assert (last["held"], [entry for report in queue.reports for entry in report["finished"]]) == ([], [])


# --- where nothing is sent ---


@pytest.mark.parametrize(
    ("url", "settings", "said"),
    [
        ("http://127.0.0.1:{port}/", {"plain": False}, "without TLS"),
        ("http://127.0.0.1:{port}/", {"ports": frozenset({443})}, "is none that this worker calls"),
        ("http://127.0.0.1:{port}/", {"allow": ()}, "127.0.0.1 is an address"),
        ("http://localhost:{port}/", {"allow": ()}, "localhost leads to an address that is loopback"),
        ("http://127.1:{port}/", {}, "'127.1' is a number that some take for an address"),
        ("http://0x7f000001:{port}/", {}, "is a number that some take for an address"),
        ("http://2130706433:{port}/", {}, "is a number that some take for an address"),
        ("http://[::ffff:127.0.0.1]:{port}/", {"allow": ()}, "is an address"),
        ("http://user:word@localhost:{port}/", {}, "has a user in it"),
        ("ftp://localhost:{port}/", {}, "is no http or https URL"),
    ],
)
async def test_what_the_worker_does_not_allow_is_refused_before_anything_is_sent(
    queue, call, endpoint, url, settings, said
):
    await call(endpoint.url, **settings)
    [lease] = await queue.hand_out(calling(url.format(port=endpoint.url.rpartition(":")[2])))
    error = (await queue.finished(lease))["error"]
    assert (error["type"], said in error["message"]) == ("http:refused", True), error
    assert endpoint.requests == []


async def test_one_slow_host_takes_half_of_the_slots_and_the_others_go_on(queue, call, endpoint):
    over = asyncio.Event()

    async def slowly(request: Request) -> Response:
        if request.headers["host"].startswith("127.0.0.1"):
            await over.wait()
        return Response()

    endpoint.script = slowly
    await call(endpoint.url, allow=(LOOPBACK, ip_network("::1/128")))
    slow = await queue.hand_out(*[calling(endpoint.url) for _ in range(3)])
    await queue.until(lambda: len(endpoint.requests) == 2)
    [quick] = await queue.hand_out(calling(endpoint.url.replace("127.0.0.1", "localhost")))
    async with asyncio.timeout(DEADLINE_SECONDS):
        assert (await queue.finished(quick))["outcome"] == "succeeded"
    assert len(endpoint.requests) == 3
    over.set()
    for lease in slow:
        assert (await queue.finished(lease))["outcome"] == "succeeded"
