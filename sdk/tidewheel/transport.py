"""How a worker and the owner of its queue reach each other: the port. Its adapters stand in `transports/`.

Whatever is decided, `session.py` and `holdings.py` decide it for all of them. A transport that dies loses nothing:
reports that were not acknowledged are made again, and hand-outs that were not read come to an end by their leases.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from tidewheel.holdings import Report
from tidewheel.logs.capture import Chunk
from tidewheel.wire import Answer


class InboxLost(Exception):
    """Post may have passed unread, and why: only a new incarnation can be sure of its post again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """What came for an incarnation by itself. At the instant `current_at` nothing of it had been there yet."""

    incarnation: str
    answer: Answer
    current_at: float


class Inbox(Protocol):
    """Post that comes by itself, in the order in which it was written. One loop uses it."""

    async def open(self, incarnation: str) -> None:
        """Return once all post from now on will be received, so that the incarnation may report itself.

        Again for the same one: nothing. Post of the incarnation before is not received any more. `Unreachable` when
        it can't be done now.
        """

    async def receive(self) -> Post:
        """The next post; `InboxLost` when some may have been missed, or can't be had."""

    @property
    def is_current(self) -> bool:
        """Whether what is handed out now would be received in time."""


class Transport(Protocol):
    """The way to the owner of one shard of a queue. `place` is where that is, for people.

    `inbox` brings post by itself; None where it comes in answer to reports, and is waited for by asking.
    """

    place: str

    @property
    def inbox(self) -> Inbox | None:
        """See above; the same one always."""

    async def report(self, report: Report) -> Answer:
        """Return once the other side has the report: it is acknowledged, and this came with it.

        `Unreachable` when it may have it or not, `TidewheelError` when it will never have it as it stands.
        """

    async def log(self, chunks: Sequence[Chunk]) -> Mapping[str, str]:
        """Return once the other side has these lines; of which leases it does not take any, and why.

        `Unreachable` when it may have them or not, `TidewheelError` when it will never have them as they stand.
        """

    async def close(self) -> None:
        """Give everything back; reports that are under way may arrive or not."""
