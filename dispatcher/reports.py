"""What a worker's report tells, and what it is told in return.

Reports come from outside: late, twice, in another order, or forged. What a report says of a lease counts only when it
quotes the lease's key as the incarnation that holds it; what it says of the worker counts only when it is newer than
what is known. Whoever lists a lease that is not, or no longer, live is told so each time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from dispatcher import breakers, endings, layouts, leases, listing
from dispatcher.endings import Ending
from dispatcher.run import OpenRun
from dispatcher.shard import Shard
from dispatcher.workforce import Worker
from runtime.machine import Moment
from schemas import identity
from schemas.facts import AttemptDuplicate, AttemptOutcome, AttemptStarted, BreakerChanged, Fact, Outcome
from schemas.internal import OF_LEASES, FinishedLease, LeaseNotice, WorkerEnded, WorkerReport, WorkerReported

_OUTCOMES = {outcome.value: outcome for outcome in AttemptOutcome}
# Only what began can have come to this; a report that says it of an attempt not known to have begun says both.
_BEGAN = frozenset({AttemptOutcome.SUCCEEDED, AttemptOutcome.FAILED})


def decide(shard: Shard, report: WorkerReport, moment: Moment) -> Sequence[Fact]:
    """The facts that follow from a report."""
    if report.number == OF_LEASES:
        return _completed(shard, report, moment)
    worker = shard.workforce.get(report.incarnation)
    if worker is not None and worker.is_ended:
        return [*_ends(shard, report, moment, {}), _ended_notice(shard, report, worker)]
    facts: list[Fact] = [] if worker is not None else _succeed(shard, report, moment)
    begun = _starts(shard, report, moment)
    facts += begun.values()
    facts += _ends(shard, report, moment, begun)
    if worker is None or report.number > worker.record.number:
        if worker is not None:
            facts += _losses(shard, report, worker, moment)
            facts += _survived(shard, report, worker, facts, moment)
        reported = _reported(shard, report, worker, moment)
        facts += [reported, *listing.decide(reported, worker)]
        if worker is None:
            facts += layouts.answer(shard, report, moment)
    return [*facts, *_notice(shard, report)]


def _completed(shard: Shard, report: WorkerReport, moment: Moment) -> list[Fact]:
    """Of leases alone, and by whoever quotes them whole: their holder passed that right on, and says nothing itself."""
    by_holder: dict[str, list[FinishedLease]] = {}
    for entry in report.finished:
        if (holder := leases.holder(shard, entry.lease)) is not None:
            by_holder.setdefault(holder, []).append(entry)
    facts: list[Fact] = []
    for holder, entries in by_holder.items():
        facts += _ends(shard, replace(report, incarnation=holder, finished=tuple(entries)), moment, {})
    return facts


def _succeed(shard: Shard, report: WorkerReport, moment: Moment) -> list[Fact]:
    """A new incarnation of a known name ends the one before it, at once: a name has one process.

    It is ended before its leases are: a silent one is forgotten with its last lease, an ended one is not.
    """
    before = shard.workforce.named(report.worker)
    if before is None:
        return []
    record = before.record
    outcome = AttemptOutcome.INTERRUPTED if record.draining else AttemptOutcome.LOST
    held = _by_offset(before.leases.values())
    ending = Ending(outcome=outcome, at=moment.now, with_worker=outcome is AttemptOutcome.LOST)
    facts = [fact for run in held for fact in endings.attempt_ended(shard, run, ending)]
    ended = WorkerEnded(
        queue=shard.queue, shard=shard.number, incarnation=record.incarnation, ended_by=report.incarnation,
        ended_at=moment.now,
    )  # fmt: skip
    notice = LeaseNotice(
        queue=shard.queue, incarnation=record.incarnation, inbox=record.inbox,
        ended=tuple(run.lease for run in held), incarnation_ended=True, ended_by=report.incarnation,
    )  # fmt: skip
    return [ended, *facts, notice]


def _starts(shard: Shard, report: WorkerReport, moment: Moment) -> dict[int, AttemptStarted]:
    """The attempts that the report says have begun, by hand-out."""
    begun: dict[int, AttemptStarted] = {}
    for text in report.started:
        run = leases.live(shard, report.incarnation, text)
        if run is not None and run.attempt_started_at is None:
            begun[run.lease_offset] = _start(shard, run, report, moment)
    return begun


def _start(shard: Shard, run: OpenRun, report: WorkerReport, moment: Moment) -> AttemptStarted:
    return AttemptStarted(
        tenant=run.tenant, schedule=run.schedule, run_id=run.run_id, attempt=run.attempts,
        worker=shard.workforce.of(run).record.worker, incarnation=report.incarnation, handout=run.lease_offset,
        handed_out_at=run.handed_out(), started_at=moment.now, queue=shard.queue, shard=shard.number,
        log_check=identity.log_check(identity.log_proof(run.lease)),
    )  # fmt: skip


def _ends(shard: Shard, report: WorkerReport, moment: Moment, begun: dict[int, AttemptStarted]) -> list[Fact]:
    """What follows from what the report says is finished; the first word on a lease counts."""
    facts: list[Fact] = []
    first_words: dict[str, FinishedLease] = {}
    for entry in report.finished:
        first_words.setdefault(entry.lease, entry)
    for finished in first_words.values():
        run = leases.live(shard, report.incarnation, finished.lease)
        if run is None:
            facts += _late(shard, report, finished, moment)
            continue
        outcome = _OUTCOMES[finished.outcome]
        began = begun.get(run.lease_offset)
        if began is None and run.attempt_started_at is None and outcome in _BEGAN:
            began = _start(shard, run, report, moment)
            facts.append(began)
        started_at = None if began is None else began.started_at
        ending = Ending(
            outcome=outcome, at=moment.now, started_at=started_at, result=finished.result, error=finished.error,
            retry_after=finished.retry_after,
        )  # fmt: skip
        facts += endings.attempt_ended(shard, run, ending)
    return facts


def _late(shard: Shard, report: WorkerReport, finished: FinishedLease, moment: Moment) -> list[Fact]:
    """A success of a lease taken back counts while nobody else has the run; anything else is a duplicate.

    A lease that ended by its worker's own word is not spoken of again: the report was delivered twice.
    """
    past = leases.taken_back(shard, report.incarnation, finished.lease)
    if past is None:
        return []
    run = leases.ended(shard, report.incarnation, finished.lease)
    if run is not None and finished.outcome == AttemptOutcome.SUCCEEDED:
        ending = Ending(outcome=AttemptOutcome.SUCCEEDED, at=moment.now, result=finished.result)
        return [endings.finish(shard, run, Outcome.SUCCEEDED, ending, reason="late_report")]
    duplicate = AttemptDuplicate(
        tenant=past.tenant, schedule=past.schedule, run_id=past.run_id, worker=past.worker,
        incarnation=past.incarnation, handout=past.offset, reported=finished.outcome, received_at=moment.now,
        attempt=past.attempt,
    )  # fmt: skip
    return [duplicate]


def _losses(shard: Shard, report: WorkerReport, worker: Worker, moment: Moment) -> list[Fact]:
    """What the worker has read past and does not hold is lost; and so is all unread when its inbox is another."""
    mentioned = {*report.held, *report.started, *(entry.lease for entry in report.finished)}
    moved = report.inbox != worker.record.inbox
    read_up_to = _read_up_to(shard, report, worker)
    lost = [
        run for offset, run in worker.leases.items() if (moved or offset <= read_up_to) and run.lease not in mentioned
    ]
    ending = Ending(outcome=AttemptOutcome.LOST, at=moment.now)
    return [fact for run in _by_offset(lost) for fact in endings.attempt_ended(shard, run, ending)]


def _survived(
    shard: Shard, report: WorkerReport, worker: Worker, facts: Iterable[Fact], moment: Moment
) -> list[BreakerChanged]:
    """Suspects that the worker is rid of, and is there; or has had for so long that it will not die of them soon."""
    if not shard.breakers.tries_suspects:
        return []
    held = _listed_and_not_over(report)
    survived = (
        *shard.breakers.outlived(report.incarnation, held, moment.now),
        *shard.breakers.heard_of(report.incarnation, _overdue(shard, report, worker)),
        *shard.breakers.stopped(facts),
    )
    return [breakers.fact_of(each, breakers.SURVIVED, shard.queue, shard.number, moment.now) for each in survived]


def _overdue(shard: Shard, report: WorkerReport, worker: Worker | None) -> tuple[int, ...]:
    """The hand-outs whose time is up, which the report lists all the same.

    It may have been written before: by a worker that is gone meanwhile, or by the node through which it spoke.
    """
    if worker is None or not worker.record.overdue:
        return ()
    past = (leases.taken_back(shard, report.incarnation, text) for text in _listed_and_not_over(report))
    listed = {each.offset for each in past if each is not None}
    return tuple(each.handout for each in worker.record.overdue if each.handout in listed)


def _read_up_to(shard: Shard, report: WorkerReport, worker: Worker | None) -> int:
    """Up to which hand-out the worker has read: never less than it said before, never what was not made yet."""
    known = -1 if worker is None else worker.record.read_up_to
    return max(known, min(report.read_up_to, shard.counters.next_offset - 1))


def _reported(shard: Shard, report: WorkerReport, worker: Worker | None, moment: Moment) -> WorkerReported:
    return WorkerReported(
        queue=shard.queue, shard=shard.number, worker=report.worker, incarnation=report.incarnation,
        number=report.number, inbox=report.inbox, read_up_to=_read_up_to(shard, report, worker),
        slots=report.slots, tasks=report.tasks, reported_at=moment.now, draining=report.draining,
        slots_total=report.slots_total, stuck=report.stuck, client=report.client, transport=report.transport,
        overdue=_overdue(shard, report, worker),
    )  # fmt: skip


def _notice(shard: Shard, report: WorkerReport) -> list[Fact]:
    """What the worker should drop or stop among what it lists."""
    done = {entry.lease for entry in report.finished}
    ended, cancelled = [], []
    for text in _listed(report):
        if text in done:
            continue
        run = leases.live(shard, report.incarnation, text)
        if run is None:
            ended.append(text)
        elif run.cancel_requested:
            cancelled.append(text)
    if not ended and not cancelled:
        return []
    notice = LeaseNotice(
        queue=shard.queue, incarnation=report.incarnation, inbox=report.inbox, ended=tuple(ended),
        cancelled=tuple(cancelled),
    )  # fmt: skip
    return [notice]


def _ended_notice(shard: Shard, report: WorkerReport, worker: Worker) -> LeaseNotice:
    return LeaseNotice(
        queue=shard.queue, incarnation=report.incarnation, inbox=report.inbox, ended=tuple(_listed(report)),
        incarnation_ended=True, ended_by=worker.record.ended_by,
    )  # fmt: skip


def _listed(report: WorkerReport) -> Iterable[str]:
    return dict.fromkeys((*report.held, *report.started))


def _listed_and_not_over(report: WorkerReport) -> set[str]:
    return {*report.held, *report.started}.difference(entry.lease for entry in report.finished)


def _by_offset(runs: Iterable[OpenRun]) -> list[OpenRun]:
    return sorted(runs, key=lambda run: run.lease_offset)
