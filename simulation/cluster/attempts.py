"""User code in a simulated worker: what a run does stands in its payload, and the ledger hears of all of it.

seconds    how long it takes
fails      never | always | first: on the first attempt only | half: every second run or so, on each attempt
stubborn   goes on when it is asked to stop, and gives its result back all the same
kills      the worker dies of it
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

from simulation.cluster import targets
from simulation.cluster.ledger import FAILED, KILLED, SUCCEEDED
from simulation.cluster.threads import Flag
from simulation.evidence import Execution, marker
from simulation.loop import Killed
from tidewheel import wire
from tidewheel.wire import HandOut

if TYPE_CHECKING:
    from simulation.cluster.worker import WorkerProcess


@dataclass(slots=True, eq=False)
class Attempt:
    """One attempt under way. `stopped` is the outcome to report if it ends because it was asked to."""

    handout: HandOut
    asked: Flag
    stopped: str | None = None

    def stop(self, outcome: str | None) -> None:
        """Ask it to stop, once. None: tell nobody."""
        if not self.asked.is_set():
            self.stopped = outcome
            self.asked.set()


class Attempts:
    """As the SDK's: all attempts under way, by lease."""

    def __init__(self, worker: WorkerProcess) -> None:
        self._worker = worker
        self._under_way: dict[str, Attempt] = {}

    @property
    def busy(self) -> int:
        """How many are under way."""
        return len(self._under_way)

    @property
    def free(self) -> int:
        """Slots without a task in them."""
        return max(0, self._worker.node.slots - self.busy)

    def begin(self, handout: HandOut) -> None:
        """Call the task of a hand-out."""
        attempt = Attempt(handout, Flag(self._worker.loop))
        self._under_way[handout.lease] = attempt
        self._worker.spawn(f"runs {handout.run['run_id']}", lambda: self._run(attempt))

    def stop(self, lease: str, outcome: str | None) -> None:
        """Ask one attempt to stop, if it is under way."""
        attempt = self._under_way.get(lease)
        if attempt is not None:
            attempt.stop(outcome)

    def stop_all(self, outcome: str | None) -> None:
        """Ask every attempt to stop."""
        for attempt in list(self._under_way.values()):
            attempt.stop(outcome)

    def abandon(self, outcome: str) -> list[str]:
        """Give up on what did not stop."""
        left = list(self._under_way.values())
        for attempt in left:
            is_lost = attempt.asked.is_set() and attempt.stopped is None
            lease = attempt.handout.lease
            self._ended(attempt, None if is_lost else wire.stopped(lease, outcome))
        return [attempt.handout.lease for attempt in left]

    def _run(self, attempt: Attempt) -> None:
        site, handout = self._worker.site, attempt.handout
        number = site.ledger.began(self._execution(handout))
        answer = targets.answer(handout)
        try:
            if answer.later_seconds is not None:
                self._until_completed(attempt, number, answer.later_seconds)
                return
            asked = self._user_code(attempt)
        except Killed:
            site.ledger.ended(number, KILLED)
            raise
        if asked:
            site.ledger.ended(number, FAILED)
            entry = None if attempt.stopped is None else wire.stopped(handout.lease, attempt.stopped)
        elif answer.error:
            site.ledger.ended(number, FAILED)
            entry = wire.failed(
                handout.lease, answer.error, "as it answers", retry_after_seconds=answer.retry_after_seconds
            )
        elif _fails(handout):
            site.ledger.ended(number, FAILED)
            entry = wire.failed(handout.lease, "RuntimeError", f"attempt {handout.attempt} fails as it is told to")
        else:
            result = _result(handout, number)
            site.ledger.ended(number, SUCCEEDED, result)
            entry = wire.succeeded(handout.lease, result)
        self._worker.task_ended()
        if self._worker.machine.alive:
            self._ended(attempt, entry)

    def _until_completed(self, attempt: Attempt, number: int, seconds: float) -> None:
        """Whoever was called works on; the worker keeps the lease until its owner ends it, or it is to stop."""
        site, handout = self._worker.site, attempt.handout

        def completes() -> None:
            result = _result(handout, number)
            site.ledger.ended(number, SUCCEEDED, result)
            targets.complete(site, str(handout.run["job"]["queue"]), handout.lease, result)

        if seconds < targets.NEVER:
            site.loop.later(seconds, completes)
        attempt.asked.wait()
        if attempt.stopped is not None and seconds == targets.NEVER:
            site.ledger.ended(number, FAILED)
        self._ended(attempt, None if attempt.stopped is None else wire.stopped(handout.lease, attempt.stopped))

    def _user_code(self, attempt: Attempt) -> bool:
        """Whether it stopped because it was asked to."""
        payload, worker = attempt.handout.payload, self._worker
        seconds = float(payload.get("seconds", 1)) * worker.chance.uniform(0.5, 1.0)
        if payload.get("kills") and worker.site.options.has("H7") and worker.site.under_faults:
            worker.loop.sleep(seconds)
            worker.site.story.fault("H7", worker.machine.name, f"dies of {attempt.handout.run['run_id']}")
            worker.site.loop.kill(worker.machine)
            raise Killed
        if payload.get("stubborn"):
            worker.loop.sleep(seconds)
            return False
        return attempt.asked.wait(seconds)

    def _execution(self, handout: HandOut) -> Execution:
        run: Any = handout.run
        return Execution(
            run_id=run["run_id"], tenant=run["tenant"], attempt=handout.attempt, lease=handout.lease,
            incarnation=handout.incarnation, worker=self._worker.node.name, started_at=self._worker.site.now(),
            fencing_token=str(handout.offset), may_have_run=handout.may_have_run,
        )  # fmt: skip

    def _ended(self, attempt: Attempt, entry: bytes | None) -> None:
        if self._under_way.pop(attempt.handout.lease, None) is not None:
            self._worker.attempt_ended(attempt.handout, entry)


def _fails(handout: HandOut) -> bool:
    match handout.payload.get("fails", "never"):
        case "always":
            return True
        case "first":
            return handout.attempt == 1
        case "half":
            return Random(str(handout.run["run_id"])).choice((True, False))
        case _:
            return False


def _result(handout: HandOut, number: int) -> dict[str, Any]:
    return {"execution": number, "of": marker(handout.run["tenant"])}
