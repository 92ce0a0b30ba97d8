"""What becomes of a backfill."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from typing import ClassVar

from schemas.facts.fact import OfSchedule
from schemas.frozen import frozen


@frozen
class BackfillCounts:
    """How far a backfill has come: each occurrence of its range that it has decided stands in one of the first three.

    `left_out` counts by what stood of them: how their run ended (succeeded, failed …), `open`, `waiting`, `excluded`,
    `beyond_history`. `ended` counts the outcomes of its own runs, `active` those that have none yet.
    """

    created: int = 0
    reprocessed: int = 0
    left_out: Mapping[str, int] = field(default_factory=dict)
    ended: Mapping[str, int] = field(default_factory=dict)
    active: int = 0


@frozen
class BackfillStarted(OfSchedule):
    """A backfill of [from, to) goes to work: `occurrences` of them, by the definition of `version`."""

    TYPE: ClassVar[str] = "tidewheel.backfill.started.v1"
    tenant: str
    schedule: str
    backfill: str
    version: int
    from_: datetime
    to: datetime
    order: str
    reprocess: str
    max_active: int
    rate: str
    occurrences: int
    started_at: datetime
    by: str = ""
    note: str = ""
    command_id: str = ""
    source: str = ""


@frozen
class BackfillProgressed(OfSchedule):
    """How far it has come, told every few seconds and when its state changes (running, paused, cancelling).

    Everything on this side of `cursor` is decided: before it, or for the newest first, from it on. `expected_at` is
    when it will be through if it goes on as it did since it was started or resumed.
    """

    TYPE: ClassVar[str] = "tidewheel.backfill.progressed.v1"
    tenant: str
    schedule: str
    backfill: str
    state: str
    cursor: datetime
    decided: int
    occurrences: int
    counts: BackfillCounts
    progressed_at: datetime
    expected_at: datetime | None = None
    reason: str = ""
    by: str = ""
    note: str = ""
    command_id: str = ""
    source: str = ""


@frozen
class BackfillFinished(OfSchedule):
    """Each of its runs has its outcome, and no more will come: `completed`, or `cancelled` on the way, and why."""

    TYPE: ClassVar[str] = "tidewheel.backfill.finished.v1"
    tenant: str
    schedule: str
    backfill: str
    outcome: str
    cursor: datetime
    decided: int
    occurrences: int
    counts: BackfillCounts
    finished_at: datetime
    reason: str = ""
