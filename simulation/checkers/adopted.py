"""A run carries the job as its partition had adopted it when it was decided: a part of I20.

Jobs come into a partition by `catalog.adopted`. A run of a schedule that names a job has the version adopted last
before it, and an occurrence is skipped for want of its job only while none is adopted under that name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from simulation.checkers.reading import SCHEDULER, Data, Fact, changelogs
from simulation.evidence import Evidence, Violation

ID = "I20"
CURRENT = frozenset({"schedule", "catch_up", "manual", "dependency"})  # a rerun may have the job of the run before it


@dataclass(slots=True)
class _Partition:
    """What a partition uses, by tenant and name; None: deleted. `names`: which job a version of a schedule has."""

    jobs: dict[tuple[str, str], int | None] = field(default_factory=dict)
    names: dict[tuple[str, str, int], str] = field(default_factory=dict)


def check(evidence: Evidence) -> Iterator[Violation]:
    """Every run of another version of its job, and every job that was there and was not found."""
    for log in changelogs(evidence, SCHEDULER):
        partition = _Partition()
        for fact in log.facts():
            yield from _follow(partition, fact)


def _follow(partition: _Partition, fact: Fact) -> Iterator[Violation]:
    data = fact.data
    match fact.type:
        case "catalog.adopted":
            for entry in data.get("entries", ()):
                if entry["kind"] == "job":
                    is_there = entry.get("definition") is not None
                    partition.jobs[entry["tenant"], entry["name"]] = entry["version"] if is_there else None
        case "schedule.accepted" if isinstance(data["definition"].get("job"), str):
            partition.names[data["tenant"], data["schedule"], data["version"]] = data["definition"]["job"]
        case "run.created" if data["cause"] in CURRENT and data["job"].get("name") is not None:
            yield from _created(partition, fact)
        case "occurrence.skipped" if data["reason"] == "no_job":
            yield from _not_found(partition, fact)


def _created(partition: _Partition, fact: Fact) -> Iterator[Violation]:
    data: Data = fact.data
    job: Mapping[str, object] = data["job"]
    adopted = partition.jobs.get((data["tenant"], str(job["name"])))
    if job.get("version") != adopted:
        used = "there is none" if adopted is None else f"version {adopted} is used"
        what = f"{data['tenant']}: run {data['run_id']} has version {job.get('version')} of {job['name']}, where {used}"
        yield Violation(invariant=ID, what=what, where=fact.place)


def _not_found(partition: _Partition, fact: Fact) -> Iterator[Violation]:
    data = fact.data
    name = partition.names.get((data["tenant"], data["schedule"], data["version"]))
    if name is not None and partition.jobs.get((data["tenant"], name)) is not None:
        what = f"{data['tenant']}/{data['schedule']} is skipped for want of {name}, which is used here"
        yield Violation(invariant=ID, what=what, where=fact.place)
