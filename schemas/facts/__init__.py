"""What happened: the facts that Tidewheel publishes.

Frozen dataclasses, because the cores build thousands a second and because an event, once written, is never
changed. Each names its CloudEvents type and its subject. Fields may be added with a default, never renamed,
removed or given another meaning: that is a new version of the type.

A field at its default is absent on the wire, so adding one changes neither the bytes nor the ids of old facts.
The annotations are read at run time by the codec: what they name is imported for real.
"""

from __future__ import annotations

from schemas.facts.attempts import AttemptDuplicate, AttemptFinished, AttemptStarted
from schemas.facts.backfills import BackfillCounts, BackfillFinished, BackfillProgressed, BackfillStarted
from schemas.facts.catalog import CatalogEntry
from schemas.facts.fact import Fact, OfPartition, OfSchedule
from schemas.facts.occurrences import OccurrenceDeferred, OccurrenceSkipped
from schemas.facts.partitions import (
    CatalogAdopted,
    ClockHeld,
    ClockReleased,
    GapAccepted,
    HistoryTrimmed,
    OccurrenceMoved,
    RecoveryFinished,
    RecoveryStarted,
    TzAdopted,
)
from schemas.facts.parts import (
    AttemptOutcome,
    BreakerPolicy,
    BreakerReason,
    BreakerState,
    Cause,
    Concurrency,
    DeferReason,
    ErrorInfo,
    GapReason,
    JobSnapshot,
    NominalRange,
    Outcome,
    Position,
    RetryPolicy,
    RunDeferReason,
    SkipReason,
    Upstream,
)
from schemas.facts.runs import (
    BreakerChanged,
    DeadLetter,
    RunCancelRequested,
    RunCreated,
    RunDeferred,
    RunFinished,
    RunRetryScheduled,
)
from schemas.facts.schedules import CommandRejected, ScheduleAccepted, ScheduleDeleted, SchedulePaused, ScheduleResumed

FACTS: tuple[type[Fact], ...] = (
    ScheduleAccepted,
    SchedulePaused,
    ScheduleResumed,
    ScheduleDeleted,
    CommandRejected,
    CatalogEntry,
    OccurrenceSkipped,
    OccurrenceDeferred,
    RunCreated,
    RunDeferred,
    RunRetryScheduled,
    RunCancelRequested,
    RunFinished,
    DeadLetter,
    BreakerChanged,
    BackfillStarted,
    BackfillProgressed,
    BackfillFinished,
    AttemptStarted,
    AttemptFinished,
    AttemptDuplicate,
    RecoveryStarted,
    RecoveryFinished,
    CatalogAdopted,
    TzAdopted,
    ClockHeld,
    ClockReleased,
    GapAccepted,
    HistoryTrimmed,
)

__all__ = [
    "FACTS",
    "AttemptDuplicate",
    "AttemptFinished",
    "AttemptOutcome",
    "AttemptStarted",
    "BackfillCounts",
    "BackfillFinished",
    "BackfillProgressed",
    "BackfillStarted",
    "BreakerChanged",
    "BreakerPolicy",
    "BreakerReason",
    "BreakerState",
    "CatalogAdopted",
    "CatalogEntry",
    "Cause",
    "ClockHeld",
    "ClockReleased",
    "CommandRejected",
    "Concurrency",
    "DeadLetter",
    "DeferReason",
    "ErrorInfo",
    "Fact",
    "GapAccepted",
    "GapReason",
    "HistoryTrimmed",
    "JobSnapshot",
    "NominalRange",
    "OccurrenceDeferred",
    "OccurrenceMoved",
    "OccurrenceSkipped",
    "OfPartition",
    "OfSchedule",
    "Outcome",
    "Position",
    "RecoveryFinished",
    "RecoveryStarted",
    "RetryPolicy",
    "RunCancelRequested",
    "RunCreated",
    "RunDeferReason",
    "RunDeferred",
    "RunFinished",
    "RunRetryScheduled",
    "ScheduleAccepted",
    "ScheduleDeleted",
    "SchedulePaused",
    "ScheduleResumed",
    "SkipReason",
    "TzAdopted",
    "Upstream",
]
