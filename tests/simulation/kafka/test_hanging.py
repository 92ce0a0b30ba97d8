"""Transactions that nobody ends on the modelled brokers (C7), as Kafka 4.4.0 leaves them (KAFKA-20734)."""

from contextlib import suppress

import pytest

from runtime.log import LogError
from simulation.kafka.log import SETTINGS
from tests.runtime.logs.words import E0, E1, to, write
from tests.simulation.kafka.world import World


@pytest.fixture
def world() -> World:
    return World()


def test_a_transaction_that_ends_while_a_partition_has_no_leader_holds_its_readers_up_there_and_nowhere_else(world):
    """Kafka 4.4.0 (KAFKA-20734): for its coordinator it is over, and its writer is told so."""

    def body():
        producer = world.log().open_producer("writer", group="group")
        producer.begin()
        producer.send([*to(E0, "kept"), *to(E1, "held up")])
        producer.flush()
        world.broker.leaderless.add(E1)
        producer.commit({})
        world.pause(1.0)  # markers come after the answer
        world.broker.leaderless.clear()
        producer.close()
        other = world.log("b").open_producer("another", group="group")
        write(other, *to(E1, "behind it"))
        other.close()

    world.run(body)
    assert world.sees(E0) == ["kept"]
    assert world.sees(E1) == []


def test_a_transaction_that_was_never_marked_is_ended_by_the_next_one_of_its_writer_as_that_one_is(world):
    """So what was aborted is seen after all when the next one is committed: with that end it counts as its part."""

    def body():
        producer = world.log().open_producer("writer", group="group")
        producer.begin()
        producer.send(to(E1, "aborted"))
        producer.flush()
        world.broker.leaderless.add(E1)
        producer.abort()
        world.pause(1.0)  # markers come after the answer
        world.broker.leaderless.clear()
        write(producer, *to(E1, "committed"))
        producer.close()

    world.run(body)
    assert world.sees(E1) == ["aborted", "committed"]


def test_who_waylays_a_transaction_strikes_once_when_the_next_one_begins_or_ends(world):
    """Before any partition has heard of its end, and none ever will: but the next one's is its end too."""
    struck = []

    def body():
        for text in ("a", "b", "c", "d"):
            world.broker.transactions.waylay((SETTINGS.named("writer"),), lambda: struck.append(world.loop.seconds))
            write(world.log("b").open_producer("another", group="group"), *to(E1, text))
            assert struck == []
            with suppress(LogError):
                write(world.log().open_producer("writer", group="group"), *to(E0, text))
            world.pause(1.0)  # markers come after the answer
            assert len(struck) == 1
            write(world.log().open_producer("writer", group="group"), *to(E0, "behind it"))
            world.pause(1.0)
            assert world.broker.partition(E0).stable == world.broker.partition(E0).end
            struck.clear()

    world.run(body)
    assert world.sees(E0).count("behind it") == 4
