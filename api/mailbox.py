"""What this node knows of one worker: hand-outs that it has not acknowledged, notices it has not been given.

A hand-out stays until the worker says that it has read it, so an answer that got lost on its way is given again: at
once when the same claim is repeated, else when it has stayed unread for longer than an answer can be under way.
Nothing here is stored: after a restart the inbox is read again, and the worker says what it knows.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from schemas.internal import HandOut, LeaseNotice, QueueLayout, WorkerReport

RESEND_SECONDS = 1.0
# Hand-outs that a worker has not read; it has at most 10,000 slots in all, and the dispatcher counts them.
UNREAD_MAX = 20_000
NOTICES_MAX = 20_000  # leases; the dispatcher repeats what is dropped


@dataclass(slots=True)
class HandedOut:
    """A hand-out as it stands in the inbox, when it came, and when it was last given to the worker."""

    incarnation: str
    offset: int
    json: bytes
    came_at: float = 0.0
    given_at: float = 0.0

    @property
    def data(self) -> dict[str, Any]:
        """What it says, parsed again each time: whole reports pass it on unread."""
        data: dict[str, Any] = orjson.loads(self.json)
        return data


@dataclass(frozen=True, slots=True)
class Notice:
    """Leases that ended or should stop, or that the whole incarnation is another's."""

    incarnation: str
    data: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Word:
    """How one shard of a queue stands, in its own words."""

    queue: str
    shard: int
    data: dict[str, Any]


_HANDOUT = b'"type":"%b"' % HandOut.TYPE.encode()
_DATA = b',"data":'
_RUN = b',"run":{'


def read(value: bytes) -> HandedOut | Notice | Word | None:
    """What a record of an inbox holds; None for a type that is none of a worker's."""
    handout = _read_head(value)
    if handout is not None:
        return handout
    document = orjson.loads(value)
    data = document["data"]
    if document["type"] == HandOut.TYPE:
        return HandedOut(data["incarnation"], data["offset"], orjson.dumps(data))
    if document["type"] == QueueLayout.TYPE:
        return Word(data["queue"], data["shard"], data)
    return Notice(data["incarnation"], data) if document["type"] == LeaseNotice.TYPE else None


def _read_head(value: bytes) -> HandedOut | None:
    """A hand-out, read as far as its run: that is nine tenths of it, and only its worker needs it.

    Our own events end with their data, its keys are sorted, and quotes inside a text are never bare.
    """
    at = value.find(_DATA) + len(_DATA)
    run = value.find(_RUN, at)
    if run < 0 or value.find(_HANDOUT, 0, at) < 0 or not value.endswith(b"}"):
        return None
    head = orjson.loads(value[at:run] + b"}")
    if "incarnation" not in head or "offset" not in head:
        return None
    return HandedOut(head["incarnation"], head["offset"], value[at:-1])


