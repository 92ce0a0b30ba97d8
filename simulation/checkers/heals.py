"""I9: when faults stop, everything heals.

Judged of a run whose second phase (no faults) has begun: by its end it has come to rest. Every partition has an owner
that goes on logging how far it has decided; everything that stood in its inputs at rest has been read; no occurrence
waits that nothing holds up; every run that was created by then has its outcome; and no transaction is open.
That each due occurrence up to the marks has its decision is I2's.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

from runtime.record import TopicPartition
from schemas import topics
from simulation.checkers.conservation import report
from simulation.checkers.reading import ROLES, Changelog, Data, changelog, events, instant
from simulation.evidence import Evidence, Place, Violation

ID = "I9"
STALE_MAX = timedelta(seconds=60)  # of a mark: an idle partition logs one every 30 s
STUCK = ("buffered", "paced", "waiting")  # what only waits for others to end, or for its turn, or for a while


def observed(evidence: Evidence) -> int:
    """How many runs should have their outcome; 0 where there was no phase without faults."""
    return 0 if evidence.faults_off_at is None else len(_created(evidence))


def check(evidence: Evidence) -> Iterator[Violation]:
    """Everything that has not healed."""
    if evidence.faults_off_at is None:
        return
    if evidence.rested_at is None:
        what = f"has not come to rest by {evidence.ended_at}, without faults since {evidence.faults_off_at}"
        yield Violation(invariant=ID, what=what, where="the cluster")
    yield from _owners(evidence)
    until = evidence.rested_at or evidence.faults_off_at
    for role in ROLES:
        for place in evidence.partitions(topics.changelog_topic(role)):
            yield from _up_to_date(evidence, changelog(evidence, (role, place.partition)), until)
    yield from _open_runs(evidence, until)
    if evidence.rested_at is not None:
        yield from _waiting(evidence)
        yield from _open_transactions(evidence, until)


def _owners(evidence: Evidence) -> Iterator[Violation]:
    for (role, number), machine in sorted(evidence.owners.items()):
        if machine is None:
            yield Violation(invariant=ID, what="has no owner", where=f"{role}-{number}")


def _up_to_date(evidence: Evidence, log: Changelog, until: datetime) -> Iterator[Violation]:
    where = f"{log.role}-{log.partition}"
    if not log.whole:
        yield Violation(invariant=ID, what="has never committed anything", where=where)
        return
    footer = log.whole[-1].footer
    assert footer is not None
    stale = until - instant(footer["decided_until"])
    if stale > STALE_MAX:
        yield Violation(invariant=ID, what=f"has decided until {footer['decided_until']}, {stale} ago", where=where)
    for item in footer["positions"]:
        yield from _read_to_the_end(evidence, where, item, until)


def _read_to_the_end(evidence: Evidence, where: str, item: Data, until: datetime) -> Iterator[Violation]:
    place = TopicPartition(item["topic"], item["partition"])
    for record in reversed(evidence.records.get(place, ())):
        if record.appended_at <= until:
            if record.offset >= item["offset"]:
                what = f"has not been read by {where}, which is at {item['offset']}"
                yield Violation(invariant=ID, what=what, where=Place(*place, record.offset))
            return


def _open_runs(evidence: Evidence, until: datetime) -> Iterator[Violation]:
    ended = {
        (event.data["tenant"], event.data["run_id"])
        for event in events(evidence, topics.RUN_OUTCOMES)
        if event.type == "run.finished"
    }
    for run, (created_at, place) in sorted(_created(evidence).items()):
        if created_at <= until and run not in ended:
            what = f"{run[0]}: run {run[1]} of {created_at:%H:%M:%S} has no outcome"
            yield Violation(invariant=ID, what=what, where=place)


def _created(evidence: Evidence) -> dict[tuple[str, str], tuple[datetime, Place]]:
    return {
        (event.data["tenant"], event.data["run_id"]): (event.record.appended_at, event.place)
        for event in events(evidence, topics.RUN_EVENTS)
        if event.type == "run.created"
    }


def _waiting(evidence: Evidence) -> Iterator[Violation]:
    for reason in STUCK:
        if count := report(evidence).pending[reason]:
            yield Violation(invariant=ID, what=f"{count} due occurrences are still {reason}", where="the cluster")


def _open_transactions(evidence: Evidence, until: datetime) -> Iterator[Violation]:
    for transaction in evidence.transactions.values():
        if transaction.outcome == "open" and transaction.began_at <= until:
            what = f"a transaction of epoch {transaction.epoch} is open since {transaction.began_at:%H:%M:%S}"
            yield Violation(invariant=ID, what=what, where=transaction.transactional_id)
