"""A store that the disk has failed closes all the same: otherwise nobody could set it aside, or open it again."""

from __future__ import annotations

from contextlib import closing
from itertools import count
from pathlib import Path

import pytest

from runtime.store import StoreCorrupt
from runtime.stores.rocksdb import RocksStore

TABLES = 4  # so many of the first level are merged in the background
FIRST_BLOCK = 20


def damaged(folder: Path) -> None:
    """A store of several tables, with a bit flipped in each."""
    for _ in range(TABLES - 1):
        with closing(RocksStore(folder)) as store:
            store.apply({b"key-%d" % number: b"." * 100 for number in range(50)})
    for table in folder.glob("*.sst"):
        content = bytearray(table.read_bytes())
        content[FIRST_BLOCK] ^= 1
        table.write_bytes(content)


def used_until_it_is_found_out(folder: Path) -> RocksStore:
    """By a merge in the background, which from then on refuses every write."""
    store = RocksStore(folder)
    with pytest.raises(StoreCorrupt):
        use(store)
    return store


def use(store: RocksStore) -> None:
    """For as long as it lasts."""
    for number in count():
        store.apply({b"more-%d" % number: b"." * 10_000})


def test_a_store_in_which_damage_was_met_in_the_background_is_set_aside_and_begins_anew(tmp_path: Path) -> None:
    damaged(tmp_path / "store")
    store = used_until_it_is_found_out(tmp_path / "store")
    kept = store.set_aside()
    assert any(Path(kept).glob("*.sst"))
    store.apply({b"key-1": b"2"})
    assert dict(store.scan(b"", None)) == {b"key-1": b"2"}
    store.close()


def test_a_store_in_which_damage_was_met_in_the_background_closes_and_lets_go_of_its_folder(tmp_path: Path) -> None:
    damaged(tmp_path / "store")
    used_until_it_is_found_out(tmp_path / "store").close()
    RocksStore(tmp_path / "store").close()
