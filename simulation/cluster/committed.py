"""What the brokers hold and held, as evidence: every record that was ever committed, and by which transaction.

A marker tells a partition which producer's records it ends, and no more. The transactions of one producer end one
after another, so the n-th marker of a producer in a partition is of its n-th transaction that wrote there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from datetime import datetime

from runtime.record import TopicPartition
from simulation.evidence import Committed, Transaction
from simulation.kafka.broker import Broker
from simulation.kafka.partition import Partition
from simulation.kafka.protocol import Identity
from simulation.kafka.transactions import State

Records = dict[TopicPartition, tuple[Committed, ...]]
Endings = dict[tuple[TopicPartition, Identity], list[int]]


def gathered(broker: Broker, instant: Callable[[float], datetime]) -> tuple[Records, dict[int, Transaction]]:
    """All committed records, and all transactions by the numbers that records name. `instant` is that of a second."""
    transactions, endings = _transactions(broker, instant)
    partitions = [partition for topic in broker.topics.values() for partition in topic.partitions]
    return {partition.name: _records(partition, endings) for partition in partitions}, transactions


def aborted(broker: Broker) -> Records:
    """All records whose transactions were given up."""
    return {
        partition.name: tuple(
            Committed(record.offset, record.key, record.value, record.headers, record.appended_at)
            for record in partition.aborted
        )
        for topic in broker.topics.values()
        for partition in topic.partitions
        if partition.aborted
    }


def _transactions(broker: Broker, instant: Callable[[float], datetime]) -> tuple[dict[int, Transaction], Endings]:
    found: dict[int, Transaction] = {}
    endings: Endings = defaultdict(list)
    given = broker.transactions.given
    for past in broker.transactions.past:
        number = len(found)
        found[number] = Transaction(
            transactional_id=past.id, producer=given[past.producer.number], epoch=past.producer.epoch,
            outcome="committed" if past.committed else "aborted",
            began_at=instant(past.began), ended_at=instant(past.ended),
        )  # fmt: skip
        for place in past.partitions:
            endings[place, past.producer].append(number)
    for transaction in broker.transactions.transactions.values():
        if transaction.state in {State.ONGOING, State.COMMITTING, State.ABORTING}:
            found[len(found)] = Transaction(
                transactional_id=transaction.id, producer=given[transaction.producer.number],
                epoch=transaction.producer.epoch, began_at=instant(transaction.began_at), outcome="open",
            )  # fmt: skip
    return found, endings


def _records(partition: Partition, endings: Endings) -> tuple[Committed, ...]:
    wrote = _wrote(partition, endings)
    stable = partition.stable
    everything = sorted((*partition.gone, *partition.records), key=lambda record: record.offset)
    return tuple(
        Committed(
            record.offset, record.key, record.value, record.headers, record.appended_at, wrote.get(record.offset)
        )
        for record in everything
        if record.offset < stable
    )  # fmt: skip


def _wrote(partition: Partition, endings: Endings) -> dict[int, int]:
    """The number of the transaction that wrote each offset; none for what was written outside of one."""
    met: dict[Identity, int] = defaultdict(int)
    wrote: dict[int, int] = {}
    for ended in partition.ended:
        numbers = endings.get((partition.name, ended.producer), [])
        if met[ended.producer] < len(numbers):
            wrote |= dict.fromkeys(ended.offsets, numbers[met[ended.producer]])
        met[ended.producer] += 1
    return wrote
