"""Transactions of the old protocol on the modelled brokers: what is torn, what is refused, what is held up."""

from datetime import timedelta
from typing import Any

import pytest

from runtime.log import Fenced, LogError
from runtime.logs.kafka.producing import KafkaProducer
from simulation.kafka.network import Fate
from simulation.loop import Killed
from tests.runtime.logs.words import E0, E1, E2, O0, PLENTY, drain, texts, to, write
from tests.simulation.kafka.world import World


@pytest.fixture
def world() -> World:
    return World()


def opened(world: World, machine: str = "a", **options: Any) -> Any:
    return world.log(machine, **options).open_producer("writer", group="group")


def commit_late_into_the_next(world: World, producer: KafkaProducer, fate: Fate = Fate.HOLD) -> None:
    """A is committed twice: at once, as far as the client knows, and once more while B is open."""
    write(producer, *to(E0, "warm"))
    held = world.network.next("EndTransaction", fate)
    write(producer, *to(E0, "A"))
    producer.begin()
    producer.send(to(E0, "B1"))
    producer.flush()
    world.network.release(held)


# --- the torn transaction (C1, C2) ------------------------------------------------------------------------------------


def test_a_late_commit_ends_the_next_transaction_half_done_when_nobody_doubts(world):
    def body():
        producer = opened(world, doubts=lambda _seen: "")
        commit_late_into_the_next(world, producer)
        world.pause(0.1)
        producer.send(to(E0, "B2"))
        with pytest.raises(LogError):
            producer.abort()
        producer.close()

    world.run(body)
    assert world.sees(E0) == ["warm", "A", "B1"]


def test_the_rest_of_a_torn_transaction_is_refused_where_it_had_begun(world):
    def body():
        producer = opened(world, doubts=lambda _seen: "")
        commit_late_into_the_next(world, producer)
        world.pause(0.1)
        producer.send(to(E0, "B2"))
        with pytest.raises(LogError, match="INVALID_TXN_STATE"):
            producer.commit({E0: 3})

    world.run(body)
    assert world.sees(E0) == ["warm", "A", "B1"]


def test_the_rest_of_a_torn_transaction_goes_through_where_it_had_not_begun_and_nobody_hears_of_it(world):
    def body():
        producer = opened(world, doubts=lambda _seen: "")
        commit_late_into_the_next(world, producer)
        world.pause(0.1)
        producer.send(to(E1, "B2"))
        assert producer.commit({E0: 3}).offsets

    world.run(body)
    assert world.sees(E0) == ["warm", "A", "B1"]
    assert world.sees(E1) == ["B2"]


def test_a_doubtful_commit_replaces_the_producer_and_the_late_one_is_refused(world):
    def body():
        producer = opened(world)
        epoch = producer.epoch
        commit_late_into_the_next(world, producer)
        assert producer.epoch > epoch
        producer.send(to(E0, "B2"))
        producer.abort()
        write(producer, *to(E0, "C"))

    world.run(body)
    assert (
        world.reasons == ["it took 1.6 s"] or "EndTxn returned" in world.reasons[0] or "timed out" in world.reasons[0]
    )
    assert world.sees(E0) == ["warm", "A", "C"]


def test_a_late_abort_takes_half_of_the_next_transaction_when_nobody_doubts(world):
    def body():
        producer = opened(world, doubts=lambda _seen: "")
        held = world.network.next("EndTransaction", Fate.HOLD)
        producer.begin()
        producer.send(to(E0, "A"))
        producer.flush()
        producer.abort()
        producer.begin()
        producer.send(to(E0, "B1"))
        producer.flush()
        world.network.release(held)
        world.pause(0.1)
        producer.send(to(E1, "B2"))
        producer.commit({E0: 2})

    world.run(body)
    assert world.sees(E0) == []
    assert world.sees(E1) == ["B2"]
    assert world.run(lambda: world.log().committed("group", [E0])) == {E0: 2}


