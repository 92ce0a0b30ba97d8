"""What became of an attempt."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from schemas.facts.fact import OfSchedule
from schemas.facts.parts import AttemptOutcome, ErrorInfo
from schemas.frozen import frozen


@frozen
class AttemptStarted(OfSchedule):
    """A worker says that user code began. `started_at` is the owner's instant of reading the report."""

    TYPE: ClassVar[str] = "tidewheel.attempt.started.v1"
    tenant: str
    schedule: str
    run_id: str
    attempt: int
    worker: str
    incarnation: str
    handout: int
    handed_out_at: datetime
    started_at: datetime
    queue: str = ""
    shard: int = 0
    log_check: str = ""  # what the log of this attempt is known by (`identity.log_check`)


@frozen
class AttemptFinished(OfSchedule):
    """An attempt ended. `counted` says whether it used up one of the run's attempts.

    `held` is given when its worker went down, or silent, with all that it held: so many runs. `blame` is the run's
    share in that: one over them, or over the suspects among them where there are any, and nothing for the others then.
    At 2.0 a run is quarantined.
    """

    TYPE: ClassVar[str] = "tidewheel.attempt.finished.v1"
    tenant: str
    schedule: str
    run_id: str
    attempt: int
    outcome: AttemptOutcome
    worker: str
    incarnation: str
    handout: int
    handed_out_at: datetime
    finished_at: datetime
    counted: bool = True
    started_at: datetime | None = None
    error: ErrorInfo | None = None
    queue: str = ""
    shard: int = 0
    blame: float = 0.0
    held: int = 0


@frozen
class AttemptDuplicate(OfSchedule):
    """A report about a hand-out that no longer counts; it changed nothing."""

    TYPE: ClassVar[str] = "tidewheel.attempt.duplicate.v1"
    tenant: str
    schedule: str
    run_id: str
    worker: str
    incarnation: str
    handout: int
    reported: str
    received_at: datetime
    attempt: int | None = None
