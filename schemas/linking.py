"""Facts of dependencies: what owners of schedules tell each other on `links`, and what they keep of it.

An **edge** leads from an upstream to a schedule that names it in `after`; the schedule's owner announces it, the
upstream's owner lists it and reports. A `sequence` is counted per schedule over all that it ever announced, and a
`number` per upstream over all that it ever reported; both go on over deletions, so what is older is known as such.
"""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

from schemas.facts import Fact, OfSchedule, Outcome, Upstream
from schemas.frozen import frozen

# --- by the owner of the schedule that follows --------------------------------------------------------------------


@frozen
class EdgeAnnounced(OfSchedule):
    """From version `version` on, `schedule` follows `upstream`."""

    TYPE: ClassVar[str] = "tidewheel.edge.announced.v1"
    tenant: str
    schedule: str
    upstream: str
    mode: str
    condition: str
    version: int
    sequence: int
    announced_at: datetime


@frozen
class EdgeWithdrawn(OfSchedule):
    """`schedule` follows `upstream` no longer."""

    TYPE: ClassVar[str] = "tidewheel.edge.withdrawn.v1"
    tenant: str
    schedule: str
    upstream: str
    version: int
    sequence: int
    withdrawn_at: datetime


@frozen
class EdgeInquired(OfSchedule):
    """The upstream's owner has not answered for a while: the edge is announced again as it is."""

    TYPE: ClassVar[str] = "tidewheel.edge.inquired.v1"
    tenant: str
    schedule: str
    upstream: str
    mode: str
    condition: str
    version: int
    sequence: int
    inquired_at: datetime


@frozen
class EdgeLinked(OfSchedule):
    """The upstream's owner reports from now on; or it does not, and `refused` says why."""

    TYPE: ClassVar[str] = "tidewheel.edge.linked.v1"
    tenant: str
    schedule: str
    upstream: str
    sequence: int
    linked_at: datetime
    refused: str = ""


@frozen
class TriggerNoted(OfSchedule):
    """A run of an upstream leads to a run; at `appended_at` it was known here, and it is decided when that has come."""

    TYPE: ClassVar[str] = "tidewheel.trigger.noted.v1"
    tenant: str
    schedule: str
    upstream: Upstream
    sequence: int
    number: int
    appended_at: datetime
    chain: tuple[str, ...] = ()


@frozen
class TriggerTaken(OfSchedule):
    """The first one that was noted, or the first of those that wait, is decided: what became of it follows."""

    TYPE: ClassVar[str] = "tidewheel.trigger.taken.v1"
    tenant: str
    schedule: str
    waited: bool = False


@frozen
class TriggerDeferred(OfSchedule):
    """What an upstream's run leads to waits until other runs have ended."""

    TYPE: ClassVar[str] = "tidewheel.trigger.deferred.v1"
    tenant: str
    schedule: str
    version: int
    upstream: Upstream
    appended_at: datetime
    decided_at: datetime
    chain: tuple[str, ...] = ()
    blocked_by: str | None = None


@frozen
class WindowAsked(OfSchedule):
    """The occurrence `nominal_time` of `schedule` waits for all that `upstream` was due in (`after`, `until`].

    `once`: the first certain answer is enough, for whoever does not wait for a failure to be mended.
    """

    TYPE: ClassVar[str] = "tidewheel.window.asked.v1"
    tenant: str
    schedule: str
    upstream: str
    nominal_time: datetime
    after: datetime
    until: datetime
    condition: str
    once: bool
    expires_at: datetime
    asked_at: datetime


@frozen
class WindowHeard(OfSchedule):
    """The upstream's owner has answered; at `appended_at` the answer was known here."""

    TYPE: ClassVar[str] = "tidewheel.window.heard.v1"
    tenant: str
    schedule: str
    upstream: str
    nominal_time: datetime
    fate: str
    appended_at: datetime
    instant: datetime | None = None
    detail: str = ""


# --- by the owner of the upstream ---------------------------------------------------------------------------------


@frozen
class WindowNoted(OfSchedule):
    """An occurrence of `downstream` waits for what `schedule` was due in a window; it is judged when that is known."""

    TYPE: ClassVar[str] = "tidewheel.window.noted.v1"
    tenant: str
    schedule: str
    downstream: str
    nominal_time: datetime
    after: datetime
    until: datetime
    condition: str
    once: bool
    expires_at: datetime
    appended_at: datetime


@frozen
class WindowJudged(OfSchedule):
    """How `schedule` stands to a window of `downstream`: met, unmet, open or unknown, and which occurrence is why."""

    TYPE: ClassVar[str] = "tidewheel.window.judged.v1"
    tenant: str
    schedule: str
    downstream: str
    nominal_time: datetime
    version: int
    fate: str
    judged_at: datetime
    instant: datetime | None = None
    detail: str = ""


@frozen
class EdgeListed(OfSchedule):
    """`schedule` reports to `downstream` from now on; or it does not, and `refused` says why."""

    TYPE: ClassVar[str] = "tidewheel.edge.listed.v1"
    tenant: str
    schedule: str
    downstream: str
    mode: str
    condition: str
    sequence: int
    listed_at: datetime
    refused: str = ""


@frozen
class EdgeUnlisted(OfSchedule):
    """`schedule` reports to `downstream` no longer."""

    TYPE: ClassVar[str] = "tidewheel.edge.unlisted.v1"
    tenant: str
    schedule: str
    downstream: str
    sequence: int


@frozen
class UpstreamFinished(OfSchedule):
    """A run of `schedule` ended, and `downstream` wants to know it. `chain`: what led to the run, and `schedule`."""

    TYPE: ClassVar[str] = "tidewheel.upstream.finished.v1"
    tenant: str
    schedule: str
    downstream: str
    sequence: int
    number: int
    run_id: str
    outcome: Outcome
    finished_at: datetime
    chain: tuple[str, ...]
    nominal_time: datetime | None = None


ON_LINKS: tuple[type[Fact], ...] = (
    EdgeAnnounced, EdgeWithdrawn, EdgeInquired, EdgeListed, UpstreamFinished, WindowAsked, WindowJudged,
)  # fmt: skip
IN_STORIES: tuple[type[Fact], ...] = (EdgeAnnounced, EdgeWithdrawn, EdgeLinked, TriggerDeferred)
LINKING: tuple[type[Fact], ...] = tuple(
    dict.fromkeys((*ON_LINKS, *IN_STORIES, EdgeUnlisted, TriggerNoted, TriggerTaken, WindowNoted, WindowHeard))
)
