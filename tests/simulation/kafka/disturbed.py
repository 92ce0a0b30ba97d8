"""Plays of one writer whose requests are held, lost or cut off: what it was told, and what readers see in the end.

Each transaction writes a record and flushes it, then two more. What was held back of the one before arrives in between.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, NamedTuple, Protocol

from runtime.log import Log, LogError, Producer
from runtime.record import TopicPartition
from tests.runtime.logs.words import E0, E1, O0, drain, texts, to

# Not records themselves: when their connection ends the client may take its whole time to send them again.
APIS = ("AddPartitions", "AddOffsets", "CommitOffsets", "EndTransaction")
FATES = ("stray", "cut", "break")
LENGTH = (3, 6)


class Network(Protocol):
    """What disturbs, on either side."""

    def arm(self, api: str, fate: str) -> Any:
        """The next request of this kind meets this fate."""
        ...

    def release(self, armed: Any) -> None:
        """What was held arrives; return when it has had its effect. When nothing was, the rule is void."""
        ...


class Step(NamedTuple):
    """A transaction and what befalls it."""

    api: str
    fate: str
    commits: bool


class Told(NamedTuple):
    """How each transaction ended, which of them made the writer change its client, and what is there."""

    ended: tuple[str, ...]
    replaced: tuple[int, ...]
    records: dict[TopicPartition, list[str]]
    position: int | None


def drawn(seed: int) -> tuple[bool, Sequence[Step]]:
    """Whether the writer doubts, and its transactions; the last one is left in peace."""
    chance = Random(f"disturbed {seed}")
    steps = [
        Step(
            chance.choice(APIS) if chance.random() < 0.5 else "EndTransaction",
            chance.choice(FATES),
            chance.random() < 0.8,
        )
        for _ in range(chance.randint(*LENGTH))
    ]
    return chance.random() < 0.6, [*steps, Step("", "", commits=True)]


@dataclass
class Notes:
    """In which transactions a client was replaced."""

    number: int = 0
    replaced: list[int] = field(default_factory=list)

    def note(self, _id: str, _reason: str) -> None:
        self.replaced.append(self.number)


@dataclass
class Play:
    """Plays on a log that tells `notes` of replaced producers."""

    log: Log
    network: Network
    name: str
    steps: Sequence[Step]
    notes: Notes
    armed: list[Any] = field(default_factory=list)

    def run(self, open_producer: Callable[[], Producer]) -> Told:
        begins = {place: self.log.end_offset(place) for place in (E0, E1)}
        producer: Producer | None = None
        ended = []
        for number, step in enumerate(self.steps):
            self.notes.number = number
            try:
                producer = producer or open_producer()
                self._transact(producer, step)
                ended.append("done")
            except LogError as error:
                ended.append(type(error).__name__)
                if producer is not None:
                    producer.close()
                producer = None
        self._release()
        if producer is not None:
            producer.close()
        open_producer().close()
        return self._told(begins, ended)

    def _transact(self, producer: Producer, step: Step) -> None:
        value = f"{self.name}:{self.notes.number}"
        producer.begin()
        producer.send(to(E0, f"{value}a"))
        producer.flush()
        self._release()
        if step.api:
            self.armed.append(self.network.arm(step.api, step.fate))
        producer.send([*to(E0, f"{value}b"), *to(E1, f"{value}c")])
        if step.commits:
            producer.commit({O0: self.notes.number})
        else:
            producer.abort()

    def _release(self) -> None:
        while self.armed:
            self.network.release(self.armed.pop())

    def _told(self, begins: dict[TopicPartition, int], ended: Sequence[str]) -> Told:
        reader = self.log.open_reader(begins)
        seen = drain(reader, {place: self.log.end_offset(place) for place in begins})
        reader.close()
        records = {
            place: [value for value in texts(r for r in seen if r[:2] == place) if value.startswith(self.name)]
            for place in begins
        }
        shown = {place: [value.partition(":")[2] for value in values] for place, values in records.items()}
        position = self.log.committed(self.name, [O0]).get(O0)
        return Told(tuple(ended), tuple(self.notes.replaced), shown, position)
