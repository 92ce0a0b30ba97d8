"""What a worker holds, and what it has yet to say of it: the bookkeeping behind its reports, without any I/O.

A report is built, sent, and then either acknowledged or not. Nothing is forgotten before it is acknowledged, and
`read_up_to` never passes a hand-out that may still be on its way here in another answer: the server takes what was
read past and is not held for lost.

One instance is one incarnation. Instants are seconds of one clock that counts suspended time.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field

from tidewheel import jsontext, wire
from tidewheel.wire import HandOut

IDLE_SECONDS = 5.0  # The server counts an idle worker as gone after three of these.
REPORTS_PER_LEASE = 3  # Two may get lost before a lease does.
FENCED_AFTER = 2 / 3  # of a lease without an acknowledgement, so that we stop before the server gives it away.
FINISHED_MAX = 256  # entries in one report; the rest follows in the next one, at once
FINISHED_BYTES_MAX = 256 * 1024  # of their JSON: a report becomes one record of at most 512 KiB


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A report that is on its way. `started` and `finished` are what its acknowledgement settles.

    `renews` says whether it certainly reaches the owner of the leases: a repeated claim may be answered on the way.
    """

    incarnation: str
    number: int
    body: bytes
    sent_at: float
    renews: bool
    started: tuple[str, ...] = ()
    finished: tuple[str, ...] = ()


@dataclass(slots=True)
class _Unread:
    """An offset that counts as read once the answers that were on their way with it are in."""

    offset: int
    waits_for: set[int]


