"""The audit: proof from the topics alone that no occurrence was lost and none decided twice.

It reads `versions` (what was in force when), the scheduler's footers (how far each partition has decided),
`run-events` and `run-outcomes`, and walks clocks with an arithmetic of its own, which shares nothing with the
scheduler's. Then for each schedule, up to its partition's mark:

    due = created + skipped(reason) + pending(reason)       missing, duplicated, unexpected: none

An event that was written twice under one id counts once: that is what consumers are told to do. Decisions that
retention has taken are left out on both sides. Nothing is ever written, so it may be run at any time.

    localtime    offsets of a zone, by zoneinfo        source      records of a log, a folder, a server
    expression   what a cron expression names          evidence    records sorted by schedule
    due          when a version is due                 catalog     what its entries said, version by version
    finishing    the same where that follows the ends of runs
    exclusion, jitter, recurrence                      judgement   the comparison
                                                       report      figures and offenders
"""

from __future__ import annotations

from node.audit.evidence import gather
from node.audit.judgement import judge
from node.audit.report import OFFENDERS_MAX, Report
from node.audit.source import AuditSource

__all__ = ["AuditSource", "Report", "audit"]


def audit(source: AuditSource, *, offenders_max: int = OFFENDERS_MAX) -> Report:
    """Judge everything a log holds."""
    return judge(gather(source), offenders_max=offenders_max)
