"""Runs a role's partitions, each in a thread of its own, and decides what an error means.

Which partitions are ours the role's group says; they start when it gives them and stop before it gives them away. The
network's errors are retried, with a bounded pause and a processor opened anew; so are those of a store, which may find
room or let go of its folder later, and which is built anew when it was damaged. An impossible state stops its partition
loudly and leaves the others running. A log that has lost what the partition would need (`Halted`) holds it up just as
loudly, until an operator accepts the loss or mends the log: it looks twice a minute.

Being fenced means that another process has opened the partition. It is the owner, unless the group still says that we
are: a late predecessor can fence its rightful successor, and a broker the owner whose transaction took too long. Then
the partition is taken back. As two would do so for as long as both believe in their right, the pause before it is
random and long enough to hear from the group. Who has worked in between has not been kept from it, and counts anew. Who
has not, some times in a row, holds the partition up as loudly as `Halted` does, and tries twice a minute: a partition
that gave up would wait for a person long after brokers were well again.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Protocol

from runtime.continuity import Halted
from runtime.lifecycle import SYSTEM, Threaded, ThreadService, persevere
from runtime.log import Fenced, LogError
from runtime.machine import Unfit
from runtime.store import StoreCorrupt, StoreError
from runtime.telemetry import Event, Metric, Telemetry

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from runtime.lifecycle import Running, Threads
    from runtime.log import Log

STEP_SECONDS = 1.0  # how long an idle step waits; new records and `stop` wake it at once
RETRY_SECONDS_MIN, RETRY_SECONDS_MAX = 0.1, 10.0  # a log that is back is noticed within this
STEADY_SECONDS = 60.0
POLL_SECONDS = 0.5  # between looks at the group, so that a stop is noticed soon
STOP_SECONDS = 20.0  # for a partition to end its batch; one that takes longer is fenced by its successor
DAMAGED_MAX = 5  # times that a store is built anew: then it is the disk, and a person has to look
UNAVAILABLE_MAX = 360  # times in a row that a store cannot be used: an hour, for somebody to make room on a disk
HALTED_SECONDS = 30.0  # between looks whether a loss was accepted or mended: soon enough for who waits for it
FENCED_SECONDS = 3.0  # at least this long after being fenced: two heartbeats of the group, which may take it from us
FENCED_MAX = 5  # in a row, without work in between: then others are at odds with us, and a person has to look


class Work(Protocol):
    """What is done for a partition: a `Processor`, or something simpler. Calls from one thread, except `wake`."""

    def open(self) -> None:
        """Take the partition over, and whatever is known of it."""
        ...

    def step(self, timeout: float) -> bool:
        """Wait up to `timeout` seconds for work and do one batch of it. Whether there was any."""
        ...

    def settle(self) -> None:
        """Commit what is still to be said before a stop."""
        ...

    def wake(self) -> None:
        """Make a waiting `step` return; from any thread."""
        ...

    def close(self) -> None:
        """Release the partition; idempotent. What was not committed is dropped."""
        ...


class PartitionService(Threaded):
    """One partition of one role as a service. `make` opens its store and builds its processor.

    `pause_when_fenced` is asked, with how many times in a row that was, for seconds to wait before it is taken back;
    None: it is another's now.
    """

    def __init__(
        self,
        role: str,
        number: int,
        make: Callable[[], Work],
        telemetry: Telemetry,
        *,
        pause_when_fenced: Callable[[int], float | None] = lambda _times: None,
        threads: Threads = SYSTEM,
        step_seconds: float = STEP_SECONDS,
        halted_seconds: float = HALTED_SECONDS,
    ) -> None:
        self._make = make
        self._seconds = threads.seconds
        self._step_seconds, self._halted_seconds = step_seconds, halted_seconds
        self._halt = ""
        self._telemetry = telemetry
        self._where = {"role": role, "partition": str(number)}
        self._pause_when_fenced = pause_when_fenced
        self._processor: Work | None = None
        self._abandoned = False
        self._trouble: str | None = None
        self._troubles = self._damages = 0
        self._opened_at: float | None = None
        self._has_worked = False  # since it was opened
        self._fenced = 0  # times in a row
        self._thread = ThreadService(
            f"{role}-{number}", self._run, interrupt=self._wake, failed=self._failed, threads=threads
        )

    @property
    def problem(self) -> str | None:
        """Why it does not work, where that may be over by itself."""
        restoring: str | None = getattr(self._processor, "problem", None)
        return restoring or self._halt or self._trouble

    @property
    def halted(self) -> bool:
        """Whether it waits for a person."""
        return bool(self._halt)

    def abandon(self, timeout: float) -> bool:
        """`stop` without another commit: the partition is another's already."""
        self._abandoned = True
        return self.stop(timeout)

    def _run(self, running: Running) -> None:
        pause = RETRY_SECONDS_MIN
        while not running.stopping.is_set():
            try:
                self._process(running)
            except Fenced as error:
                self._fenced = 1 if self._has_worked or self._was_steady() else self._fenced + 1
                wait = self._pause_when_fenced(self._fenced)
                if wait is None:
                    raise
                self._telemetry.warning(Event.PARTITION_FENCED, reason=str(error), again_in=wait, **self._where)
                if self._fenced > FENCED_MAX:
                    self._hold(Halted(f"fenced more than {FENCED_MAX} times in a row, and no work in between: {error}"))
                running.stopping.wait(wait)
            except LogError as error:
                self._telemetry.warning(Event.COMMIT_RETRIED, reason=str(error), **self._where)
                pause = RETRY_SECONDS_MIN if self._was_steady() else pause
                running.stopping.wait(pause)
                pause = min(pause * 2, RETRY_SECONDS_MAX)
            except Halted as halt:
                self._hold(halt)
                running.stopping.wait(self._halted_seconds)
            except StoreError as error:
                self._bear(error)
                running.stopping.wait(pause)
                pause = min(pause * 2, RETRY_SECONDS_MAX)

    def _was_steady(self) -> bool:
        """Whether it worked for so long that what ended it has nothing to do with what ended it before."""
        return self._opened_at is not None and self._seconds() - self._opened_at > STEADY_SECONDS

    def _hold(self, halt: Halted) -> None:
        """Say why it stands still; once, however often it is looked at."""
        if str(halt) != self._halt:
            self._halt = str(halt)
            self._telemetry.set(Metric.PARTITION_FAILED, self._where, 1)
            self._telemetry.error(Event.PARTITION_FAILED, reason=f"Halted: {halt}", **self._where)

    def _go_on(self) -> None:
        """Whatever held it up is over."""
        self._halt = ""
        self._telemetry.set(Metric.PARTITION_FAILED, self._where, 0)

    def _bear(self, error: StoreError) -> None:
        """Say what a store is up against, and count; the error itself when it was too often."""
        if isinstance(error, StoreCorrupt):
            self._damages += 1
        else:
            self._troubles += 1
        if self._damages > DAMAGED_MAX or self._troubles > UNAVAILABLE_MAX:
            raise error
        self._trouble = str(error)
        self._telemetry.error(Event.STORE_UNAVAILABLE, reason=str(error), **self._where)

    def _process(self, running: Running) -> None:
        self._opened_at, self._has_worked = None, False
        processor = self._processor = self._make()
        try:
            processor.open()
            self._opened_at = self._seconds()
            self._trouble, self._troubles = None, 0
            if self._fenced <= FENCED_MAX:
                self._go_on()
            running.ready()
            self._telemetry.info(Event.PARTITION_READY, **self._where)
            while not running.stopping.is_set():
                self._has_worked = processor.step(self._step_seconds) or self._has_worked
                if self._halt and (self._has_worked or self._was_steady()):
                    self._go_on()
            if not self._abandoned:
                processor.settle()
        finally:
            self._processor = None
            processor.close()
        self._telemetry.info(Event.PARTITION_STOPPED, **self._where)

    def _wake(self) -> None:
        processor = self._processor
        if processor is not None:
            processor.wake()

    def _failed(self, error: BaseException) -> None:
        fenced = isinstance(error, Fenced)
        event = Event.PARTITION_FENCED if fenced else Event.PARTITION_FAILED
        self._telemetry.set(Metric.PARTITION_FAILED, self._where, 1)
        self._telemetry.error(event, reason=f"{type(error).__name__}: {error}", exc_info=error, **self._where)


