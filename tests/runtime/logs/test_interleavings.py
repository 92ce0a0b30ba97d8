"""Whatever producers do, in whatever order: readers see exactly what was committed, and positions match it."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from runtime.log import Fenced, Log, Producer, Reader
from runtime.logs.embedded import EmbeddedLog
from runtime.logs.simulated import SimulatedLog
from runtime.record import Outgoing, TopicPartition
from tests.runtime.logs.words import E0, E1, E2, O0, PLENTY, SPECS, HandClock, records_of, text, to

PARTITIONS = [E0, E1, O0]
WRITERS = ["red", "green", "blue"]
writers = st.sampled_from(WRITERS)


class Interleavings(RuleBasedStateMachine):
    """Three writers, one of them maybe taken over at any moment, against a model in lists."""

    def __init__(self) -> None:
        super().__init__()
        self.log = self.open_log()
        self.log.create(SPECS)
        self.producers: dict[str, Producer] = {}
        self.open: dict[str, list[Outgoing]] = {}
        self.expected: dict[TopicPartition, list[str]] = {partition: [] for partition in PARTITIONS}
        self.positions: dict[str, int] = {}
        self.sent = 0
        self.reader: Reader = self.log.open_reader(dict.fromkeys(PARTITIONS, 0))
        self.seen: dict[TopicPartition, list[str]] = {partition: [] for partition in PARTITIONS}

    def open_log(self) -> Log:
        raise NotImplementedError

    @initialize()
    def everyone_opens(self) -> None:
        for name in WRITERS:
            self.producers[name] = self.log.open_producer(name, group=name)

    @rule(name=writers)
    def someone_begins(self, name: str) -> None:
        if name not in self.open:
            self.producers[name].begin()
            self.open[name] = []

    @rule(name=writers, places=st.lists(st.sampled_from(PARTITIONS), max_size=4))
    def someone_sends(self, name: str, places: list[TopicPartition]) -> None:
        if name in self.open:
            records = [record for place in places for record in to(place, self.next_value())]
            self.producers[name].send(records)
            self.open[name] += records

    @rule(name=writers)
    def someone_commits(self, name: str) -> None:
        if name in self.open:
            self.positions[name] = self.positions.get(name, 0) + 1
            receipt = self.producers[name].commit({E2: self.positions[name]})
            records = self.open.pop(name)
            assert len(receipt.offsets) == len(records)
            self.expect(records)

    @rule(name=writers)
    def someone_aborts(self, name: str) -> None:
        if name in self.open:
            self.producers[name].abort()
            del self.open[name]

    @rule(name=writers)
    def someone_is_taken_over(self, name: str) -> None:
        old = self.producers[name]
        self.producers[name] = self.log.open_producer(name, group=name)
        if self.open.pop(name, None) is None:
            with pytest.raises(Fenced):
                old.begin()
        else:
            with pytest.raises(Fenced):
                old.commit({E2: 1000})

    @rule(place=st.sampled_from(PARTITIONS))
    def someone_appends(self, place: TopicPartition) -> None:
        records = to(place, self.next_value())
        self.log.append(records)
        self.expect(records)

    @rule(records_max=st.integers(1, 5), bytes_max=st.integers(1, 20))
    def the_reader_polls(self, records_max: int, bytes_max: int) -> None:
        for record in self.reader.poll(records_max=records_max, bytes_max=bytes_max, timeout=0):
            self.seen[TopicPartition(record.topic, record.partition)].append(text(record))

    @invariant()
    def the_reader_has_seen_the_beginning_of_what_was_committed(self) -> None:
        for partition, seen in self.seen.items():
            assert seen == self.expected[partition][: len(seen)]

    def teardown(self) -> None:
        while records := self.reader.poll(records_max=3, bytes_max=PLENTY, timeout=0):
            for record in records:
                self.seen[TopicPartition(record.topic, record.partition)].append(text(record))
        assert self.seen == self.expected
        assert {p: [text(record) for record in records_of(self.log, p)] for p in PARTITIONS} == self.expected
        for name in WRITERS:
            assert self.log.committed(name, [E2]).get(E2) == self.positions.get(name)
        self.log.close()

    def expect(self, records: list[Outgoing]) -> None:
        for record in records:
            assert record.value is not None
            self.expected[TopicPartition(record.topic, record.partition)].append(record.value.decode())

    def next_value(self) -> str:
        self.sent += 1
        return str(self.sent)


class SimulatedInterleavings(Interleavings):
    def open_log(self) -> Log:
        return SimulatedLog(1, HandClock())


class EmbeddedInterleavings(Interleavings):
    def open_log(self) -> Log:
        self.folder = tempfile.TemporaryDirectory()
        return EmbeddedLog(Path(self.folder.name), HandClock())

    def teardown(self) -> None:
        super().teardown()
        self.folder.cleanup()


TestSimulated = SimulatedInterleavings.TestCase
TestSimulated.settings = settings(max_examples=40, stateful_step_count=40)
TestEmbedded = EmbeddedInterleavings.TestCase
TestEmbedded.settings = settings(max_examples=25, stateful_step_count=40)
