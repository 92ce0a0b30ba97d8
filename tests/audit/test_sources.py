"""Where an audit reads: a stopped folder, a running server; and its figures."""

import httpx
import orjson

from api.rawlog import _topics, raw_records
from node.audit import audit
from node.audit.source import FolderSource, HttpSource
from runtime.record import Outgoing, TopicPartition
from schemas import topics
from tests.audit.judging import report
from tests.audit.world import at, leave_with_one_lost


def test_a_stopped_folder_is_read_as_it_is(tmp_path):
    leave_with_one_lost(tmp_path)
    source = FolderSource(tmp_path)
    result = audit(source)
    source.close()
    assert (result.due, result.created, result.faults["missing"]) == (2, 1, 1)


def test_a_running_server_is_read_over_http(world):
    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/v1/log":
            return httpx.Response(200, content=orjson.dumps({"topics": _topics(world.log)}))
        _, _, _, topic, partition = request.url.path.split("/")
        start = request.url.params.get("from")
        place = TopicPartition(topic, int(partition))
        content = raw_records(world.log, place, None if start is None else int(start), 2)  # small pages
        return httpx.Response(200, content=content)

    world.skipped("12:04")
    world.log.append([Outgoing(topics.changelog_topic("scheduler"), 0, b"row", b"\xff\x00")])
    world.decided(at("12:04:30"))
    source = HttpSource("http://127.0.0.1:1", client=httpx.Client(transport=httpx.MockTransport(answer)))
    result = audit(source)
    assert result.clean
    assert result.as_json() == report(world).as_json()
    assert (result.due, result.created, dict(result.skipped)) == (4, 3, {"overlap": 1})


def test_the_figures_are_those_of_the_contract(world):
    figures = report(world).as_json()
    assert list(figures)[:8] == [
        "due",
        "created",
        "skipped",
        "pending",
        "backfilled",
        "missing",
        "duplicated",
        "double_outcomes",
    ]
    assert figures["open_runs"] == 3
    assert figures["marks"] == {"0": "2026-03-02T12:03:30Z", "1": "2026-03-02T12:03:30Z"}