class GroupService(Threaded):
    """Takes part in a group in a thread of its own. A subclass is the group's `Owner` and says when its share works.

    Ready once the group has answered and what it gave us works. A log that is away is waited for, with nothing of ours;
    a name that another process has ends us: to ask for it again would take it from the other, which would do the same.
    Who is `Unfit` for what it was given leaves the group to others, and stays to say why.
    """

    def __init__(
        self, group: str, topic: str, log: Log, *, member: str, telemetry: Telemetry, threads: Threads = SYSTEM,
        poll_seconds: float = POLL_SECONDS,
    ) -> None:  # fmt: skip
        self._group, self._topic, self._log, self._member = group, topic, log, member
        self._poll_seconds, self._seconds = poll_seconds, threads.seconds
        self._telemetry = telemetry
        self._waits_for = ""
        self._thread = ThreadService(group, self._run, failed=self._failed, threads=threads)

    @property
    def problem(self) -> str | None:
        """Why we take no part in the group, where that may be over by itself."""
        return self._waits_for or None

    @abstractmethod
    def works(self) -> bool:
        """Whether what we were given does its work, as far as it can."""

    def check(self) -> None:
        """`Unfit` when others should have what we were given. We leave the group then, and say why until we end."""

    @abstractmethod
    def assigned(self, partitions: Sequence[int], log: Log) -> None:
        """See `Owner.assigned`."""

    @abstractmethod
    def revoked(self, partitions: Sequence[int]) -> None:
        """See `Owner.revoked`."""

    @abstractmethod
    def lost(self, partitions: Sequence[int]) -> None:
        """See `Owner.lost`."""

    def _run(self, running: Running) -> None:
        try:
            persevere(
                running, lambda: self._take_part(running), against=LogError, told=self._wait, seconds=self._seconds
            )  # fmt: skip
        except Unfit as error:
            self._waits_for = str(error)
            self._telemetry.error(Event.ROLE_UNFIT, role=self._group, reason=str(error))
            running.stopping.wait()

    def _wait(self, error: Exception) -> None:
        if isinstance(error, Fenced):
            raise error
        self._waits_for = str(error)
        self._telemetry.warning(Event.ROLE_WAITS, role=self._group, reason=str(error))

    def _take_part(self, running: Running) -> None:
        member = self._log.join(self._group, self._topic, name=self._member, owner=self)
        try:
            while not running.stopping.is_set():
                member.poll(self._poll_seconds)
                self.check()
                if member.joined:
                    self._waits_for = ""
                    if self.works():
                        running.ready()
        finally:
            member.close()

    def _failed(self, error: BaseException) -> None:
        self._telemetry.error(Event.ROLE_FAILED, role=self._group, reason=f"{type(error).__name__}: {error}")


