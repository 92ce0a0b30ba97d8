"""Occurrences that have no run, or none yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from datetime import datetime
from typing import ClassVar

from schemas.facts.fact import OfSchedule
from schemas.facts.parts import Cause, DeferReason, NominalRange, SkipReason, Upstream
from schemas.frozen import frozen


@frozen
class OccurrenceSkipped(OfSchedule):
    """One occurrence (`nominal_time`) or several (`range`) will have no run, and why.

    `local_time` without `nominal_time` is a local reading that a DST policy dropped; it is not counted as due. Nor is
    what an `upstream` would have led to, which has no instant of its own.
    """

    TYPE: ClassVar[str] = "tidewheel.occurrence.skipped.v1"
    tenant: str
    schedule: str
    version: int
    reason: SkipReason
    decided_at: datetime
    rule: str
    tz_version: str
    nominal_time: datetime | None = None
    range: NominalRange | None = None
    local_time: str | None = None
    blocked_by: str | None = None
    detail: str = ""
    upstream: Upstream | None = None
    used: Mapping[str, int] = field(default_factory=dict)  # see `RunCreated`


@frozen
class OccurrenceDeferred(OfSchedule):
    """A due occurrence waits for its decision. `cause` is the one its run will have.

    One that an outage until `missed_until` left behind has its run not before `release_at`, and none from `expires_at`
    on; `until` is the former where it is `paced`. `since` is when one that is `waiting` for other schedules became due.
    One that is `frozen` was held at `since` by the freeze that `detail` names, until the window's end as it was known
    then; for one that was due in the window `missed_until` is when. Of what waits already only `until` is another one.
    """

    TYPE: ClassVar[str] = "tidewheel.occurrence.deferred.v1"
    tenant: str
    schedule: str
    version: int
    nominal_time: datetime
    reason: DeferReason
    decided_at: datetime
    until: datetime | None = None
    blocked_by: str | None = None
    cause: Cause = Cause.SCHEDULE
    rule: str = ""
    tz_version: str = ""
    detail: str = ""
    used: Mapping[str, int] = field(default_factory=dict)  # see `RunCreated`
    release_at: datetime | None = None
    expires_at: datetime | None = None
    missed_until: datetime | None = None
    since: datetime | None = None
