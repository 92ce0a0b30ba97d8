"""What is coming, all schedules together: how many runs are due in which minute, and which minutes are crowded.

It is computed from the definitions in force, as the read model has them, each time somebody asks; for a minute what was
computed is kept, so that a plan of many documents asks once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from threading import Lock
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from api import requests
from api.reading import read_instant
from api.services import NONE, Load, Planned
from projections.store.reader import ALL, Scope
from schemas.faults import Fault, Refused

if TYPE_CHECKING:
    from api import views
    from api.reading import Reads
    from api.services import ApiServices, Definitions

DAYS, DAYS_MAX = 7, 31
PAGE = 500  # of schedules, as they are read
READ_MAX = 20_000  # schedules and jobs that are looked at: twice what is counted, so that a queue can be found in them
CROWDED = 20  # minutes that are named
SHARES = 5  # of one of them, the largest
MET = 5  # minutes that are named of those in which a definition has runs
PLACES_MAX = 500  # queues and tenants of one answer, the busiest
CUT_NAMED_MAX = 20
KEPT = timedelta(minutes=1)
MINUTE, HOUR_MINUTES = timedelta(minutes=1), 60
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """A load, of which span, and what else there is to say of the schedules."""

    from_: datetime
    to: datetime
    load: Load
    paused: int

    @property
    def together(self) -> Counter[int]:
        """All queues and tenants in one."""
        total: Counter[int] = Counter()
        for minutes in self.load.minutes.values():
            total.update(minutes)
        return total


class Loads:
    """Counts, and keeps what was counted last for a minute. From any thread."""

    def __init__(self, services: ApiServices) -> None:
        self._services = services
        self._kept: tuple[tuple[Any, ...], datetime, Counted] | None = None
        self._lock = Lock()  # who asks for the same meanwhile waits for it

    def count(self, begin: datetime, days: int, *, queue: str | None = None, tenant: str | None = None) -> Counted:
        """The load of the days from a whole minute on."""
        asked = (begin.replace(second=0, microsecond=0), days, queue, tenant)
        with self._lock:
            now = self._services.now()
            if self._kept is not None and self._kept[0] == asked and now - self._kept[1] < KEPT:
                return self._kept[2]
            counted = self._counted(*asked)
            self._kept = (asked, now, counted)
            return counted

    def _counted(self, begin: datetime, days: int, queue: str | None, tenant: str | None) -> Counted:
        scope = ALL if tenant is None else Scope(tenant=tenant)
        rows = list(_all(lambda cursor: self._services.reader.schedules(scope, cursor=cursor, limit=PAGE)))
        queues = self._queues(scope)
        alive = [row for row in rows if row["state"] == "active" and row["definition"].get("trigger")]
        planned = [planned_of(row["tenant"], row["name"], row["definition"], queues) for row in alive]
        end = begin + timedelta(days=days)
        wanted = [each for each in planned if queue in (None, each.queue)]
        paused = sum(row["state"] == "paused" for row in rows)
        return Counted(
            from_=begin, to=end, load=self._services.arithmetic.load(wanted, begin, end), paused=paused
        )  # fmt: skip

    def alone(self, planned: Planned, queue: str, of: Counted, beside: Definitions = NONE) -> Counter[int]:
        """The minutes of one definition in a queue, of the span of what was counted."""
        found = self._services.arithmetic.load((planned,), of.from_, of.to, beside=beside)
        return Counter(found.minutes.get((queue, planned.tenant), {}))

    def planned(self, tenant: str, name: str, definition: Mapping[str, Any], beside: Definitions = NONE) -> Planned:
        """A definition that is thought of."""
        come = {
            (owner, job): each.get("queue", "default") for (kind, owner, job), each in beside.items() if kind == "job"
        }
        return planned_of(tenant, name, definition, {**self._queues(Scope(tenant=tenant)), **come})

    def _queues(self, scope: Scope) -> Mapping[tuple[str, str], str]:
        """The queue of each registered job."""
        jobs = _all(lambda cursor: self._services.reader.entries(scope, "job", cursor=cursor, limit=PAGE))
        return {(row["tenant"], row["name"]): row["definition"].get("queue", "default") for row in jobs}


def planned_of(tenant: str, name: str, definition: Mapping[str, Any], queues: Mapping[tuple[str, str], str]) -> Planned:
    """What is counted of a definition. Where a job will be that nobody has registered yet is not known."""
    job = definition.get("job")
    queue = queues.get((tenant, job), "?") if isinstance(job, str) else (job or {}).get("queue", "default")
    return Planned(tenant=tenant, name=name, queue=queue, definition=definition)


class LoadRoutes:
    """`/v1/forecast` and `/v1/time-zones`."""

    def __init__(self, services: ApiServices, reads: Reads) -> None:
        self._services = services
        self._reads = reads
        self._loads = Loads(services)

    def router(self) -> APIRouter:
        """What is where."""
        router = APIRouter(tags=["occurrences"])
        what = "How many runs are due in the days to come, by hour, queue and tenant, and which minutes are crowded"
        router.add_api_route("/v1/forecast", self.forecast, methods=["GET"], summary=what)
        what = "What the time zone database that decides here says of each zone"
        router.add_api_route("/v1/time-zones", self.zones, methods=["GET"], summary=what)
        return router

    async def forecast(
        self, request: Request, days: int = DAYS, from_: Annotated[str | None, Query(alias="from")] = None,
        queue: str | None = None, tenant: str | None = None,
    ) -> Response:  # fmt: skip
        if not 1 <= days <= DAYS_MAX:
            message = f"{days} days are not possible"
            raise Refused(Fault(pointer="/days", code="range", message=message, remedy=f"ask for 1 to {DAYS_MAX}"))
        if queue is not None:
            requests.name(queue, "queue")
        if tenant is not None:
            requests.name(tenant, "tenant")
        begin = read_instant(from_, "/from") or self._services.now()
        answered = await self._reads.ask(request, self._forecast, begin, days, queue, tenant)
        return answered.json(answered.value)

    async def zones(self, request: Request) -> Response:
        answered = await self._reads.ask(request, self._services.arithmetic.zones)
        version, rules = answered.value
        return answered.json({"version": version, "zones": rules})

    def _forecast(self, begin: datetime, days: int, queue: str | None, tenant: str | None) -> views.Json:
        return shown(self._loads.count(begin, days, queue=queue, tenant=tenant))


def shown(counted: Counted) -> views.Json:
    """The answer."""
    together, load = counted.together, counted.load
    return {
        "from": counted.from_,
        "to": counted.to,
        "schedules": sum(load.schedules.values()),
        "paused": counted.paused,
        "occurrences": load.occurrences,
        "crowded": [_crowded(minute, count, load) for minute, count in busiest(together, CROWDED)],
        "queues": list(_places(load)),
        "hours": list(_hours(together)),
        "not_counted_whole": {"schedules": len(load.cut), "first": list(load.cut[:CUT_NAMED_MAX])},
    }


def effect(
    loads: Loads, now: datetime, wanted: Planned, current: Mapping[str, Any] | None, beside: Definitions = NONE
) -> views.Json:
    """What a definition does to its queue in a week: its fullest minute before and after, and where it comes together.

    Of a definition that is in force already the new one takes the place.
    """
    before = loads.count(now, DAYS, queue=wanted.queue)
    was = Counter(before.together)
    after = Counter(was)
    if current is not None:
        after.subtract(loads.alone(loads.planned(wanted.tenant, wanted.name, current), wanted.queue, before))
    own = loads.alone(wanted, wanted.queue, before, beside)
    after.update(own)
    meets = busiest({minute: after[minute] for minute in own}, MET)
    return {
        "queue": wanted.queue,
        "from": before.from_,
        "to": before.to,
        "occurrences": own.total(),
        "busiest_before": _minute(was),
        "busiest_after": _minute(after),
        "crowded": [{"at": instant_of(minute), "before": was[minute], "after": count} for minute, count in meets],
    }


def _minute(minutes: Mapping[int, int]) -> views.Json | None:
    return next(({"at": instant_of(minute), "count": count} for minute, count in busiest(minutes, 1)), None)


def busiest(minutes: Mapping[int, int], count: int) -> list[tuple[int, int]]:
    """The fullest minutes, the earlier one first where they are as full."""
    return sorted(minutes.items(), key=lambda item: (-item[1], item[0]))[:count]


def instant_of(minute: int) -> datetime:
    """When a minute begins."""
    return EPOCH + minute * MINUTE


def _crowded(minute: int, count: int, load: Load) -> views.Json:
    shares = sorted(((-each.get(minute, 0), place) for place, each in load.minutes.items()))[:SHARES]
    named = [{"queue": queue, "tenant": tenant, "count": -held} for held, (queue, tenant) in shares if held]
    return {"at": instant_of(minute), "count": count, "of": named}


def _places(load: Load) -> Iterator[views.Json]:
    totals = sorted(((-sum(minutes.values()), place) for place, minutes in load.minutes.items()))
    for total, (queue, tenant) in totals[:PLACES_MAX]:
        minutes = load.minutes[queue, tenant]
        fullest = [{"at": instant_of(minute), "count": count} for minute, count in busiest(minutes, 1)]
        known = {"queue": queue, "tenant": tenant, "schedules": load.schedules[queue, tenant], "occurrences": -total}
        yield {**known, **({"busiest": fullest[0]} if fullest else {})}


def _hours(minutes: Mapping[int, int]) -> Iterator[views.Json]:
    """Each hour in which something is due, and its fullest minute."""
    hours: dict[int, list[int]] = {}
    for minute, count in minutes.items():
        hours.setdefault(minute // HOUR_MINUTES, []).append(count)
    for hour, counts in sorted(hours.items()):
        yield {"at": instant_of(hour * HOUR_MINUTES), "count": sum(counts), "busiest": max(counts)}


def _all(page: Callable[[str | None], Any]) -> Iterator[views.Row]:
    """The rows of all pages, up to a bound."""
    cursor, left = None, READ_MAX
    while left > 0:
        found = page(cursor)
        yield from found.rows[:left]
        left -= len(found.rows)
        if found.cursor is None:
            return
        cursor = found.cursor
