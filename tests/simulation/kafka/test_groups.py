"""Groups on the modelled brokers: who owns which partition, who notices what, and who may still commit."""

from datetime import timedelta
from typing import Any

import pytest

from runtime.log import Fenced, Log, Producer
from simulation.kafka.member import shared_out
from simulation.kafka.network import Fate
from tests.runtime.logs.words import E0, E2, O0, to, write
from tests.simulation.kafka.world import Process, World

SESSION = timedelta(seconds=6)


@pytest.fixture
def world() -> World:
    return World()


# --- sharing out ------------------------------------------------------------------------------------------------------


def shares(partitions: int, **members: tuple[list[int], int]) -> dict[str, list[int]]:
    told = {name: (frozenset(owned), since) for name, (owned, since) in members.items()}
    return {name: sorted(share) for name, share in shared_out(range(partitions), told).items()}


def test_what_nobody_has_is_shared_evenly():
    assert shares(5, a=([], -1), b=([], -1)) == {"a": [0, 1, 3], "b": [2, 4]}


def test_who_has_something_keeps_it_and_the_newcomer_waits_for_its_share_until_it_is_free():
    assert shares(4, a=([0, 1, 2, 3], 1), b=([], -1)) == {"a": [0, 1], "b": []}
    assert shares(4, a=([0, 1], 2), b=([], -1)) == {"a": [0, 1], "b": [2, 3]}


def test_of_two_who_claim_a_partition_the_one_of_the_later_generation_has_it():
    assert shares(2, a=([0, 1], 3), b=([1], 7)) == {"a": [0], "b": [1]}


def test_nobody_is_given_what_is_another_s_and_everything_is_given_in_the_end():
    assert shares(3, a=([0, 1, 2], 1), b=([], -1), c=([], -1)) == {"a": [0], "b": [], "c": []}
    assert shares(3, a=([0], 2), b=([], -1), c=([], -1)) == {"a": [0], "b": [1], "c": [2]}


# --- rebalances -------------------------------------------------------------------------------------------------------


def test_a_member_that_is_alone_owns_every_partition_and_commits_for_the_group(world):
    process = Process(world, "a")
    process.has(0, 1, 2)

    def commit():
        for partition, own in process.owned.items():
            producer = own.open_producer(f"owners.{partition}", group="owners")
            write(producer, *to(O0, "x"), positions={E0: 4, O0: 2})
        return world.log("a").committed("owners", [E0, O0])

    assert world.run(commit) == {E0: 4, O0: 2}


def test_a_partition_moves_when_its_owner_has_let_go_and_the_others_go_on(world):
    first = Process(world, "a")
    first.has(0, 1, 2)
    producers = world.run(
        lambda: {n: own.open_producer(f"owners.{n}", group="owners") for n, own in first.owned.items()}
    )
    first.on_revoke = lambda partition: write(producers[partition], *to(O0, f"last of {partition}"))
    second = Process(world, "b")
    second.becomes(lambda: len(second.owned) == 1)
    (moved,) = second.owned
    kept = {0, 1, 2} - {moved}
    first.has(*kept)
    assert first.told[3:] == [("revoked", moved)]
    assert world.sees(O0) == [f"last of {moved}"]

    def go_on():
        with pytest.raises(Fenced, match="not ours any more"):
            producers[moved].begin()
        for partition in kept:
            write(producers[partition], *to(O0, "kept"), positions={O0: 5})

    world.run(go_on)


def test_a_process_that_comes_back_within_the_session_has_its_partitions_back_and_nobody_noticed(world):
    first, second = Process(world, "a"), Process(world, "b")
    first.becomes(lambda: len(first.owned) + len(second.owned) == 3 and bool(first.owned) and bool(second.owned))
    had, told = set(second.owned), list(first.told)
    world.loop.kill(world.machine("b"))
    world.loop.run(2.0)
    began = world.loop.seconds
    back = Process(world, "b", machine="b again")
    back.has(*had)
    assert world.loop.seconds - began < 0.5
    world.loop.run(20.0)
    assert first.told == told


def gives_one_away(world: World, first: Process) -> Process:
    """Another process joins; returned when the first one, which had all, has let go of a partition."""
    gives: list[int] = []
    dies = first.on_revoke

    def on_revoke(partition: int) -> None:
        gives.append(partition)
        dies(partition)

    first.on_revoke = on_revoke
    second = Process(world, "b")
    second.becomes(lambda: bool(gives))
    return second


def test_what_a_process_was_giving_away_when_it_died_finds_an_owner_once_it_is_back(world):
    """It has let go of a partition, and dies before it says so: the group takes it for at rest when it comes back."""
    first = Process(world, "a")
    first.has(0, 1, 2)
    first.on_revoke = lambda _partition: world.pause(3600.0)
    second = gives_one_away(world, first)
    world.loop.kill(world.machine("a"))
    back = Process(world, "a", machine="a again")
    back.becomes(lambda: len(back.owned) == 2, within=1.0)
    back.becomes(lambda: len(second.owned) == 1, within=3.0)
    assert sorted([*back.owned, *second.owned]) == [0, 1, 2]


