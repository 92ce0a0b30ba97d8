"""What an audit found: counts, and the first of each kind of offender."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from schemas.frozen import frozen

OFFENDERS_MAX = 20  # of a kind: enough to see a pattern, few enough to read


@frozen
class Offender:
    """One thing that is wrong. `what` names an instant or a run."""

    tenant: str
    schedule: str
    what: str
    detail: str = ""


@dataclass(slots=True)
class Report:
    """due = created + skipped + pending + missing, up to each partition's mark; all else should be 0."""

    due: int = 0
    created: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    pending: Counter[str] = field(default_factory=Counter)
    backfilled: int = 0
    not_due: Counter[str] = field(default_factory=Counter)
    open_runs: int = 0
    repeated: int = 0
    schedules: int = 0
    since_adoption: int = 0  # of them: judged from the adoption of newer time zone data on, that changed their zone
    faults: Counter[str] = field(default_factory=Counter)
    offenders: dict[str, list[Offender]] = field(default_factory=dict)
    marks: dict[int, datetime | None] = field(default_factory=dict)
    gaps: list[Mapping[str, Any]] = field(default_factory=list)  # known losses of input: no fault of what was decided
    offenders_max: int = OFFENDERS_MAX

    def accuse(self, kind: str, offender: Offender) -> None:
        """Count a fault, and name it while there is room."""
        self.faults[kind] += 1
        named = self.offenders.setdefault(kind, [])
        if len(named) < self.offenders_max:
            named.append(offender)

    @property
    def clean(self) -> bool:
        """Whether every occurrence has exactly one decision and every run at most one outcome."""
        return not self.faults.total()

    def as_json(self) -> dict[str, Any]:
        """The contract's figures first, then ours."""
        return {
            "due": self.due,
            "created": self.created,
            "skipped": dict(sorted(self.skipped.items())),
            "pending": dict(sorted(self.pending.items())),
            "backfilled": self.backfilled,
            **{kind: self.faults[kind] for kind in FAULTS},
            "open_runs": self.open_runs,
            "not_due": dict(sorted(self.not_due.items())),
            "repeated": self.repeated,
            "schedules": self.schedules,
            "since_adoption": self.since_adoption,
            "marks": {str(partition): _text(mark) for partition, mark in sorted(self.marks.items())},
            "accepted_gaps": self.gaps,
            "offenders": {kind: [_plain(each) for each in named] for kind, named in self.offenders.items()},
        }


# Kind of fault, and what it means. The first three are the contract's; each of them makes an audit fail.
FAULTS: Mapping[str, str] = {
    "missing": "due, and neither created nor skipped nor waiting",
    "duplicated": "decided more than once",
    "double_outcomes": "runs with more than one outcome",
    "unexpected": "decided, but not due",
    "undelivered": "runs that no dispatcher gets to read",
    "unreadable": "records that are no events",
    "not_audited": "versions whose trigger the audit cannot read",
}


def table(report: Report) -> RenderableType:
    """The report for people."""
    counts = Table(show_header=False, box=None, pad_edge=False)
    counts.add_column(justify="right", style="bold")
    counts.add_column()
    counts.add_row(f"{report.due:,}", f"due, of {report.schedules:,} schedules, {_period(report)}")
    counts.add_row(f"{report.created:,}", "created")
    for reason, count in sorted(report.skipped.items()):
        counts.add_row(f"{count:,}", f"skipped: {reason}")
    for reason, count in sorted(report.pending.items()):
        counts.add_row(f"{count:,}", f"pending: {reason}")
    if report.backfilled:
        counts.add_row(f"{report.backfilled:,}", "backfilled")
    counts.add_row(f"{report.open_runs:,}", "runs are open")
    if report.since_adoption:
        counts.add_row(
            f"{report.since_adoption:,}", "schedules are judged since newer time zone data changed their zone"
        )
    for gap in report.gaps:
        counts.add_row(_lost(gap), f"lost of {gap['topic']} {gap['topic_partition']}, accepted by {gap['accepted_by']}")
    for kind, meaning in FAULTS.items():
        if report.faults[kind]:
            counts.add_row(Text(f"{report.faults[kind]:,}", style="bold red"), Text(f"{kind}: {meaning}", style="red"))
    verdict = (
        Text("Every due occurrence has exactly one decision.", style="green")
        if report.clean
        else Text("Something is wrong.", style="bold red")
    )
    return Group(counts, *_named(report), verdict)


def _lost(gap: Mapping[str, Any]) -> str:
    """How many records; a topic that was created again does not say it of the former one."""
    return "?" if gap.get("lost_to") is None else f"{gap['lost_to'] - gap['lost_from']:,}"


def _named(report: Report) -> list[RenderableType]:
    found: list[RenderableType] = []
    for kind, named in report.offenders.items():
        rows = Table(title=f"{kind} ({len(named)} of {report.faults[kind]:,})", title_justify="left")
        for column in ("tenant", "schedule", "what", "detail"):
            rows.add_column(column)
        for each in named:
            rows.add_row(each.tenant, each.schedule, each.what, each.detail)
        found.append(rows)
    return found


def _period(report: Report) -> str:
    marks = [mark for mark in report.marks.values() if mark is not None]
    return f"up to {_text(min(marks))}" if marks else "but nothing has been decided yet"


def _text(instant: datetime | None) -> str | None:
    return None if instant is None else instant.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _plain(offender: Offender) -> dict[str, str]:
    return {
        "tenant": offender.tenant,
        "schedule": offender.schedule,
        "what": offender.what,
        "detail": offender.detail,
    }
