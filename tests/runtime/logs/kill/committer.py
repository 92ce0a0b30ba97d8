"""A process that commits transactions as fast as it can, says so on its standard output, and is there to be killed."""

import os
import sys
from itertools import count
from pathlib import Path
from threading import Thread

from runtime.clock import SystemClock
from runtime.logs.embedded import EmbeddedLog
from runtime.record import Outgoing
from tests.runtime.logs.words import E0, E1, E2, O0, O1, SPECS, to

WRITERS = ("red", "green")
APPENDER = "plain"
SPAN = (E0, E1, O0)  # where each transaction leaves records
PADDING = 20_000  # so that a transaction is more than one block of RocksDB's log


def records_of(writer: str, number: int) -> list[Outgoing]:
    """The records of one transaction: three sizes of them, the last one large, in every partition."""
    padding = "." * (PADDING if number % 10 == 0 else number % 7)
    return [record for place in SPAN for record in to(place, f"{writer} {number} {padding}", key=writer)]


def commit_for_ever(log: EmbeddedLog, writer: str) -> None:
    """Each transaction's number is its position; it goes on behind what was committed before."""
    producer = log.open_producer(writer, group=writer)
    for number in count(log.committed(writer, [E2]).get(E2, 0) + 1):
        producer.begin()
        producer.send(records_of(writer, number))
        producer.commit({E2: number})
        os.write(sys.stdout.fileno(), f"{writer} {number}\n".encode())


def append_for_ever(log: EmbeddedLog) -> None:
    """Single records without a transaction; they go on behind what is there."""
    for number in count(log.end_offset(O1)):
        log.append(to(O1, f"{APPENDER} {number}"))
        os.write(sys.stdout.fileno(), f"{APPENDER} {number}\n".encode())


if __name__ == "__main__":
    opened = EmbeddedLog(Path(sys.argv[1]), SystemClock())
    opened.create(SPECS)
    for name in WRITERS:
        Thread(target=commit_for_ever, args=(opened, name)).start()
    Thread(target=append_for_ever, args=(opened,)).start()
