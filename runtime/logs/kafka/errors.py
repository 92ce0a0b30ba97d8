"""What an error of Kafka's client means for us. Pure; one place for all of them.

The order of the questions matters: a fatal error may call itself retriable as well. What says nothing of itself is
treated as fatal: the client is closed, another one is made, and the log tells what was true.

`UnknownTopic` is never concluded from an error: a broker that has just started says so of topics that are there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum

from confluent_kafka import KafkaError, KafkaException

from runtime.log import Fenced, LogError, OffsetOutOfRange


class MovedOn(LogError):
    """The group has another generation than the one we quoted; whether the partition is still ours is not known."""


class Passing(LogError):
    """A leader or a coordinator is moving, or a transaction is being ended: the same question will be answered soon."""


class Remedy(StrEnum):
    """What to do with the client that met the error."""

    CLOSE = "close"  # it is finished: nothing it says is believed any more
    ABORT = "abort"  # abort the transaction; nothing of it will be seen
    AGAIN = "again"  # call the same function again, and no other


# The client would recover from it with a new epoch. Others have found that this can break a transaction, and made it
# fatal: https://issues.apache.org/jira/browse/KAFKA-18019.
ALWAYS_FATAL = frozenset({KafkaError.INVALID_PRODUCER_ID_MAPPING})

# Another producer has our transactional id, or another process our member's name.
TAKEN_OVER = frozenset({
    KafkaError._FENCED,  # noqa: SLF001 -- its public name: the client's own errors begin with an underscore
    KafkaError.FENCED_INSTANCE_ID,
    KafkaError.INVALID_PRODUCER_EPOCH,
    KafkaError.PRODUCER_FENCED,
})  # fmt: skip

MOVED_ON = frozenset({
    KafkaError._ASSIGNMENT_LOST,  # noqa: SLF001 -- as above
    KafkaError.FENCED_MEMBER_EPOCH,
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.REBALANCE_IN_PROGRESS,
    KafkaError.STALE_MEMBER_EPOCH,
    KafkaError.UNKNOWN_MEMBER_ID,
})  # fmt: skip

PASSING = frozenset({
    KafkaError._NOENT,  # noqa: SLF001 -- as above; it is said of partitions that have no leader just now
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_CONTROLLER,
    KafkaError.NOT_COORDINATOR,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.OFFSET_NOT_AVAILABLE,
    KafkaError.REPLICA_NOT_AVAILABLE,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError.UNSTABLE_OFFSET_COMMIT,
})  # fmt: skip

OUT_OF_RANGE = frozenset({
    KafkaError._AUTO_OFFSET_RESET,  # noqa: SLF001 -- as above
    KafkaError._LOG_TRUNCATION,  # noqa: SLF001 -- as above
    KafkaError.OFFSET_OUT_OF_RANGE,
})  # fmt: skip


# While an exception of its own is on the way the client may call us back, also more than once; each time Python makes
# a SystemError of it.
RAISED = (KafkaException, SystemError)


def error_of(exception: object) -> KafkaError:
    """What one of `RAISED` carries; a SystemError of somebody else is raised again."""
    if isinstance(exception, KafkaError):  # It comes so when a fatal error interrupts a call.
        return exception
    if isinstance(exception, SystemError):
        hidden: BaseException | None = exception
        while isinstance(hidden, SystemError):
            hidden = hidden.__cause__
        if not isinstance(hidden, KafkaException):
            raise exception
        return error_of(hidden)
    assert isinstance(exception, KafkaException), f"not the client's: {exception!r}"
    return error_of(exception.args[0])


@contextmanager
def translating(what: str) -> Iterator[None]:
    """The client's errors within become the port's."""
    try:
        yield
    except RAISED as exception:
        raise translated(error_of(exception), what) from exception


def remedy(error: KafkaError) -> Remedy:
    """Fatal, wants an abort, can be repeated, else fatal: in that order."""
    if error.code() in ALWAYS_FATAL or error.fatal():
        return Remedy.CLOSE
    if error.txn_requires_abort():
        return Remedy.ABORT
    if error.retriable():
        return Remedy.AGAIN
    return Remedy.CLOSE


def translated(error: KafkaError, what: str) -> LogError:
    """As the port's callers know it; `what` says what was tried, on what."""
    text = f"{what}: {error.name()}: {error.str()}"
    if error.code() in TAKEN_OVER:
        return Fenced(text)
    if error.code() in MOVED_ON:
        return MovedOn(text)
    if error.code() in OUT_OF_RANGE:
        return OffsetOutOfRange(text)
    return Passing(text) if error.code() in PASSING else LogError(text)
