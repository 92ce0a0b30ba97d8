"""Where a fact is published: one table, from the kind of fact to its topics."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from runtime.machine import Output
from scheduler import failing, forwarding, versions
from scheduler.instants import from_seconds, millis, text
from scheduler.links import exchange
from scheduler.plan import Version
from scheduler.state import Phase, ScheduleState, State
from schemas import codec, identity, topics
from schemas.facts import (
    BackfillFinished,
    BackfillProgressed,
    BackfillStarted,
    CatalogAdopted,
    CatalogEntry,
    Cause,
    CommandRejected,
    Fact,
    HistoryTrimmed,
    OccurrenceDeferred,
    OccurrenceSkipped,
    RecoveryFinished,
    RecoveryStarted,
    RunCancelRequested,
    RunCreated,
    ScheduleAccepted,
    ScheduleDeleted,
    SchedulePaused,
    ScheduleResumed,
    TzAdopted,
)
from schemas.internal import BreakerResetRequested, CommandAnswered, RunInquired, ScheduleCurrent, ScheduleVersion
from schemas.linking import (
    EdgeAnnounced,
    EdgeInquired,
    EdgeLinked,
    EdgeListed,
    EdgeWithdrawn,
    TriggerDeferred,
    UpstreamFinished,
    WindowAsked,
    WindowJudged,
)
from schemas.scheduling import CommandForwarded, HistoryForgotten

Outputs = tuple[Output, ...]


class Routes:
    """Routes of one cluster layout."""

    def __init__(self, layout: topics.Layout) -> None:
        self._layout = layout

    def of(self, state: State, fact: Fact) -> Sequence[Output]:
        """The outputs of a fact, given the state before it; none for facts of our own state."""
        route = _ROUTES.get(type(fact))
        return () if route is None else route(self, state, fact)

    def event(self, _state: State, fact: Fact) -> Outputs:
        """Into the story of its schedule or partition."""
        return (_event(fact),)

    def run(self, state: State, fact: RunCreated) -> Outputs:
        """To its dispatcher, and into the story. The last one of a version ends it."""
        told = (self._to_shard(fact, fact.run_id, fact.job.queue, fact.shard), _event(fact))
        assert isinstance(state, ScheduleState), "runs are of schedules"
        return (*told, _used_up(state, fact)) if _is_last(state, fact) else told

    def inquiry(self, _state: State, fact: RunInquired) -> Outputs:
        """Behind the run."""
        return (self._to_shard(fact, fact.run.run_id, fact.run.job.queue, fact.run.shard),)

    def reset(self, _state: State, fact: BreakerResetRequested) -> Outputs:
        """To the dispatcher that has the breaker."""
        return (self._to_shard(fact, fact.subject, fact.queue, fact.shard),)

    def cancel(self, _state: State, fact: RunCancelRequested) -> Outputs:
        """Behind the run, and into the story."""
        return (self._to_shard(fact, fact.run_id, fact.queue, fact.shard), _event(fact))

    def accepted(self, state: ScheduleState, fact: ScheduleAccepted) -> Outputs:
        """The version begins, the one before it ends."""
        version = ScheduleVersion(
            tenant=fact.tenant, schedule=fact.schedule, version=fact.version, definition=fact.definition,
            effective_from=fact.effective_at, tz_version=fact.tz_version,
            effective_to=fact.effective_at if _begins_used_up(state, fact) else None,
        )  # fmt: skip
        stored = Version(definition=fact.definition, effective_at=fact.effective_at, tz_version=fact.tz_version)
        status = "paused" if state.paused else "active"
        before = (_ended(state, fact),) if state.exists and not state.used_up(state.version) else ()
        return (_event(fact), _current(fact, stored, status), *before, _version(version))

    def paused(self, state: ScheduleState, fact: SchedulePaused) -> Outputs:
        """Still the same definition. A pause of its own may stand behind what people changed after it."""
        if fact.reason != failing.REASON:
            return (_event(fact), _current(fact, _stored(state), "paused", _pause(fact)))
        own = Phase(from_ms=millis(fact.effective_at), version=fact.version, paused=True)
        last = failing.inserted(state.phases, own)[-1]
        if last.deleted:
            return (_event(fact),)
        now = replace(fact, version=last.version)
        status, pause = ("paused", _pause(fact)) if last.paused else ("active", None)
        return (_event(fact), _current(now, _stored(state), status, pause))

    def resumed(self, state: ScheduleState, fact: ScheduleResumed) -> Outputs:
        """Still the same definition."""
        return (_event(fact), _current(fact, _stored(state), "active"))

    def deleted(self, state: ScheduleState, fact: ScheduleDeleted) -> Outputs:
        """The last version ends, and none is in force."""
        gone = Output(topic=topics.SCHEDULES, key=fact.subject, fact=fact, tombstone=True)
        return (_event(fact), gone) if state.used_up(state.version) else (_event(fact), gone, _ended(state, fact))

    def forgotten(self, state: State, fact: HistoryForgotten) -> Outputs:
        """What the audit has no use for any more: versions of which no decision is left."""
        if not isinstance(state, ScheduleState) or fact.versions_up_to is None:
            return ()
        gone = versions.up_to(state, fact.versions_up_to)
        return tuple(Output(topics.VERSIONS, f"{fact.subject}/{number}", fact, tombstone=True) for number in gone)

    def rejected(self, _state: State, fact: CommandRejected) -> Outputs:
        """For whoever sent it."""
        return (Output(topic=topics.REJECTIONS, key=fact.subject, fact=fact),)

    def forwarded(self, _state: State, fact: CommandForwarded) -> Outputs:
        """The command itself, to its owner."""
        record, headers = forwarding.record_of(fact), forwarding.headers_of(fact)
        return (Output(topics.SCHEDULE_CHANGES, fact.subject, fact, headers=headers, carried=record),)

    def entry(self, _state: State, fact: CatalogEntry) -> Outputs:
        """For every partition."""
        return (Output(topic=topics.CATALOG, key=fact.subject, fact=fact),)

    def answer(self, _state: State, fact: CommandAnswered) -> Outputs:
        """To the node that waits for it."""
        return (Output(topic=topics.REPLIES, key=fact.command_id, fact=fact, partition=fact.reply_to),)

    def word(self, _state: State, fact: exchange.Word) -> Outputs:
        """To the owner of the other end of an edge."""
        return (Output(topic=topics.LINKS, key=f"{fact.tenant}/{exchange.receiver(fact)}", fact=fact),)

    def edge(self, state: State, fact: EdgeAnnounced | EdgeWithdrawn) -> Outputs:
        """To the owner of the upstream, and into the story of the one that follows."""
        return (*self.word(state, fact), _event(fact))

    def _to_shard(self, fact: Fact, key: str, queue: str, shard: int) -> Output:
        partition = (_queue_hash(queue) + shard) % self._layout.shard
        return Output(topic=topics.RUNS, key=key, fact=fact, partition=partition)


@lru_cache(maxsize=4096)  # queues: a few hundred in any real deployment
def _queue_hash(queue: str) -> int:
    return identity.murmur2(queue.encode()) & 0x7FFFFFFF


def _event(fact: Fact) -> Output:
    return Output(topic=topics.RUN_EVENTS, key=fact.subject, fact=fact)


def _current(
    fact: ScheduleAccepted | SchedulePaused | ScheduleResumed, stored: Version, status: str,
    pause: Mapping[str, Any] | None = None,
) -> Output:  # fmt: skip
    current = ScheduleCurrent(
        tenant=fact.tenant, schedule=fact.schedule, version=fact.version, state=status, definition=stored.definition,
        effective_at=stored.effective_at, changed_at=fact.accepted_at, tz_version=stored.tz_version,
        pause=pause,
    )  # fmt: skip
    return Output(topic=topics.SCHEDULES, key=fact.subject, fact=current)


def _pause(fact: SchedulePaused) -> Mapping[str, Any]:
    said = {"by": fact.by, "note": fact.note, "reason": fact.reason, "failed_runs": list(fact.failed_runs)}
    return {"since": text(fact.effective_at), **{name: value for name, value in said.items() if value}}


def _ended(state: ScheduleState, fact: ScheduleAccepted | ScheduleDeleted) -> Output:
    stored = _stored(state)
    version = ScheduleVersion(
        tenant=fact.tenant, schedule=fact.schedule, version=state.version, definition=stored.definition,
        effective_from=stored.effective_at, effective_to=fact.effective_at, tz_version=stored.tz_version,
    )  # fmt: skip
    return _version(version)


def _is_last(state: ScheduleState, fact: RunCreated) -> bool:
    """Whether a run uses up what `max_runs` allows the version that was accepted last."""
    decided_by, newest = state.plans.get(fact.version), state.plans.get(state.version)
    without = {Cause.MANUAL, Cause.BACKFILL, Cause.DEPENDENCY, Cause.RERUN}
    if fact.cause in without or decided_by is None or decided_by.max_runs is None:
        return False
    return newest is not None and newest.max_runs is not None and state.counted_runs + 1 >= newest.max_runs


def _used_up(state: ScheduleState, fact: RunCreated) -> Output:
    """A version that has had all its runs ends with what is decided; the audit looks no further."""
    stored = _stored(state)
    assert fact.nominal_time is not None, "the run of an occurrence has its instant"
    ended_at = max(fact.nominal_time, from_seconds(state.decided_until), stored.effective_at)
    version = ScheduleVersion(
        tenant=fact.tenant, schedule=fact.schedule, version=state.version, definition=stored.definition,
        effective_from=stored.effective_at, effective_to=ended_at, tz_version=stored.tz_version,
    )  # fmt: skip
    return _version(version)


def _begins_used_up(state: ScheduleState, fact: ScheduleAccepted) -> bool:
    """Whether the runs that are counted already are all that a new version allows."""
    limit: int | None = (fact.definition.get("trigger") or {}).get("max_runs")
    before = state.plans.get(state.version) if state.exists else None
    if limit is None or before is None or before.max_runs is None:
        return False
    return state.counted_runs >= limit


def _version(version: ScheduleVersion) -> Output:
    return Output(topic=topics.VERSIONS, key=f"{version.subject}/{version.version}", fact=version)


def _stored(state: ScheduleState) -> Version:
    row = state.rows.get(versions.row(state.version))
    assert row is not None, "the version in force is kept"
    return codec.load(Version, codec.parse(row))


_ROUTES: Mapping[type[Fact], Callable[[Routes, Any, Any], Outputs]] = {
    ScheduleAccepted: Routes.accepted,
    SchedulePaused: Routes.paused,
    ScheduleResumed: Routes.resumed,
    ScheduleDeleted: Routes.deleted,
    HistoryForgotten: Routes.forgotten,
    CommandForwarded: Routes.forwarded,
    CommandRejected: Routes.rejected,
    CommandAnswered: Routes.answer,
    CatalogEntry: Routes.entry,
    EdgeAnnounced: Routes.edge,
    EdgeWithdrawn: Routes.edge,
    EdgeInquired: Routes.word,
    EdgeListed: Routes.word,
    EdgeLinked: Routes.event,
    UpstreamFinished: Routes.word,
    WindowAsked: Routes.word,
    WindowJudged: Routes.word,
    TriggerDeferred: Routes.event,
    OccurrenceSkipped: Routes.event,
    OccurrenceDeferred: Routes.event,
    RunCreated: Routes.run,
    BackfillStarted: Routes.event,
    BackfillProgressed: Routes.event,
    BackfillFinished: Routes.event,
    BreakerResetRequested: Routes.reset,
    RunCancelRequested: Routes.cancel,
    RunInquired: Routes.inquiry,
    RecoveryStarted: Routes.event,
    HistoryTrimmed: Routes.event,
    RecoveryFinished: Routes.event,
    CatalogAdopted: Routes.event,
    TzAdopted: Routes.event,
}
