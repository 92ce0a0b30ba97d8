"""Up to which instants a partition knows its inputs: all of them, and as far as it has answered them.

Now and then the log is asked where the inputs end. Once all before that is read, the instant at which it was asked is
known: `known_until`. Once all of it is answered as well, `read_until`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from runtime.clock_watch import NEVER_READ

if TYPE_CHECKING:
    from datetime import datetime

    from runtime.log import Log, Reader
    from runtime.read_ahead import ReadAhead
    from runtime.record import TopicPartition


class _Ends(NamedTuple):
    """Where the inputs ended at an instant."""

    asked_at: datetime
    ends: Mapping[TopicPartition, int]


class Horizons:
    """Follows one reader and what was read ahead of what is answered. Calls from one thread."""

    def __init__(self, log: Log, inputs: Sequence[TopicPartition], ahead: ReadAhead) -> None:
        self._log = log
        self._inputs = inputs
        self._ahead = ahead
        self._asked: _Ends | None = None
        self._unanswered: deque[_Ends] = deque()  # read up to there: one a step, gone when what is held now is answered
        self.read_until = NEVER_READ
        self.known_until = NEVER_READ

    def is_behind(self, reader: Reader) -> bool:
        """Whether something is known to be there and is not read yet."""
        return self._asked is not None and not self._is_read(self._asked, reader)

    def positions(self, reader: Reader) -> dict[TopicPartition, int]:
        """Behind what has been taken to be answered. The reader may be further."""
        return {item: self._ahead.position(item, reader.position(item)) for item in self._inputs}

    def look(self, reader: Reader, now: datetime, *, asks: bool) -> None:
        """Move on to the instants of the last ends that are read, and answered."""
        if self._asked is None and asks:
            self._asked = self._ask(reader, now)
        if self._asked is not None and self._is_read(self._asked, reader):
            self.known_until = max(self.known_until, self._asked.asked_at)
            self._unanswered.append(self._asked)
            self._asked = None
        if not self._ahead:
            self.read_until = self.known_until
            self._unanswered.clear()
        elif self._unanswered:
            positions = self.positions(reader)
            while self._unanswered and all(positions[item] >= end for item, end in self._unanswered[0].ends.items()):
                self.read_until = max(self.read_until, self._unanswered.popleft().asked_at)

    def _ask(self, reader: Reader, now: datetime) -> _Ends | None:
        """None where an input ends before what has been read of it.

        The log has lost that, and what it holds there since then will not be read. The reader is about to be told.
        """
        ends = self._log.end_offsets(self._inputs)
        return None if any(reader.position(item) > end for item, end in ends.items()) else _Ends(now, ends)

    def _is_read(self, asked: _Ends, reader: Reader) -> bool:
        return all(reader.position(item) >= end for item, end in asked.ends.items())