def test_it_finds_one_too_when_the_process_was_dead_only_to_the_group(world):
    """It takes so long to let go that its client gives it up: it comes back under its name while it still lives."""
    first = Process(world, "a")
    first.has(0, 1, 2)
    first.on_revoke = lambda _partition: world.pause(61.0)
    second = gives_one_away(world, first)
    first.becomes(lambda: len(first.owned) == 2 and len(second.owned) == 1, within=100.0)
    assert sorted([*first.owned, *second.owned]) == [0, 1, 2]


def test_who_comes_back_to_a_group_that_lacks_nothing_leaves_it_at_rest(world):
    first, second = Process(world, "a"), Process(world, "b")
    first.becomes(lambda: len(first.owned) + len(second.owned) == 3 and bool(first.owned) and bool(second.owned))
    world.loop.run(10.0)
    group, had = world.broker.groups.group("tidewheel.owners"), [set(first.owned), set(second.owned)]
    generation = group.generation
    for name in ("a", "b"):  # both at once, as when a node with two processes is started again
        world.loop.kill(world.machine(name))
    back = [Process(world, name, machine=f"{name} again") for name in ("a", "b")]
    world.loop.run(20.0)
    assert [set(process.owned) for process in back] == had
    assert group.generation == generation


def test_where_nobody_says_whether_partitions_lack_owners_the_group_rebalances_some_times_and_rests(world):
    world.network.every("DescribeGroup", Fate.DROP)
    first, second = Process(world, "a"), Process(world, "b")
    first.becomes(lambda: len(first.owned) + len(second.owned) == 3 and bool(first.owned) and bool(second.owned))
    world.loop.run(120.0)
    generation = world.broker.groups.group("tidewheel.owners").generation
    assert generation < 10
    world.loop.run(600.0)
    assert world.broker.groups.group("tidewheel.owners").generation == generation
    assert sorted([*first.owned, *second.owned]) == [0, 1, 2]


def test_a_process_that_stays_away_loses_its_partitions_when_its_session_is_over(world):
    first, second = Process(world, "a"), Process(world, "b")
    first.becomes(lambda: len(first.owned) + len(second.owned) == 3 and bool(first.owned) and bool(second.owned))
    world.loop.kill(world.machine("b"))
    began = world.loop.seconds
    first.has(0, 1, 2)
    assert 4.0 < world.loop.seconds - began < 9.0


def test_two_processes_of_one_name_cannot_both_take_part(world):
    first = Process(world, "a")
    first.has(0, 1, 2)
    second = Process(world, "a", machine="another")
    second.has(0, 1, 2)
    first.becomes(lambda: first.task.done)
    assert isinstance(first.error, Fenced)
    assert "another process has this name" in str(first.error)
    assert first.told[3:] == [("lost", 0), ("lost", 1), ("lost", 2)]
    assert second.error is None
    assert list(world.network.fenced) == ["a"]


def test_who_cannot_hear_that_another_has_its_name_takes_it_back_when_its_session_is_over(world):
    first = Process(world, "a")
    first.has(0, 1, 2)
    deaf = world.network.every("Heartbeat", Fate.LOSE_ANSWER, machine="a")
    second = Process(world, "a", machine="another")
    second.has(0, 1, 2)
    first.becomes(lambda: first.told[3:] == [("lost", 0), ("lost", 1), ("lost", 2)])
    world.network.forget(deaf)
    first.has(0, 1, 2)
    second.becomes(lambda: second.task.done)
    assert isinstance(second.error, Fenced)
    assert first.error is None
    assert list(world.network.fenced) == ["another"]


def test_who_is_cut_off_loses_its_partitions_and_can_commit_no_more(world):
    first = Process(world, "a")
    first.has(0, 1, 2)
    producer = world.run(lambda: first.owned[0].open_producer("owners.0", group="owners"))
    rules = [world.network.every(api, Fate.DROP, machine="a") for api in ("Heartbeat", "JoinGroup")]
    second = Process(world, "b")
    second.has(0, 1, 2)
    first.becomes(lambda: ("lost", 0) in first.told)
    for rule in rules:
        world.network.forget(rule)

    def too_late():
        with pytest.raises(Fenced, match="given it to others"):
            write(producer, *to(O0, "too late"), positions={E0: 9})

    world.run(too_late)
    assert world.sees(O0) == []


def test_a_group_whose_members_come_and_go_settles(world):
    processes: dict[str, Process] = {}
    for round_ in range(12):
        name = f"node-{round_ % 4}"
        if name in processes:
            processes.pop(name).stop()
        else:
            processes[name] = Process(world, name, machine=f"{name}.{round_}")
        world.loop.run(1.0)
    last = list(processes.values())
    while len(last) < 2:
        last.append(Process(world, f"late-{len(last)}"))
    last[0].becomes(lambda: sorted(n for process in last for n in process.owned) == [0, 1, 2], within=60.0)


