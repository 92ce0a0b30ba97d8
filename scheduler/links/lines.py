"""Triggers in a line: rows named by growing numbers, the first of which stands for all in the state."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scheduler import keys
from scheduler.links.state import NO_LINE, Line, Trigger
from schemas import codec

if TYPE_CHECKING:
    from runtime.machine import Rows


def append(line: Line, rows: Rows, prefix: bytes, trigger: Trigger) -> Line:
    """With one more at the end."""
    rows.put(keys.number(prefix, line.first + line.count), codec.dump(trigger))
    if line.count:
        return Line(count=line.count + 1, first=line.first, at_ms=line.at_ms, version=line.version)
    return Line(count=1, first=line.first, at_ms=trigger.at_ms, version=trigger.version)


def first(line: Line, rows: Rows, prefix: bytes) -> Trigger:
    """The one whose turn it is."""
    row = rows.get(keys.number(prefix, line.first))
    assert row is not None, "what is counted stands in its row"
    return codec.load(Trigger, codec.parse(row))


def without_first(line: Line, rows: Rows, prefix: bytes) -> Line:
    """The next one has its turn."""
    rows.delete(keys.number(prefix, line.first))
    if line.count == 1:
        return NO_LINE
    left = Line(count=line.count - 1, first=line.first + 1)
    following = first(left, rows, prefix)
    return Line(count=left.count, first=left.first, at_ms=following.at_ms, version=following.version)