def test_a_late_abort_does_not_take_half_of_the_next_transaction_when_it_is_doubted(world):
    def body():
        producer = opened(world)
        held = world.network.next("EndTransaction", Fate.HOLD)
        producer.begin()
        producer.send(to(E0, "A"))
        producer.flush()
        producer.abort()
        producer.begin()
        producer.send(to(E0, "B1"))
        producer.flush()
        world.network.release(held)
        producer.send(to(E0, "B2"))
        producer.commit({E0: 2})

    world.run(body)
    assert world.reasons
    assert world.sees(E0) == ["B1", "B2"]


@pytest.mark.parametrize("fate", Fate)
def test_whatever_becomes_of_a_commit_its_late_copy_meets_no_transaction_of_the_same_epoch(world, fate):
    """A connection delivers no request twice: there is a copy because the client asked again, and so it is in doubt."""

    def body():
        producer = opened(world)
        commit_late_into_the_next(world, producer, fate)
        world.pause(0.1)
        producer.send(to(E0, "B2"))
        producer.commit({E0: 3})

    world.run(body)
    assert world.reasons
    assert world.sees(E0) == ["warm", "A", "B1", "B2"]


# --- outcomes nobody heard of (A6, C4) --------------------------------------------------------------------------------


def test_a_commit_whose_answer_is_lost_is_repeated_and_doubted(world):
    def body():
        producer = opened(world)
        world.network.next("EndTransaction", Fate.LOSE_ANSWER)
        write(producer, *to(E0, "A"), positions={E0: 3})
        write(producer, *to(E0, "B"))
        world.pause(0.1)
        return world.log().committed("group", [E0])

    assert world.run(body) == {E0: 3}
    assert world.reasons
    assert world.sees(E0) == ["A", "B"]


@pytest.mark.parametrize(("fate", "seen"), [(Fate.DROP, []), (Fate.LOSE_ANSWER, ["A"])])
def test_a_commit_of_which_nobody_hears_is_an_error_and_the_log_tells_what_became_of_it(world, fate, seen):
    def body():
        log = world.log(session=timedelta(seconds=2))
        producer = log.open_producer("writer", group="group")
        rule = world.network.every("EndTransaction", fate)
        with pytest.raises(LogError, match="commit"):
            write(producer, *to(E0, "A"), positions={E0: 3})
        producer.close()
        world.network.forget(rule)
        log.open_producer("writer", group="group").close()
        return log.committed("group", [E0])

    assert world.run(body) == ({E0: 3} if seen else {})
    assert world.sees(E0) == seen


def test_a_repeated_produce_is_written_once(world):
    def body():
        producer = opened(world)
        producer.begin()
        world.network.next("Produce", Fate.LOSE_ANSWER)
        producer.send(to(E0, "once"))
        producer.commit({})
        world.network.next("Produce", Fate.LOSE_ANSWER)
        world.log().append(to(E0, "once more"))

    world.run(body)
    assert world.sees(E0) == ["once", "once more"]


def test_a_calm_network_replaces_nobody(world):
    def body():
        producer = opened(world)
        for number in range(200):
            write(producer, *to(E0, str(number)), *to(E1, str(number)), positions={E0: number})

    world.run(body)
    assert world.reasons == []


# --- fencing (B1, B2, C6) ---------------------------------------------------------------------------------------------


def test_a_zombie_that_thaws_in_mid_transaction_is_fenced_by_its_successor(world):
    outcome = []

    def zombie():
        producer = opened(world)
        producer.begin()
        producer.send(to(E0, "too late"))
        producer.flush()
        world.loop.freeze(world.machine("a"))
        world.pause(0.0)
        with pytest.raises(Fenced):
            producer.commit({E0: 9})
        outcome.append("fenced")

    world.task(zombie)
    world.loop.run(5.0)
    world.run(lambda: write(opened(world, "b"), *to(E0, "in time"), positions={E0: 1}), "b")
    world.loop.thaw(world.machine("a"))
    world.loop.run(5.0)
    assert outcome == ["fenced"]
    assert world.sees(E0) == ["in time"]
    assert world.run(lambda: world.log("b").committed("group", [E0]), "b") == {E0: 1}


