"""The lines of one attempt, from whoever writes them, to whoever sends them.

    log records, prints, output ──▶ redacted, cut, numbered ──▶ waiting ──▶ chunks ──▶ server
                                          └── beyond the bounds ──▶ only the last ones, told at the end

An attempt has a room of its own for what waits to be sent, so one that writes much, or a server that takes nothing,
costs its own lines and nobody else's. What is left out is counted, and told with the next line that is not. Lines are
added by any thread; chunks are taken by the worker's loop.
"""

from __future__ import annotations

import codecs
import hashlib
import re
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from tidewheel import jsontext
from tidewheel.logs.redaction import HIDDEN, Redaction
from tidewheel.wire import HandOut

LINES_MAX = 10_000  # of an attempt, counted from its first,
BYTES_MAX = 1024 * 1024  # or so much of their text; beyond either only
LAST_LINES_MAX = 500  # the last ones are kept, where it usually says what went wrong,
LAST_BYTES_MAX = 64 * 1024  # as far as they take no more than this
TEXT_MAX = 4_096  # characters of a line
MESSAGE_MAX = 64 * 1024  # characters that are looked at together
# Where a line goes on that was longer, its first word is not shown: it may be the end of a secret.
_SEAM = re.compile(r"\A[^\S\n]{0,4}\S{1,1024}")
PENDING_BYTES_MAX = 256 * 1024  # that wait to be sent, of one attempt; less where a worker has many slots
PENDING_BYTES_ALL = 8 * 1024 * 1024  # what all attempts of a worker have together,
PENDING_BYTES_MIN = 16 * 1024  # but each at least this
CHUNK_BYTES_MAX = 64 * 1024
CHUNK_LINES_MAX = 1_000
KEY_LENGTH_MIN = 16  # of a lease; a shorter one is no secret, and may stand in any word
STREAMS = ("stdout", "stderr")
_Utf8 = codecs.getincrementaldecoder("utf-8")


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some lines of one attempt, as JSON. It is sent as it is until it has arrived: its first line names it."""

    lease: str
    run_id: str
    retention: str | None
    first: int
    lines: tuple[bytes, ...]

    @property
    def size(self) -> int:
        """Bytes of its lines."""
        return sum(map(len, self.lines))

    @property
    def proof(self) -> str:
        """What may be shown to everybody who reads the log, instead of the lease."""
        return hashlib.sha256(b"tidewheel.log\0" + self.lease.encode()).hexdigest()[:32]


class Capture:
    """What one attempt writes. `on_lines` hears, in any thread, that something waits where nothing did before."""

    def __init__(
        self, handout: HandOut, redaction: Redaction, *, slots: int = 1, on_lines: Callable[[], None] = lambda: None
    ) -> None:
        self.handout = handout
        self.lost = 0  # lines that waited and were given up
        self.ended_at: float | None = None
        self._redaction = redaction
        key = handout.lease.rpartition(".")[2]  # whoever has it can report with it
        self._key = key if len(key) >= KEY_LENGTH_MIN else ""
        self._on_lines = on_lines
        self._room = min(PENDING_BYTES_MAX, max(PENDING_BYTES_MIN, PENDING_BYTES_ALL // max(1, slots)))
        self._lock = threading.Lock()
        # By stream, from its first word on: most attempts write nothing.
        self._decoders: dict[str, codecs.IncrementalDecoder] = {}
        self._partial: dict[str, str] = {}
        self._is_cut: dict[str, bool] = {}
        self._key_left: dict[str, int] = {}  # by stream: how much of a private key may still come
        self._pending: deque[tuple[int, bytes]] = deque()
        self._pending_bytes = 0
        self._sending: Chunk | None = None
        self._next = 0
        self._taken_bytes = 0
        self._left_out = 0  # since the last line that was not
        self._last: deque[tuple[str, str, str, datetime]] = deque()
        self._last_bytes = 0
        self._is_beyond = self._is_closed = False

    # --- written ---

    def write(self, stream: str, text: str, *, level: str = "", at: datetime | None = None) -> None:
        """Whole lines."""
        with self._lock:
            self._write(stream, text, level, at or datetime.now(UTC))

    def print(self, stream: str, text: str) -> None:
        """A part of what is printed: its lines end where it says so."""
        for start in range(0, len(text), MESSAGE_MAX):
            with self._lock:
                part = self._partial.get(stream, "") + text[start : start + MESSAGE_MAX]
                whole, newline, rest = part.rpartition("\n")
                is_cut = len(rest) > MESSAGE_MAX
                if is_cut:
                    whole, newline, rest = whole + newline + rest, "\n", ""
                self._partial[stream] = rest
                if newline:
                    self._write(stream, self._behind_seam(stream, whole), "", datetime.now(UTC))
                self._is_cut[stream] = is_cut or (self._is_cut.get(stream, False) and not newline)

    def output(self, stream: str, data: bytes) -> None:
        """The same of bytes, as a process writes them."""
        if (decoder := self._decoders.get(stream)) is None:
            decoder = self._decoders[stream] = _Utf8("replace")
        self.print(stream, decoder.decode(data))

    def close(self) -> None:
        """The attempt is over: what is said after it belongs to nobody."""
        with self._lock:
            if self._is_closed:
                return
            now = datetime.now(UTC)
            for stream in STREAMS:
                decoder = self._decoders.get(stream)
                if rest := self._partial.get(stream, "") + (decoder.decode(b"", final=True) if decoder else ""):
                    self._write(stream, self._behind_seam(stream, rest), "", now)
            self._tell_last(now)
            self._is_closed = True

    # --- sent ---

    @property
    def is_waiting(self) -> bool:
        """Whether something waits to be sent, or is on its way."""
        return self._sending is not None or bool(self._pending)

    @property
    def waiting_bytes(self) -> int:
        """How much that is."""
        return self._pending_bytes

    def chunk(self) -> Chunk | None:
        """What is to be sent now: the same until it has arrived."""
        with self._lock:
            if self._sending is None and self._pending:
                self._sending = self._take()
            return self._sending

    def arrived(self, chunk: Chunk) -> None:
        """The server has it, or never will."""
        with self._lock:
            if self._sending is chunk:
                self._sending = None
            self._refill()

    def give_up(self) -> None:
        """Nothing of this attempt will be sent any more."""
        with self._lock:
            self.lost += len(self._pending) + (0 if self._sending is None else len(self._sending.lines))
            self.lost += len(self._last) + self._left_out
            self._pending.clear()
            self._last.clear()
            self._pending_bytes, self._sending, self._is_closed = 0, None, True

    def _take(self) -> Chunk:
        first, size, lines = self._pending[0][0], 0, list[bytes]()
        while self._pending and len(lines) < CHUNK_LINES_MAX:
            line = self._pending[0][1]
            if lines and size + len(line) > CHUNK_BYTES_MAX:
                break
            size += len(line)
            lines.append(line)
            self._pending.popleft()
        self._pending_bytes -= size
        run = self.handout.run
        return Chunk(
            lease=self.handout.lease, run_id=str(run["run_id"]), retention=run["job"].get("log_retention"),
            first=first, lines=tuple(lines),
        )  # fmt: skip

    # --- within ---

    def _write(self, stream: str, text: str, level: str, at: datetime) -> None:
        """Beyond the bounds nothing is looked at any more: what writes without end must not take the loop's time."""
        if self._is_closed:
            return
        if len(text) > 2 * MESSAGE_MAX:
            kept = text[: 2 * MESSAGE_MAX]
            kept = kept.rpartition("\n")[0] or kept  # whole lines: half of one may be half of a secret
            self._left_out += text.count("\n", len(kept))
            text = kept
        if self._is_beyond:
            self._keep_last(stream, text.split("\n"), level, at)
            return
        lines = self._hidden(stream, text).split("\n")
        for number, line in enumerate(lines):
            if self._next + len(self._last) >= LINES_MAX or self._taken_bytes + len(line) > BYTES_MAX:
                self._is_beyond = True
                self._keep_last(stream, lines[number:], level, at)
                return
            self._taken_bytes += len(line[:TEXT_MAX])
            self._refill()
            if self._last or not self._has_room:
                self._keep_last(stream, [line], level, at)
            else:
                self._put(stream, line, level, at)

    def _behind_seam(self, stream: str, text: str) -> str:
        return _SEAM.sub(HIDDEN, text) if self._is_cut.get(stream) else text

    def _hidden(self, stream: str, text: str) -> str:
        text = text.replace(self._key, HIDDEN) if self._key else text
        text, self._key_left[stream] = self._redaction.hide_on(text, self._key_left.get(stream, 0))
        return text

    @property
    def _has_room(self) -> bool:
        return self._pending_bytes < self._room

    def _refill(self) -> None:
        """What found no room finds some now, the oldest first. Beyond the bounds it waits for the end."""
        while self._last and self._has_room and not self._is_beyond:
            line = self._last.popleft()
            self._last_bytes -= len(line[1])
            self._put(*line)

    def _keep_last(self, stream: str, lines: list[str], level: str, at: datetime) -> None:
        self._left_out += max(0, len(lines) - LAST_LINES_MAX)
        for line in lines[-LAST_LINES_MAX:]:
            text = line[:MESSAGE_MAX]
            self._last.append((stream, text, level, at))
            self._last_bytes += len(text)
        while len(self._last) > LAST_LINES_MAX or self._last_bytes > LAST_BYTES_MAX:
            self._last_bytes -= len(self._last.popleft()[1])
            self._left_out += 1

    def _tell_last(self, now: datetime) -> None:
        """They find room, whatever waits: there are few, and nothing comes behind them."""
        if self._left_out:
            why = "an attempt's log has 10,000 lines or 1 MiB" if self._is_beyond else "they could not be sent in time"
            self._put("worker", f"{self._left_out} lines were left out here: {why}", "WARNING", now)
        texts = {stream: iter(self._last_of(stream)) for stream in {stream for stream, _, _, _ in self._last}}
        for stream, _, level, at in self._last:
            self._put(stream, next(texts[stream]), level, at)
        self._last.clear()

    def _last_of(self, stream: str) -> list[str]:
        """As they may be shown: beyond the bounds nobody has looked at them."""
        own = [text for of, text, _, _ in self._last if of == stream]
        return self._hidden(stream, "\n".join(own)).split("\n") if self._is_beyond else own

    def _put(self, stream: str, text: str, level: str, at: datetime) -> None:
        text = text.removesuffix("\r")
        line: dict[str, Any] = {
            "line": self._next, "at": _instant(at), "stream": stream, "text": _sendable(text[:TEXT_MAX])
        }  # fmt: skip
        if level:
            line["level"] = level[:32]
        if len(text) > TEXT_MAX:
            line["cut"] = len(text) - TEXT_MAX
        if self._left_out:
            line["dropped"] = self._left_out
        data = jsontext.dumps(line)
        self._left_out = 0
        self._next += 1
        self._pending.append((line["line"], data))
        self._pending_bytes += len(data)
        if len(self._pending) == 1 or self._pending_bytes > CHUNK_BYTES_MAX:
            self._on_lines()


def _instant(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _sendable(text: str) -> str:
    """Text that has a UTF-8 form."""
    return text.encode("utf-8", "replace").decode()