@dataclass(slots=True)
class Mailbox:
    """One incarnation's post. Touched by the event loop only."""

    heard_at: float
    fresh: dict[int, HandedOut] = field(default_factory=dict)  # by offset: never given
    given: dict[int, HandedOut] = field(default_factory=dict)  # and not read yet; those given first stand first
    cancelled: dict[str, None] = field(default_factory=dict)
    lost: dict[str, None] = field(default_factory=dict)
    incarnation_ended: bool = False
    ended_by: str = ""
    number: int = 0
    last: WorkerReport | None = None  # the newest report as it was passed on
    last_claim: str = ""
    claimed: tuple[int, ...] = ()  # what the last claim was given
    waiting: asyncio.Event | None = None
    silence: asyncio.TimerHandle | None = None
    is_behind: bool = False  # the shards of its queue have said what should change where its worker has slots
    heard: int = 0  # how many words of shards were heard here when its worker was told of them last

    def put(self, handout: HandedOut, now: float) -> None:
        """A hand-out came; one that is known is an echo."""
        known = handout.offset in self.fresh or handout.offset in self.given
        if not known and len(self.fresh) + len(self.given) < UNREAD_MAX:
            handout.came_at = now
            self.fresh[handout.offset] = handout
            self._wake()

    def notice(self, told: Notice) -> None:
        """Keep what a notice says for the next answer."""
        notice = told.data
        self.lost.update(dict.fromkeys(notice.get("ended") or ()))
        self.cancelled.update(dict.fromkeys(notice.get("cancelled") or ()))
        for leases in (self.lost, self.cancelled):
            while len(leases) > NOTICES_MAX:
                del leases[next(iter(leases))]
        if notice.get("incarnation_ended"):
            self.incarnation_ended, self.ended_by = True, notice.get("ended_by") or ""
        self._wake()

    def fall_behind(self) -> None:
        """There are words of shards that its worker should hear soon."""
        self.is_behind = True
        self._wake()

    def acknowledge(self, read_up_to: int) -> None:
        """The worker has read all hand-outs up to this one."""
        for handouts in (self.given, self.fresh):
            for offset in [offset for offset in handouts if offset <= read_up_to]:
                del handouts[offset]

    def begin_claim(self, claim_id: str) -> bool:
        """Whether this claim is a new one. A repeated one shall have again what it was given."""
        if not claim_id or claim_id != self.last_claim:
            return True
        for offset in self.claimed:
            if offset in self.given:
                self.fresh[offset] = self.given.pop(offset)
        return False

    def has_post(self, now: float) -> bool:
        """Whether there is anything to answer."""
        has_news = self.fresh or self.lost or self.cancelled or self.incarnation_ended or self.is_behind
        return bool(has_news) or self._is_overdue(now)

    def take(self, now: float, *, handouts: bool) -> Post:
        """What there is to answer; notices are given once, hand-outs until they are read."""
        post = Post(
            handouts=self._give(now) if handouts else [], cancelled=list(self.cancelled), lost=list(self.lost),
            incarnation_ended=self.incarnation_ended, ended_by=self.ended_by,
        )  # fmt: skip
        self.cancelled.clear()
        self.lost.clear()
        return post

    def _give(self, now: float) -> list[HandedOut]:
        while self._is_overdue(now):
            offset, handout = next(iter(self.given.items()))
            del self.given[offset]
            self.fresh[offset] = handout
        found = sorted(self.fresh.values(), key=lambda handout: handout.offset)
        for handout in found:
            handout.given_at = now
            self.given[handout.offset] = handout
        self.fresh.clear()
        return found

    def _is_overdue(self, now: float) -> bool:
        """Whether something was given so long ago that its answer must have been lost."""
        return bool(self.given) and now - next(iter(self.given.values())).given_at > RESEND_SECONDS

    def _wake(self) -> None:
        if self.waiting is not None:
            self.waiting.set()


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """What a worker is answered."""

    handouts: list[HandedOut]
    cancelled: list[str]
    lost: list[str]
    incarnation_ended: bool
    ended_by: str
    words: Sequence[Mapping[str, Any]] = ()  # of shards that its worker has not heard yet
    waited: float = 0.0  # seconds from the report to the first hand-out; less than 0: that was there before

    def json(self, unknown: Iterable[str]) -> bytes:
        """The answer to a report. Hand-outs are copied as the owner wrote them."""
        rest: dict[str, Any] = {"cancelled": self.cancelled, "lost": self.lost, "unknown": list(unknown)}
        if self.incarnation_ended:
            rest |= {"incarnation_ended": True, "ended_by": self.ended_by}
        if self.handouts:
            rest["waited"] = round(self.waited, 3)
        if self.words:
            rest["layouts"] = [{name: word.get(name, 0) for name in _TOLD} for word in self.words]
        leases = b",".join([handout.json for handout in self.handouts])
        return b'{"leases":[%b],%b' % (leases, orjson.dumps(rest)[1:])


_TOLD = ("shard", "shards", "queued", "running", "free", "workers")
NOTHING = Post(handouts=[], cancelled=[], lost=[], incarnation_ended=False, ended_by="")
