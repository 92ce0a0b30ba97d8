"""Someone asks for breakers to be closed, and is told which were not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from dispatcher import breakers
from dispatcher.breakers import Breaker, Change
from dispatcher.shard import Shard
from runtime.machine import Moment
from schemas.facts import BreakerChanged, BreakerReason, BreakerState, Fact
from schemas.internal import BreakerResetRequested, CommandAnswered

RESETS_MAX = 256  # of one request: a bounded step; whoever has more says it again
_CLOSED = Change(BreakerState.CLOSED, BreakerReason.RESET)


def decide(shard: Shard, request: BreakerResetRequested, moment: Moment) -> Sequence[Fact]:
    """The facts that follow, the answer last. What is closed already stays so, and is not in the answer."""
    tripped = [each for each in shard.breakers.tripped_of(request.tenant) if request.breaker in ("", each.name)]
    chosen = tripped[:RESETS_MAX]
    facts: list[Fact] = [_closed(shard, each, request, moment) for each in chosen]
    if request.reply_to is None:
        return facts
    where = {"shard": shard.number} if request.shards > 1 else {}
    body = {
        "tenant": request.tenant,
        "queue": request.queue,
        "reset": [
            {"breaker": each.name, "was": each.state.value, "since": _text(each.since), **where} for each in chosen
        ],
        "left": len(tripped) - len(chosen),
    }
    answer = CommandAnswered(
        command_id=request.command_id, reply_to=request.reply_to, status=200, body=body, part=shard.number,
        parts=request.shards,
    )  # fmt: skip
    return [*facts, answer]


def _closed(shard: Shard, breaker: Breaker, request: BreakerResetRequested, moment: Moment) -> BreakerChanged:
    fact = breakers.fact_of(breaker, _CLOSED, shard.queue, shard.number, moment.now)
    return replace(
        fact, by=request.by, note=request.note, command_id=request.command_id, source=request.source
    )  # fmt: skip


def _text(instant: datetime | None) -> str:
    assert instant is not None, "a breaker that is not closed was closed before"
    return instant.isoformat(timespec="milliseconds").replace("+00:00", "Z")
