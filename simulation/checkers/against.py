"""What time takes from a worker it takes against the evidence: a part of I22.

A decision record says up to when all reports are read. A lease that it ends for silence was over by then, given what
the owner had been told of its worker; and so was an attempt that it ends for its timeout.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from simulation.checkers.marks import duration
from simulation.checkers.reading import DISPATCHER, Changelog, Fact, changelogs, instant
from simulation.evidence import Evidence, Violation

ID = "I22"


@dataclass(slots=True)
class _Lease:
    """A live hand-out: since when it is good for its length, and when its attempt began."""

    offset: int
    lasts: timedelta
    timeout: timedelta | None
    good_since: datetime
    started_at: datetime | None = None


def check(evidence: Evidence) -> Iterator[Violation]:
    """Every lease and every attempt that time ended while reports from before its end may have been unread."""
    for log in changelogs(evidence, DISPATCHER):
        yield from _partition(log)


def _partition(log: Changelog) -> Iterator[Violation]:
    live: dict[tuple[str, int], _Lease] = {}  # by holder and offset
    for written in log.whole:
        read_until = None if written.head is None else written.head.get("read_until")
        for fact in written.facts():
            holder = fact.data.get("incarnation", ""), fact.data.get("handout", fact.data.get("offset", -1))
            match fact.type:
                case "run.handed_out" if "lease_duration" in fact.data:
                    live[holder] = _handed_out(fact.data)
                case "worker.reported":
                    _renew(live, fact)
                case "attempt.started" if holder in live and "started_at" in fact.data:
                    live[holder].started_at = instant(fact.data["started_at"])
                case "attempt.finished" if (lease := live.pop(holder, None)) is not None and read_until:
                    yield from _ended(lease, fact, instant(read_until))


def _handed_out(data: Any) -> _Lease:
    timeout = duration(data["timeout"]) if "timeout" in data else None
    lasts, good_since = duration(data["lease_duration"]), instant(data["handed_out_at"])
    return _Lease(offset=data["offset"], lasts=lasts, timeout=timeout, good_since=good_since)


def _renew(live: dict[tuple[str, int], _Lease], fact: Fact) -> None:
    """What a worker has read of is good anew with each of its reports."""
    for (incarnation, offset), lease in live.items():
        if incarnation == fact.data["incarnation"] and offset <= fact.data["read_up_to"]:
            lease.good_since = max(lease.good_since, instant(fact.data["reported_at"]))


def _ended(lease: _Lease, fact: Fact, read_until: datetime) -> Iterator[Violation]:
    over_at = _over_at(lease, fact.data)
    if over_at is not None and over_at > read_until:
        what = (
            f"hand-out {lease.offset} is {fact.data['outcome']}: it was good until {over_at:%H:%M:%S.%f}, and reports "
            f"are read up to {read_until:%H:%M:%S.%f}"
        )
        yield Violation(invariant=ID, what=what, where=fact.place)


def _over_at(lease: _Lease, data: Any) -> datetime | None:
    """When time had an end of it; None where it was not time that ended it, or a limit of the run."""
    match data["outcome"]:
        case "lease_expired":
            return lease.good_since + lease.lasts
        case "timed_out" if lease.started_at is not None and lease.timeout is not None and not data.get("error"):
            return lease.started_at + lease.timeout
        case _:
            return None
