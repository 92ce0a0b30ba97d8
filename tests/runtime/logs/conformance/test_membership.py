"""A group of one: the same on every log."""

import time
from collections.abc import Sequence

from runtime.log import Log, Member
from tests.runtime.logs.words import DEADLINE, E0, E1, E2, S0, read, to, write


class Owner:
    """Remembers what is its own, and what was taken from it."""

    def __init__(self) -> None:
        self.owned: dict[int, Log] = {}
        self.revoked_partitions: list[int] = []

    def assigned(self, partitions: Sequence[int], log: Log) -> None:
        self.owned |= dict.fromkeys(partitions, log)

    def revoked(self, partitions: Sequence[int]) -> None:
        self.revoked_partitions += partitions

    def lost(self, partitions: Sequence[int]) -> None:
        raise AssertionError("nobody else is there")


def joined(log: Log, owner: Owner) -> Member:
    member = log.join("group", "events", name="a", owner=owner)
    deadline = time.monotonic() + DEADLINE
    while len(owner.owned) < 3:
        assert time.monotonic() < deadline
        member.poll(0.05)
    return member


def test_who_is_alone_owns_every_partition_and_gives_it_back_in_the_end(log):
    owner = Owner()
    member = joined(log, owner)
    assert member.joined
    assert set(owner.owned) == {0, 1, 2}
    member.close()
    member.close()
    assert sorted(owner.revoked_partitions) == [0, 1, 2]


def test_an_owner_commits_records_and_positions_for_the_group(log):
    owner = Owner()
    member = joined(log, owner)
    for partition, own in owner.owned.items():
        producer = own.open_producer(f"role.{partition}", group="group")
        write(producer, *to(S0, f"state of {partition}"), positions={(E0, E1, E2)[partition]: 3 + partition})
        producer.close()
    member.close()
    assert sorted(read(log, S0)) == ["state of 0", "state of 1", "state of 2"]
    assert log.committed("group", [E0, E1, E2]) == {E0: 3, E1: 4, E2: 5}
