"""A partition follows another tz database from now on: what that moves, and what it would show a second time.

The rules of the database before stand in the partition's rows, written down when it was adopted: so the difference is
known to whoever comes with a newer one, and follows from the log.

Nothing needs to be decided anew, as nothing that is not due has been decided. But a clock that the newer database sets
back shows local times again that have been decided already, as at the end of summer time. Whoever names fixed times
means each local time once (`fold_policy`), so those occurrences are noted to be skipped.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from typing import TYPE_CHECKING

from scheduler import keys, occurrences, skipping, timeline
from scheduler.instants import DAY_SECONDS, from_seconds, seconds, text
from scheduler.occurrences import rules
from scheduler.plan import Plan
from scheduler.state import SKIPS_MAX, PartitionState, ScheduleState, State, changed
from schemas import codec
from schemas.facts import Fact, OccurrenceMoved, TzAdopted
from schemas.scheduling import SkipRequested, TzRulesNoted, ZoneRule

if TYPE_CHECKING:
    from scheduler.occurrences.rules import Rules

ROLE = "scheduler"
MOVED_NAMED_MAX = 100  # schedules that the fact names: enough to see a pattern, few enough to read; it counts the rest
REPEATED_MAX = 10_000  # occurrences noted to be skipped: some 3 MB of one decision, which may have 8


def opened(
    states: Iterator[State], shared: PartitionState, *, partition: int, version: str, here: Rules, now: datetime
) -> tuple[Fact, ...]:
    """What is to be said of a partition that decided something before, if it is to follow another database."""
    if not shared.tz_version:
        return ()
    noted = _noted(shared)
    if shared.tz_version == version:
        return () if noted else (_rules(partition, version, here),)
    if not noted:
        return adopted(shared, partition, version, here, now)
    differing = rules.changed(noted, here, seconds(now))
    clocks = {name: rules.zone_of(name, shared.tz_version, noted[name]) for name in differing}
    survey = _Survey(clocks, since=rules.since(shared.tz_version), now=now, version=version)
    survey.look(states)
    (fact, rules_noted) = adopted(shared, partition, version, here, now)
    fact = replace(
        fact, zones=differing, schedules=survey.schedules, moved_count=survey.moved_count, moved=tuple(survey.moved),
        repeated_count=len(survey.repeated),
    )  # fmt: skip
    return (fact, rules_noted, *survey.repeated)


def adopted(
    shared: PartitionState, partition: int, version: str, here: Rules, now: datetime
) -> tuple[TzAdopted, TzRulesNoted]:
    """The partition follows this process's database from now on; what differs is not told."""
    previous = shared.tz_version or None
    fact = TzAdopted(role=ROLE, partition=partition, version=version, adopted_at=now, previous=previous)
    return fact, _rules(partition, version, here)


def with_zones(trigger: occurrences.Trigger, zones: Mapping[str, occurrences.Zone]) -> occurrences.Trigger:
    """The trigger on other clocks, where there are any for its zone."""
    match trigger:
        case occurrences.CronTrigger(zone=zone):
            return replace(trigger, zone=zones.get(zone.name, zone))
        case occurrences.UnionTrigger(parts=parts):
            moved = (replace(part, zone=zones.get(part.zone.name, part.zone)) for part in parts)
            return occurrences.UnionTrigger(tuple(moved))
        case occurrences.WindowTrigger(trigger=named):
            return replace(trigger, trigger=with_zones(named, zones))  # type: ignore[arg-type]
        case _:
            return trigger


def _rules(partition: int, version: str, here: Rules) -> TzRulesNoted:
    """Zones that are alike in all but their names stand together: some 15 kB for all there are."""
    alike: dict[str, list[str]] = {}
    for name, rule in sorted(here.items()):
        alike.setdefault(rule, []).append(name)
    listed = tuple(ZoneRule(rule=rule, zones=tuple(names)) for rule, names in alike.items())
    return TzRulesNoted(role=ROLE, partition=partition, version=version, rules=listed)


def _noted(shared: PartitionState) -> Rules:
    """The rules of the database that the partition follows; none where an earlier version did not note them."""
    row = shared.rows.get(keys.TZ_RULES)
    noted = None if row is None else codec.load(TzRulesNoted, codec.parse(row))
    if noted is None or noted.version != shared.tz_version:
        return {}
    return {name: each.rule for each in noted.rules for name in each.zones}


class _Survey:
    """A walk over all schedules of a partition. `clocks` are the zones that change, as they were."""

    def __init__(
        self, clocks: Mapping[str, occurrences.Zone], *, since: int, now: datetime, version: str
    ) -> None:  # fmt: skip
        self._clocks, self._since, self._now, self._version = clocks, since, now, version
        self.schedules = self.moved_count = 0
        self.moved: list[OccurrenceMoved] = []
        self.repeated: list[SkipRequested] = []

    def look(self, states: Iterator[State]) -> None:
        """At each schedule there is; where no zone changes they need not even be loaded, and are not counted."""
        for state in states if self._clocks else ():
            if isinstance(state, ScheduleState) and state.exists:
                self.schedules += 1
                plan = state.plans[state.phases[-1].version]
                if plan.zone.name in self._clocks and occurrences.clocks(plan.trigger):
                    room = min(SKIPS_MAX - state.skips, REPEATED_MAX - len(self.repeated))
                    repeats = list(islice(self._repeats(state, plan), max(0, room)))
                    self._hold_against(state, seconds(repeats[-1].nominal_time) if repeats else state.decided_until)
                    self.repeated += repeats

    def _hold_against(self, state: ScheduleState, after: int) -> None:
        """Note it when another occurrence is next; those up to `after` are to be skipped."""
        before = {number: self._as_it_was(plan) for number, plan in state.plans.items()}
        was = timeline.first_after(changed(state, plans=before), state.decided_until)
        becomes = timeline.first_after(state, after)
        if (was and was.nominal) == (becomes and becomes.nominal):
            return
        self.moved_count += 1
        if len(self.moved) < MOVED_NAMED_MAX:
            moved = OccurrenceMoved(
                tenant=state.tenant, schedule=state.name, was=None if was is None else from_seconds(was.nominal),
                becomes=None if becomes is None else from_seconds(becomes.nominal),
            )  # fmt: skip
            self.moved.append(moved)

    def _as_it_was(self, plan: Plan) -> Plan:
        return replace(plan, trigger=with_zones(plan.trigger, self._clocks))

    def _repeats(self, state: ScheduleState, plan: Plan) -> Iterator[SkipRequested]:
        """Occurrences to come whose local time is no later than the one up to which all is decided."""
        decided, before = state.decided_until, self._clocks[plan.zone.name]
        if decided < self._since or not all(_once(part) for part in occurrences.clocks(plan.trigger)):
            return
        shown = decided + before.offset(decided)
        for nominal in occurrences.between(plan.trigger, decided, decided + DAY_SECONDS):
            reading = nominal + plan.zone.offset(nominal)
            if reading > shown:
                return
            if skipping.request(state, nominal) is None:
                local, as_ = datetime.fromtimestamp(reading, UTC).isoformat()[:19], reading - shown + decided
                note = f"{local} was decided by {before.version} already, as {text(from_seconds(as_))}"
                yield SkipRequested(
                    tenant=state.tenant, schedule=state.name, nominal_time=from_seconds(nominal),
                    requested_at=self._now, by=f"tz {self._version}", note=note,
                )  # fmt: skip


def _once(part: occurrences.CronTrigger) -> bool:
    """Whether a local time that clocks show twice is meant once."""
    return part.expression.fixed_time and part.fold_policy != "both"