@dataclass(slots=True)
class Holdings:
    """Leases of one incarnation, and what it has yet to say. A retired one holds nothing and only finishes speaking."""

    worker: str
    tasks: tuple[str, ...]
    now: float
    incarnation: str = field(default_factory=lambda: secrets.token_hex(8))
    slots_total: int | None = None
    client: str = ""
    stuck: int = 0  # Tasks that will not stop. This and the two before are for the list of workers.
    answered: bool = True  # Hand-outs come in answers to reports, which may overtake one another; else by themselves.
    read_up_to: int = -1
    acknowledged_at: float = field(init=False)
    sent_at: float = field(init=False)
    finished: dict[str, bytes] = field(default_factory=dict)
    finished_max: int = FINISHED_MAX
    retired_at: float | None = None
    took_leave: bool = False
    is_known: bool = False
    _number: int = 0
    _held: dict[str, HandOut] = field(default_factory=dict)
    # When each was taken, by seconds of lease: jobs have few different ones, and the first of each ends first.
    _taken_at: dict[float, dict[str, float]] = field(default_factory=dict)
    _started: dict[str, None] = field(default_factory=dict)
    _seen: set[int] = field(default_factory=set)
    _outstanding: set[int] = field(default_factory=set)
    _unread: list[_Unread] = field(default_factory=list)
    _replaced: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.acknowledged_at = self.sent_at = self.now

    # --- what happens to leases ---

    @property
    def held(self) -> tuple[str, ...]:
        """The leases that are this worker's, finished ones too until that is acknowledged."""
        return tuple(self._held)

    def take(self, number: int, handouts: Iterable[HandOut], now: float) -> list[HandOut]:
        """Hold what the answer to report `number` brought (0: none did); returns those that are new."""
        fresh: list[HandOut] = []
        for handout in handouts:
            if handout.incarnation == self.incarnation and self._is_new(handout.offset):
                fresh.append(handout)
                self._hold(handout, now)
                self._seen.add(handout.offset)
        if fresh:
            others = self._outstanding - {number}
            self._unread.append(_Unread(offset=max(each.offset for each in fresh), waits_for=others))
            self._read_on()
        return fresh

    def start(self, lease: str) -> None:
        """The task of a held lease has begun."""
        if lease in self._held:
            self._started[lease] = None

    def finish(self, lease: str, entry: bytes) -> None:
        """The attempt ended: `entry` is said until it is acknowledged, also when the lease is no longer held."""
        self.finished[lease] = entry

    def drop(self, lease: str) -> bool:
        """The lease is no longer this worker's; whether it was until now."""
        was_held = lease in self._held
        self._release(lease)
        self._started.pop(lease, None)
        return was_held

    def retire(self, now: float) -> None:
        """Another incarnation takes this one's place: all leases are given up, outcomes are still told."""
        self._held.clear()
        self._taken_at.clear()
        self._started.clear()
        self.retired_at = now

    # --- reports ---

    @property
    def has_news(self) -> bool:
        """Whether a report would say something that was not acknowledged; of a retired one, that it holds nothing."""
        return bool(self.finished or self._started or self.owes_leave or self._owes_introduction)

    @property
    def owes_leave(self) -> bool:
        """Whether the server has yet to hear that this incarnation holds nothing any more."""
        return self.retired_at is not None and not self.took_leave

    @property
    def _owes_introduction(self) -> bool:
        """Whether nobody knows that there is someone to hand out to. Where answers bring it, who asks is known."""
        return not (self.answered or self.is_known or self.retired_at is not None)

    def news(self, *, slots: int, draining: bool, now: float) -> Report:
        """A report of everything that is new: answered at once."""
        self.sent_at = now
        finished = self._some_finished()
        started = tuple(self._started)
        held = [lease for lease in self._held if lease not in finished]
        return self._report(slots, draining=draining, now=now, held=held, started=started, finished=finished)

    def claim(self, *, slots: int, wait_seconds: float, claim_id: str, now: float, draining: bool = False) -> Report:
        """A report that waits for hand-outs.

        What is finished and not acknowledged stays among the held: another report tells of it, and one that listed it
        neither as held nor as finished would have it taken for lost.
        """
        extra = b',"wait":%b,"claim_id":%b' % (jsontext.dumps(wait_seconds), jsontext.dumps(claim_id))
        return self._report(slots, draining=draining, now=now, held=list(self._held), extra=extra)

    def acknowledge(self, report: Report) -> None:
        """The server has the report."""
        self.is_known = True
        if self.retired_at is not None and report.sent_at >= self.retired_at:
            self.took_leave = True
        if report.renews:
            self.acknowledged_at = max(self.acknowledged_at, report.sent_at)
        self.finished_max = FINISHED_MAX
        for lease in report.started:
            self._started.pop(lease, None)
        for lease in report.finished:
            self.finished.pop(lease, None)
            self._replaced.discard(lease)
            self.drop(lease)

    def end(self, report: Report) -> None:
        """The call is over, whether or not it was answered: nothing more can arrive with it."""
        self._outstanding.discard(report.number)
        for unread in self._unread:
            unread.waits_for.discard(report.number)
        self._read_on()

    def refuse(self, report: Report, reason: str) -> str | None:
        """The server will not have this report as it stands.

        Perhaps one outcome is at fault: they are sent one by one, and the one that is refused alone becomes a failure
        that says so, so that it can't hold up the others for ever. Returns its lease.
        """
        if len(report.finished) != 1:
            self.finished_max = 1
            return None
        lease = report.finished[0]
        if lease in self._replaced:  # Not even the bare failure was accepted: there is nothing left to say.
            self.finished.pop(lease, None)
            self._replaced.discard(lease)
            self.drop(lease)
        else:
            self.finished[lease] = wire.failed(lease, "ReportRefused", reason)
            self._replaced.add(lease)
        return lease

    # --- time ---

    def interval_seconds(self) -> float:
        """How long there may be silence between two reports."""
        shortest = min(self._taken_at, default=IDLE_SECONDS * 3)
        return min(IDLE_SECONDS, shortest / REPORTS_PER_LEASE)

    def fenced_at(self) -> float:
        """When the first lease has been without acknowledgement for too long: all work stops then."""
        return min(
            (
                max(self.acknowledged_at, next(iter(taken_at.values()))) + lease_seconds * FENCED_AFTER
                for lease_seconds, taken_at in self._taken_at.items()
            ),
            default=float("inf"),
        )

    # --- within ---

    def _hold(self, handout: HandOut, now: float) -> None:
        self._release(handout.lease)
        self._held[handout.lease] = handout
        self._taken_at.setdefault(handout.lease_seconds, {})[handout.lease] = now

    def _release(self, lease: str) -> None:
        handout = self._held.pop(lease, None)
        if handout is None:
            return
        taken_at = self._taken_at[handout.lease_seconds]
        del taken_at[lease]
        if not taken_at:
            del self._taken_at[handout.lease_seconds]

    def _is_new(self, offset: int) -> bool:
        return offset > self.read_up_to and offset not in self._seen

    def _read_on(self) -> None:
        ready = [unread.offset for unread in self._unread if not unread.waits_for]
        if not ready:
            return
        self.read_up_to = max(self.read_up_to, *ready)
        self._unread = [unread for unread in self._unread if unread.offset > self.read_up_to]
        self._seen = {offset for offset in self._seen if offset > self.read_up_to}

    def _some_finished(self) -> dict[str, bytes]:
        some: dict[str, bytes] = {}
        size = 0
        for lease, entry in self.finished.items():
            size += len(entry)
            if len(some) >= self.finished_max or (some and size > FINISHED_BYTES_MAX):
                break
            some[lease] = entry
        return some

    def _report(
        self,
        slots: int,
        *,
        draining: bool,
        now: float,
        held: list[str],
        started: tuple[str, ...] = (),
        finished: dict[str, bytes] | None = None,
        extra: bytes = b"",
    ) -> Report:
        self._number += 1
        if self.answered:
            self._outstanding.add(self._number)
        head = {
            "worker": self.worker,
            "incarnation": self.incarnation,
            "number": self._number,
            "read_up_to": self.read_up_to,
            "slots": 0 if draining else slots,
            "tasks": self.tasks,
            "draining": draining,
            "held": held,
            "started": started,
        }
        told = {"slots_total": self.slots_total, "client": self.client, "stuck": self.stuck}
        head |= {name: value for name, value in told.items() if value}
        finished = finished or {}
        body = b'%b,"finished":[%b]%b}' % (jsontext.dumps(head)[:-1], b",".join(finished.values()), extra)
        renews = not extra
        return Report(
            incarnation=self.incarnation, number=self._number, body=body, sent_at=now, renews=renews, started=started,
            finished=tuple(finished),
        )  # fmt: skip
