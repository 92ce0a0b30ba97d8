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
from threading import Event, Thread
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Producer

LATE_SECONDS = 1.0  # for the client to say by itself that its time is over


class PunctualProducer(Producer):
    """As its base, but no call for positions lasts longer than it may, or hardly."""

    def send_offsets_to_transaction(self, positions: Any, group_metadata: Any, timeout: float) -> None:  # type: ignore[override]
        """As its base; a KafkaException with `_TIMED_OUT` when it has not come back in time."""
        send = partial(super().send_offsets_to_transaction, positions, group_metadata, timeout)
        _in_time(send, timeout + LATE_SECONDS)


def _in_time(call: Callable[[], object], seconds: float) -> None:
    """Call it in a thread of its own, and return or raise as it does."""
    raised: list[BaseException] = []
    over = Event()

    def run() -> None:
        try:
            call()
        except BaseException as error:  # noqa: BLE001 -- raised again, where it was asked for
            raised.append(error)
        finally:
            over.set()

    Thread(target=run, name="kafka-positions", daemon=True).start()
    if not over.wait(seconds):
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT, "nobody took them"))  # noqa: SLF001 -- its public name
    if raised:
        raise raised.pop()  # Kept here, it would keep this frame, and with it the client.
