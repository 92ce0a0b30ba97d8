"""The embedded log: what a transaction costs beside a bare write of the same bytes, and how soon a reader has it."""

import tempfile
import time
from pathlib import Path
from statistics import quantiles
from threading import Thread

from rocksdict import Options, Rdict, WriteBatch

from runtime.clock import SystemClock
from runtime.logs.embedded import EmbeddedLog
from runtime.record import SEQUENCE_HEADER, Outgoing, TopicPartition
from schemas.topics import RUN_EVENTS, Layout, Retention, topic_table

SIZES = (1, 10, 100, 1000)  # records a transaction
RECORDS_MAX = 30_000  # a size: enough for a second of work
TRANSACTIONS_MAX = 4000
KEY = b"acme/nightly-report"
VALUE = b"v" * 500  # an event in its envelope
HEADERS = ((SEQUENCE_HEADER, b"scheduler-3-123456"),)
STORED = b"x" * (15 + len(KEY) + 30 + len(VALUE))  # what the log makes of it
COMMITS = 2000  # whose way to a waiting reader is timed
PAUSE_SECONDS = 0.0005  # between them, so that the reader waits again


def main() -> None:
    """Print records per second by size of transaction, and the latency from commit to reader."""
    print("records a transaction   embedded/s       bare/s   of floor")
    for size in SIZES:
        transactions = min(TRANSACTIONS_MAX, RECORDS_MAX // size)
        ours, floor = _embedded(size, transactions), _bare(size, transactions)
        print(f"{size:>21}{ours:>13,.0f}{floor:>13,.0f}{ours / floor:>10.2f}")
    p50, p99 = _latency()
    print(f"commit to waiting reader: p50 {p50 * 1e6:.0f} µs, p99 {p99 * 1e6:.0f} µs")


def _embedded(size: int, transactions: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        log = _opened(folder)
        producer = log.open_producer("bench", group="bench")
        records = [Outgoing(RUN_EVENTS, number % 4, KEY, VALUE, HEADERS) for number in range(size)]
        started = time.perf_counter()
        for _ in range(transactions):
            producer.begin()
            producer.send(records)
            producer.commit({})
        rate = size * transactions / (time.perf_counter() - started)
        log.close()
    return rate


def _bare(size: int, transactions: int) -> float:
    with tempfile.TemporaryDirectory() as folder:
        options = Options(raw_mode=True)
        options.create_if_missing(True)  # noqa: FBT003  the binding takes it by position
        rocks = Rdict(folder, options)
        started = time.perf_counter()
        for transaction in range(transactions):
            batch = WriteBatch(raw_mode=True)
            for number in range(size):
                batch.put(b"r%012d" % (transaction * size + number), STORED)
            rocks.write(batch)
        rate = size * transactions / (time.perf_counter() - started)
        rocks.close()
    return rate


def _latency() -> tuple[float, float]:
    """Seconds from the call of `commit` to the return of another thread's `poll`."""
    with tempfile.TemporaryDirectory() as folder:
        log = _opened(folder)
        reader = log.open_reader({TopicPartition(RUN_EVENTS, 0): 0})
        received: list[float] = []

        def receive() -> None:
            while len(received) < COMMITS:
                records = reader.poll(records_max=100, bytes_max=1 << 20, timeout=5)
                received.extend([time.perf_counter()] * len(records))

        receiver = Thread(target=receive)
        receiver.start()
        producer = log.open_producer("bench", group="bench")
        called = []
        for _ in range(COMMITS):
            time.sleep(PAUSE_SECONDS)
            producer.begin()
            producer.send([Outgoing(RUN_EVENTS, 0, KEY, VALUE, HEADERS)])
            called.append(time.perf_counter())
            producer.commit({})
        receiver.join()
        log.close()
    cuts = quantiles([there - here for here, there in zip(called, received, strict=True)], n=100)
    return cuts[49], cuts[98]


def _opened(folder: str) -> EmbeddedLog:
    log = EmbeddedLog(Path(folder), SystemClock())
    layout = Layout()
    log.create({spec: layout.partitions(spec.family) for spec in topic_table(Retention())})
    return log


if __name__ == "__main__":
    main()
