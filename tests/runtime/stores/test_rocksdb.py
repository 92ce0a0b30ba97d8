"""What only the store on disk does: restarts, one writer, and damage that is told."""

from contextlib import closing
from pathlib import Path
from threading import Thread, Timer

import pytest

from runtime.store import StoreCorrupt, StoreError
from runtime.stores import database
from runtime.stores.database import StoreLocked
from runtime.stores.rocksdb import RocksStore

ENTRIES = {b"key %05d" % number: b"%d" % number * 20 for number in range(5000)}


@pytest.fixture
def path(tmp_path):
    """A store on disk with some thousand entries."""
    with closing(RocksStore(tmp_path / "store")) as store:
        store.apply(ENTRIES)
    return tmp_path / "store"


def test_everything_is_there_after_a_restart(path):
    with closing(RocksStore(path)) as store:
        assert dict(store.scan(b"", None)) == ENTRIES
        store.apply({b"key 00000": None, b"new": b"entry"})
    with closing(RocksStore(path)) as store:
        assert (store.get(b"key 00000"), store.get(b"new")) == (None, b"entry")


def test_a_cleared_store_is_empty_after_a_restart(path):
    with closing(RocksStore(path)) as store:
        store.clear()
    with closing(RocksStore(path)) as store:
        assert list(store.scan(b"", None)) == []


def test_a_second_writer_is_refused(path, monkeypatch):
    monkeypatch.setattr(database, "LOCK_TRIES_MAX", 2)
    with closing(RocksStore(path)), pytest.raises(StoreLocked, match=str(path)):
        RocksStore(path)


def test_a_predecessor_that_is_closing_is_waited_for(path):
    predecessor = RocksStore(path)
    closing_soon = Timer(0.1, predecessor.close)
    closing_soon.start()
    with closing(RocksStore(path)) as store:
        assert store.get(b"key 00001") == ENTRIES[b"key 00001"]
    closing_soon.join()


def test_closing_lets_go_of_the_folder_even_while_scans_are_under_way(path):
    store = RocksStore(path)
    scans = [store.scan(b"", None), store.scan(b"", None, reverse=True)]
    for scan in scans:
        next(scan)
    store.close()
    RocksStore(path).close()


def test_many_threads_may_read_while_one_writes(path):
    with closing(RocksStore(path)) as store:
        found: list[int] = []

        def scan() -> None:
            found.extend(sum(1 for _ in store.scan(b"key", b"kez")) for _ in range(10))

        threads = [Thread(target=scan) for _ in range(3)]
        for thread in threads:
            thread.start()
        for number in range(200):
            store.apply({b"other %d" % number: b"x"})
        for thread in threads:
            thread.join()
        assert found == [5000] * 30


def largest(path: Path, pattern: str) -> Path:
    return max(path.glob(pattern), key=lambda file: file.stat().st_size)


def flip(file: Path, place: int) -> None:
    """Change one bit."""
    data = bytearray(file.read_bytes())
    data[place] ^= 1
    file.write_bytes(data)


def read_everything(path: Path) -> dict[bytes, bytes]:
    with closing(RocksStore(path)) as store:
        one_by_one = {key: value for key in ENTRIES if (value := store.get(key)) is not None}
        backwards = dict(store.scan(b"", None, reverse=True))
        forwards = dict(store.scan(b"", None))
        assert one_by_one == backwards == forwards
        return forwards


@pytest.mark.parametrize("part", range(10))
def test_a_flipped_bit_in_a_table_is_told_and_never_returns_wrong_bytes(path, part):
    table = largest(path, "*.sst")
    flip(table, table.stat().st_size * part // 10)
    with pytest.raises(StoreCorrupt, match=str(path)):
        read_everything(path)


@pytest.mark.parametrize("reverse", [False, True])
def test_a_scan_does_not_end_silently_at_a_damaged_block(path, reverse):
    table = largest(path, "*.sst")
    flip(table, table.stat().st_size // 2)
    with closing(RocksStore(path)) as store, pytest.raises(StoreCorrupt):
        list(store.scan(b"", None, reverse=reverse))


def test_a_truncated_table_is_told(path):
    table = largest(path, "*.sst")
    table.write_bytes(table.read_bytes()[:-100])
    with pytest.raises(StoreCorrupt):
        read_everything(path)


@pytest.mark.parametrize("pattern", ["*.sst", "MANIFEST-*", "CURRENT"])
def test_a_missing_file_is_told(path, pattern):
    largest(path, pattern).unlink()
    with pytest.raises(StoreCorrupt, match=str(path)):
        read_everything(path)


def test_a_damaged_list_of_tables_is_told(path):
    manifest = largest(path, "MANIFEST-*")
    flip(manifest, manifest.stat().st_size // 2)
    with pytest.raises(StoreCorrupt):
        read_everything(path)


@pytest.mark.parametrize("pattern", ["*.sst", "MANIFEST-*", "CURRENT"])
def test_a_store_that_does_not_open_is_set_aside_and_a_new_one_takes_its_place(path, pattern):
    """Whoever opens it is told why and where the damaged one is kept, with all that is left of it."""
    largest(path, pattern).unlink()
    told = []
    with closing(RocksStore.opened(path, told=lambda *what: told.append(what))) as store:
        assert list(store.scan(b"", None)) == []
        store.apply({b"a": b"1"})
    ((reason, kept),) = told
    assert str(path) in reason
    assert kept == str(path.with_name("store.quarantined-1"))
    assert (Path(kept) / "IDENTITY").exists()


def test_a_sound_store_is_opened_as_it_is(path):
    told = []
    with closing(RocksStore.opened(path, told=lambda *what: told.append(what))) as store:
        assert dict(store.scan(b"", None)) == ENTRIES
    assert told == []


def test_a_store_that_is_set_aside_is_empty_and_the_old_one_can_be_looked_at(path):
    with closing(RocksStore(path)) as store:
        assert store.place == str(path)
        kept = store.set_aside()
        assert list(store.scan(b"", None)) == []
        store.apply({b"new": b"entry"})
    with closing(RocksStore(Path(kept))) as old:
        assert dict(old.scan(b"", None)) == ENTRIES
    with closing(RocksStore(path)) as store:
        assert dict(store.scan(b"", None)) == {b"new": b"entry"}


def test_two_stores_are_kept_aside_and_the_oldest_goes(path):
    """A disk that damages a store again and again does not fill up."""
    path.with_name("store.quarantined-of-another-kind").mkdir()
    with closing(RocksStore(path)) as store:
        for number in range(11):
            store.apply({b"number": b"%d" % number})
            store.set_aside()
    names = sorted(folder.name for folder in path.parent.iterdir())
    assert names == ["store", "store.quarantined-10", "store.quarantined-11", "store.quarantined-of-another-kind"]
    with closing(RocksStore(path.with_name("store.quarantined-11"))) as last:
        assert last.get(b"number") == b"10"


def test_a_folder_that_cannot_be_made_is_no_damage(tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreError) as caught:
        RocksStore(tmp_path / "file" / "store")
    assert not isinstance(caught.value, StoreCorrupt)
