"""What did an attempt write while it ran? From `logs`, which workers write themselves.

A row is a record: some lines of one attempt. Whose they are is not said here and not asked: a row is found by its
`check`, which follows from the proof in the record, and only the owner's `attempt.started` says which attempt has it.
So a record that anyone made up stands in a row that no run shows, and goes when its time comes.

What stands in a row is plain text: escape sequences are gone, and other characters that would do something to a
terminal or a page, instead of standing in it, are written out.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import Any

from projections.event import Event
from projections.projection import Key, Projection, Row, json
from schemas import durations, identity
from schemas.internal import RunLogged

LINES_MAX = 12_000  # of an attempt, a little more than a worker keeps: so much room can be taken with one lease
RECORD_LINES_MAX = 2_000
TEXT_MAX = 4_096  # characters of a line
WORD_MAX = 32  # characters of a stream's or a level's name
RETENTION_MAX = timedelta(days=30)

# Colours and cursors (CSI), titles and links (OSC), and what is left of them.
_ESCAPES = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[@-Z\\^_]|\x9b[0-?]*[ -/]*[@-~]")
# Controls but the tab; separators of lines; what turns the direction of writing; lone halves of characters.
_ACTIVE = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")


def plain(text: str) -> str:
    """The text with nothing in it that does anything but stand there."""
    return _ACTIVE.sub(_written_out, _ESCAPES.sub("", text))


def _written_out(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}"  # noqa: PLR2004 -- as Python writes them


def _key(event: Event) -> Key:
    return identity.log_check(_text(event.data["proof"])), _number(event.data["lines"][0]["line"])


def _logged(row: Row | None, event: Event) -> Row | None:
    if row is not None:
        return row
    data = event.data
    lines = data["lines"]
    if len(lines) > RECORD_LINES_MAX:
        raise ValueError(f"{len(lines)} lines are over {RECORD_LINES_MAX}")
    check, first = _key(event)
    kept = data.get("retention")
    return {
        "check": check,
        "line": first,
        "offset": event.offset,
        "lines": json([_line(each) for each in lines]),
        "expires_at": None if kept is None else event.appended_at + _milliseconds(durations.parse(kept)),
        "appended_at": event.appended_at,
    }


def _line(data: Row) -> Row:
    at = datetime.fromisoformat(data["at"])
    if at.tzinfo is None:
        raise ValueError("an instant without an offset")
    text = _text(data["text"])
    cut = _number(data.get("cut", 0), 2**53) + max(0, len(text) - TEXT_MAX)
    line: dict[str, Any] = {
        "line": _number(data["line"]),
        "at": data["at"],
        "stream": plain(_text(data["stream"])[:WORD_MAX]),
        "text": plain(text[:TEXT_MAX]),
    }
    if data.get("level"):
        line["level"] = plain(_text(data["level"])[:WORD_MAX])
    if cut:
        line["cut"] = cut
    if data.get("dropped"):
        line["dropped"] = _number(data["dropped"], 2**53)
    return line


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{type(value).__name__} where a text should be")
    return value


def _number(value: Any, below: int = LINES_MAX) -> int:
    if type(value) is not int or not 0 <= value < below:
        raise ValueError("a number out of range")
    return value


def _milliseconds(kept: timedelta) -> int:
    return round(min(kept, RETENTION_MAX).total_seconds() * 1000)


PROJECTION = Projection(table="logs", key=_key, folds={RunLogged.TYPE: _logged}, once=True)
