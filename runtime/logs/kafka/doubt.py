"""Whether a commit leaves doubt: the decision is pure, what it is made from is gathered while a transaction is open.

Our client speaks the first version of the transaction protocol, in which a commit names producer and epoch, not the
transaction. A commit that was held up in the network, repeated and acknowledged can arrive once more in the middle of
the next transaction, and end it half done. A new epoch refuses it. So whatever may have made the client repeat a
request taints the producer: before its next transaction it is closed and opened anew under the same id.
Being wrong on this side costs some ten milliseconds.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from typing import Any

import orjson

from schemas.frozen import frozen

# A commit takes some milliseconds. It is repeated after `socket.timeout.ms`, which is never below this.
SLOW_SECONDS = 1.0

_END = re.compile(r"EndTxn returned (\w+)")
_OWN_EPOCH = re.compile(r"Acquired PID\{Id:(\d+),Epoch:(\d+)\}")
REMEMBERED = 100  # lines and errors of one transaction
EPOCH_BITS = 16  # of a broker's epoch, which begins anew with each producer id


@frozen
class Seen:
    """What was noticed between `begin` and the return of `commit` or `abort`."""

    errors: Sequence[str] = ()  # what the client reported in the background, by name
    lines: Sequence[tuple[str, str]] = ()  # its log: facility and text
    troubles: int = 0  # how many requests timed out and connections were lost, by its statistics
    seconds: float = 0.0  # from the call of `commit` or `abort` to its return
    repeated: bool = False  # whether we had to call it again


def doubt(seen: Seen) -> str:
    """Why the producer must not begin another transaction, or nothing."""
    if seen.repeated:
        return "it had to be repeated"
    if seen.errors:
        return f"meanwhile: {', '.join(sorted(set(seen.errors)))}"
    if seen.troubles:
        return f"{seen.troubles} requests timed out or connections were lost meanwhile"
    if seen.seconds > SLOW_SECONDS:
        return f"it took {seen.seconds:.1f} s"
    return next(filter(None, map(_told, seen.lines)), "")


def _told(line: tuple[str, str]) -> str:
    """What a line of the client's log says of a disturbed transaction."""
    facility, text = line
    if facility == "ENDTXN":
        found = _END.search(text)
        return "" if found and found[1] == "NO_ERROR" else f"the client says: {text}"
    if facility == "TXNCOORD" and "coordinator changed" in text:
        return f"the client says: {text}"
    return ""


def own_epoch(lines: Sequence[tuple[str, str]]) -> int | None:
    """The newest (producer id, epoch) that the log tells of, as one number that grows with both.

    The broker gives the pair to one producer of an id at a time, the epoch growing; a new producer id, which it draws
    when it has forgotten the id or the epoch is used up, is larger as long as the id stays with its coordinator.
    """
    found = [match for facility, text in lines if facility == "GETPID" and (match := _OWN_EPOCH.search(text))]
    return (int(found[-1][1]) << EPOCH_BITS) + int(found[-1][2]) if found else None


def troubles(statistics: str) -> int:
    """Requests that timed out and connections that were lost, of a client since it was made.

    Repeated requests are not counted: a transaction that follows at once on another asks several times to begin, and
    of a commit that was repeated its log tells.
    """
    brokers: dict[str, dict[str, Any]] = orjson.loads(statistics).get("brokers", {})
    return sum(broker.get(counter, 0) for broker in brokers.values() for counter in ("req_timeouts", "disconnects"))


class Watch:
    """Gathers what `doubt` is decided from. It is the client's logger, and its callbacks are bound to it."""

    def __init__(self) -> None:
        # One of each is enough; the last ones are kept, as brokers that are away are complained of for ever.
        self._errors: deque[str] = deque(maxlen=REMEMBERED)
        self._lines: deque[tuple[str, str]] = deque(maxlen=REMEMBERED)
        self._troubles = 0
        self._troubles_before = 0
        self._counted = False

    def begin(self) -> None:
        """What was noticed before is over: between transactions nothing can be torn."""
        self._errors.clear()
        self._lines.clear()
        self._troubles_before = self._troubles

    def seen(self, *, seconds: float, repeated: bool) -> Seen:
        """What was noticed since `begin`."""
        return Seen(
            errors=tuple(self._errors), lines=tuple(self._lines), troubles=self._troubles - self._troubles_before,
            seconds=seconds, repeated=repeated,
        )  # fmt: skip

    def epoch(self) -> int | None:
        """See `own_epoch`."""
        return own_epoch(tuple(self._lines))

    # --- what the client calls ------------------------------------------------------------------------------------

    def log(self, _level: int, _format: str, facility: str, _client: str, text: str) -> None:
        """A line of its log. Few of them say something of use; some forty a transaction do not."""
        if facility in {"ENDTXN", "TXNCOORD", "GETPID"}:
            self._lines.append((facility, text))

    def error(self, error: Any) -> None:
        """`error_cb`."""
        self._errors.append(error.name())

    def statistics(self, text: str) -> None:
        """`stats_cb`. The first ones tell of how the connections came about."""
        self._troubles = troubles(text)
        if not self._counted:
            self._counted, self._troubles_before = True, self._troubles
