"""What became of one partition of a role: restored, held, moved to other time zone data."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from schemas.facts.catalog import CatalogEntry
from schemas.facts.fact import OfPartition
from schemas.facts.parts import GapReason
from schemas.frozen import frozen


@frozen
class RecoveryStarted(OfPartition):
    """Occurrences older than their grace were met: until the partition has reached `to`, age is measured against it."""

    TYPE: ClassVar[str] = "tidewheel.recovery.started.v1"
    role: str
    partition: int
    from_: datetime
    to: datetime
    tenant_rate: str = ""  # of what is caught up: the runs of one tenant that are released in a time


@frozen
class RecoveryFinished(OfPartition):
    """Every occurrence up to `to` has its decision."""

    TYPE: ClassVar[str] = "tidewheel.recovery.finished.v1"
    role: str
    partition: int
    from_: datetime
    to: datetime
    finished_at: datetime


@frozen
class CatalogAdopted(OfPartition):
    """The partition uses the catalog up to and including `offset`; `entries` are what changed.

    `position` is that of the transaction that wrote the record: what a command's `after_catalog` names.
    """

    TYPE: ClassVar[str] = "tidewheel.catalog.adopted.v1"
    role: str
    partition: int
    offset: int
    adopted_at: datetime
    entries: tuple[CatalogEntry, ...] = ()
    position: str = ""


@frozen
class OccurrenceMoved:
    """The next occurrence of a schedule by one tz database, and by a newer one. None: nothing more is due by it."""

    tenant: str
    schedule: str
    was: datetime | None = None
    becomes: datetime | None = None


@frozen
class TzAdopted(OfPartition):
    """Undecided occurrences follow tz database `version` from now on.

    In `zones` clocks will show something else than by the previous one; None: that one's rules are not known. Of
    `schedules` in the partition the next occurrence of `moved_count` is another; `moved` names the first of them.
    `repeated_count` occurrences have a local time that was decided by the previous one already: they are skipped.
    """

    TYPE: ClassVar[str] = "tidewheel.tz.adopted.v1"
    role: str
    partition: int
    version: str
    adopted_at: datetime
    previous: str | None = None
    zones: tuple[str, ...] | None = None
    schedules: int = 0
    moved_count: int = 0
    moved: tuple[OccurrenceMoved, ...] = ()
    repeated_count: int = 0


@frozen
class ClockHeld(OfPartition):
    """The wall clock cannot be believed: nothing is decided by time until it is released."""

    TYPE: ClassVar[str] = "tidewheel.clock.held.v1"
    role: str
    partition: int
    mark: datetime
    wall: datetime
    reason: str


@frozen
class ClockReleased(OfPartition):
    """The wall clock is believed again; why it was not, and who accepted it if it did not come right by itself."""

    TYPE: ClassVar[str] = "tidewheel.clock.released.v1"
    role: str
    partition: int
    mark: datetime
    wall: datetime
    reason: str
    accepted_by: str = ""
    note: str = ""


@frozen
class GapAccepted(OfPartition):
    """A partition goes on without a part of its input, because a person said so.

    It had read up to `read_up_to` and goes on at `goes_on_at`. Lost is [`lost_from`, `lost_to`); a topic that was
    created again does not say how much it held: `lost_to` None.
    """

    TYPE: ClassVar[str] = "tidewheel.gap.accepted.v1"
    role: str
    partition: int
    topic: str
    topic_partition: int
    reason: GapReason
    read_up_to: int
    goes_on_at: int
    lost_from: int
    accepted_by: str
    lost_to: int | None = None
    note: str = ""


@frozen
class HistoryTrimmed(OfPartition):
    """Decisions before `until` are no longer kept."""

    TYPE: ClassVar[str] = "tidewheel.history.trimmed.v1"
    role: str
    partition: int
    until: datetime
