"""`breaker.reset`: passed on to the shard that has the breaker; its dispatcher closes it and answers.

Whoever owns a tenant's definition takes the wish: a breaker belongs to a tenant, and to no schedule.
"""

from __future__ import annotations

from scheduler.commands.verdict import Forwarded, Verdict
from scheduler.context import Context
from scheduler.state import ReferenceState
from schemas.commands import BreakerReset, Command
from schemas.internal import BreakerResetRequested

SHARD = 0  # of a queue there is one: a definition with more is refused


def reset(state: ReferenceState, command: Command, request: BreakerReset, context: Context) -> Verdict:
    """Pass it on."""
    return Forwarded(
        facts=(
            BreakerResetRequested(
                tenant=state.tenant,
                queue=request.queue,
                shard=SHARD,
                requested_at=context.now,
                breaker=request.breaker,
                by=request.by,
                note=request.note,
                command_id=command.id,
                source=command.source,
                reply_to=command.reply_to,
            ),
        )
    )
