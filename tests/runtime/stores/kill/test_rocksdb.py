"""kill -9 of a process that is applying batches to a store."""

import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from runtime.stores.rocksdb import RocksStore
from tests.runtime.stores.kill.applier import COUNTER, batch

ROOT = Path(__file__).parents[4]


@pytest.mark.parametrize("acknowledgements", [1, 30, 400])
def test_a_batch_is_whole_or_absent_and_an_applied_one_is_there(tmp_path, acknowledgements):
    """Three times in a row, in the same folder."""
    for _ in range(3):
        acknowledged = kill_after(tmp_path, acknowledgements)
        with closing(RocksStore(tmp_path)) as store:
            number = int(store.get(COUNTER) or 0)
            assert number >= acknowledged
            expected = {key: value for key, value in batch(number).items() if value is not None}
            assert dict(store.scan(b"", None)) == expected


def kill_after(folder: Path, acknowledgements: int) -> int:
    """The number of the last batch that was acknowledged before the kill."""
    command = [sys.executable, "-m", "tests.runtime.stores.kill.applier", str(folder)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        said = [process.stdout.readline() for _ in range(acknowledgements)]
        process.send_signal(signal.SIGKILL)
        said += [line for line in process.stdout if line.endswith(b"\n")]
    assert process.returncode == -signal.SIGKILL
    return int(said[-1])