class RoleService(GroupService):
    """Our share of a role: runs the partitions that its group gives us.

    `make` builds the service of a partition over the log through which our membership is quoted.
    """

    def __init__(
        self, role: str, lead: str, log: Log, *, member: str, make: Callable[[int, Log], PartitionService],
        telemetry: Telemetry, threads: Threads = SYSTEM, poll_seconds: float = POLL_SECONDS,
    ) -> None:  # fmt: skip
        super().__init__(
            role, lead, log, member=member, telemetry=telemetry, threads=threads, poll_seconds=poll_seconds
        )
        self._role, self._make = role, make
        self._partitions: dict[int, PartitionService] = {}

    def partitions(self) -> Sequence[PartitionService]:
        """What runs at the moment."""
        return tuple(self._partitions.values())

    def works(self) -> bool:
        """Whether every partition works or cannot: one that failed or is halted costs itself, and says so."""
        return all(each.ready(0) or each.halted or each.failure is not None for each in self.partitions())

    def check(self) -> None:
        """See `GroupService.check`. Who may not have one partition leaves them all to those who may have them."""
        for partition in self.partitions():
            if isinstance(partition.failure, Unfit):
                raise partition.failure

    def assigned(self, partitions: Sequence[int], log: Log) -> None:
        """See `Owner.assigned`."""
        self._telemetry.info(Event.PARTITIONS_ASSIGNED, role=self._role, partitions=list(partitions))
        for number in partitions:
            service = self._partitions[number] = self._make(number, log)
            service.start()

    def revoked(self, partitions: Sequence[int]) -> None:
        """See `Owner.revoked`."""
        self._telemetry.info(Event.PARTITIONS_REVOKED, role=self._role, partitions=list(partitions))
        self._end(partitions, PartitionService.stop)

    def lost(self, partitions: Sequence[int]) -> None:
        """See `Owner.lost`."""
        if partitions:
            self._telemetry.warning(Event.PARTITIONS_LOST, role=self._role, partitions=list(partitions))
        self._end(partitions, PartitionService.abandon)

    def _end(self, partitions: Sequence[int], end: Callable[[PartitionService, float], bool]) -> None:
        """All are told before one is waited for."""
        services = {number: self._partitions.pop(number) for number in partitions if number in self._partitions}
        for service in services.values():
            end(service, 0)
        for number, service in services.items():
            if not end(service, STOP_SECONDS):
                self._telemetry.error(Event.PARTITION_HANGS, role=self._role, partition=str(number))
            self._telemetry.forget_partition(self._role, str(number))  # whatever is still to be said, others say it


def pause_when_fenced(times: int, chance: float) -> float:
    """How long an owner that was fenced waits before it takes its partition back; `chance` is in [0, 1).

    By then the group has said if the partition is another's: that ends the wait. `times` in a row.
    """
    return (HALTED_SECONDS if times > FENCED_MAX else FENCED_SECONDS) * (1 + chance)