def test_the_rightful_owner_is_fenced_by_a_late_old_one_and_takes_the_id_back(world):
    rightful = world.run(lambda: opened(world, "b"), "b")
    old = world.run(lambda: opened(world, "a"))

    def go_on():
        with pytest.raises(Fenced):
            write(rightful, *to(E0, "lost"), positions={E0: 1})
        rightful.close()
        write(opened(world, "b"), *to(E0, "kept"), positions={E0: 1})

    world.run(go_on, "b")

    def late():
        with pytest.raises(Fenced):
            write(old, *to(E0, "late"), positions={E0: 5})

    world.run(late)
    assert world.sees(E0) == ["kept"]


def test_a_transaction_that_takes_too_long_is_aborted_and_its_producer_fenced(world):
    def body():
        producer = opened(world, session=timedelta(seconds=6))
        producer.begin()
        producer.send(to(E0, "slow"))
        producer.flush()
        world.pause(5.0)  # the transaction's time is 4.5 s
        with pytest.raises(Fenced):
            producer.commit({E0: 1})
        producer.close()
        write(opened(world), *to(E0, "again"), positions={E0: 2})

    world.run(body)
    assert world.sees(E0) == ["again"]


def test_a_dead_process_reaches_nobody_and_its_transaction_ends_when_its_time_is_up(world):
    def victim():
        producer = opened(world, session=timedelta(seconds=6))
        producer.begin()
        producer.send(to(E0, "unseen"))
        producer.flush()
        world.pause(60.0)

    task = world.task(victim)
    world.loop.run(0.5)
    world.run(lambda: world.log("b").append(to(E0, "behind it")), "b")
    assert world.sees(E0) == []
    world.loop.kill(world.machine("a"))
    sent = world.network.requests
    assert task.done
    assert world.sees(E0) == []
    world.loop.run(4.0)
    assert world.sees(E0) == ["behind it"]
    assert world.network.requests > sent
    with pytest.raises(Killed):
        world.log("a").append(to(E0, "from the dead"))


# --- markers ----------------------------------------------------------------------------------------------------------


def test_a_marker_takes_a_place_that_no_reader_sees(world):
    def body():
        producer = opened(world)
        first = write(producer, *to(E0, "a", "b"), *to(E1, "c"))
        producer.begin()
        producer.send(to(E0, "dropped"))
        producer.flush()
        producer.abort()
        return first, write(producer, *to(E0, "d"))

    assert world.run(body) == ([0, 1, 0], [5])
    assert world.sees(E0) == ["a", "b", "d"]
    assert world.broker.partition(E0).end == 7


def test_an_open_transaction_holds_up_the_readers_of_its_partition_and_of_no_other(world):
    def body():
        producer = opened(world)
        producer.begin()
        producer.send(to(E0, "open"))
        producer.flush()
        log = world.log()
        log.append([*to(E0, "behind it"), *to(E1, "elsewhere")])
        assert log.end_offset(E0) == 2
        return producer

    producer = world.run(body)
    assert world.sees(E0) == []
    assert world.sees(E1) == ["elsewhere"]
    world.run(lambda: producer.commit({}))
    assert world.sees(E0) == ["open", "behind it"]


def test_what_was_committed_is_readable_a_moment_after_the_commit_has_returned(world):
    world.broker.transactions.marker_seconds = (0.2, 0.2)

    def body():
        log = world.log()
        reader = log.open_reader({E0: 0})
        producer = log.open_producer("writer", group="group")
        write(producer, *to(E0, "a"), positions={O0: 4})
        at_once = texts(reader.poll(records_max=10, bytes_max=PLENTY, timeout=0.05))
        committed = log.committed("group", [O0])  # asks until the marker has been written
        return at_once, committed, texts(drain(reader, {E0: 1}))

    assert world.run(body) == ([], {O0: 4}, ["a"])


