"""Plays: sequences of calls drawn from a seed, and what can be told of how a log answered them.

Three writers, two of them with the same transactional id, do whatever the port allows and some of what it does not.
What a race decides is left out of what is told: at which of its calls a writer learns that it was taken over, where
records of different writers stand between each other when they were not flushed, and what becomes of an abort by one
who was taken over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from runtime.log import Log, LogError, Producer
from runtime.logs.kafka.settings import RECORD_BYTES_MAX
from runtime.record import Outgoing, TopicPartition
from tests.runtime.logs.words import E0, E1, O0, S0, drain, text, to

IDS = {"red": "red", "crimson": "red", "green": "green"}  # writers and their transactional ids
PLACES = (E0, E1, S0)
POSITIONS = (E0, O0)
MISSING = TopicPartition("nowhere", 0)
LENGTH = (12, 30)  # calls of a play
ODD_SHARE = 0.3  # of calls that interrupt what a writer is about

# What writers are about, one call after another; and what may come in between.
PHRASES = [
    ["begin", "send", "commit"],
    ["begin", "send", "flush", "send", "commit"],
    ["begin", "send", "send", "abort"],
    ["begin", "commit"],
    ["begin", "send", "flush", "close", "open"],
]
ODD = {
    "open": 5, "append": 4, "committed": 2, "begin": 1, "commit": 1, "abort": 1, "close": 1, "flush": 1,
    "send nowhere": 1, "send too much": 1, "commit nowhere": 1, "read beyond": 1,
}  # fmt: skip


class Call(NamedTuple):
    """One call: what, by whom, and where to."""

    what: str
    writer: str
    places: tuple[TopicPartition, ...]
    flushed: bool
    position: int


class Told(NamedTuple):
    """What is told of a play: refusals by call, what each writer's records in each partition were, and positions."""

    refused: tuple[tuple[int, str, str], ...]
    records: dict[TopicPartition, dict[str, list[str]]]
    positions: tuple[tuple[int, dict[TopicPartition, int]], ...]
    order: dict[TopicPartition, list[str]]  # of all records, where every one was flushed


def drawn(seed: int) -> Sequence[Call]:
    """The calls of a play. Half of the plays flush whatever they send."""
    chance = Random(seed)
    tidy = chance.random() < 0.5
    about: dict[str, list[str]] = {writer: ["open"] for writer in IDS}
    calls = []
    for position in range(chance.randint(*LENGTH)):
        writer = chance.choice(list(IDS))
        if chance.random() < ODD_SHARE:
            (what,) = chance.choices(list(ODD), list(ODD.values()))
        else:
            about[writer] = about[writer] or list(chance.choice(PHRASES))
            what = about[writer].pop(0)
        places = tuple(chance.choices(PLACES, k=chance.randint(1, 3)))
        calls.append(Call(what, writer, places, tidy, position))
    return calls


@dataclass
class Play:
    """Plays the calls on a log; its records are told from those of other plays by `name`."""

    log: Log
    name: str
    calls: Sequence[Call]
    writers: dict[str, Producer] = field(default_factory=dict)
    holders: dict[str, str] = field(default_factory=dict)  # which writer has an id
    said: list[tuple[int, str, str]] = field(default_factory=list)
    positions: list[tuple[int, dict[TopicPartition, int]]] = field(default_factory=list)
    kept: list[Producer] = field(default_factory=list)  # who was taken over is not closed: a process that died
    epochs: dict[str, int] = field(default_factory=dict)

    def run(self) -> Told:
        begins = {place: self.log.end_offset(place) for place in PLACES}
        for number, call in enumerate(self.calls):
            try:
                self._do(number, call)
            except LogError as error:
                if self._is_told(call):
                    self.said.append((number, call.what, type(error).__name__))
        for id_ in sorted(set(IDS.values())):
            self.log.open_producer(self._named(id_), group=self._named("group")).close()
        self._look(len(self.calls))
        return self._told(begins)

    def _do(self, number: int, call: Call) -> None:
        match call.what:
            case "open":
                self._open(call.writer)
            case "append":
                self.log.append(self._records(call, number, "append"))
            case "committed":
                self._look(number)
            case "read beyond":
                end = self.log.end_offset(call.places[0])
                reader = self.log.open_reader({call.places[0]: end + 1000})
                try:
                    reader.poll(records_max=1, bytes_max=1, timeout=10.0)
                finally:
                    reader.close()
            case _ if call.writer in self.writers:
                self._write(number, call, self.writers[call.writer])

    def _open(self, writer: str) -> None:
        if writer in self.writers:
            self.kept.append(self.writers.pop(writer))
        id_ = IDS[writer]
        producer = self.log.open_producer(self._named(id_), group=self._named("group"))
        assert producer.epoch > self.epochs.get(id_, -1)
        self.epochs[id_] = producer.epoch
        self.writers[writer], self.holders[id_] = producer, writer

    def _write(self, number: int, call: Call, producer: Producer) -> None:
        nowhere = [Outgoing(*MISSING, b"k", b"v")]
        too_much = [Outgoing(*call.places[0], b"k", bytes(RECORD_BYTES_MAX + 1))]
        moves = dict.fromkeys(POSITIONS[: call.position % 3], call.position)
        calls: dict[str, Callable[[], object]] = {
            "begin": producer.begin,
            "send": lambda: self._send(number, call, producer),
            "send nowhere": lambda: producer.send(nowhere),
            "send too much": lambda: producer.send(too_much),
            "flush": producer.flush,
            "commit": lambda: producer.commit(moves),
            "commit nowhere": lambda: producer.commit({MISSING: 1}),
            "abort": producer.abort,
            "close": producer.close,
        }
        calls[call.what]()

    def _send(self, number: int, call: Call, producer: Producer) -> None:
        producer.send(self._records(call, number, call.writer))
        if call.flushed:
            producer.flush()

    def _records(self, call: Call, number: int, writer: str) -> list[Outgoing]:
        return [
            record
            for count, place in enumerate(call.places)
            for record in to(place, f"{self.name}:{writer}:{number}.{count}", key=f"{self.name}.{number}.{count}")
        ]

    def _look(self, number: int) -> None:
        self.positions.append((number, dict(self.log.committed(self._named("group"), POSITIONS))))

    def _is_told(self, call: Call) -> bool:
        taken_over = self.holders.get(IDS[call.writer]) not in {None, call.writer}
        return not (call.what == "send" or (taken_over and call.what in {"abort", "send nowhere", "commit nowhere"}))

    def _told(self, begins: dict[TopicPartition, int]) -> Told:
        reader = self.log.open_reader(begins)
        records = drain(reader, {place: self.log.end_offset(place) for place in begins})
        reader.close()
        for producer in [*self.kept, *self.writers.values()]:
            producer.close()
        order: dict[TopicPartition, list[str]] = {place: [] for place in PLACES}
        by_writer: dict[TopicPartition, dict[str, list[str]]] = {place: {} for place in PLACES}
        for record in records:
            name, writer, value = text(record).split(":")
            if name == self.name:
                place = TopicPartition(record.topic, record.partition)
                order[place].append(value)
                by_writer[place].setdefault(writer, []).append(value)
        tidy = self.calls[0].flushed
        return Told(tuple(self.said), by_writer, tuple(self.positions), order if tidy else {})

    def _named(self, id_: str) -> str:
        return f"{self.name}-{id_}"
