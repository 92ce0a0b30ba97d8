"""Disks on which bits flip."""

import pytest

from runtime.store import StoreCorrupt
from simulation.cluster.disk import Disk, DiskStore
from simulation.loop import Machine


def opened(disk: Disk) -> DiskStore:
    return disk.open("scheduler-0", Machine("node#1"), lambda _reason, _kept: told.append(_reason), lambda _step: None)


told: list[str] = []


@pytest.fixture
def disk() -> Disk:
    told.clear()
    disk = Disk()
    store = opened(disk)
    store.apply({b"a": b"1", b"b": b"2", b"c": b"3"})
    store.close()
    return disk


def test_a_store_that_is_seen_to_be_damaged_when_it_is_opened_is_set_aside(disk):
    disk.damage("scheduler-0")
    assert opened(disk).get(b"a") is None
    assert told == ["scheduler-0 is damaged"]


def test_damage_at_a_key_is_seen_by_whoever_reads_it(disk):
    disk.damage("scheduler-0", b"b")
    store = opened(disk)
    assert (store.get(b"a"), told) == (b"1", [])
    with pytest.raises(StoreCorrupt):
        store.get(b"b")
    assert next(store.scan(b"", None)) == (b"a", b"1")
    with pytest.raises(StoreCorrupt):
        list(store.scan(b"", None))


def test_damage_at_a_key_is_over_when_that_is_written(disk):
    disk.damage("scheduler-0", b"b")
    store = opened(disk)
    store.apply({b"b": b"4"})
    assert list(store.scan(b"", None)) == [(b"a", b"1"), (b"b", b"4"), (b"c", b"3")]
