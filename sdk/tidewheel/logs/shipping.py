"""Lines on their way to the server: gathered for a second, sent attempt by attempt in turn, tried again in time.

Nothing waits for it but the report that an attempt is over, for half a second at most, and not at all while the server
takes no lines. What can't be sent is given up with its attempt's room, or a minute after its end, and counted in the
worker's own log.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import Awaitable, Callable, Mapping, Sequence

from tidewheel.clock import boottime
from tidewheel.errors import TidewheelError, Unreachable
from tidewheel.logs.capture import Capture, Chunk
from tidewheel.logs.redaction import Redaction
from tidewheel.logs.sources import LISTENING
from tidewheel.wire import HandOut, keyless

_LOG = logging.getLogger("tidewheel.worker")

FLUSH_SECONDS = 1.0  # until what was written is sent, while the attempt runs
LAST_SECONDS = 0.5  # that the report of an attempt's end waits for its last lines
SEND_SECONDS = 5.0  # for one answer
RETRY_SECONDS = (0.5, 5.0)
KEPT_SECONDS = 60.0  # after an attempt's end: then its lines are given up
ENDED_MAX = 200  # attempts that are over and have lines left; the oldest are given up
BATCH_BYTES_MAX = 160 * 1024  # of one call: with its JSON below what the server takes
BATCH_CHUNKS_MAX = 200
NOT_TAKEN = frozenset({404, 405, 501})  # by a server of a version that knows no logs

Send = Callable[[Sequence[Chunk]], Awaitable[Mapping[str, str]]]


class Shipping:
    """What the attempts of one worker write, on its way. `send` answers which leases' lines were refused, and why."""

    def __init__(self, send: Send, redaction: Redaction, slots: int) -> None:
        self._send, self._redaction, self._slots = send, redaction, slots
        self._captures: dict[str, Capture] = {}  # by lease, those with something to say first in turn
        self._loop = asyncio.get_running_loop()
        self._come, self._hurry, self._settled = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.is_down = self._is_over = False
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin."""
        LISTENING.start()
        self._task = asyncio.create_task(self._run())

    async def close(self, seconds: float = LAST_SECONDS) -> None:
        """End, after what still waits was sent if that is possible soon."""
        if self._task is None or self._is_over:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                for capture in list(self._captures.values()):
                    await self.flush(capture)
        self._is_over = True
        LISTENING.stop()
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        for lease in list(self._captures):
            self._give_up(lease, "the worker ended")

    def open(self, handout: HandOut) -> Capture:
        """Listen to an attempt that begins."""
        capture = Capture(handout, self._redaction, slots=self._slots, on_lines=self._lines_came)
        self._captures[handout.lease] = capture
        LISTENING.begin(capture)
        return capture

    def end(self, lease: str) -> Capture | None:
        """The attempt is over; returns it while it has lines that may be sent soon."""
        capture = self._captures.get(lease)
        if capture is None:
            return None
        LISTENING.end(capture)
        capture.close()
        capture.ended_at = boottime()
        if not capture.is_waiting:
            del self._captures[lease]
            return None
        if len(self._captures) > self._slots + ENDED_MAX:
            self._forget()
        return None if self.is_down else capture

    async def flush(self, capture: Capture) -> None:
        """Return once all lines of an attempt were sent, or nothing can be sent now."""
        while capture.is_waiting and not self.is_down:
            self._settled.clear()
            self._hurry.set()
            self._come.set()
            await self._settled.wait()

    # --- within ---

    def _lines_came(self) -> None:
        with contextlib.suppress(RuntimeError):  # The loop is closed: nobody sends any more.
            self._loop.call_soon_threadsafe(self._come.set)

    async def _run(self) -> None:
        while True:
            await self._come.wait()
            self._come.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(FLUSH_SECONDS):
                    await self._hurry.wait()
            self._hurry.clear()
            while chunks := self._gather():
                await self._send_some(chunks)
                self._forget()
                self._settled.set()
            self._settled.set()

    def _gather(self) -> list[Chunk]:
        """A chunk of each attempt in turn, as many as one call may bring; who was served goes to the end."""
        chunks: list[Chunk] = []
        size = 0
        for lease, capture in list(self._captures.items()):
            if (chunk := capture.chunk()) is None:
                continue
            size += chunk.size
            if chunks and (size > BATCH_BYTES_MAX or len(chunks) >= BATCH_CHUNKS_MAX):
                break
            chunks.append(chunk)
            self._captures[lease] = self._captures.pop(lease)
        return chunks

    async def _send_some(self, chunks: Sequence[Chunk]) -> None:
        try:
            async with asyncio.timeout(SEND_SECONDS):
                refused = await self._send(chunks)
        except (Unreachable, TimeoutError) as error:
            await self._wait_after(str(error) or "no answer in time")
            return
        except TidewheelError as refusal:
            self._refused(chunks, refusal)
            return
        except Exception:  # noqa: BLE001 -- whatever it was, other lines are sent
            _LOG.exception("logs of runs could not be sent")
            for chunk in chunks:
                self._give_up(chunk.lease, "they could not be sent")
            return
        if self.is_down:
            _LOG.info("logs of runs are taken again")
        self.is_down = False
        for chunk in chunks:
            if (capture := self._captures.get(chunk.lease)) is not None:
                capture.arrived(chunk)
        for lease, reason in refused.items():
            self._give_up(lease, f"refused: {reason}")

    async def _wait_after(self, why: str) -> None:
        if not self.is_down:
            _LOG.warning(
                "logs of runs cannot be sent (%s): runs go on without, and what finds no room is left out", why
            )
        self.is_down = True
        self._forget()
        self._settled.set()
        await asyncio.sleep(random.uniform(*RETRY_SECONDS))  # so that not all workers come at once

    def _refused(self, chunks: Sequence[Chunk], refusal: TidewheelError) -> None:
        """As a whole: by a server that knows no logs, or because of something in these lines."""
        said = "; ".join([str(refusal), *map(str, refusal.faults)])
        if refusal.status in NOT_TAKEN:
            _LOG.warning("the server takes no logs of runs: is it of an older version? (%s)", said)
        for chunk in chunks:
            self._give_up(chunk.lease, f"refused: {said}"[:300])

    def _forget(self) -> None:
        """Attempts that have said all, and what waits for too long."""
        ended = [lease for lease, capture in self._captures.items() if capture.ended_at is not None]
        for lease in ended:
            capture = self._captures[lease]
            if not capture.is_waiting:
                del self._captures[lease]
            elif capture.ended_at is not None and boottime() - capture.ended_at > KEPT_SECONDS:
                self._give_up(lease, "nobody took it in time")
        over = [lease for lease in ended if lease in self._captures][:-ENDED_MAX]
        for lease in over:
            self._give_up(lease, "too much waits to be sent")

    def _give_up(self, lease: str, why: str) -> None:
        capture = self._captures.pop(lease, None)
        if capture is None:
            return
        LISTENING.end(capture)
        capture.give_up()
        if capture.lost:
            run_id = capture.handout.run["run_id"]
            _LOG.warning("%d lines of run %s (%s) are lost: %s", capture.lost, run_id, keyless(lease), why)
