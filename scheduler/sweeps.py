"""Walks over the open runs of a schedule, a page at a time: to ask what became of them, and to ask them to stop.

Open runs stand by their ids, which say nothing of their age. So whoever is to be asked after is found by looking at
all of them, and a walk waits until that is worth it: the more are open, the longer after the first one is due.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from zlib import crc32

from scheduler import keys
from scheduler.context import Context
from scheduler.instants import from_millis, millis
from scheduler.state import Cancelling, ScheduleState, Sweep, changed
from schemas import codec
from schemas.facts import Fact, RunCancelRequested, RunCreated
from schemas.internal import RunInquired
from schemas.scheduling import RunsSwept

PAGE_RUNS = 64  # of one step,
PAGE_BYTES = 256 * 1024  # and at least one, however large: a batch holds a few steps
FIRST_MS = 10 * 60 * 1000  # after its creation a run without outcome is asked after for the first time,
LONGEST_MS = 6 * 60 * 60 * 1000  # then after twice as long each time, at last every six hours
REST_RUNS = 16  # for each so many open ones
REST_MS = 4_000  # a walk waits so long, which comes to some four looks a second,
REST_LONGEST_MS = FIRST_MS  # but never longer than this: the next question is due twenty minutes after the first
SPREAD = 4 * 256  # up to a fourth less, by 256 turns: schedules that began together do not walk together


def inquiry_ms(state: ScheduleState) -> int | None:
    """When a walk goes on: at once when it is under way, else a while after the first run wants to be asked after."""
    inquiry = state.inquiry
    if inquiry.at_ms is None or inquiry.cursor or state.open_runs < REST_RUNS:
        return inquiry.at_ms
    rest_ms = min(state.open_runs // REST_RUNS * REST_MS, REST_LONGEST_MS)
    turn = crc32(f"{state.tenant}/{state.name}".encode()) % 256
    return inquiry.at_ms + rest_ms - rest_ms * turn // SPREAD


def inquire(state: ScheduleState, context: Context) -> tuple[Fact, ...]:
    """Ask after the runs of one page that have been without an outcome for so long."""
    page, done = _page(state, state.inquiry.cursor)
    asked: list[Fact] = []
    soonest: int | None = None
    for run in page:
        due_ms = next_inquiry_ms(millis(run.created_at), (state.inquiry.at_ms or 0) - 1)
        if due_ms <= context.horizon_ms:
            asked.append(RunInquired(run=run, inquired_at=context.now))
            due_ms = next_inquiry_ms(millis(run.created_at), context.horizon_ms)
        soonest = due_ms if soonest is None else min(soonest, due_ms)
    return (*asked, _swept(state, "inquire", page, done=done, next_ms=soonest))


def with_another(inquiry: Sweep, first_ms: int) -> Sweep:
    """The walk with another run to ask after; a walk that is under way may be past the run's place already."""
    if inquiry.cursor:
        return replace(inquiry, soonest_ms=sooner(inquiry.soonest_ms, first_ms))
    if inquiry.at_ms is not None and inquiry.at_ms <= first_ms:
        return inquiry
    return Sweep(at_ms=first_ms)


def sooner(one: int | None, other: int | None) -> int | None:
    """The earlier of two instants, where there are any."""
    return min((instant for instant in (one, other) if instant is not None), default=None)


def next_inquiry_ms(created_ms: int, after_ms: int) -> int:
    """When a run of that age wants to be asked after: a function of its creation, so that nothing has to be kept."""
    delay, due = FIRST_MS, created_ms + FIRST_MS
    while due <= after_ms and delay < LONGEST_MS:
        delay = min(2 * delay, LONGEST_MS)
        due += delay
    if due <= after_ms:
        due += ((after_ms - due) // LONGEST_MS + 1) * LONGEST_MS
    return due


def cancel(state: ScheduleState, cancelling: Cancelling, context: Context) -> tuple[Fact, ...]:
    """Ask the runs of one page to stop, those that were there when the schedule was deleted or changed."""
    page, done = _page(state, cancelling.cursor)
    before = cancelling.before
    meant = [run for run in page if _is_meant(run, cancelling)]
    requests = [
        RunCancelRequested(
            tenant=run.tenant, schedule=run.schedule, run_id=run.run_id, requested_at=context.now, queue=run.job.queue,
            shard=run.shard, by=cancelling.by, command_id=cancelling.command_id, source=cancelling.source,
            unstarted=before is not None, note="" if before is None else f"version {before} is in force",
        )
        for run in meant
    ]  # fmt: skip
    return (*requests, _swept(state, "cancel", page, done=done))


def _is_meant(run: RunCreated, cancelling: Cancelling) -> bool:
    if cancelling.up_to is None:
        return millis(run.created_at) <= cancelling.requested_ms
    return run.version <= cancelling.up_to and not (run.backfill and cancelling.before is not None)


def evolve_swept(state: ScheduleState, fact: RunsSwept) -> ScheduleState:
    """A page is done."""
    if fact.purpose == "cancel":
        assert state.cancelling is not None, "a walk that nobody began"
        return changed(state, cancelling=None if fact.done else replace(state.cancelling, cursor=fact.up_to))
    soonest = sooner(state.inquiry.soonest_ms, None if fact.next_at is None else millis(fact.next_at))
    if fact.done:
        return changed(state, inquiry=Sweep(at_ms=soonest))
    return changed(state, inquiry=replace(state.inquiry, cursor=fact.up_to, soonest_ms=soonest))


def is_open(state: ScheduleState, run_id: str) -> bool:
    """Whether a run of the schedule has no outcome yet."""
    return state.rows.get(keys.RUN + run_id.encode()) is not None


def run_row(state: ScheduleState, run_id: str) -> RunCreated | None:
    """An open run, whole."""
    row = state.rows.get(keys.RUN + run_id.encode())
    return None if row is None else codec.load(RunCreated, codec.parse(row))


def _page(state: ScheduleState, cursor: str) -> tuple[list[RunCreated], bool]:
    page: list[RunCreated] = []
    size = 0
    for _, row in _rows_behind(state, cursor):
        if len(page) >= PAGE_RUNS or size >= PAGE_BYTES:
            return page, False
        page.append(codec.load(RunCreated, codec.parse(row)))
        size += len(row)
    return page, True


def _rows_behind(state: ScheduleState, cursor: str) -> Iterator[tuple[bytes, bytes]]:
    start = keys.RUN + cursor.encode() + (b"\0" if cursor else b"")
    return iter(state.rows.scan(start, keys.end_of(keys.RUN)))


def _swept(
    state: ScheduleState, purpose: str, page: list[RunCreated], *, done: bool, next_ms: int | None = None
) -> RunsSwept:
    return RunsSwept(
        tenant=state.tenant,
        schedule=state.name,
        purpose=purpose,
        up_to=page[-1].run_id if page else "",
        done=done,
        next_at=None if next_ms is None else from_millis(next_ms),
    )
