"""Who is due is asked, as far as each key is known: a few times each, from where the last batch stopped."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from runtime.machine import Reached, Woken
from runtime.workspace import AT, EVIDENCE, end_of

if TYPE_CHECKING:
    from datetime import datetime

    from runtime.batch import Batch
    from runtime.clock import Clock
    from runtime.limits import Limits
    from runtime.machine import Core, Moment
    from runtime.read_ahead import ReadAhead
    from runtime.workspace import Workspace
    from schemas.facts import Fact

LOOKED_AT = 32  # keys that may wait for their own records, before one that does not
_WOKEN = Woken()


class _Room(NamedTuple):
    """When a batch has no room for more: at so many facts; or, when it has more than `facts`, at that time."""

    facts_max: int
    facts: int
    until: float  # since boot


class Wakeups:
    """Answers those of one partition. `apply` lets a fact change its state and be published with the batch."""

    def __init__(
        self, core: Core[Any], workspace: Workspace, ahead: ReadAhead, limits: Limits, clock: Clock,
        apply: Callable[[Batch, Fact], None],
    ) -> None:  # fmt: skip
        self._core = core
        self._workspace = workspace
        self._ahead = ahead
        self._limits = limits
        self._clock = clock
        self._apply = apply
        self._cursor: dict[bytes, bytes] = {AT: b"", EVIDENCE: b""}

    def answer(self, batch: Batch) -> None:
        """Answer what is due, key by key, as far as each is known and the batch has room: half of it at least."""
        limits = self._limits
        facts_max = max(limits.facts, len(batch.facts) + max(1, limits.facts // 2))
        room = _Room(facts_max, len(batch.facts), self._clock.since_boot() + limits.seconds)
        answered = all(self._answer_key(batch, key) for key in self._workspace.touched_keys())
        for kind, until in ((AT, batch.further.horizon), (EVIDENCE, batch.moment.read_until)):
            answered = self._answer_index(batch, kind, until, room) and answered
        batch.answered = answered
        if answered:
            shared, moment = self._workspace.shared, batch.moment
            for fact in self._core.decide(shared, Reached(until=moment.read_until), moment, shared):
                self._apply(batch, fact)

    def is_anyone_due(self, until: datetime) -> bool:
        """Whether somebody of whom nothing is held is due by then, as far as a look at the first ones tells.

        What all keys share counts as answered: it comes with other inputs than a flood does, and has its turn at once.
        """
        entries = self._workspace.due(AT, until, after=b"", limit=LOOKED_AT)
        return not all(self._ahead.is_about(entry[9:]) for entry in entries)

    def _answer_index(self, batch: Batch, kind: bytes, until: datetime, room: _Room) -> bool:
        """Answer the index's due entries, from behind the one where the last batch stopped: all have their turn.

        Whether none is left that is due at `read_until`.
        """
        limit = self._limits.woken_keys
        entries = self._workspace.due(kind, until, after=self._cursor[kind], limit=limit)
        if not entries:
            answered, self._cursor[kind] = not self._cursor[kind], b""
            return answered
        behind = end_of(kind, batch.moment.read_until)
        answered = not self._cursor[kind] and (len(entries) < limit or entries[-1] >= behind)
        for entry in entries:
            if self._is_full(batch, room):
                batch.left = True
                return answered and entry >= behind
            self._cursor[kind] = entry
            if entry < behind or self._ahead.is_known(entry[9:]):
                answered = self._answer_key(batch, entry[9:]) and answered
                batch.ahead = batch.ahead or entry >= behind
                self._workspace.drop_if_stale(entry)
        if len(entries) < limit:
            self._cursor[kind] = b""
        else:
            batch.left = True
        return answered

    def _answer_key(self, batch: Batch, key: bytes) -> bool:
        """Ask the key until nothing of it is due; False when more is due at `read_until` than its turn allows."""
        moment = batch.further if self._ahead.is_known(key) else batch.moment
        for _ in range(self._limits.steps_per_key):
            if not self._is_due(key, moment):
                return True
            facts = self._core.decide(self._workspace.state(key), _WOKEN, moment, self._workspace.shared)
            if not facts:
                assert not self._ahead.is_known(key), f"{key!r} is due and decides nothing: it would be asked for ever"
                return False
            for fact in facts:
                self._apply(batch, fact)
        batch.left = batch.left or self._is_due(key, moment)
        return not self._is_due(key, batch.moment)

    def _is_due(self, key: bytes, moment: Moment) -> bool:
        wakeup = self._workspace.wakeup(key)
        return (wakeup.at is not None and wakeup.at <= moment.horizon) or (
            wakeup.on_evidence_at is not None and wakeup.on_evidence_at <= moment.read_until
        )

    def _is_full(self, batch: Batch, room: _Room) -> bool:
        return (
            len(batch.facts) >= room.facts_max
            or batch.size >= self._limits.fact_bytes
            or (len(batch.facts) > room.facts and self._clock.since_boot() >= room.until)
        )
