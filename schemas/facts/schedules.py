"""What became of a schedule's definition, and of commands that were refused."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar

from schemas.facts.fact import Fact, OfSchedule
from schemas.facts.parts import Position
from schemas.faults import Fault
from schemas.frozen import frozen


@frozen
class ScheduleAccepted(OfSchedule):
    """A version of a schedule came into force at `effective_at`: later nominal instants follow `definition`.

    `by` and `note` say who put it and why; the definition has a `note` of its own, about the schedule.
    """

    TYPE: ClassVar[str] = "tidewheel.schedule.accepted.v1"
    tenant: str
    schedule: str
    version: int
    definition: Mapping[str, Any]
    effective_at: datetime
    accepted_at: datetime
    created: bool
    words: str
    next: tuple[datetime, ...]
    tz_version: str
    source_version: int | None = None
    warnings: tuple[str, ...] = ()
    command_id: str = ""
    source: str = ""
    by: str = ""
    note: str = ""


@frozen
class SchedulePaused(OfSchedule):
    """From `effective_at` on, occurrences are skipped at their time and do not come back.

    `reason` is `failures` where the schedule paused itself: `failed_runs` are the last of those in a row, and
    `failures` says how many there were. It may stand behind a resumption that takes effect later.
    """

    TYPE: ClassVar[str] = "tidewheel.schedule.paused.v1"
    tenant: str
    schedule: str
    version: int
    effective_at: datetime
    accepted_at: datetime
    note: str = ""
    by: str = ""
    command_id: str = ""
    source: str = ""
    reason: str = ""
    failures: int = 0
    failed_runs: tuple[str, ...] = ()


@frozen
class ScheduleResumed(OfSchedule):
    """From `effective_at` on, occurrences have runs again."""

    TYPE: ClassVar[str] = "tidewheel.schedule.resumed.v1"
    tenant: str
    schedule: str
    version: int
    effective_at: datetime
    accepted_at: datetime
    note: str = ""
    by: str = ""
    command_id: str = ""
    source: str = ""


@frozen
class ScheduleDeleted(OfSchedule):
    """No occurrence after `effective_at`; queued and running runs finish unless `runs` is `cancel`."""

    TYPE: ClassVar[str] = "tidewheel.schedule.deleted.v1"
    tenant: str
    schedule: str
    version: int
    effective_at: datetime
    accepted_at: datetime
    runs: str = "keep"
    by: str = ""
    command_id: str = ""
    source: str = ""
    note: str = ""


@frozen
class CommandRejected(Fact):
    """A command or record was refused; nothing of it took effect. `position` is where it stood."""

    TYPE: ClassVar[str] = "tidewheel.command.rejected.v1"
    tenant: str
    name: str
    reason: str
    faults: tuple[Fault, ...]
    position: Position
    rejected_at: datetime
    command_id: str = ""
    command_type: str = ""
    source: str = ""
    raw: str | None = None  # the head of an unreadable record, base64, at most 1 KiB before encoding

    @property
    def subject(self) -> str:
        return f"{self.tenant}/{self.name}"
