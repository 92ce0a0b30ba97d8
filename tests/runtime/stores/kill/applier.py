"""A process that applies batches as fast as it can, says so on its standard output, and is there to be killed."""

import os
import sys
from itertools import count
from pathlib import Path

from runtime.stores.rocksdb import RocksStore

KEYS_A_BATCH = 50
COUNTER = b"number"


def batch(number: int) -> dict[bytes, bytes | None]:
    """All keys of the previous batch go, as many new ones come, and the counter moves."""
    old = {b"%d/%d" % (number - 1, index): None for index in range(KEYS_A_BATCH)}
    new = {b"%d/%d" % (number, index): b"." * (index * 40) for index in range(KEYS_A_BATCH)}
    return {**old, **new, COUNTER: b"%d" % number}


if __name__ == "__main__":
    store = RocksStore(Path(sys.argv[1]))
    for following in count(int(store.get(COUNTER) or 0) + 1):
        store.apply(batch(following))
        os.write(sys.stdout.fileno(), b"%d\n" % following)
