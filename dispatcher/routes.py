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
    CommandRejected,
    DeadLetter,
    Fact,
    RunDeferred,
    RunFinished,
    RunRetryScheduled,
)
from schemas.internal import CommandAnswered, HandOut, LeaseNotice


def route(fact: Fact) -> Sequence[Output]:
    """The records that a fact becomes."""
    outputs = ROUTES.get(type(fact))
    return () if outputs is None else outputs(fact)


def _event(fact: Fact) -> Sequence[Output]:
    return (Output(topic=topics.RUN_EVENTS, key=fact.subject, fact=fact),)


def _outcome(fact: Fact) -> Sequence[Output]:
    key = fact.subject
    return (
        Output(topic=topics.RUN_EVENTS, key=key, fact=fact),
        Output(topic=topics.RUN_OUTCOMES, key=key, fact=fact),
    )


def _dead_letter(fact: Fact) -> Sequence[Output]:
    return (Output(topic=topics.DEAD_LETTERS, key=fact.subject, fact=fact),)


def _rejection(fact: Fact) -> Sequence[Output]:
    return (Output(topic=topics.REJECTIONS, key=fact.subject, fact=fact),)


def _hand_out(fact: HandOut) -> Sequence[Output]:
    return _to_inbox(fact, fact.run.job.queue)


def _notice(fact: LeaseNotice) -> Sequence[Output]:
    return _to_inbox(fact, fact.queue)


def _to_inbox(fact: HandOut | LeaseNotice, queue: str) -> Sequence[Output]:
    topic = topics.dispatch_topic(queue)
    return (Output(topic=topic, key=fact.incarnation, fact=fact, partition=fact.inbox),)


def _answer(fact: CommandAnswered) -> Sequence[Output]:
    return (Output(topic=topics.REPLIES, key=fact.command_id, fact=fact, partition=fact.reply_to),)


ROUTES: Mapping[type[Fact], Callable[[Any], Sequence[Output]]] = {
    HandOut: _hand_out,
    LeaseNotice: _notice,
    AttemptStarted: _event,
    AttemptFinished: _event,
    AttemptDuplicate: _event,
    RunDeferred: _event,
    RunRetryScheduled: _event,
    RunFinished: _outcome,
    DeadLetter: _dead_letter,
    CommandAnswered: _answer,
    CommandRejected: _rejection,
}
