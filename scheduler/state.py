"""What the scheduler knows: of a schedule, of a reference definition, and of the partition.

A schedule's state is one small row, however long it has existed and however many runs it has open; what grows with them
are rows of their own (`keys`). `rows` and `plans` come with loading and are not part of the stored row.

The timeline is a list of phases: the first one is in force at the decided mark, each later one from its instant on.
An occurrence belongs to the last phase that began before it, whenever the owner gets to deciding it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, fields
from datetime import datetime
from typing import Any, TypeVar, cast

from runtime.machine import Rows
from scheduler import keys
from scheduler.instants import SECOND_MS
from scheduler.links.state import NO_LINKS, Links
from scheduler.plan import Plan
from schemas import codec
from schemas.facts import BackfillCounts, Cause, Outcome
from schemas.frozen import compiled, frozen, twin
from schemas.scheduling import Failures

SKIPS_MAX = 100  # occurrences to come that are to have no run: for more there are pauses and exclusions
PHASES_MAX = 64  # changes of one schedule between two decisions; more than that is a publisher gone wild

S = TypeVar("S")


@frozen
class Phase:
    """From `from_ms` on (exclusively), this version decides, or nothing does.

    `since_ms`, where the schedule was paused before this version already: since when.
    """

    from_ms: int
    version: int
    paused: bool = False
    deleted: bool = False
    since_ms: int | None = None

    @property
    def from_(self) -> int:
        """In whole seconds: nominal instants above it belong here."""
        return self.from_ms // SECOND_MS

    @property
    def paused_ms(self) -> int:
        """Since when it is paused, if it is."""
        return self.from_ms if self.since_ms is None else self.since_ms


@frozen
class Waiting:
    """An occurrence that is due and waits for a run to end; at `until_ms` it is skipped.

    One of a backlog waits for `release_ms` too, since an outage that ended at `since_ms`. One that is `frozen` waits
    for the end of a freeze, as it was known: whether that is over is asked at `release_ms`. One that was `moved` had
    another turn before, and those behind it have other ones when it is theirs.
    """

    nominal: int
    version: int
    cause: Cause = Cause.SCHEDULE
    until_ms: int | None = None
    release_ms: int = 0
    since_ms: int = 0
    frozen: bool = False
    moved: bool = False

    @property
    def moves_others(self) -> bool:
        """Whether turns that were given behind it say nothing any more."""
        return self.frozen or self.moved


@frozen
class Held:
    """An outcome that is known and counts from `at_ms` on, when the occurrences before that are decided."""

    at_ms: int
    run_id: str
    outcome: Outcome
    nominal: int | None = None
    finished: int | None = None  # the second it ended in, where one interval counts from there


@frozen
class Segment:
    """Neighbouring occurrences that fared alike: `count` of them, from the first nominal to the last one."""

    from_: int
    to: int
    count: int
    version: int
    decision: str = "created"
    reason: str = ""
    outcome: str = ""


@frozen
class Memory:
    """How many answered commands are remembered, and since when."""

    count: int = 0
    oldest_ms: int = 0


@frozen
class Sweep:
    """A walk over the open runs: due at `at_ms`, come as far as `cursor`, next one due at `soonest_ms`."""

    at_ms: int | None = None
    cursor: str = ""
    soonest_ms: int | None = None


NO_SWEEP = Sweep()  # no run is open


@frozen
class Ended:
    """The oldest version that has ended and still has its record, and when it did."""

    version: int
    at_ms: int


@frozen
class Delays:
    """Commands that wait, in rows numbered from `first` on; the first one is looked at when it is `look_ms`."""

    count: int = 0
    first: int = 0
    look_ms: int = 0


NO_DELAYS = Delays()  # no command waits


@frozen
class Chain:
    """The last occurrence that follows the end of the one before: the next one counts from `since`.

    None while its run is open, or it waits for one: then nothing is due.
    """

    nominal: int
    since: int | None = None


@frozen
class Cancelling:
    """A deletion that asks the open runs to stop has come as far as `cursor`.

    Or a new version, `before`, that wants the runs of older ones gone, where nobody has begun them. It begins at
    `at_ms`, when what was due before the change is decided, and is about runs of versions up to `up_to`.
    """

    requested_ms: int
    at_ms: int = 0
    up_to: int | None = None  # None in rows of a time when the instant of creation decided
    cursor: str = ""
    by: str = ""
    command_id: str = ""
    source: str = ""
    before: int | None = None


@frozen
class Backfill:
    """A range whose occurrences have runs by one version, a few at a time.

    What lies behind `cursor` is decided: before it, or for the newest first, from it on. The next run may come at
    `next_ms`; what was `told` of it, in steps and at `told_ms`, is compared with how far it is; its speed is measured
    from `since_ms` on, when `done_before` occurrences were through.
    """

    id: str
    version: int
    from_: int
    to: int
    cursor: int
    occurrences: int
    max_active: int
    spacing_ms: int
    reprocess: str = "none"
    newest: bool = False
    state: str = "running"
    counts: BackfillCounts = BackfillCounts()
    next_ms: int = 0
    told: int = 0
    told_ms: int = 0
    since_ms: int = 0
    done_before: int = 0
    reason: str = ""


@frozen
class ScheduleState:
    """Everything about a schedule that decides.

    `due` is a note of what was computed from the rest, `row` one of what stands stored; neither is part of the row.
    """

    tenant: str = field(default="", metadata={"wire": False})
    name: str = field(default="", metadata={"wire": False})
    rows: Rows = field(default=None, metadata={"wire": False}, compare=False, repr=False)  # type: ignore[assignment]
    plans: Mapping[int, Plan] = field(default_factory=dict, metadata={"wire": False}, compare=False, repr=False)
    due: Any = field(default=None, metadata={"wire": False}, compare=False, repr=False)
    row: bytes | None = field(default=None, metadata={"wire": False}, compare=False, repr=False)
    # Kept for ever, so that a recreated schedule continues:
    version: int = 0
    source_version: int | None = None
    effective_ms: int = 0
    decided_until: int = 0
    last_nominal: int | None = None
    # What is in force:
    phases: tuple[Phase, ...] = ()
    counted_runs: int = 0  # of occurrences, since a version first gave `max_runs`
    failures: Failures | None = None  # in a row, where enough of them pause the schedule
    chain: Chain | None = None  # where intervals count from the end of a run
    # What is going on:
    active: int = 0
    open_runs: int = 0
    blocker: str = ""
    held: tuple[Held, ...] = ()
    waiting: Waiting | None = None
    waiting_count: int = 0
    backlog: Waiting | None = None  # what an outage left to be caught up: see `pacing`
    backlog_count: int = 0
    paced_ms: int | None = None  # the last instant of release that was given away
    skips: int = 0  # asked for, in rows
    inquiry: Sweep = NO_SWEEP
    cancelling: Cancelling | None = None
    delays: Delays = NO_DELAYS
    backfills: tuple[Backfill, ...] = ()
    links: Links = NO_LINKS
    # What was:
    filled_from: int | None = None  # the oldest bucket of what backfills made
    segments: tuple[Segment, ...] = ()
    spilled_to: int | None = None
    ended: Ended | None = None
    memory: Memory = Memory()

    @property
    def exists(self) -> bool:
        """Whether there is such a schedule now, as far as accepted commands say."""
        return bool(self.phases) and not self.phases[-1].deleted

    def used_up(self, version: int) -> bool:
        """Whether a version has had all the runs that it may have: nothing is due by it any more."""
        limit = self.plans[version].max_runs
        return limit is not None and self.counted_runs >= limit

    @property
    def paused(self) -> bool:
        """Whether the last word was to pause."""
        return bool(self.phases) and self.phases[-1].paused


@frozen
class ReferenceState:
    """A job, calendar, queue or tenant as its owner knows it; `definition` None: there is none (any more)."""

    kind: str = field(default="", metadata={"wire": False})
    tenant: str = field(default="", metadata={"wire": False})
    name: str = field(default="", metadata={"wire": False})
    rows: Rows = field(default=None, metadata={"wire": False}, compare=False, repr=False)  # type: ignore[assignment]
    version: int = 0
    source_version: int | None = None
    definition: Mapping[str, Any] | None = None
    memory: Memory = Memory()
    delays: Delays = NO_DELAYS


@frozen
class Recovery:
    """Occurrences older than their grace were met; until the partition has reached `to`, age is measured against it."""

    from_: datetime
    to: datetime
    tenant_rate: str = ""


@frozen
class Review:
    """A walk over the schedules of which something is held, as freezes have changed: those named `prefix`…, come as far
    as `cursor`.
    """

    prefix: str
    cursor: str


@frozen
class PartitionState:
    """What all keys of a partition share. Adopted definitions are rows; decisions before `history_from` are gone."""

    rows: Rows = field(default=None, metadata={"wire": False}, compare=False, repr=False)  # type: ignore[assignment]
    tz_version: str = ""
    catalog_offset: int = -1
    freezes: int = 0  # adopted definitions that have any
    sharded: int = 0  # adopted queues with several shards
    recovery: Recovery | None = None
    history_from: datetime | None = None
    review: Review | None = None


State = ScheduleState | ReferenceState | PartitionState


def changed(state: ScheduleState, **fields: Any) -> ScheduleState:
    """The state with other fields; what was noted about the old one is forgotten."""
    return updated(state, due=None, **fields)


def updated(state: ScheduleState, **fields: Any) -> ScheduleState:
    """The state with other fields, where nothing changed about what is due.

    It is `dataclasses.replace` at an eighth of the price: a run is two changes of a state with two dozen fields.
    """
    copy = draft(state)
    for name, value in fields.items():
        setattr(copy, name, value)
    return finished(copy)


def draft(state: ScheduleState) -> Any:
    """A copy whose fields may be set, until it is `finished`; for what happens with every run."""
    return _copy(state)


def finished(copy: Any) -> ScheduleState:
    """The state that a draft has become."""
    copy.__class__ = ScheduleState
    return cast("ScheduleState", copy)


def _copier() -> Callable[[ScheduleState], Any]:
    """What fills a twin (see `schemas.frozen`) from a state, field by field."""
    lines = [f"    copy.{field_.name} = state.{field_.name}" for field_ in fields(ScheduleState)]
    source = "\n".join(["def copied(state):", "    copy = Twin()", *lines, "    return copy"])
    return compiled(source, "copied", {"Twin": twin(ScheduleState)})


_copy = _copier()


def save(state: State, rows: Rows) -> None:
    """Write the state's own row when it says something new."""
    row = codec.dump(state)
    if row == (state.row if isinstance(state, ScheduleState) else rows.get(keys.MAIN)):
        return
    rows.put(keys.MAIN, row)
    if isinstance(state, ScheduleState):
        object.__setattr__(state, "row", row)  # a note, so that the next save need not read; the value is the same


def stored(cls: type[S], rows: Rows) -> S:
    """The state's own row as read; a new state where there is none."""
    raw = rows.get(keys.MAIN)
    return cls() if raw is None else codec.load(cls, codec.parse(raw))
