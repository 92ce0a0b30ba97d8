"""Facts that only the scheduler's own state is folded from: they stand in decision records and on no topic."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar

from schemas.facts import Fact, OfPartition, OfSchedule, Outcome, Position
from schemas.faults import Fault
from schemas.frozen import frozen


@frozen
class MarkMoved(OfSchedule):
    """Nothing was due between the last decision and `until`: a later change of the schedule starts from there."""

    TYPE: ClassVar[str] = "tidewheel.schedule.mark_moved.v1"
    tenant: str
    schedule: str
    until: datetime
    passed: datetime | None = None  # to the millisecond, where outcomes matter: those up to it are settled


@frozen
class OutcomeHeld(OfSchedule):
    """A run ended at `appended_at`, after occurrences that are not decided yet: it counts when their turn is over."""

    TYPE: ClassVar[str] = "tidewheel.run.outcome_held.v1"
    tenant: str
    schedule: str
    run_id: str
    outcome: Outcome
    appended_at: datetime
    nominal_time: datetime | None = None
    finished_at: datetime | None = None  # where others count from there


@frozen
class Failures:
    """Runs of a version that failed in a row, without a success between them; the last ones by their ids."""

    version: int
    count: int
    runs: tuple[str, ...] = ()


@frozen
class RunSettled(OfSchedule):
    """The schedule knows how a run ended: it is not active any more. `counted` says whether it stood in others' way.

    `failures` is how many have failed in a row now, where that is counted and changed; a count of 0 begins anew.
    `next_from` is what the next occurrence counts from, where that follows the end of a run.
    """

    TYPE: ClassVar[str] = "tidewheel.run.settled.v1"
    tenant: str
    schedule: str
    run_id: str
    outcome: Outcome
    appended_at: datetime
    counted: bool
    nominal_time: datetime | None = None
    failures: Failures | None = None
    next_from: datetime | None = None
    backfill: str = ""


@frozen
class BackfillStepped(OfSchedule):
    """A backfill has come to `cursor`, past occurrences that it leaves alone, so many for each reason."""

    TYPE: ClassVar[str] = "tidewheel.backfill.stepped.v1"
    tenant: str
    schedule: str
    backfill: str
    cursor: datetime
    left_out: Mapping[str, int]
    stepped_at: datetime


@frozen
class OccurrencePaced(OfSchedule):
    """A missed occurrence of the schedule has this instant of release; the next one's is behind it."""

    TYPE: ClassVar[str] = "tidewheel.occurrence.paced.v1"
    tenant: str
    schedule: str
    release_at: datetime


@frozen
class TenantPaced(OfPartition):
    """A missed occurrence of the tenant has taken its turn in this partition; the next one is at `next_at`."""

    TYPE: ClassVar[str] = "tidewheel.tenant.paced.v1"
    role: str
    partition: int
    tenant: str
    next_at: datetime


@frozen
class HoldNoted(OfPartition):
    """A freeze holds something of a schedule, until then at the latest: a change of freezes is to be told to it."""

    TYPE: ClassVar[str] = "tidewheel.hold.noted.v1"
    role: str
    partition: int
    tenant: str
    schedule: str
    until: datetime


@frozen
class HoldsReviewed(OfPartition):
    """Freezes have changed, of a tenant or of a queue: those whose holds stand behind `cursor` are told next.

    `prefix` is what the names of those concerned begin with. Without a `cursor` all have been told.
    """

    TYPE: ClassVar[str] = "tidewheel.holds.reviewed.v1"
    role: str
    partition: int
    reviewed_at: datetime
    prefix: str = ""
    cursor: str | None = None


@frozen
class HoldQuestioned(OfSchedule):
    """Freezes have changed: what is held of the schedule is looked at again now, and not only at a window's end."""

    TYPE: ClassVar[str] = "tidewheel.hold.questioned.v1"
    tenant: str
    schedule: str
    at: datetime


@frozen
class SkipRequested(OfSchedule):
    """Someone wants the occurrence of `nominal_time` to have no run. It is skipped when it is due."""

    TYPE: ClassVar[str] = "tidewheel.occurrence.skip_requested.v1"
    tenant: str
    schedule: str
    nominal_time: datetime
    requested_at: datetime
    by: str = ""
    note: str = ""


