"""All that one simulated cluster is asked to do: the ordinary hour, and what the situations of its seed add."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from simulation.cluster import hour, situations
from simulation.cluster.hour import Definition

if TYPE_CHECKING:
    from simulation.cluster.options import Options

EDITIONS = 3  # so that a put is an edit more often than not, and the same again now and then
MORE_RUNS = 5
Subject = tuple[str, str]  # tenant and name


@dataclass(frozen=True, slots=True, kw_only=True)
class Agenda:
    """Jobs and schedules by tenant and name, and when the hour begins."""

    began_at: datetime
    jobs: Mapping[Subject, Definition]
    schedules: Mapping[Subject, Definition]
    drain_seconds: float = hour.DRAIN_SECONDS
    subjects: tuple[Subject, ...] = field(init=False)
    frequent: tuple[Subject, ...] = field(init=False)  # due each minute or more often

    def __post_init__(self) -> None:
        object.__setattr__(self, "subjects", tuple(self.schedules))
        often = tuple(name for name, each in self.schedules.items() if _is_frequent(each["trigger"]))
        object.__setattr__(self, "frequent", often)

    def put(self, tenant: str, name: str) -> Definition:
        """The data of the command that puts a schedule."""
        return {"tenant": tenant, "name": name, "definition": self.schedules[tenant, name]}

    def edited(self, tenant: str, name: str, edition: int) -> Definition:
        """The same occurrences under another version, or, for edition 0, the version of the beginning.

        A later edition of what has a number of runs has more of them, and one that leaves days out leaves out others.
        """
        definition = self.schedules[tenant, name]
        edition %= EDITIONS
        if edition:
            definition = definition | {"trigger": _later(definition["trigger"], edition)}
        labels = definition["labels"] | ({"edition": str(edition)} if edition else {})
        return {"tenant": tenant, "name": name, "definition": definition | {"labels": labels}}

    def job(self, tenant: str, name: str, edition: int = 0) -> Definition:
        """The data of the command that registers a job; another edition takes other seconds."""
        definition = self.jobs[tenant, name]
        payload = definition["payload"] | ({"edition": edition} if edition else {})
        seconds = payload["seconds"] * (1 + edition % EDITIONS)
        return {"tenant": tenant, "name": name, "definition": definition | {"payload": payload | {"seconds": seconds}}}


def _is_frequent(trigger: Definition) -> bool:
    every = str(trigger.get("every", ""))
    return trigger.get("cron") == "*/1 * * * *" or (every.endswith("S") and "from" not in trigger)


def _later(trigger: Definition, edition: int) -> Definition:
    """A trigger in a later edition."""
    if "max_runs" in trigger:
        return trigger | {"max_runs": trigger["max_runs"] + MORE_RUNS * edition}
    if "dates" in trigger.get("exclude", {}):
        return trigger | {"exclude": {"dates": trigger["exclude"]["dates"][1:]}}
    return trigger


def agenda(options: Options) -> Agenda:
    """What a seed's cluster is asked to do."""
    began_at = situations.began_at(options)
    jobs, schedules = {hour.JOB: hour.JOB_DEFINITION}, hour.schedules(began_at)
    for name, add in situations.ADDED.items():
        if options.has(name):
            more = add(options, began_at)
            jobs |= more.jobs
            schedules |= more.schedules
    slow = any(options.has(name) for name in situations.SLOW_TO_DRAIN)
    drain_seconds = situations.DRAIN_SECONDS if slow else hour.DRAIN_SECONDS
    return Agenda(began_at=began_at, jobs=jobs, schedules=schedules, drain_seconds=drain_seconds)
