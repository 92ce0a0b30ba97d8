"""What happens to the disk of a node on Kafka: lost, damaged, full. Nothing of it is worth more than a restart."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from tests.faults.line import Line
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.faults.mortal import Mortal

SOON = 60
DISK = 24 * 1024 * 1024  # two stores ask for some five megabytes each, and get some more as they go
FIRST_BLOCK = 20  # a place in a table's first block of data: the keys of one partition begin there
WAL_BYTES = 8 * 1024  # then a store asks for room every few transactions

pytestmark = [
    pytest.mark.parametrize("role", ["scheduler", "dispatcher"]),
    pytest.mark.timeout(300),  # the first one starts a broker and everybody else
]


def flip(file: Path, place: int) -> None:
    """One bit."""
    with file.open("r+b") as opened:
        opened.seek(place)
        byte = opened.read(1)[0]
        opened.seek(place)
        opened.write(bytes([byte ^ 1]))


def test_d1_a_state_folder_that_is_gone_is_built_anew(line: Line, node: Mortal) -> None:
    node.kill()
    shutil.rmtree(node.state)
    line.must_go_on_with(node)


def test_d2_a_store_with_a_flipped_bit_in_its_tables_is_set_aside_and_built_anew(line: Line, node: Mortal) -> None:
    """It is kept for a look, and the log says where."""
    node.kill()
    node.start()  # writes what it finds in its write-ahead log into tables
    line.must_go_on()
    node.kill()
    tables = list(node.state.glob("*-?/*.sst"))
    for table in tables:
        flip(table, FIRST_BLOCK)
    assert tables
    line.must_go_on_with(node)
    assert node.said("store_quarantined")
    assert list(node.state.glob("*-?.quarantined-*"))


def test_d7_what_is_damaged_at_the_end_of_a_write_ahead_log_is_read_from_the_changelog(
    line: Line, node: Mortal
) -> None:
    """A store that has lost its last transactions is one that is behind."""
    node.kill()
    logs = [log for log in node.state.glob("*-?/*.log") if log.stat().st_size]
    for log in logs:
        flip(log, log.stat().st_size // 2)
    assert logs
    line.must_go_on_with(node)


@pytest.fixture
def small_disk(node: Mortal) -> Iterator[Path]:
    """The node's folder is on a disk of its own, which is small; its name is the one that it had."""
    name = next(node.folder.glob("node-id")).read_text(encoding="ascii")
    node.kill()
    mounting = ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(node.folder)]
    done = subprocess.run(mounting, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"a small disk is made by mount, which is for root to do: {done.stderr}"
    (node.folder / "node-id").write_text(name, encoding="ascii")
    yield node.folder
    node.kill()
    subprocess.run(["umount", str(node.folder)], check=True)


def test_d8_a_node_on_a_full_disk_goes_on_when_there_is_room(line: Line, node: Mortal, small_disk: Path) -> None:
    """While it is full the node says so and loses nothing; nobody has to start it again."""
    node.start(wal_bytes=WAL_BYTES)
    line.must_go_on()
    eventually(lambda: says_so(node, small_disk / "filler"), within=SOON, what=f"it says so:\n{node.text[-3000:]}")
    (small_disk / "filler").unlink()
    line.must_go_on()
    assert node.is_running
    assert line.wrong() == {}


def says_so(node: Mortal, filler: Path) -> bool:
    """Whatever room the node makes for itself meanwhile is taken, too."""
    fill(filler)
    return node.said("store_unavailable") > 0


def fill(file: Path) -> None:
    """To the last byte."""
    with file.open("ab", buffering=0) as filler:
        for size in (1 << 20, 1 << 12, 1):
            try:
                while True:
                    filler.write(os.urandom(size))
            except OSError:
                continue


def test_after_all_this_the_stores_are_what_the_log_says(line: Line, node: Mortal, role: str) -> None:
    node.ask_to_stop()
    assert node.wait(SOON) == 0, node.text[-3000:]
    assert line.wrong() == {}
    assert line.rows_stored(role) == line.rows_logged(role)
