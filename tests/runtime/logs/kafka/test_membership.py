"""A role's group on a broker: who owns which partition, and who may still commit for it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from threading import Condition, Event, Thread

import pytest

from runtime.clock import SystemClock
from runtime.log import Fenced, Log, LogError
from runtime.logs.kafka.groups import unowned
from runtime.logs.kafka.log import KafkaLog
from runtime.logs.kafka.settings import KafkaSettings
from tests.runtime.logs.words import DEADLINE, E0, E1, E2, O0, SPECS, read, records_of, to, write
from tests.support.proxy import HEARTBEAT, JOIN_GROUP, Fate, proxied

Joined = Callable[..., "Process"]


class Process:
    """A process of the group `owners`: a member that is polled in a thread of its own, and what it was told."""

    def __init__(self, log: KafkaLog, name: str) -> None:
        self.owned: dict[int, Log] = {}
        self.told: list[tuple[str, int]] = []
        self.error: LogError | None = None
        self.on_revoke: Callable[[int], None] = lambda _partition: None
        self._changed = Condition()
        self._stopping = False
        self._member = log.join("owners", "events", name=name, owner=self)
        self._thread = Thread(target=self._poll, daemon=True)
        self._thread.start()

    def assigned(self, partitions: Sequence[int], log: Log) -> None:
        for partition in partitions:
            self._tell("assigned", partition)
            self.owned[partition] = log

    def revoked(self, partitions: Sequence[int]) -> None:
        for partition in partitions:
            self.on_revoke(partition)
            self._tell("revoked", partition)
            del self.owned[partition]

    def lost(self, partitions: Sequence[int]) -> None:
        for partition in partitions:
            self._tell("lost", partition)
            del self.owned[partition]

    def has(self, *partitions: int) -> None:
        """Wait until these and no others are owned."""
        self.becomes(lambda: set(self.owned) == set(partitions))

    def becomes(self, condition: Callable[[], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(condition, DEADLINE), (self.told, self.error)

    def stop(self) -> None:
        self._stopping = True
        self._thread.join(DEADLINE)

    def _poll(self) -> None:
        try:
            while not self._stopping:
                self._member.poll(0.05)
                with self._changed:
                    self._changed.notify_all()
        except LogError as error:
            self.error = error
        self._member.close()
        with self._changed:
            self._changed.notify_all()

    def _tell(self, what: str, partition: int) -> None:
        self.told.append((what, partition))


@pytest.fixture
def settings(broker: str, topic_prefix: str) -> KafkaSettings:
    return KafkaSettings(
        bootstrap=broker, namespace=topic_prefix, replication_factor=1, min_insync_replicas=1,
        session_timeout=timedelta(seconds=2),
    )  # fmt: skip


@pytest.fixture
def log(settings: KafkaSettings) -> Iterator[KafkaLog]:
    opened = KafkaLog(settings, SystemClock())
    opened.create(SPECS)
    yield opened
    opened.close()


@pytest.fixture
def joined(log: KafkaLog) -> Iterator[Joined]:
    processes: list[Process] = []

    def join(name: str, through: KafkaLog = log) -> Process:
        processes.append(Process(through, name))
        return processes[-1]

    yield join
    for process in processes:
        process.stop()


def lacking(log: KafkaLog) -> set[int]:
    return unowned(log._admin, log._settings.named("owners"), 3)


def test_a_member_that_is_alone_owns_every_partition_and_commits_for_the_group(log, joined):
    process = joined("a")
    process.has(0, 1, 2)
    assert sorted(process.told) == [("assigned", 0), ("assigned", 1), ("assigned", 2)]
    for partition, owner in process.owned.items():
        write(owner.open_producer(f"owners.{partition}", group="owners"), *to(O0, "x"), positions={E0: 4, O0: 2})
    assert log.committed("owners", [E0, E1, O0]) == {E0: 4, O0: 2}


def test_a_partition_moves_when_its_owner_has_let_go_and_the_others_go_on(joined):
    first = joined("a")
    first.has(0, 1, 2)
    owners = dict(first.owned)
    producers = {n: owner.open_producer(f"owners.{n}", group="owners") for n, owner in owners.items()}
    first.on_revoke = lambda partition: write(producers[partition], *to(O0, f"last of {partition}")) and None
    second = joined("b")
    second.becomes(lambda: len(second.owned) == 1)
    (moved,) = second.owned
    kept = {0, 1, 2} - {moved}
    first.has(*kept)
    assert first.told[3:] == [("revoked", moved)]
    assert read(owners[moved], O0) == [f"last of {moved}"]
    with pytest.raises(Fenced, match=f"owners partition {moved} is not ours any more"):
        producers[moved].begin()
    with pytest.raises(Fenced, match="not ours"):
        owners[moved].open_producer(f"owners.{moved}", group="owners")
    for partition in kept:
        write(producers[partition], *to(O0, "kept"), positions={O0: 5})
    write(second.owned[moved].open_producer(f"owners.{moved}", group="owners"), *to(O0, "moved"), positions={O0: 6})


def test_a_process_that_comes_back_within_the_session_has_its_partitions_back_and_nobody_noticed(log, joined):
    first, second = joined("a"), joined("b")
    first.becomes(lambda: len(first.owned) + len(second.owned) == 3 and bool(first.owned) and bool(second.owned))
    had, told = set(second.owned), list(first.told)
    second.stop()
    assert lacking(log) == set()
    back = joined("b")
    back.has(*had)
    assert first.told == told


def test_what_a_process_was_giving_away_when_it_died_finds_an_owner_once_it_is_back(joined):
    """It has let go of a partition, and dies before it says so; who comes back finds a group that takes itself for at
    rest, or one that the newcomer, who has seen it lack an owner, has already asked to rebalance.
    """
    first, gives, is_back = joined("a"), Event(), Event()
    first.has(0, 1, 2)

    def give(_partition: int) -> None:
        gives.set()
        is_back.wait(DEADLINE)

    first.on_revoke = give
    second = joined("b")
    assert gives.wait(DEADLINE)
    back = joined("a")
    back.becomes(lambda: len(back.owned) == 2 and len(second.owned) == 1)
    assert sorted([*back.owned, *second.owned]) == [0, 1, 2]
    is_back.set()


def test_two_processes_of_one_name_cannot_both_take_part(joined):
    first = joined("a")
    first.has(0, 1, 2)
    second = joined("a")
    second.has(0, 1, 2)
    first.becomes(lambda: first.error is not None)
    assert isinstance(first.error, Fenced)
    assert "another process has this name" in str(first.error)
    first.stop()
    assert first.told[3:] == [("lost", 0), ("lost", 1), ("lost", 2)]


def test_who_is_cut_off_loses_its_partitions_and_can_commit_no_more(log, settings, joined):
    with proxied(settings.bootstrap) as proxy:
        through = KafkaLog(replace(settings, bootstrap=proxy.bootstrap), SystemClock())
        first = joined("a", through)
        first.has(0, 1, 2)
        producer = first.owned[0].open_producer("owners.0", group="owners")
        producer.begin()
        producer.send(to(O0, "too late"))
        for key in (HEARTBEAT, JOIN_GROUP):
            proxy.every(key, Fate.DROP)
        second = joined("b")
        second.has(0, 1, 2)
        first.becomes(lambda: ("lost", 0) in first.told)
        with pytest.raises(Fenced, match="given it to others"):
            producer.commit({E0: 9})
        first.stop()
        through.close()
    write(second.owned[0].open_producer("owners.0", group="owners"), *to(O0, "in time"))
    assert read(log, O0) == ["in time"]
    assert log.committed("owners", [E0]) == {}


def test_a_transaction_that_meets_a_rebalance_is_written_anew_while_its_partition_stays_ours(log, joined):
    first = joined("a")
    first.has(0, 1, 2)
    claims = {partition: owner._claim for partition, owner in first.owned.items()}
    passed = claims[0].membership()
    second = joined("b")
    second.becomes(lambda: len(second.owned) == 1)
    kept = min({0, 1, 2} - set(second.owned))
    first.becomes(lambda: len(first.owned) == 2 and claims[kept].membership() != passed)
    present, claim = claims[kept].membership(), claims[kept]
    claim._membership = passed  # as if the group had moved on just now,
    claim.settle = lambda refused, seconds: claim.capture(present)  # and we heard of it a moment later
    producer = first.owned[kept].open_producer(f"owners.{kept}", group="owners")
    producer.begin()
    producer.send(to(O0, "decided"))
    producer.flush()
    producer.send(to(O0, "done"))
    offsets = producer.commit({E0: 9}).offsets
    assert read(log, O0) == ["decided", "done"]
    assert [record.offset for record in records_of(log, O0)] == list(offsets)
    assert log.committed("owners", [E0]) == {E0: 9}
    write(producer, *to(O0, "and on"))
    assert read(log, O0) == ["decided", "done", "and on"]


def test_a_broker_refuses_what_quotes_a_generation_that_has_passed(log, joined):
    first = joined("a")
    first.has(0, 1, 2)
    owner = first.owned[0]
    claim = owner._claim
    old = claim.membership()
    joined("b").becomes(lambda: True)
    first.becomes(lambda: claim._membership != old)
    claim._membership = old  # as if we had not heard of the rebalance
    if claim._ended:
        claim._ended = ""
    producer = owner.open_producer("zombie", group="owners")
    producer.begin()
    producer.send(to(O0, "too late"))
    with pytest.raises(Fenced, match="moved on without us"):
        producer.commit({E2: 9})
    assert read(log, O0) == []
    assert log.committed("owners", [E2]) == {}
