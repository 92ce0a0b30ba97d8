"""Writers in a bad network, by the dozen: what they were told is what readers see, whole or not at all.

Without the rule of `doubt` the same storms tear transactions: so it is known that they blow hard enough.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random

from runtime.log import LogError, Producer
from runtime.logs.kafka.doubt import Seen, doubt
from simulation.kafka.network import Fates, NetworkFaults
from tests.runtime.logs.words import E0, E1, O0, to
from tests.simulation.kafka.world import World

SEEDS = range(1, 13)
COUNT = 25  # transactions of each writer
HARD = Fates(lost=0.02, answer_lost=0.02, late=0.05, repeated=0.02)
APIS = ("AddPartitions", "AddOffsets", "Produce", "CommitOffsets", "InitProducerId")
STORM = NetworkFaults(
    by_api={"EndTransaction": Fates(lost=0.05, answer_lost=0.05, late=0.15), **dict.fromkeys(APIS, HARD)},
    late_seconds=(0.5, 6.0),
)


def never(_seen: Seen) -> str:
    return ""


@dataclass
class Writer:
    """Writes transactions of three records in two partitions, each after the last, and remembers what it was told."""

    world: World
    name: str
    doubts: Callable[[Seen], str]
    committed: set[str] = field(default_factory=set)
    aborted: set[str] = field(default_factory=set)
    unknown: set[str] = field(default_factory=set)

    def run(self) -> None:
        log = self.world.log(self.name, doubts=self.doubts)
        chance, producer = Random(self.name), None
        for number in range(COUNT):
            value = f"{self.name}.{number}"
            try:
                producer = producer or log.open_producer(self.name, group=self.name)
                self._write(producer, value, number, chance)
            except LogError:
                self.unknown.add(value)
                if producer is not None:
                    producer.close()
                producer = None

    def _write(self, producer: Producer, value: str, number: int, chance: Random) -> None:
        producer.begin()
        producer.send(to(E0, f"{value}.a"))
        producer.flush()
        self.world.pause(chance.uniform(0.0, 0.3))
        producer.send([*to(E0, f"{value}.b"), *to(E1, f"{value}.c")])
        if chance.random() < 0.2:
            producer.abort()
            self.aborted.add(value)
        else:
            producer.commit({O0: number})
            self.committed.add(value)


def torn(seed: int, doubts: Callable[[Seen], str]) -> list[str]:
    """Transactions of which a part is seen, or that are not what their writer was told."""
    world = World(seed, STORM)
    writers = [Writer(world, name, doubts) for name in ("red", "green")]
    tasks = [world.task(writer.run, writer.name) for writer in writers]
    while not all(task.done for task in tasks):
        world.loop.run(1.0)
    assert [task.failure for task in tasks] == [None, None]
    world.network.faults = NetworkFaults()
    world.loop.run(30.0)
    seen = [*world.sees(E0), *world.sees(E1)]
    assert len(seen) == len(set(seen)), "a record is there twice"
    wrong = []
    for writer in writers:
        for number in range(COUNT):
            value = f"{writer.name}.{number}"
            parts = sum(f"{value}.{part}" in seen for part in "abc")
            right = {3} if value in writer.committed else {0} if value in writer.aborted else {0, 3}
            if parts not in right:
                wrong.append(f"seed {seed}: {parts} parts of {value}, wanted {right}")
    return wrong


def test_what_a_writer_was_told_is_what_readers_see_however_bad_the_network_is():
    assert [wrong for seed in SEEDS for wrong in torn(seed, doubt)] == []


def test_the_same_storms_tear_transactions_when_nobody_doubts():
    assert sum(bool(torn(seed, never)) for seed in SEEDS) >= 3
