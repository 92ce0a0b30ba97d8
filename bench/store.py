"""Stores: batched writes and single reads, against the bare binding as the floor."""

import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from rocksdict import Options, Rdict, WriteBatch

from runtime.store import Store
from runtime.stores.memory import MemoryStore
from runtime.stores.rocksdb import RocksStore

ENTRIES = 100_000
BATCH = 500  # entries an `apply`, about what a transaction of a busy partition changes
VALUE = b"v" * 200  # a small state row
SCAN = 1000  # entries a scan


def main() -> None:
    """Print entries per second, and each store's ratio to the floor."""
    print(f"{ENTRIES:,} entries of {len(VALUE)} bytes, {BATCH} a batch; thousands per second, share of the floor")
    print(f"{'':<12}{'written':>16}{'read':>16}{'scanned':>16}")
    floor = _bare()
    _print("rocksdict", floor, floor)
    with tempfile.TemporaryDirectory() as folder:
        _print("RocksStore", _measure(RocksStore(Path(folder))), floor)
    _print("MemoryStore", _measure(MemoryStore()), floor)


def _measure(store: Store) -> tuple[float, float, float]:
    def put() -> None:
        for keys in _batches():
            store.apply(dict.fromkeys(keys, VALUE))

    def get() -> None:
        for key in _keys():
            store.get(key)

    def scan() -> None:
        for first in range(0, ENTRIES, SCAN):
            for _ in store.scan(_key(first), _key(first + SCAN)):
                pass

    rates = _rate(put), _rate(get), _rate(scan)
    store.close()
    return rates


def _bare() -> tuple[float, float, float]:
    with tempfile.TemporaryDirectory() as folder:
        options = Options(raw_mode=True)
        options.create_if_missing(True)  # noqa: FBT003  the binding takes it by position
        store = Rdict(folder, options)

        def put() -> None:
            for keys in _batches():
                batch = WriteBatch(raw_mode=True)
                for key in keys:
                    batch.put(key, VALUE)
                store.write(batch)

        def get() -> None:
            for key in _keys():
                store.get(key)

        def scan() -> None:
            for first in range(0, ENTRIES, SCAN):
                entries = store.items(from_key=_key(first))
                for _ in range(SCAN):
                    next(entries)

        rates = _rate(put), _rate(get), _rate(scan)
        store.close()
    return rates


def _rate(work: Callable[[], None]) -> float:
    started = time.perf_counter()
    work()
    return ENTRIES / (time.perf_counter() - started)


def _key(number: int) -> bytes:
    return b"s/acme/schedule-%08d" % number


def _keys() -> Iterator[bytes]:
    return map(_key, range(ENTRIES))


def _batches() -> Iterator[list[bytes]]:
    return ([_key(number) for number in range(first, first + BATCH)] for first in range(0, ENTRIES, BATCH))


def _print(name: str, rates: tuple[float, float, float], floor: tuple[float, float, float]) -> None:
    columns = (f"{rate / 1000:>8,.0f} {rate / of:>5.2f}" for rate, of in zip(rates, floor, strict=True))
    print(f"{name:<12}" + "".join(f"{column:>16}" for column in columns))


if __name__ == "__main__":
    main()
