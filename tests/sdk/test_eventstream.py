"""The client's side of the stream of events: messages out of lines, and one stream out of several connections."""

from __future__ import annotations

import json

import httpx
import pytest

from tidewheel import eventstream
from tidewheel.errors import TidewheelError, Unreachable
from tidewheel.eventstream import Message, follow, messages, whole_lines


def test_a_message_has_an_id_a_type_and_its_data():
    lines = [": a comment", "retry: 2000", "id: a1", "event: run.created", 'data: {"a": 1}', ""]
    assert list(messages(lines)) == [Message(id="a1", event="run.created", data='{"a": 1}')]


def test_an_id_alone_moves_the_position_and_stays_until_the_next():
    lines = ["id: a1", "", "event: e", "data: {}", ""]
    assert list(messages(lines)) == [Message(id="a1"), Message(id="a1", event="e", data="{}")]


def test_what_is_cut_before_its_blank_line_is_no_message():
    assert list(messages(["id: a1", "event: e", "data: {"])) == []


def test_data_of_several_lines_is_one_text():
    (message,) = messages(["data: one", "data:two", ""])
    assert message.data == "one\ntwo"


class Server:
    """Answers each request with the next text, or raises it; and remembers the ids that it was asked with."""

    def __init__(self, *answers: str | Exception | httpx.Response) -> None:
        self.answers, self.asked = list(answers), list[str]()

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request.headers.get("last-event-id", ""))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return httpx.Response(200, text=answer) if isinstance(answer, str) else answer

    def follow(self, cursor: str | None = None) -> list[str]:
        with httpx.Client(transport=httpx.MockTransport(self), base_url="http://here") as http:
            found = follow(http, "/v1/events", {}, cursor, pause=lambda _seconds: None)
            return [f"{event.cursor} {event.type} {event.body['n']}" for event in found]


def said(*numbers: int, end: str = "") -> str:
    text = "".join(f'id: c{n}\nevent: t\ndata: {{"n": {n}}}\n\n' for n in numbers)
    return text + (f"event: end\ndata: {json.dumps({'reason': end})}\n\n" if end else "")


def test_what_stands_in_an_event_ends_no_line():
    """An error's message may hold what Unicode calls a separator of lines, and JSON leaves as it is."""
    odd = "one\u2028two\u2029three\x85four"
    text = f'id: c1\nevent: t\ndata: {{"n": "{odd}"}}\n\n' + said(2, end="reached")
    assert Server(text).follow() == [f"c1 t {odd}", "c2 t 2"]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_lines_are_whole_however_they_are_cut(end):
    assert list(whole_lines(f"id: a{end}{end}data: b{end}rest")) == ["id: a", "", "data: b"]


def test_a_stream_that_was_cut_goes_on_behind_its_last_event():
    server = Server(said(1, 2), httpx.ReadError("cut"), said(3), said(4, end="reached"))
    assert server.follow() == ["c1 t 1", "c2 t 2", "c3 t 3", "c4 t 4"]
    assert server.asked == ["", "c2", "c2", "c3"]


def test_it_begins_behind_the_cursor_it_is_given():
    server = Server(said(8, end="reached"))
    assert server.follow("c7") == ["c8 t 8"]
    assert server.asked == ["c7"]


def test_an_end_that_says_to_come_back_is_come_back_from():
    server = Server(said(1, end="unavailable"), said(2, end="reached"))
    assert server.follow() == ["c1 t 1", "c2 t 2"]


def test_events_that_are_gone_are_an_error_and_no_silence():
    with pytest.raises(TidewheelError, match="no longer kept"):
        Server(said(1, end="trimmed")).follow()


def test_a_refusal_is_not_asked_again():
    refused = httpx.Response(410, json={"title": "Gone", "detail": "Events behind that cursor are no longer kept."})
    server = Server(refused)
    with pytest.raises(TidewheelError, match="no longer kept"):
        server.follow("c1")
    assert server.asked == ["c1"]


def test_a_server_that_stays_away_is_given_up(monkeypatch):
    monkeypatch.setattr(eventstream, "RECONNECTS_MAX", 2)
    server = Server(*[httpx.ConnectError("refused")] * 3)
    with pytest.raises(Unreachable):
        server.follow()
    assert len(server.asked) == 3
