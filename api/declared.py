"""What has to be there before a definition may refer to it, and how many schedules a tenant may have.

Tenants and queues come into being on first use; where an operator wants them declared first (`require_declared`), what
names others is refused here. This is the door: who may write to the log's topics is trusted with the names he uses.

Rows follow the log, so they are let catch up before anybody is refused. Requests that are under way at once do not see
each other: a quota of schedules may be exceeded by as many. While the rows cannot be asked, nobody is held to a quota:
a schedule too many does less harm than an outage of the database that stops all changes.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from api.problems import Problem
from projections.store.reader import RowsAway, Scope
from schemas.commands import EVERYONE
from schemas.faults import Fault, Refused

if TYPE_CHECKING:
    from collections.abc import Mapping

    from api.reading import Reads
    from api.services import ApiServices


class Declared:
    """Asks the read model for definitions of tenants and queues."""

    def __init__(self, services: ApiServices, reads: Reads) -> None:
        self._services = services
        self._reads = reads

    async def check(self, tenant: str, queue: str | None, *, pointer: str) -> None:
        """Refuse what names a tenant or a queue that nobody has declared. `pointer`: where the queue is named."""
        if not self._services.settings.require_declared:
            return
        faults = []
        if await self._definition("tenant", tenant, EVERYONE) is None:
            faults.append(_undeclared("tenant", tenant, "/tenant"))
        if queue is not None and await self._definition("queue", EVERYONE, queue) is None:
            faults.append(_undeclared("queue", queue, pointer))
        if faults:
            raise Refused(*faults)

    async def check_schedule(self, tenant: str, name: str, definition: Mapping[str, Any]) -> None:
        """The same for a schedule in its normal form; and refuse one that is more than its tenant may have."""
        job = definition.get("job")
        await self.check(tenant, job.get("queue") if isinstance(job, dict) else None, pointer="/job/queue")
        with suppress(RowsAway):
            await self._check_quota(tenant, name)

    async def _check_quota(self, tenant: str, name: str) -> None:
        found = await self._definition("tenant", tenant, EVERYONE, wait=False) or {}
        limit = (found.get("quota") or {}).get("schedules")
        if limit is None:
            return
        await self._reads.catch_up()
        others = await self._reads.off_loop(self._services.reader.count_schedules, Scope(tenant=tenant), but=name)
        if others >= limit:
            detail = f"Tenant {tenant} has {others} schedules, and its quota is {limit}."
            remedy = "delete one that is not needed, or raise quota.schedules of the tenant"
            fault = Fault(pointer="", code="quota", message=f"is one more than the {limit} allowed", remedy=remedy)
            raise Problem(409, "quota", detail, faults=[fault])

    async def _definition(self, kind: str, tenant: str, name: str, *, wait: bool = True) -> Mapping[str, Any] | None:
        row = await self._reads.off_loop(self._services.reader.entry, Scope(tenant=tenant), kind, name)
        if row is None and wait:
            await self._reads.catch_up()
            row = await self._reads.off_loop(self._services.reader.entry, Scope(tenant=tenant), kind, name)
        return None if row is None else row["definition"]


def _undeclared(kind: str, name: str, pointer: str) -> Fault:
    message, remedy = f"there is no {kind} {name}, and this server wants it declared", f"put {kind} {name} first"
    return Fault(pointer=pointer, code="undeclared", message=message, remedy=remedy)
