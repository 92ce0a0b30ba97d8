"""A producer of Kafka's client that keeps to the time it is given for the positions of a transaction.

The client forgets that time while it looks for the group's coordinator. After three answers that there is none it asks
no more until one of its connections comes or goes: with healthy brokers, not for minutes (librdkafka 2.16;
https://github.com/confluentinc/librdkafka/issues/5456). A broker that starts or is asked to make its topic of
positions answers so for a moment.

A call that is given up goes on, and nobody hears what comes of it. It ends at the latest when the client closes an idle
connection (`settings.IDLE_SECONDS`). What it sends then is of an epoch that the first call of whoever comes next makes
void, as with a process that was paused.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any
from weakref import finalize

from confluent_kafka import KafkaError, KafkaException, Producer

LATE_SECONDS = 1.0  # for the client to say by itself that its time is over

Calls = SimpleQueue[tuple[Callable[[], object], SimpleQueue[BaseException | None]] | None]


class PunctualProducer(Producer):
    """As its base, but no call for positions lasts longer than it may, or hardly."""

    _calls: Calls | None = None  # of a thread that stands by, for as long as none of them was given up

    def send_offsets_to_transaction(self, positions: Any, group_metadata: Any, timeout: float) -> None:  # type: ignore[override]
        """As its base; a KafkaException with `_TIMED_OUT` when it has not come back in time."""
        send = partial(super().send_offsets_to_transaction, positions, group_metadata, timeout)
        answer: SimpleQueue[BaseException | None] = SimpleQueue()
        calls = self._calls or self._standing_by()
        calls.put((send, answer))
        try:
            raised = answer.get(timeout=timeout + LATE_SECONDS)
        except Empty:
            self._calls = None
            calls.put(None)
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "nobody took them")) from None  # noqa: SLF001 -- its public name
        if raised is not None:
            try:
                raise raised
            finally:
                del raised  # Kept here, it would keep this frame, and with it the client.

    def _standing_by(self) -> Calls:
        """To start a thread for each call would cost several turns of the interpreter, where many wait for theirs."""
        calls = self._calls = SimpleQueue()
        finalize(self, calls.put, None)
        Thread(target=_call_one_after_another, args=(calls,), name="kafka-positions", daemon=True).start()
        return calls


def _call_one_after_another(calls: Calls) -> None:
    while (given := calls.get()) is not None:
        call, answer = given
        try:
            call()
        except BaseException as error:  # noqa: BLE001 -- raised again, where it was asked for
            answer.put(error)
        else:
            answer.put(None)
        del given, call, answer  # A call holds its client, which is to go when nobody else has it.
