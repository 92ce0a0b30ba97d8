"""I2: due = created + skipped(reason) + pending(reason), and each due occurrence has exactly one live decision.

What is due is counted by the audit, whose arithmetic shares nothing with the scheduler's, from `versions` and up to
each partition's logged mark. What was decided without being due, and runs that no dispatcher gets to read, are wrong as
well. Outcomes are I7's, records that are no events I11's.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from node.audit.evidence import FOOTER_KEY, gather
from node.audit.judgement import judge
from node.audit.report import Report
from node.audit.source import Entry, Unreadable
from runtime.record import TopicPartition
from schemas import topics
from simulation.checkers.reading import SCHEDULER, NoJson, changelog, documents
from simulation.evidence import Evidence, Violation

ID = "I2"
KINDS = ("missing", "duplicated", "unexpected", "undelivered")
LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)  # nobody asks when a footer was appended
OFFENDERS_MAX = 100  # of a kind: a run that lost more than these has one fault, not many


def observed(evidence: Evidence) -> int:
    """How many occurrences were due."""
    return report(evidence).due


def check(evidence: Evidence) -> Iterator[Violation]:
    """Every occurrence without a decision, with two, or with one it should not have."""
    for kind in KINDS:
        for offender in report(evidence).offenders.get(kind, ()):
            what = f"{kind}: {offender.what} {offender.detail}".rstrip()
            yield Violation(invariant=ID, what=what, where=f"{offender.tenant}/{offender.schedule}")


def report(evidence: Evidence) -> Report:
    """What the audit says of the evidence."""
    return evidence.once("audit", lambda: judge(gather(EvidenceSource(evidence)), offenders_max=OFFENDERS_MAX))


class EvidenceSource:
    """Evidence as an audit reads it: see `node.audit.source.AuditSource`. Nothing of it was ever trimmed."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence

    def partitions(self, topic: str) -> int:
        """See `AuditSource.partitions`."""
        return len([*self._evidence.partitions(topic)])

    def begin(self, topic: str, partition: int) -> int:  # noqa: ARG002 -- the port's signature
        """See `AuditSource.begin`."""
        return 0

    def end(self, topic: str, partition: int) -> int:
        """See `AuditSource.end`."""
        records = self._evidence.records[TopicPartition(topic, partition)]
        return records[-1].offset + 1 if records else 0

    def entries(self, topic: str, partition: int, start: int) -> Iterator[Entry]:
        """See `AuditSource.entries`."""
        if topic == topics.changelog_topic(SCHEDULER):
            yield from self._footers(partition, start)
            return
        place = TopicPartition(topic, partition)
        for record, document in zip(self._evidence.records[place], documents(self._evidence, place), strict=True):
            if record.offset >= start:
                yield Entry(
                    offset=record.offset, key=(record.key or b"").decode("utf-8", "replace"),
                    value=Unreadable if document is NoJson else document, appended_at=record.appended_at,
                )  # fmt: skip

    def _footers(self, partition: int, start: int) -> Iterator[Entry]:
        """All that an audit looks for in a changelog."""
        for written in changelog(self._evidence, (SCHEDULER, partition)).whole:
            if written.footer_at is not None and written.footer_at.offset >= start:
                yield Entry(offset=written.footer_at.offset, key=FOOTER_KEY, value=written.footer, appended_at=LONG_AGO)
