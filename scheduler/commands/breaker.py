"""`breaker.reset`: passed on to each shard that may have the breaker; their dispatchers close it and answer.

Whoever owns a tenant's definition takes the wish: a breaker belongs to a tenant, and to no schedule. Runs of a job are
in as many shards as the schedules that make them, so each of these has a breaker of the job's, and of the host's.
"""

from __future__ import annotations

from scheduler import shards
from scheduler.commands.verdict import Forwarded, Verdict
from scheduler.context import Context
from scheduler.state import ReferenceState
from schemas.commands import BreakerReset, Command
from schemas.internal import BreakerResetRequested


def reset(state: ReferenceState, command: Command, request: BreakerReset, context: Context) -> Verdict:
    """Pass it on."""
    asked = shards.ever(context.shared, request.queue)
    return Forwarded(
        facts=tuple(
            BreakerResetRequested(
                tenant=state.tenant,
                queue=request.queue,
                shard=shard,
                requested_at=context.now,
                breaker=request.breaker or "",  # `all`
                by=request.by,
                note=request.note,
                command_id=command.id,
                source=command.source,
                reply_to=command.reply_to,
                shards=asked,
            )
            for shard in range(asked)
        )
    )
