"""The stream of events behind a real socket: what comes, where it goes on, and how it ends."""

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest
from prometheus_client import CollectorRegistry

from api import events
from api.events import EventStream, Feed, Streams, starting
from api.following import Wanted
from api.problems import Problem
from runtime.logs.simulated import SimulatedLog
from simulation.clock import ManualClock
from tests.api.house import SECONDS, House
from tests.api.serving import serving
from tests.projections.histories import START, create_topics, created, record, succeeded
from tests.support.waiting import eventually
from tidewheel.eventstream import Message, messages, whole_lines

ENDED = "tidewheel_event_streams_ended_total"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[House, str]]:
    with serving(tmp_path) as found:
        yield found


@contextmanager
def stream(url: str, path: str = "/v1/events", cursor: str = "", **asked: Any) -> Iterator[Iterator[Message]]:
    headers = {"Last-Event-ID": cursor} if cursor else {}
    with (
        httpx.Client(base_url=url, timeout=SECONDS) as client,
        client.stream("GET", path, params=asked, headers=headers) as response,
    ):
        assert response.status_code == 200, response.read()
        assert response.headers["content-type"].startswith("text/event-stream")
        yield messages(whole_lines(response.iter_text()))


def whole(url: str, path: str = "/v1/events", cursor: str = "", **asked: Any) -> list[Message]:
    """What stands there now, to the end."""
    with stream(url, path, cursor, follow="false", **asked) as found:
        told = [message for message in found if message.data]
    assert told[-1].event == "end"
    assert json.loads(told[-1].data)["reason"] == "reached"
    return told[:-1]


def kinds(found: list[Message]) -> list[str]:
    return [message.event.removeprefix("tidewheel.").removesuffix(".v1") for message in found]


def test_what_happens_comes_as_it_is_written_and_in_its_order(served):
    house, url = served
    with stream(url, schedule="report") as found:
        assert next(found).data == ""  # the position, before anything has happened
        facts = succeeded("report", 10)
        house.log.append(record(fact) for fact in facts)
        told = [next(found) for _ in facts]
    assert kinds(told) == ["run.created", "attempt.started", "attempt.finished", "run.finished"]
    assert json.loads(told[0].data) == json.loads(record(facts[0]).value or b"")


def test_without_following_it_ends_where_the_log_ended(served):
    house, url = served
    house.happened(*succeeded("report", 10), *succeeded("other", 10, tenant="beta"))
    assert len(whole(url, last=100)) == 8
    assert kinds(whole(url, last=100, type="run.finished")) == ["run.finished"] * 2
    assert whole(url) == []  # it begins now


def test_a_tenants_stream_has_only_what_is_its(served):
    house, url = served
    house.happened(*succeeded("report", 10), *succeeded("report", 10, tenant="beta"))
    found = whole(url, "/v1/tenants/beta/events", last=100)
    assert {json.loads(message.data)["data"]["tenant"] for message in found} == {"beta"}
    assert len(found) == 4
    assert whole(url, "/v1/tenants/beta/events", last=100, tenant="acme") == found


def test_whoever_comes_back_with_any_id_goes_on_with_the_next_event(served):
    house, url = served
    for second in range(10, 20):
        house.log.append([record(created("report", second)), record(created("other", second, tenant="beta"))])
    found = whole(url, last=1000)
    assert len(found) == 20
    for seen in (1, 7, 13, 19, 20):
        again = whole(url, cursor=found[seen - 1].id)
        assert [message.data for message in again] == [message.data for message in found[seen:]]
    assert whole(url, last=5, cursor=found[9].id) == whole(url, cursor=found[9].id)


def test_what_came_while_nobody_read_is_there_when_somebody_comes_back(served):
    """Cut in the middle of a stream that is followed: nothing is missed, nothing comes twice."""
    house, url = served
    seen: list[Message] = []
    with stream(url, last=0) as found:
        seen.append(next(found))
        for second in range(10, 16):
            house.log.append([record(created("report", second))])
        seen += [next(found) for _ in range(4)]
    house.log.append([record(created("report", second)) for second in range(16, 19)])
    rest = whole(url, cursor=seen[-1].id)
    ids = [json.loads(message.data)["data"]["run_id"] for message in (*seen[1:], *rest)]
    assert ids == [f"report.20260301T0000{second}Z" for second in range(10, 19)]


@pytest.fixture
def kept() -> tuple[SimulatedLog, ManualClock]:
    """A log that keeps thirty days, and its clock."""
    clock = ManualClock(START)
    log = SimulatedLog(3, clock)
    create_topics(log)
    return log, clock


