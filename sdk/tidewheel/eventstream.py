"""The stream of events, as it comes from the server: one after another, over lost connections, none twice.

The server names the position behind each event. A stream that was cut goes on there.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import httpx

from tidewheel import connection, jsontext
from tidewheel.errors import TidewheelError, Unreachable

if TYPE_CHECKING:
    from collections.abc import Callable

SILENT_SECONDS = 60.0  # the server says something four times in that
RECONNECTS_MAX = 30  # in a row without a word from the server: a minute, which bridges its restart
PAUSE_SECONDS_MAX = 2.0
REACHED, TRIMMED = "reached", "trimmed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One of a stream: its id (that of the last one that had one), its type, its data. Without data it moves the id."""

    id: str
    event: str = ""
    data: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What happened: a CloudEvent as it stands in the log. Behind `cursor` a stream goes on with the next one."""

    cursor: str
    type: str
    body: Mapping[str, Any]


def follow(
    http: httpx.Client, path: str, wanted: Mapping[str, Any], cursor: str | None,
    *, pause: Callable[[float], None] = time.sleep,
) -> Iterator[Event]:  # fmt: skip
    """The events, until the server says that there are no more.

    TidewheelError when it refuses, or when events behind the cursor are no longer kept; Unreachable when it stays away.
    """
    failed = 0
    while True:
        try:
            for message in _stream(http, path, wanted, cursor):
                cursor, failed = message.id or cursor, 0
                if message.event != "end":
                    if message.data:
                        yield Event(cursor=cursor or "", type=message.event, body=jsontext.loads(message.data.encode()))
                    continue
                if (reason := jsontext.loads(message.data.encode()).get("reason")) == REACHED:
                    return
                if reason == TRIMMED:
                    raise TidewheelError(
                        "events that were still to come are no longer kept: begin anew, some are missed"
                    )
        except Unreachable:
            if failed >= RECONNECTS_MAX:
                raise
        failed += 1
        pause(min(0.1 * 2**failed, PAUSE_SECONDS_MAX))


def _stream(http: httpx.Client, path: str, wanted: Mapping[str, Any], cursor: str | None) -> Iterator[Message]:
    headers = {"Accept": "text/event-stream", **({"Last-Event-ID": cursor} if cursor else {})}
    timeout = httpx.Timeout(SILENT_SECONDS, connect=connection.CONNECT_SECONDS)
    try:
        with http.stream("GET", path, params=dict(wanted), headers=headers, timeout=timeout) as response:
            if not response.is_success:
                response.read()
                connection.read(response)
            yield from messages(whole_lines(response.iter_text()))
    except httpx.TransportError as error:
        raise Unreachable(f"{http.base_url} cannot be reached: {str(error) or type(error).__name__}") from error


def whole_lines(parts: Iterable[str]) -> Iterator[str]:
    """The lines in a text that comes in parts, without their ends: those of the protocol, and no others.

    What stands in an event may have a U+2028 or U+0085 of its own, which Python takes for the end of a line.
    """
    rest = ""
    for part in parts:
        *whole, rest = (rest + part).split("\n")
        yield from (line.removesuffix("\r") for line in whole)


def messages(lines: Iterable[str]) -> Iterator[Message]:
    """The messages in lines that have lost their ends. What stands behind the last blank line is no message yet."""
    id_, event, data, begun = "", "", list[str](), False
    for line in lines:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        match name:
            case "" if not line:
                if begun:
                    yield Message(id=id_, event=event, data="\n".join(data))
                event, data, begun = "", [], False
            case "id":
                id_, begun = value, True
            case "event":
                event, begun = value, True
            case "data":
                data, begun = [*data, value], True
