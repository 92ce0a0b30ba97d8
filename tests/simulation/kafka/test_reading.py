"""Readers in virtual time: what they are told when something is gone, and that waiting costs nothing."""

from datetime import timedelta
from typing import Any

import confluent_kafka
import pytest

from runtime.log import LogError, OffsetOutOfRange, Reader
from schemas.topics import Cleanup
from simulation.kafka.fetcher import SimulatedFetcher
from simulation.kafka.network import Fate, Fates, NetworkFaults
from simulation.loop import Killed
from tests.runtime.logs.words import E0, E1, EVENTS, PLENTY, S0, drain, texts, to, write
from tests.simulation.kafka.world import World

HOUR = timedelta(hours=1)


@pytest.fixture
def world() -> World:
    return World()


def polled(reader: Reader, timeout: float = 1.0) -> list[str]:
    return texts(reader.poll(records_max=100, bytes_max=PLENTY, timeout=timeout))


def test_a_poll_without_records_returns_nothing_when_its_time_is_up(world):
    def body():
        reader = world.log().open_reader({E0: 0, E1: 0})
        began = world.loop.seconds
        return polled(reader, 0.5), world.loop.seconds - began

    records, seconds = world.run(body)
    assert records == []
    assert seconds == pytest.approx(0.5)


def test_waiting_for_an_hour_costs_next_to_nothing(world):
    def body():
        reader = world.log().open_reader({E0: 0, E1: 0})
        polled(reader, 60.0)
        before = world.loop.turns
        for _ in range(60):
            polled(reader, 60.0)
        return world.loop.turns - before

    assert world.run(body, within=4000) < 2 * 3600


def test_a_record_is_there_a_few_milliseconds_after_its_commit(world):
    times: list[float] = []

    def read():
        reader = world.log("b").open_reader({E0: 0})
        while len(times) < 10:
            if polled(reader, 10.0):
                times.append(world.loop.seconds)

    world.task(read, "b")
    written = []

    def body():
        producer = world.log().open_producer("writer", group="group")
        for number in range(10):
            world.pause(1.0)
            write(producer, *to(E0, str(number)))
            written.append(world.loop.seconds)

    world.run(body)
    world.loop.run(1.0)
    assert max(there - at for there, at in zip(times, written, strict=True)) < 0.02


def test_a_reader_whose_position_was_trimmed_away_is_told_and_the_others_go_on(world):
    def body():
        log = world.log()
        log.append(to(E0, "old"))
        world.clock.offset += 2 * HOUR
        log.append([*to(E0, "young"), *to(E1, "elsewhere")])
        world.broker.tidy()
        reader = log.open_reader({E0: 0, E1: 0})
        with pytest.raises(OffsetOutOfRange, match="events-0"):
            polled(reader)
        reader.unassign([E0])
        reader.assign({E1: 0})
        return log.begin_offset(E0), texts(drain(reader, {E1: 1}))

    assert world.run(body) == (1, ["elsewhere"])


def test_what_is_truncated_is_gone_and_its_places_are_given_again(world):
    def body():
        log = world.log()
        log.append(to(E0, "a", "b", "c"))
        ahead = log.open_reader({E0: 3})
        assert polled(ahead) == []
        world.broker.truncate(E0, 1)
        with pytest.raises(OffsetOutOfRange):
            polled(ahead)
        return log.append(to(E0, "d")).offsets

    assert world.run(body) == [1]
    assert world.sees(E0) == ["a", "d"]


def test_a_topic_that_was_created_again_begins_anew_under_another_id(world):
    def body():
        log = world.log()
        log.append(to(E0, "a", "b", "c"))
        identity = log.topic_id("events")
        reader = log.open_reader({E0: 3})
        world.broker.delete("events")
        world.pause(0.05)
        world.log("b").create({EVENTS: 3})
        with pytest.raises(LogError):
            polled(reader, 5.0)
        world.pause(11.0)  # for so long a log believes what it knows
        assert log.topic_id("events") != identity
        return log.append(to(E0, "d")).offsets

    assert world.run(body) == [0]


def test_a_topic_that_is_given_partitions_has_them_for_everybody_soon(world):
    def body():
        log = world.log()
        assert log.partitions("events") == 3
        world.broker.add_partition("events")
        assert log.partitions("events") == 3
        world.pause(11.0)
        return log.partitions("events")

    assert world.run(body) == 4


def test_a_compacted_topic_keeps_the_last_of_each_key_once_it_is_old_enough(world):
    def body():
        log = world.log()
        log.append([*to(S0, "a1", key="a"), *to(S0, "b1", key="b"), *to(S0, "a2", key="a")])
        world.broker.tidy()
        before = texts(drain(log.open_reader({S0: 0}), {S0: 3}))
        world.clock.offset += HOUR
        world.broker.tidy()
        return before, texts(drain(log.open_reader({S0: 0}), {S0: 3}))

    assert world.broker.topics["state"].spec.cleanup is Cleanup.COMPACT
    assert world.run(body) == (["a1", "b1", "a2"], ["b1", "a2"])