def test_a_position_behind_which_events_are_gone_is_refused_as_gone(kept):
    log, clock = kept
    log.append([record(created("report", 10))])
    cursor = starting(log, Wanted(), None, 0).places.write(starting(log, Wanted(), None, 1000).positions)
    clock.advance(timedelta(days=40))
    log.append([record(created("report", 11))])
    log.maintain()
    with pytest.raises(Problem) as refused:
        starting(log, Wanted(), cursor, 0)
    assert (refused.value.status, refused.value.code) == (410, "trimmed")
    assert refused.value.more["topic"] == "tidewheel.run-events"


def test_a_stream_whose_next_events_are_gone_says_so_at_its_end(kept):
    log, clock = kept
    log.append([record(created("report", 10))])
    feed = Feed(log, Wanted(), starting(log, Wanted(), None, 1000), follow=True)
    clock.advance(timedelta(days=40))
    log.append([record(created("report", 11))])
    log.maintain()
    assert feed.take().end == "trimmed"
    feed.close()


@pytest.mark.anyio
async def test_what_is_sent_at_once_is_little_so_that_a_slow_line_is_not_taken_for_a_dead_one(kept):
    log, _ = kept
    labels = {str(number): "x" * 200 for number in range(30)}
    log.append(record(created("report", second, labels=labels)) for second in range(100))
    feed = Feed(log, Wanted(), starting(log, Wanted(), None, 1000), follow=False)
    sent: list[Any] = []
    gone = asyncio.Event()

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        await gone.wait()

    await EventStream(feed, Streams(CollectorRegistry()))({"type": "http"}, receive, send)
    bodies = [message["body"] for message in sent[1:]]
    assert sum(map(len, bodies)) > 600_000
    assert max(map(len, bodies)) <= 64 * 1024
    assert [message["more_body"] for message in sent[1:]] == [True] * (len(bodies) - 1) + [False]


def test_a_stream_is_not_longer_than_what_stood_there_when_it_was_asked_for(kept):
    log, _ = kept
    log.append([record(created("report", 10))])
    feed = Feed(log, Wanted(), starting(log, Wanted(), None, 1000), follow=False)
    log.append([record(created("report", 11))])
    taken = feed.take()
    assert (taken.text.count(b"event: "), taken.end) == (1, "reached")
    after = Feed(log, Wanted(), starting(log, Wanted(), taken.cursor, 0), follow=False)
    assert after.take().text.count(b"000011Z") > 0
    for each in (feed, after):
        each.close()


@pytest.mark.parametrize(
    ("asked", "pointer"),
    [
        ({"type": "run.finishd"}, "/type"),
        ({"cursor": "x"}, "/cursor"),
        ({"last": "-1"}, "/last"),
        ({"from": "noon"}, "/from"),
    ],
)
def test_what_cannot_be_asked_is_refused_with_its_field(served, asked, pointer):
    _, url = served
    refused = httpx.get(f"{url}/v1/events", params=asked)
    assert refused.status_code in {400, 422}
    assert [fault["pointer"] for fault in refused.json()["faults"]] == [pointer]


def test_there_are_so_many_streams_and_no_more_and_one_that_is_left_makes_room(served, monkeypatch):
    house, url = served
    monkeypatch.setattr(events, "STREAMS_MAX", 2)
    with stream(url) as one, stream(url) as two:
        assert [next(one).data, next(two).data] == ["", ""]
        refused = httpx.get(f"{url}/v1/events")
        assert (refused.status_code, refused.json()["code"], refused.headers["retry-after"]) == (503, "overloaded", "1")
    eventually(lambda: ended(house, "gone") == 2, within=SECONDS, what="both have gone")
    assert house.services.registry.get_sample_value("tidewheel_event_streams") == 0
    assert whole(url) == []


def test_a_reader_that_takes_nothing_is_cut_and_keeps_nobody_up(served, monkeypatch):
    """Its socket is full: it never reads what it asked for."""
    house, url = served
    monkeypatch.setattr(events, "STALLED_SECONDS", 0.2)
    labels = {str(number): "x" * 200 for number in range(30)}
    for first in range(0, 3000, 100):
        facts = [created("report", second, labels=labels) for second in range(first, first + 100)]
        house.log.append(record(fact) for fact in facts)
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as lazy:
        lazy.sendall(b"GET /v1/events?from=oldest HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        eventually(lambda: ended(house, "stalled") == 1, within=SECONDS, what="it is cut")
        assert httpx.get(f"{url}/healthz").status_code == 200


def test_a_slow_reader_is_not_cut_and_gets_everything(served):
    """It is read at its own pace: nothing is kept for it, so there is nothing that could be full."""
    house, url = served
    for first in range(0, 2000, 100):
        house.log.append(record(created("report", second)) for second in range(first, first + 100))
    waited = threading.Event()
    with stream(url, **{"from": "oldest", "follow": "false"}) as found:
        count = 0
        for message in found:
            count += bool(message.data)
            if count % 500 == 0:
                waited.wait(0.05)
    assert count == 2001  # and the end


def ended(house: House, reason: str) -> float | None:
    return house.services.registry.get_sample_value(ENDED, {"reason": reason})
