"""What stands on `links`: each record is one owner's word to another, about a schedule of each."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from scheduler import keys
from scheduler.context import Context
from scheduler.instants import millis
from scheduler.links import awaiting, edges, judging, listeners, triggers
from schemas.facts import Fact
from schemas.frozen import frozen
from schemas.linking import (
    EdgeAnnounced,
    EdgeInquired,
    EdgeListed,
    EdgeWithdrawn,
    UpstreamFinished,
    WindowAsked,
    WindowJudged,
)

if TYPE_CHECKING:
    from scheduler.state import ScheduleState

Word = EdgeAnnounced | EdgeInquired | EdgeWithdrawn | EdgeListed | UpstreamFinished | WindowAsked | WindowJudged


@frozen
class LinkRead:
    """A word of another owner, and when it was appended to the log: from then on it is known here."""

    word: Word
    appended_at: datetime


def receiver(word: Word) -> str:
    """The schedule that a word is for."""
    if isinstance(word, EdgeListed | UpstreamFinished | WindowJudged):
        return word.downstream
    return word.upstream


def read(fact: Fact, appended_at: datetime) -> tuple[bytes, LinkRead] | None:
    """The key and the input of a record; None for what is none of ours."""
    if not isinstance(fact, Word):
        return None
    return keys.schedule(fact.tenant, receiver(fact)), LinkRead(word=fact, appended_at=appended_at)


def decide(state: ScheduleState, read: LinkRead, context: Context) -> tuple[Fact, ...]:
    """What follows from a word; nothing when it is known or older than what is."""
    match read.word:
        case EdgeAnnounced() | EdgeInquired():
            return listeners.announced(state, read.word, context)
        case EdgeWithdrawn():
            return listeners.withdrawn(state, read.word)
        case EdgeListed():
            return edges.listed(state, read.word, context)
        case UpstreamFinished():
            return triggers.reported(state, read.word, millis(read.appended_at))
        case WindowAsked():
            return judging.noted(state, read.word, millis(read.appended_at))
        case WindowJudged():
            return awaiting.heard(state, read.word, millis(read.appended_at), context)