def test_append_times_never_decrease_whatever_the_brokers_clock_does(world):
    def body():
        log = world.log()
        first = log.append(to(E0, "a")).appended_at
        world.clock.offset -= HOUR
        return first, log.append(to(E0, "b")).appended_at

    first, second = world.run(body)
    assert second == first


def test_a_poll_of_a_dead_process_does_not_return(world):
    returned = []

    def body():
        reader = world.log().open_reader({E0: 0})
        try:
            polled(reader, 100.0)
            returned.append("records")
        except Killed:
            returned.append("killed")
            with pytest.raises(Killed):
                reader.poll(records_max=1, bytes_max=1, timeout=0)
            raise

    task = world.task(body)
    world.loop.run(1.0)
    world.loop.kill(world.machine("a"))
    assert task.done
    assert returned == ["killed"]


def test_a_frozen_process_reads_on_when_it_thaws(world):
    seen: list[str] = []

    def body():
        reader = world.log().open_reader({E0: 0})
        while len(seen) < 2:
            seen.extend(polled(reader, 1.0))

    world.task(body)
    world.loop.run(0.1)
    world.run(lambda: world.log("b").append(to(E0, "before")), "b")
    world.loop.run(0.5)
    world.loop.freeze(world.machine("a"))
    world.run(lambda: world.log("b").append(to(E0, "meanwhile")), "b")
    world.loop.run(30.0)
    assert seen == ["before"]
    world.loop.thaw(world.machine("a"))
    world.loop.run(1.0)
    assert seen == ["before", "meanwhile"]


# --- the network ------------------------------------------------------------------------------------------------------


def test_a_machine_that_is_cut_off_hears_nothing_and_goes_on_when_it_is_mended(world):
    seen: list[str] = []

    def body():
        reader = world.log().open_reader({E0: 0})
        while len(seen) < 1:
            seen.extend(polled(reader, 5.0))

    world.task(body)
    world.loop.run(0.1)
    world.network.cut("a")
    world.run(lambda: world.log("b").append(to(E0, "news")), "b")
    world.loop.run(30.0)
    assert seen == []
    world.network.mend("a")
    world.loop.run(90.0)
    assert seen == ["news"]


def test_everything_arrives_once_and_in_order_however_bad_the_network_is():
    fates = Fates(lost=0.02, answer_lost=0.02, late=0.02, repeated=0.02)
    apis = ("AddPartitions", "AddOffsets", "Produce", "CommitOffsets", "EndTransaction", "Fetch")
    world = World(3, NetworkFaults(by_api=dict.fromkeys(apis, fates), late_seconds=(0.5, 3.0)))

    def body():
        log = world.log()
        producer = log.open_producer("writer", group="group")
        for number in range(150):
            log.append(to(E1, str(number)))
            write(producer, *to(E0, str(number)), positions={E1: number})

    world.run(body, within=3600)
    world.network.faults = NetworkFaults()
    assert world.sees(E0) == [str(number) for number in range(150)]
    assert world.sees(E1) == [str(number) for number in range(150)]
    assert world.reasons


def test_one_seed_is_one_history():
    def history(seed: int) -> tuple[Any, list[str]]:
        world = World(
            seed, NetworkFaults(by_api={"EndTransaction": Fates(lost=0.2, late=0.1)}, late_seconds=(0.5, 2.0))
        )

        def body():
            producer = world.log().open_producer("writer", group="group")
            return [(write(producer, *to(E0, "x")), world.loop.seconds) for _ in range(20)]

        return world.run(body, within=3600), list(world.reasons)

    assert history(5) == history(5)
    assert history(5) != history(6)


def test_a_late_answer_to_a_fetch_is_void_when_the_reader_was_sent_elsewhere(world):
    def body():
        log = world.log()
        log.append(to(E0, "a", "b", "c"))
        world.network.next("Fetch", Fate.LOSE_ANSWER)
        reader = log.open_reader({E0: 0})
        world.pause(0.1)
        reader.assign({E0: 2})
        return texts(drain(reader, {E0: 3}))

    assert world.run(body) == ["c"]


@pytest.mark.parametrize(("level", "seen"), [("read_committed", []), ("read_uncommitted", ["open"])])
def test_what_is_not_committed_is_read_by_whoever_does_not_ask_for_committed_records(world, level, seen):
    def body():
        log: Any = world.log()
        producer = log.open_producer("scheduler.0", group="scheduler")
        producer.begin()
        producer.send(to(E0, "open"))
        producer.flush()
        fetcher = SimulatedFetcher(log._host, {"isolation.level": level})
        fetcher.incremental_assign([confluent_kafka.TopicPartition(*E0, 0)])
        found = fetcher.poll(1.0)
        return [] if found is None else texts([found.record])

    assert world.run(body) == seen