def test_who_begins_while_markers_are_written_asks_again_and_nobody_is_replaced(world):
    world.broker.transactions.marker_seconds = (0.05, 0.05)

    def body():
        producer = opened(world)
        for number in range(5):
            write(producer, *to(E0, str(number)), positions={E0: number})

    world.run(body)
    assert world.sees(E0) == ["0", "1", "2", "3", "4"]
    assert world.reasons == []


# --- brokers in trouble (B8, C5, C9, C12) -----------------------------------------------------------------------------


def test_a_coordinator_that_moves_is_asked_again_until_it_has_arrived(world):
    def body():
        log = world.log()
        producer = log.open_producer("writer", group="group")
        write(producer, *to(E0, "before"))
        for which in ("transactions", "groups"):
            world.broker.move_coordinator(which, 2.0)
            write(producer, *to(E0, which), positions={E2: 5})
        return log.committed("group", [E2])

    assert world.run(body) == {E2: 5}
    assert world.sees(E0) == ["before", "transactions", "groups"]


def test_brokers_that_are_away_for_a_while_are_waited_for(world):
    def body():
        producer = opened(world)
        world.network.outage()
        world.loop.later(3.0, world.network.recover)
        began = world.loop.seconds
        write(producer, *to(E0, "patient"), positions={E0: 1})
        return world.loop.seconds - began

    assert world.run(body) >= 3.0
    assert world.sees(E0) == ["patient"]


def test_brokers_that_stay_away_are_an_error(world):
    def body():
        producer = opened(world, session=timedelta(seconds=6))
        world.network.outage()
        with pytest.raises(LogError):
            write(producer, *to(E0, "lost"), positions={E0: 1})
        producer.close()
        with pytest.raises(LogError):
            world.log().append(to(E0, "lost"))
        world.network.recover()
        write(opened(world), *to(E0, "found"))

    world.run(body)
    assert world.sees(E0)[-1:] == ["found"]


def test_a_transactional_id_that_was_forgotten_is_an_error_and_is_taken_anew(world):
    def body():
        producer = opened(world)
        write(producer, *to(E0, "a"))
        world.pause(100.0)
        world.broker.transactions.expire(60.0)
        with pytest.raises(LogError):
            write(producer, *to(E0, "b"), positions={E0: 1})
        producer.close()
        epoch = producer.epoch
        anew = opened(world)
        assert anew.epoch > epoch
        write(anew, *to(E0, "c"))

    world.run(body)
    assert world.sees(E0) == ["a", "c"]


def test_whose_id_is_forgotten_and_coordinated_elsewhere_is_refused_and_taken_anew_with_a_smaller_number(world):
    def body():
        producer = opened(world)
        write(producer, *to(E0, "a"))
        world.pause(1.0)
        (id_,) = world.broker.transactions.transactions
        world.broker.transactions.forget(id_, elsewhere=True)
        with pytest.raises(LogError):
            write(producer, *to(E0, "b"), positions={E0: 1})
        producer.close()
        anew = opened(world)
        assert anew.epoch < producer.epoch
        write(anew, *to(E0, "c"))

    world.run(body)
    assert world.sees(E0) == ["a", "c"]


def test_who_has_learned_in_the_background_that_it_was_taken_over_is_told_so_when_it_sends(world):
    def body():
        old = opened(world)
        opened(world)
        old.begin()
        old.send(to(E0, "late"))
        world.pause(0.1)
        with pytest.raises(Fenced):
            old.send(to(E0, "later"))

    world.run(body)


def test_while_brokers_are_away_nobody_s_time_runs_out_and_markers_wait(world):
    world.broker.transactions.marker_seconds = (0.5, 0.5)

    def body():
        log = world.log(session=timedelta(seconds=6))
        producer = log.open_producer("writer", group="group")
        write(producer, *to(E0, "committed"))
        world.network.outage()
        world.pause(30.0)
        assert world.broker.partition(E0).stable == 0
        world.network.recover()

    world.run(body)
    assert world.sees(E0) == ["committed"]
