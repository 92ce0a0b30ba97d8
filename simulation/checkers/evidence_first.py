"""I22: nothing is lost while its evidence is unread, no word of a worker is unheard, and no late one is silent.

- No occurrence is decided while a change of its schedule is unread that stood in its partition before it was due, or
  one of the catalog (see `catalog_first`).
- A lease ends by itself only when no report renewed it: from its hand-out on, each report of its holder that lists it
  and stood in the log while it was good makes it good for its whole length again, whenever its owner gets to read it.
- A lease, and an attempt at its timeout, end only when all reports up to that end are read (see `against`).
- After a takeover every lease has one fresh period (see `fresh_period`).
- A word on the end of an attempt that is live ends it in the transaction that reads it.
- A word on the end of an attempt that was taken back from its worker is told as `attempt.duplicate` by the transaction
  that reads it, or is taken for the run's success: which it is while nobody else has the run, and it is open.
- Of a lease only its own shard knows: what is said of it to another, in the same partition, is said to nobody.

What the log says of the time of a report is compared with what the owner's clock says, as far as these may be apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from runtime.record import TopicPartition
from schemas import topics
from simulation.checkers import against, catalog_first, fresh_period
from simulation.checkers.marks import CHANGES, duration, nominal_of
from simulation.checkers.reading import (
    DISPATCHER,
    SCHEDULER,
    Changelog,
    Data,
    Event,
    Fact,
    appended_at,
    changelogs,
    documents,
    events,
    instant,
    read_up_to,
)  # fmt: skip
from simulation.evidence import Evidence, Violation

ID = "I22"
TAKEN_BACK = {"lease_expired", "lost", "timed_out"}  # what no worker says of its own attempt
CLOCKS = {"G1", "G2", "G3", "G9"}  # the faults under which clocks are apart
OF_LEASES = -1  # the number of a report that is no worker's
APART_MAX = timedelta(seconds=1)  # without them: between reading a clock and standing in the log


def observed(evidence: Evidence) -> int:
    """How many reports and ends of leases were looked at."""
    ends = (fact for log in changelogs(evidence, DISPATCHER) for fact in log.facts())
    return len(_reports(evidence)) + sum(fact.type == "attempt.finished" for fact in ends)


def check(evidence: Evidence) -> Iterator[Violation]:
    """Every lease that ended too early, and every late word that nobody was told."""
    apart = evidence.clocks_apart_max if evidence.faults & CLOCKS else APART_MAX
    for log in changelogs(evidence, SCHEDULER):
        yield from _decided_unread(log, _arrived(evidence, log.partition), apart)
    for log in changelogs(evidence, DISPATCHER):
        reports = [event for event in _reports(evidence) if event.place.partition == log.partition]
        yield from _partition(evidence, log, reports, apart)
    yield from fresh_period.check(evidence)
    yield from against.check(evidence)
    yield from catalog_first.check(evidence, apart)


# --- changes of schedules -----------------------------------------------------------------------------------------


def _arrived(evidence: Evidence, number: int) -> dict[tuple[str, str], datetime]:
    """When each command first stood in a partition, by source and id; those that wait for the catalog left out."""
    place = TopicPartition(topics.SCHEDULE_CHANGES, number)
    if place not in evidence.records:
        return {}
    first: dict[tuple[str, str], datetime] = {}
    for record, document in zip(evidence.records[place], documents(evidence, place), strict=True):
        if isinstance(document, dict) and "after_catalog" not in (document.get("data") or {}):
            first.setdefault((str(document.get("source", "")), str(document.get("id", ""))), record.appended_at)
    return first


def _decided_unread(
    log: Changelog, arrived: dict[tuple[str, str], datetime], apart: timedelta
) -> Iterator[Violation]:  # fmt: skip
    newest: dict[tuple[str, str], datetime] = {}  # by schedule, what was decided last
    for written in log.whole:
        for fact in written.facts():
            if "schedule" not in fact.data:
                continue
            name = fact.data["tenant"], fact.data["schedule"]
            at = arrived.get((fact.data.get("source", ""), fact.data.get("command_id", "")))
            if fact.type in CHANGES and at is not None and newest.get(name, at) > at + apart:
                what = f"{fact.type} of {'/'.join(name)} came at {at:%H:%M:%S.%f}, unread when {newest[name]:%H:%M:%S}"
                yield Violation(invariant=ID, what=f"{what} was decided", where=fact.place)
            if (nominal := nominal_of(fact)) is not None:
                newest[name] = max(newest.get(name, instant(nominal)), instant(nominal))


# --- leases -------------------------------------------------------------------------------------------------------


def _reports(evidence: Evidence) -> list[Event]:
    return [event for event in events(evidence, topics.ATTEMPTS) if event.type == "worker.report"]


@dataclass(slots=True)
class _Lease:
    """A hand-out and what became of it. `renewed`: when reports that list it came into the log, in order."""

    data: Data
    renewed: list[datetime] = field(default_factory=list)
    live: bool = True
    taken_back: bool = False
    waits: bool = False  # its run is open, and nobody has had it since


def _partition(
    evidence: Evidence, log: Changelog, reports: list[Event], apart: timedelta
) -> Iterator[Violation]:  # fmt: skip
    leases: dict[tuple[str, str], _Lease] = {}  # by holder and text
    newest: dict[tuple[str, str], _Lease] = {}  # by tenant and run
    listed = _listed(reports)
    ahead = iter(reports)
    unread = next(ahead, None)
    for written in log.whole:
        position, made_at = read_up_to(written, topics.ATTEMPTS), appended_at(evidence, written)
        facts = [*written.facts()]
        while unread is not None and unread.place.offset < position:
            yield from _heard(leases, unread, facts)
            unread = next(ahead, None)
        for fact in facts:
            if fact.type == "run.handed_out":
                holder = fact.data["incarnation"], fact.data["lease"]
                _moved_on(newest, fact.data["run"])
                newest[_run(fact.data["run"])] = leases[holder] = _Lease(fact.data, listed.get(holder, []))
            elif fact.type == "attempt.finished":
                yield from _ended(leases, fact, made_at, apart)
            elif fact.type == "run.finished":
                _moved_on(newest, fact.data)


def _listed(reports: list[Event]) -> dict[tuple[str, str], list[datetime]]:
    """When each lease stood in a report of its holder; a report that is older than one before it says nothing."""
    newest: dict[str, int] = {}
    found: dict[tuple[str, str], list[datetime]] = {}
    for report in reports:
        data = report.data
        if data.get("number", 0) > newest.get(data["incarnation"], -1):
            newest[data["incarnation"]] = data.get("number", 0)
            for lease in {*data.get("held", ()), *data.get("started", ())}:
                found.setdefault((data["incarnation"], lease), []).append(report.record.appended_at)
    return found


def _ended(
    leases: dict[tuple[str, str], _Lease], fact: Fact, made_at: datetime, apart: timedelta
) -> Iterator[Violation]:  # fmt: skip
    lease = next(
        (one for (holder, _), one in reversed(leases.items())
         if holder == fact.data.get("incarnation") and one.data["offset"] == fact.data["handout"]), None,
    )  # fmt: skip
    if lease is None:
        return
    lease.live = False
    lease.taken_back = lease.waits = fact.data["outcome"] in TAKEN_BACK
    if fact.data["outcome"] == "lease_expired" and "lease_duration" in lease.data:
        good_until = _good_until(lease, made_at)
        if instant(fact.data["finished_at"]) < good_until - apart:
            what = (
                f"the lease {lease.data['lease']} ended at {fact.data['finished_at']}, and what its worker reported "
                f"made it good until {good_until:%H:%M:%S.%f}"
            )
            yield Violation(invariant=ID, what=what, where=fact.place)


def _good_until(lease: _Lease, made_at: datetime) -> datetime:
    """Given the reports that stood in the log when the decision was `made_at` by the same clock."""
    lasts = duration(lease.data["lease_duration"])
    until = instant(lease.data["handed_out_at"]) + lasts
    for renewed in lease.renewed:
        if renewed > min(until, made_at):
            break  # It came too late, whenever it was read.
        until = max(until, renewed + lasts)
    return until


def _heard(leases: dict[tuple[str, str], _Lease], report: Event, facts: list[Fact]) -> Iterator[Violation]:
    """`leases` as they were before the transaction with these facts, which has read the report."""
    for entry in report.data.get("finished", ()):
        lease = leases.get((_holder(leases, report, entry["lease"]), entry["lease"]))
        if lease is None or lease.data["shard"] != report.data.get("shard", 0):
            continue
        if lease.live and not any(_ends(fact, lease.data) for fact in facts):
            what = f"says that {entry['lease']} {entry['outcome']}, is read, and changes nothing"
            yield Violation(invariant=ID, what=what, where=report.place)
        elif lease.taken_back and not any(_tells(fact, lease.data) for fact in facts):
            what = f"says that {entry['lease']} {entry['outcome']}, which was taken back, and nobody is told"
            yield Violation(invariant=ID, what=what, where=report.place)
        elif lease.taken_back and lease.waits and entry["outcome"] == "succeeded" and not _moves_on(lease, facts):
            what = f"says that {entry['lease']} succeeded, nobody else has the run, and it goes on"
            yield Violation(invariant=ID, what=what, where=report.place)


def _run(data: Data) -> tuple[str, str]:
    return data["tenant"], data["run_id"]


def _moved_on(newest: dict[tuple[str, str], _Lease], data: Data) -> None:
    """Somebody else has a run now, or it is over."""
    if (lease := newest.get(_run(data))) is not None:
        lease.waits = False


def _moves_on(lease: _Lease, facts: list[Fact]) -> bool:
    """Whether a transaction ends the run, or gives it to somebody, perhaps before it came to what it read."""
    ends = (fact.data.get("run", fact.data) for fact in facts if fact.type in {"run.finished", "run.handed_out"})
    return any(_run(data) == _run(lease.data["run"]) for data in ends)


def _holder(leases: dict[tuple[str, str], _Lease], report: Event, text: str) -> str:
    """Who is spoken of: a worker speaks of itself, and whoever was told a lease whole speaks for its holder."""
    if report.data.get("number") == OF_LEASES:
        return next((holder for holder, lease in leases if lease == text), "")
    return str(report.data["incarnation"])


def _ends(fact: Fact, handout: Data) -> bool:
    """By its run, too: shards of one partition number their hand-outs apart."""
    is_of_it = fact.type == "attempt.finished" and fact.data["handout"] == handout["offset"]
    return is_of_it and _run(fact.data) == _run(handout["run"])


def _tells(fact: Fact, handout: Data) -> bool:
    run = handout["run"]
    if fact.type == "attempt.duplicate":
        return bool(fact.data["handout"] == handout["offset"] and fact.data["run_id"] == run["run_id"])
    is_end = fact.type == "run.finished" and fact.data.get("reason") == "late_report"
    return bool(is_end and (fact.data["tenant"], fact.data["run_id"]) == (run["tenant"], run["run_id"]))
