"""How many runs come when: the occurrences of many schedules, counted by the minute, by the arithmetic that decides.

Nothing is simulated: overlap, outages and runs by hand are left out, and of a schedule with `max_runs` all occurrences
up to that number count. So it is the load that the definitions ask for, and at most that. Calendars and freezes have
their say: what a freeze holds comes at its end, one step of `catch_up.rate` after the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Any

from scheduler import calendars, freezes, holding, occurrences
from scheduler.calendars import Lookup
from scheduler.instants import SECOND_MS, seconds
from scheduler.occurrences import Refused as NotUnderstood
from scheduler.plan import Plan, of_schedule
from scheduler.preview import nothing
from schemas import definitions
from schemas.commands import EVERYONE
from schemas.frozen import frozen

MINUTE = 60
LOOK_BACK_SECONDS = 31 * 86_400  # for what an open window holds already: further apart it hardly makes a crowd
SCHEDULES_MAX = 10_000  # some three seconds of reading definitions; whoever has more asks by queue or tenant
OCCURRENCES_MAX = 1_000_000  # half a second of counting; 10,000 hourly schedules for four days
ONE_SCHEDULE_MAX = 100_000  # a day and more of every second: it takes no room from the others


@frozen
class Planned:
    """A schedule in force, and the queue that its runs go to."""

    tenant: str
    name: str
    queue: str
    definition: Mapping[str, Any]


@dataclass(slots=True)
class Load:
    """Occurrences in [from, to), by (queue, tenant) and minute. Minutes count from 1970.

    `cut` are schedules of which not all was counted, for the bounds above.
    """

    minutes: dict[tuple[str, str], Counter[int]] = field(default_factory=dict)
    schedules: Counter[tuple[str, str]] = field(default_factory=Counter)
    occurrences: int = 0
    cut: list[str] = field(default_factory=list)

    def together(self) -> Counter[int]:
        """All queues and tenants in one."""
        total: Counter[int] = Counter()
        for minutes in self.minutes.values():
            total.update(minutes)
        return total


def counted(schedules: Iterable[Planned], from_: datetime, to: datetime, look: Lookup = nothing) -> Load:
    """Count; what is beyond the bounds is named. `look` finds what the catalog says."""
    after, until = seconds(from_) - 1, seconds(to) - 1
    load, known = Load(), dict[str, Counter[int]]()
    for number, planned in enumerate(schedules):
        room = min(ONE_SCHEDULE_MAX, OCCURRENCES_MAX - load.occurrences)
        minutes = Counter[int]() if number >= SCHEDULES_MAX else _of_one(planned, after, until, room, known, look)
        place, count = (planned.queue, planned.tenant), minutes.total()
        load.schedules[place] += 1
        load.occurrences += count
        load.minutes.setdefault(place, Counter()).update(minutes)
        if number >= SCHEDULES_MAX or count >= room:
            load.cut.append(f"{planned.tenant}/{planned.name}")
    return load


def _of_one(
    planned: Planned, after: int, until: int, room: int, known: dict[str, Counter[int]], look: Lookup
) -> Counter[int]:  # fmt: skip
    """The minutes of one schedule. Triggers in the same words share them, unless a hash of the name is in them."""
    words = repr(planned.definition.get("trigger"))
    entries = look("tenant", planned.tenant, EVERYONE), look("queue", EVERYONE, planned.queue)
    if entries != (None, None) or "calendars" in words:
        words += repr((planned.tenant, planned.queue, planned.definition.get("catch_up")))
    shared = "H" not in words and (planned.definition.get("trigger") or {}).get("jitter") is None
    if shared and words in known:
        return known[words]
    minutes: Counter[int] = Counter()
    try:
        plan = _plan(planned, look)
    except (NotUnderstood, ValueError):  # of a later version than ours, which is for its owner to say
        return minutes
    minutes.update(at // MINUTE for at in islice(_due(plan, after, until), room))
    if shared and minutes.total() < room:
        known[words] = minutes
    return minutes


def _plan(planned: Planned, look: Lookup) -> Plan:
    model = definitions.Schedule.model_validate(planned.definition)
    plan = of_schedule(model, f"{planned.tenant}/{planned.name}")
    return freezes.bound(calendars.bound(plan, planned.tenant, look), planned.tenant, planned.queue, look)


def _due(plan: Plan, after: int, until: int) -> Iterator[int]:
    """The instants at which runs are due, jitter and all, no more than a schedule may have."""
    return islice(_instants(plan, after, until), plan.max_runs)


def _instants(plan: Plan, after: int, until: int) -> Iterator[int]:
    jitter_seconds = -(-plan.jitter_ms // SECOND_MS)
    if plan.deferred is not None:
        return (at for at in _held_or_due(plan, _held_since(plan, after, jitter_seconds), until) if after < at <= until)
    nominals = plan.between(after - jitter_seconds, until)
    if not plan.jitter_ms:
        return nominals
    return (at for at in (plan.due_ms(nominal) // SECOND_MS for nominal in nominals) if after < at <= until)


def _held_or_due(plan: Plan, after: int, until: int) -> Iterator[int]:
    """Where freezes defer: what is due in a window comes at its end, as much as is kept of it."""
    nominal = plan.next_after(after)
    while nominal is not None and nominal <= until:
        hold, last = holding.met(plan, plan.due_ms(nominal)), nominal
        if hold is None:
            yield plan.due_ms(nominal) // SECOND_MS
        else:
            last = max(nominal, hold.until_ms // SECOND_MS - 1)
            number = plan.count(nominal - 1, last, max(1, holding.kept(plan)))
            turns = range(min(number, holding.kept(plan)))
            yield from ((hold.until_ms + turn * plan.pace_ms) // SECOND_MS for turn in turns)
        nominal = plan.next_after(last)


def _held_since(plan: Plan, after: int, jitter_seconds: int) -> int:
    """From where to count: before what a window that is open now holds already, as much as is kept of it."""
    begin = after - jitter_seconds
    hold = holding.met(plan, after * SECOND_MS)
    for _ in range(holding.kept(plan) if hold is not None else 0):
        before = occurrences.last_between(plan.trigger, begin - LOOK_BACK_SECONDS, begin)
        if before is None or holding.met(plan, before * SECOND_MS) != hold:
            break
        begin = before - 1
    return begin
