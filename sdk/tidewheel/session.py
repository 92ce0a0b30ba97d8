"""A worker's conversation with the owner of one shard of its queue, from the first report to the last.

Prompt reports tell what started and finished. One is sent as soon as the one before was acknowledged and carries all
that gathered meanwhile, so a quiet worker reports each run at once and a busy one many runs a call. Beside them post
is waited for: hand-outs, cancels, ended leases. Where the transport has an inbox it comes by itself, and else in the
answers, those to prompt reports and those to a long poll that is always under way.

If the process dies, its leases end on the server and its runs are handed out again. If the server cannot be reached,
outcomes are kept and repeated; two thirds of a lease without an acknowledgement and all work is dropped, because
the server may give it to someone else soon after (`_fence`). The worker then goes on as a new incarnation, after the
old one took leave with all it had to say: what was done counts as long as nobody else was given the run.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import metadata
from typing import Any

from tenacity import AsyncRetrying, retry_if_exception_type, wait_random_exponential

from tidewheel import wire
from tidewheel.attempts import Attempts
from tidewheel.clock import boottime
from tidewheel.errors import TidewheelError, Unreachable, WorkerReplaced
from tidewheel.holdings import Holdings, Report
from tidewheel.logs.redaction import Redaction
from tidewheel.logs.shipping import LAST_SECONDS, Shipping
from tidewheel.targets.offers import Target
from tidewheel.tasks import Task
from tidewheel.transport import Inbox, InboxLost, Transport
from tidewheel.wire import Answer, HandOut, Layout

_LOG = logging.getLogger("tidewheel.worker")

CLIENT = f"tidewheel/{metadata.version('tidewheel')}"  # what the list of workers says of us
CLAIM_WAIT_SECONDS = 20.0  # below what proxies commonly cut off
CALL_SECONDS = 5.0  # for an answer that is not waited for: a third of what ends an idle incarnation
BACKOFF_SECONDS_MAX = 5.0  # A server that comes back is found within one idle period.
# After a long poll that came back at once with nothing new, so that no server is asked in a tight loop: it repeats a
# cancel with each report of a task that does not stop.
EMPTY_SECONDS = 0.1
STOP_SECONDS = 2.0  # for a coroutine's clean-up after it was interrupted
FORMER_MAX = 8  # incarnations whose tasks may still run and have something to say
FORMER_SECONDS = 12 * 3600.0  # The server knows an ended incarnation for a day; later it would take it for a new one.
OWN_MAX = 100  # incarnations remembered: a late answer may still name an older one of ours
LAST_WORD_SECONDS = 5.0  # for the reports at the end of a drain; what is not told by then is found out by the server


@dataclass(slots=True)
class Company:
    """What a session shares with others of its worker, and what they want to know of it.

    `free` is how many slots of the worker have no task, whoever has them. `own` are the incarnations that it has had
    in the shard. `hear` is told how shards stand, `changed` that there is more or less to do.
    """

    slots: int
    free: Callable[[], int]
    hear: Callable[[Layout], None]
    changed: Callable[[], None]
    own: deque[str] = field(default_factory=lambda: deque(maxlen=OWN_MAX))


class Session:
    """One worker's work on one shard. `start`, then `wait` for its end; `drain` brings it about.

    On the only shard of its queue it is alone. In `company` it has a part of the worker's slots, which may change.
    """

    def __init__(
        self,
        transport: Transport,
        tasks: Mapping[str, Task | Target],
        *,
        name: str,
        slots: int,
        on_stuck: Callable[[int], None] | None = None,
        redaction: Redaction | None = None,
        company: Company | None = None,
    ) -> None:
        self._transport = transport
        self._on_stuck = on_stuck
        self._name = name
        slots_max = slots if company is None else company.slots
        self._company = company
        self._task_names = tuple(sorted(tasks))
        # Without a redaction nothing is sent of what runs write.
        self._shipping = None if redaction is None else Shipping(transport.log, redaction, slots_max)
        listen = (lambda _handout: None) if self._shipping is None else self._shipping.open
        self._attempts = Attempts(tasks, slots, self._attempt_ended, listen, slots_max)
        self._telling: set[asyncio.Task[None]] = set()  # the last lines of attempts that are over
        self._holdings = self._new_incarnation()
        self._former: deque[Holdings] = deque(maxlen=FORMER_MAX)
        self._own = deque[str](maxlen=OWN_MAX) if company is None else company.own
        self._own.append(self._holdings.incarnation)
        self._wake = asyncio.Event()
        self._saying = asyncio.Lock()
        self._introduced = asyncio.Event()
        self._introduced.set()
        self._draining = self._ending = self._down = False
        self._said_free = -1
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._reporter: asyncio.Task[None] | None = None
        self._receiver: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to report and to receive."""
        if self._shipping is not None:
            self._shipping.start()
        self._reporter = self._watched(self._report_for_ever())
        self._receiver = self._watched(self._receive_for_ever())

    async def wait(self) -> None:
        """Until the session is over; raises what ended it, if it was not a drain."""
        try:
            await asyncio.shield(self._over)
        finally:
            if self._over.done():
                await self._close()

    async def drain(self, grace_seconds: float) -> None:
        """Take nothing new, finish what is held within the grace, interrupt the rest, and say so."""
        self._draining = True
        self._wake.set()
        await self._idle_within(grace_seconds)
        self._attempts.stop_all("interrupted")
        await self._idle_within(STOP_SECONDS)
        for lease in self._attempts.abandon("interrupted"):
            _LOG.warning("lease %s was interrupted and its task still runs", wire.keyless(lease))
        if self._receiver is not None:
            self._receiver.cancel()
        if self._telling:
            await asyncio.wait(self._telling)
        self._ending = True
        self._wake.set()
        with contextlib.suppress(TimeoutError, TidewheelError):
            await asyncio.wait_for(asyncio.shield(self._over), LAST_WORD_SECONDS)
        self._end(None)

    def resize(self, slots: int) -> None:
        """Have so many slots from now on. Tasks go on in those that are taken away, and are the last in them."""
        if slots != self._attempts.slots:
            self._attempts.slots = self._holdings.slots_total = slots
            self._wake.set()

    def refresh(self) -> None:
        """Say how many slots are free, if that is not what was said last."""
        if self._free != self._said_free:
            self._wake.set()

    def end(self, error: BaseException) -> None:
        """End at once, for what happened to another session of the worker."""
        self._attempts.stop_all(None)
        self._end(error)

    @property
    def busy(self) -> int:
        """How many tasks are under way."""
        return self._attempts.busy

    @property
    def slots(self) -> int:
        """How many tasks it may have under way."""
        return self._attempts.slots

    @property
    def stuck(self) -> int:
        """How many tasks were asked to stop long ago and have not."""
        return self._holdings.stuck

    # --- what is said ---

    async def _report_for_ever(self) -> None:
        retrying = self._retrying()
        last = False
        while not (last and not self._has_news):
            await self._until_news()
            self._look_for_stuck()
            last = self._ending
            await retrying(self._report_once)
        self._end(None)

    def _look_for_stuck(self) -> None:
        count = self._holdings.stuck = self._attempts.stuck(boottime())
        if count and not self._draining and self._on_stuck is not None:
            self._on_stuck(count)

    async def _report_once(self) -> None:
        if boottime() >= self._holdings.fenced_at():
            self._fence("no report was acknowledged for too long")
        async with self._saying:
            holdings = next((former for former in self._former if former.has_news), self._holdings)
            slots = await self._slots_of(holdings)
            report = holdings.news(slots=slots, draining=self._draining, now=boottime())
            self._said_free = slots
            patience = max(0.0, min(CALL_SECONDS, self._holdings.fenced_at() - boottime()))
            await self._send(holdings, report, patience)
            if not any(former.owes_leave for former in self._former):
                self._introduced.set()

    async def _slots_of(self, holdings: Holdings) -> int:
        """How many runs it would take now; its post, if it comes by itself, can be received from here on."""
        if holdings is not self._holdings:
            return 0
        inbox = self._transport.inbox
        if inbox is None:
            return self._free
        with self._noting():
            await inbox.open(holdings.incarnation)
        return self._free if inbox.is_current and holdings is self._holdings else 0

    @property
    def _free(self) -> int:
        """Slots for hand-outs. What other sessions of the worker have under way in slots that are ours is not over."""
        free = self._attempts.free
        return free if self._company is None else max(0, min(free, self._company.free()))

    async def _send(self, holdings: Holdings, report: Report, patience: float, *, waited: float = 0.0) -> Answer:
        try:
            with self._noting(patience):
                async with asyncio.timeout(patience):
                    answer = await self._transport.report(report)
            holdings.acknowledge(report)
            self._note_up()
            if holdings is self._holdings:
                # Which part of the wait came before the leases the server knows; one that stood still does not.
                waited = waited if answer.waited_seconds is None else min(waited, answer.waited_seconds)
                self._absorb(holdings, report.number, answer, late_by=boottime() - report.sent_at - waited)
            return answer
        except Unreachable:
            raise
        except TidewheelError as refusal:
            self._note_refusal(holdings, report, refusal)
            raise
        finally:
            holdings.end(report)

    # --- what is received ---

    async def _receive_for_ever(self) -> None:
        inbox = self._transport.inbox
        retrying = self._retrying()
        while True:
            if inbox is None:
                await retrying(self._claim_once, secrets.token_hex(8))
            else:
                await self._listen_once(inbox)

    async def _listen_once(self, inbox: Inbox) -> None:
        try:
            post = await inbox.receive()
        except InboxLost as lost:
            self._fence(str(lost))
            return
        if post.incarnation == self._holdings.incarnation:
            self._absorb(self._holdings, 0, post.answer, late_by=boottime() - post.current_at)

    async def _claim_once(self, claim_id: str) -> None:
        await self._introduced.wait()
        # While a prompt report is on its way, its finished leases are neither held nor acknowledged: wait for it.
        async with self._saying:
            holdings = self._holdings
            report = holdings.claim(
                slots=self._free,
                wait_seconds=CLAIM_WAIT_SECONDS,
                claim_id=claim_id,
                now=boottime(),
                draining=self._draining,
            )
        answer = await self._send(holdings, report, CLAIM_WAIT_SECONDS + CALL_SECONDS, waited=CLAIM_WAIT_SECONDS)
        if not (answer.leases or answer.lost) and boottime() - report.sent_at < EMPTY_SECONDS:
            await asyncio.sleep(EMPTY_SECONDS)

    def _absorb(self, holdings: Holdings, number: int, answer: Answer, *, late_by: float) -> None:
        if self._company is not None:
            for layout in answer.layouts:
                self._company.hear(layout)
        if answer.incarnation_ended:
            self._incarnation_ended(answer.ended_by)
            return
        if boottime() >= holdings.fenced_at():  # The process or the machine stood still while the answer came.
            self._fence("the process stood still for too long")
            return
        for lease in answer.lost:
            if holdings.drop(lease):
                self._wake.set()
            self._attempts.stop(lease, None)
        for lease in answer.cancelled:
            self._attempts.stop(lease, "cancelled")
        for handout in holdings.take(number, answer.leases, boottime()):
            self._begin(holdings, handout, late_by)

    def _begin(self, holdings: Holdings, handout: HandOut, late_by: float) -> None:
        if late_by > handout.start_by_seconds:
            holdings.drop(handout.lease)  # Read past and not held: the server hands it out again at once.
            run_id = handout.run.get("run_id")
            _LOG.warning("run %s came up to %.1f s after it was given: it is left to others", run_id, late_by)
        elif self._draining:
            holdings.finish(handout.lease, wire.stopped(handout.lease, "interrupted"))
        elif self._company is not None and self._company.free() <= 0:
            holdings.drop(handout.lease)  # It was given for a slot that has moved to another shard meanwhile.
        elif self._attempts.begin(handout):
            holdings.start(handout.lease)
        self._wake.set()
        self._note_changed()

    def _note_changed(self) -> None:
        if self._company is not None:
            self._company.changed()

    def _attempt_ended(self, handout: HandOut, entry: bytes | None) -> None:
        """Its last lines go before its outcome, if they can go at once."""
        self._note_changed()
        unsent = None if self._shipping is None else self._shipping.end(handout.lease)
        if self._shipping is None or unsent is None:
            self._finish(handout, entry)
            return
        telling = asyncio.ensure_future(self._tell(self._shipping.flush(unsent), handout, entry))
        self._telling.add(telling)
        telling.add_done_callback(self._telling.discard)

    async def _tell(self, lines: Coroutine[Any, Any, None], handout: HandOut, entry: bytes | None) -> None:
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LAST_SECONDS):
                    await lines
        finally:
            self._finish(handout, entry)

    def _finish(self, handout: HandOut, entry: bytes | None) -> None:
        """Whoever held the lease says how it ended: to the server, nobody else can."""
        for holdings in (self._holdings, *self._former):
            if entry is not None and holdings.incarnation == handout.incarnation:
                holdings.finish(handout.lease, entry)
        self._wake.set()

    # --- incarnations ---

    def _incarnation_ended(self, ended_by: str) -> None:
        if ended_by and ended_by not in self._own:
            self._attempts.stop_all(None)
            self._end(WorkerReplaced(self._name, ended_by))
        else:
            self._fence("the server ended this incarnation")

    def _fence(self, reason: str) -> None:
        """Drop all work and begin anew: whoever has the leases next must not meet us."""
        _LOG.warning("%s: all work is dropped (%d tasks), and the worker announces itself anew", reason, self.busy)
        self._attempts.stop_all(None)
        self._holdings.retire(boottime())
        self._former.append(self._holdings)
        while boottime() - (self._former[0].retired_at or 0.0) > FORMER_SECONDS:
            self._former.popleft()
        self._introduced.clear()
        self._wake.set()
        self._holdings = self._new_incarnation()
        self._own.append(self._holdings.incarnation)
        if self._receiver is not None and not self._ending:
            self._receiver.cancel()
            self._receiver = self._watched(self._receive_for_ever())

    def _new_incarnation(self) -> Holdings:
        answered = self._transport.inbox is None
        return Holdings(
            worker=self._name, tasks=self._task_names, now=boottime(), answered=answered, client=CLIENT,
            slots_total=self._attempts.slots,
        )  # fmt: skip

    @property
    def _has_news(self) -> bool:
        return any(holdings.has_news for holdings in (self._holdings, *self._former))

    # --- waiting ---

    async def _until_news(self) -> None:
        if self._has_news or self._ending:
            return
        due_at = min(self._holdings.sent_at + self._holdings.interval_seconds(), self._holdings.fenced_at())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, due_at - boottime())):
                await self._wake.wait()
        self._wake.clear()

    def _retrying(self) -> AsyncRetrying:
        return AsyncRetrying(
            retry=retry_if_exception_type(TidewheelError),
            wait=wait_random_exponential(multiplier=0.2, max=BACKOFF_SECONDS_MAX),
            sleep=self._back_off,
        )

    async def _back_off(self, seconds: float) -> None:
        """No longer than reports may be apart, nor past the moment when work must stop."""
        until_fenced = max(0.0, self._holdings.fenced_at() - boottime())
        await asyncio.sleep(min(seconds, self._holdings.interval_seconds(), until_fenced))

    async def _idle_within(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._attempts.idle.wait()

    # --- the end ---

    def _watched(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(coroutine)
        task.add_done_callback(self._watch)
        return task

    def _watch(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._end(error)

    def _end(self, error: BaseException | None) -> None:
        if self._over.done():
            return
        if error is None:
            self._over.set_result(None)
        else:
            self._over.set_exception(error)

    async def _close(self) -> None:
        calls = [task for task in (self._reporter, self._receiver) if task is not None]
        for task in calls:
            task.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        if self._shipping is not None:
            await self._shipping.close()
        self._attempts.close()
        await self._transport.close()

    # --- what the operator hears ---

    @contextlib.contextmanager
    def _noting(self, patience: float = 0.0) -> Iterator[None]:
        """Tell the operator once that the other side is away; patience that came to an end is such a case."""
        try:
            yield
        except TimeoutError as error:
            unreachable = Unreachable(f"{self._transport.place} did not answer within {patience:.1f} s")
            self._note_down(unreachable)
            raise unreachable from error
        except Unreachable as error:
            self._note_down(error)
            raise

    def _note_down(self, error: Unreachable) -> None:
        if not self._down:
            _LOG.warning("%s; trying again until it answers", error)
        self._down = True

    def _note_up(self) -> None:
        if self._down:
            _LOG.info("%s answers again", self._transport.place)
        self._down = False

    def _note_refusal(self, holdings: Holdings, report: Report, refusal: TidewheelError) -> None:
        said = "; ".join([str(refusal), *map(str, refusal.faults)])
        _LOG.error("%s refused a report (%s): %s", self._transport.place, refusal.status, said)
        lease = holdings.refuse(report, said) if report.finished else None
        if lease is not None:
            _LOG.error("the outcome of lease %s was refused; it is reported as failed instead", wire.keyless(lease))