def test_who_does_not_poll_for_a_minute_is_no_member_any_more(world):
    first = Process(world, "a")
    first.has(0, 1, 2)
    world.loop.run(1.0)
    first.on_revoke = lambda _partition: world.pause(100.0)
    second = Process(world, "b")
    second.has(0, 1, 2)
    first.becomes(lambda: len(first.owned) + len(second.owned) == 3 and bool(first.owned), within=300.0)


# --- generations (B3) -------------------------------------------------------------------------------------------------


def frozen_owner(world: World, **options: Any) -> Any:
    """An owner that has begun a transaction for a partition, and is frozen until another one has it."""
    first = Process(world, "a", log=world.log("a", session=SESSION, **options))
    first.has(0, 1, 2)
    producer = world.run(lambda: first.owned[0].open_producer("zombie", group="owners"))
    world.loop.freeze(world.machine("a"))
    second = Process(world, "b")
    second.has(0, 1, 2)
    return producer


def late_commit(world: World, producer: Producer) -> list[Fenced]:
    """What becomes of a commit that comes before anything else after the thaw."""
    errors: list[Fenced] = []

    def body():
        try:
            write(producer, *to(O0, "too late"), positions={E0: 9})
        except Fenced as error:
            errors.append(error)

    task = world.task(body)
    world.loop.thaw(world.machine("a"))
    while not task.done:
        world.loop.run(0.1)
    if task.failure:
        raise task.failure
    return errors


def test_a_zombie_with_an_id_of_its_own_is_fenced_by_its_generation(world):
    producer = frozen_owner(world)
    (error,) = late_commit(world, producer)
    assert "the group" in str(error)
    assert world.sees(O0) == []
    assert world.run(lambda: world.log("b").committed("owners", [E0]), "b") == {}


def with_a_generation_that_has_passed(world: World, **options: Any) -> Log:
    """A log that quotes a membership of before a rebalance, as if its process had not heard of it."""
    first = Process(world, "a")
    first.has(0, 1, 2)
    own: Any = first.owned[0]
    claim = own._claim
    old = claim.membership()
    second = Process(world, "b")
    first.becomes(lambda: claim._membership != old and len(second.owned) == 1)
    claim._membership, claim._ended = old, ""
    return world.log("a", session=SESSION, **options)._claimed(claim)


def test_a_broker_refuses_what_quotes_a_generation_that_has_passed(world):
    log = with_a_generation_that_has_passed(world)

    def body():
        producer = log.open_producer("zombie", group="owners")
        with pytest.raises(Fenced, match="moved on without us"):
            write(producer, *to(O0, "too late"), positions={E2: 9})
        return log.committed("owners", [E2])

    assert world.run(body) == {}
    assert world.sees(O0) == []


def test_a_zombie_whose_generation_nobody_checks_commits(world):
    log = with_a_generation_that_has_passed(world, generation_checked=False)

    def body():
        write(log.open_producer("zombie", group="owners"), *to(O0, "too late"), positions={E2: 9})
        world.pause(0.1)
        return log.committed("owners", [E2])

    assert world.run(body) == {E2: 9}
    assert world.sees(O0) == ["too late"]


def test_a_transaction_that_meets_a_rebalance_is_written_anew_while_its_partition_stays_ours(world):
    first = Process(world, "a")
    first.has(0, 1, 2)
    producers = world.run(
        lambda: {n: own.open_producer(f"owners.{n}", group="owners") for n, own in first.owned.items()}
    )
    second = Process(world, "b")
    outcomes = []

    def busy(number: int) -> None:
        try:
            for count in range(200):
                write(producers[number], *to(O0, f"{number}.{count}"), positions={E0: count})
        except Fenced as error:
            outcomes.append((number, str(error)))

    tasks = [world.task(lambda number=number: busy(number)) for number in (0, 1, 2)]
    second.becomes(lambda: len(second.owned) == 1 and all(task.done for task in tasks))
    (moved,) = second.owned
    assert [task.failure for task in tasks] == [None] * 3
    assert [number for number, _ in outcomes] in ([], [moved])
    world.loop.run(6.0)  # what was open when its partition was taken away ends when its time is up
    seen = world.sees(O0)
    for number in {0, 1, 2} - {moved}:
        assert [value for value in seen if value[0] == str(number)] == [f"{number}.{count}" for count in range(200)]


def test_positions_can_be_forgotten(world):
    def body():
        log = world.log()
        write(log.open_producer("writer", group="group"), positions={E0: 4})
        world.pause(0.1)
        before = log.committed("group", [E0])
        world.broker.forget_positions("tidewheel.group")
        return before, log.committed("group", [E0])

    assert world.run(body) == ({E0: 4}, {})


def test_members_have_their_partitions_back_after_an_outage(world):
    first, second = Process(world, "a"), Process(world, "b")
    first.becomes(lambda: len(first.owned) + len(second.owned) == 3 and bool(first.owned) and bool(second.owned))
    had = set(first.owned), set(second.owned)
    for seconds in (2.0, 20.0):
        world.network.outage()
        world.loop.run(seconds)
        world.network.recover()
        world.loop.run(20.0)
        assert (set(first.owned), set(second.owned)) == had
    assert first.error is second.error is None
