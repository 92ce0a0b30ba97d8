"""Where each fact is published.

What only a shard's state follows from goes nowhere; nor does what the scheduler has published before it came here
(`run.created`, `run.cancel_requested`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from runtime.machine import Output
from schemas import topics
from schemas.facts import (
    AttemptDuplicate,
    AttemptFinished,
    AttemptStarted,
    BreakerChanged,
    CatalogAdopted,
    CommandRejected,
    DeadLetter,
    Fact,
    RunDeferred,
    RunFinished,
    RunRetryScheduled,
)
from schemas.internal import (
    CommandAnswered,
    HandOut,
    LeaseNotice,
    QueueLayout,
    WorkerEnded,
    WorkerLapsed,
    WorkerListed,
)


def route(fact: Fact) -> Sequence[Output]:
    """The records that a fact becomes."""
    outputs = ROUTES.get(type(fact))
    return () if outputs is None else outputs(fact)


def _event(fact: Fact) -> Sequence[Output]:
    return (Output(topics.RUN_EVENTS, fact.subject, fact),)


def _outcome(fact: Fact) -> Sequence[Output]:
    key = fact.subject
    return Output(topics.RUN_EVENTS, key, fact), Output(topics.RUN_OUTCOMES, key, fact)


def _dead_letter(fact: Fact) -> Sequence[Output]:
    return (Output(topics.DEAD_LETTERS, fact.subject, fact),)


def _rejection(fact: Fact) -> Sequence[Output]:
    return (Output(topics.REJECTIONS, fact.subject, fact),)


def _hand_out(fact: HandOut) -> Sequence[Output]:
    return _to_inbox(fact, fact.run.job.queue)


def _notice(fact: LeaseNotice) -> Sequence[Output]:
    return _to_inbox(fact, fact.queue)


def _to_inbox(fact: HandOut | LeaseNotice, queue: str) -> Sequence[Output]:
    return (Output(topics.dispatch_topic(queue), fact.incarnation, fact, fact.inbox),)


def _layout(fact: QueueLayout) -> Sequence[Output]:
    topic = topics.dispatch_topic(fact.queue)
    if fact.inbox is not None:
        return (Output(topic, fact.subject, fact, fact.inbox),)
    return [Output(topic, fact.subject, fact, inbox, optional=True) for inbox in range(topics.INBOXES)]


def _line(fact: WorkerListed) -> Sequence[Output]:
    return (Output(topics.WORKERS, fact.subject, fact),)


def _no_line(fact: WorkerLapsed | WorkerEnded) -> Sequence[Output]:
    key = f"{fact.queue}/{fact.shard}/{fact.incarnation}"
    return (Output(topics.WORKERS, key, fact, tombstone=True),)


def _answer(fact: CommandAnswered) -> Sequence[Output]:
    return (Output(topics.REPLIES, fact.command_id, fact, fact.reply_to),)


ROUTES: Mapping[type[Fact], Callable[[Any], Sequence[Output]]] = {
    HandOut: _hand_out,
    LeaseNotice: _notice,
    QueueLayout: _layout,
    AttemptStarted: _event,
    AttemptFinished: _event,
    AttemptDuplicate: _event,
    RunDeferred: _event,
    BreakerChanged: _event,
    RunRetryScheduled: _event,
    RunFinished: _outcome,
    DeadLetter: _dead_letter,
    CommandAnswered: _answer,
    WorkerListed: _line,
    WorkerLapsed: _no_line,
    WorkerEnded: _no_line,
    CommandRejected: _rejection,
    CatalogAdopted: _event,
}
