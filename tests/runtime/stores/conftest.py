"""Every adapter that keeps the promises of the store port; a test that takes `store` runs once for each."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from runtime.store import Store
from runtime.stores.memory import MemoryStore
from runtime.stores.rocksdb import RocksStore


@pytest.fixture(params=["rocksdb", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """An empty store."""
    store: Store = RocksStore(tmp_path / "store") if request.param == "rocksdb" else MemoryStore()
    yield store
    store.close()