@frozen
class RunsSwept(OfSchedule):
    """One page of a walk over the open runs, for `purpose` inquire or cancel, came as far as `up_to`.

    `next_at` is the earliest instant at which a run of this page wants to be asked after again.
    """

    TYPE: ClassVar[str] = "tidewheel.runs.swept.v1"
    tenant: str
    schedule: str
    purpose: str
    up_to: str
    done: bool
    next_at: datetime | None = None


@frozen
class CommandRemembered(Fact):
    """How a command was answered, so that the same one again is answered alike. `of`: of which kind of thing."""

    TYPE: ClassVar[str] = "tidewheel.command.remembered.v1"
    of: str
    tenant: str
    name: str
    source: str
    command_id: str
    status: int
    body: Mapping[str, Any]
    remembered_at: datetime
    faults: tuple[Fault, ...] = ()
    source_version: int | None = None

    @property
    def subject(self) -> str:
        return f"{self.tenant}/{self.name}"


@frozen
class CommandDelayed(Fact):
    """A command waits, for the catalog or behind one that does. It stands here whole: it is judged later."""

    TYPE: ClassVar[str] = "tidewheel.command.delayed.v1"
    of: str
    tenant: str
    name: str
    source: str
    command_id: str
    command_type: str
    data: Mapping[str, Any]
    position: Position
    appended_at: datetime
    delayed_at: datetime
    reply_to: int | None = None

    @property
    def subject(self) -> str:
        return f"{self.tenant}/{self.name}"


@frozen
class CatalogAwaited(Fact):
    """The first command that waits has still not seen its catalog record: it is looked for again at `look_at`."""

    TYPE: ClassVar[str] = "tidewheel.catalog.awaited.v1"
    of: str
    tenant: str
    name: str
    look_at: datetime

    @property
    def subject(self) -> str:
        return f"{self.tenant}/{self.name}"


@frozen
class CommandTaken(Fact):
    """The first command that waited waits no longer; what became of it follows."""

    TYPE: ClassVar[str] = "tidewheel.command.taken.v1"
    of: str
    tenant: str
    name: str

    @property
    def subject(self) -> str:
        return f"{self.tenant}/{self.name}"


@frozen
class CommandForwarded(Fact):
    """A command stood at `position`, in a partition that is not its owner's, and is sent on."""

    TYPE: ClassVar[str] = "tidewheel.command.forwarded.v1"
    tenant: str
    name: str
    source: str
    command_id: str
    command_type: str
    data: Mapping[str, Any]
    position: Position
    appended_at: datetime
    reply_to: int | None = None

    @property
    def subject(self) -> str:
        return f"{self.tenant}/{self.name}"


@frozen
class HistoryForgotten(Fact):
    """One bounded step of forgetting: commands answered before `commands_until`, decisions before `ledger_until`.

    With the decisions go the records of versions up to `versions_up_to`, of which none is left.
    """

    TYPE: ClassVar[str] = "tidewheel.history.forgotten.v1"
    of: str
    tenant: str
    name: str
    commands_until: datetime | None = None
    ledger_until: datetime | None = None
    versions_up_to: int | None = None

    @property
    def subject(self) -> str:
        return f"{self.tenant}/{self.name}"


@frozen
class ZoneRule:
    """What a tz database says of some zones, in the words of `scheduler.occurrences.rules`."""

    rule: str
    zones: tuple[str, ...]


@frozen
class TzRulesNoted(OfPartition):
    """What the tz database says that a partition decides with: whoever has a newer one can tell the difference."""

    TYPE: ClassVar[str] = "tidewheel.tz.rules_noted.v1"
    role: str
    partition: int
    version: str
    rules: tuple[ZoneRule, ...]


SCHEDULER_INTERNALS: tuple[type[Fact], ...] = (
    MarkMoved,
    OutcomeHeld,
    RunSettled,
    BackfillStepped,
    OccurrencePaced,
    TenantPaced,
    HoldNoted,
    HoldsReviewed,
    HoldQuestioned,
    SkipRequested,
    RunsSwept,
    CommandRemembered,
    CommandDelayed,
    CatalogAwaited,
    CommandTaken,
    CommandForwarded,
    HistoryForgotten,
    TzRulesNoted,
)
