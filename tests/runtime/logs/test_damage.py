"""What an embedded log makes of a folder that has lost or changed bytes."""

import shutil
from contextlib import closing
from pathlib import Path

import pytest

from runtime.log import LogError
from runtime.logs.embedded import Durability, EmbeddedLog
from tests.runtime.logs.words import E0, O0, SPECS, HandClock, read, to, write

TRANSACTIONS = 50


def crashed(folder: Path, durability: Durability) -> Path:
    """A folder as a crash leaves it: everything is in RocksDB's own log and nothing in tables yet."""
    with closing(EmbeddedLog(folder / "live", HandClock(), durability=durability)) as log:
        log.create(SPECS)
        producer = log.open_producer("writer", group="group")
        for number in range(TRANSACTIONS):
            write(producer, *to(E0, str(number)), *to(O0, str(number), "." * 100), positions={E0: number})
        shutil.copytree(folder / "live", folder / "crashed")
    return folder / "crashed"


def journal(folder: Path) -> Path:
    return max(folder.glob("*.log"), key=lambda file: file.stat().st_size)


def flip(file: Path, place: int) -> None:
    """Change one bit."""
    data = bytearray(file.read_bytes())
    data[place] ^= 1
    file.write_bytes(data)


@pytest.mark.parametrize("durability", ["process", "disk"])
@pytest.mark.parametrize("lost", [1, 100, 3000])
def test_a_torn_end_loses_whole_transactions_from_the_end_and_nothing_else(tmp_path, durability, lost):
    folder = crashed(tmp_path, durability)
    file = journal(folder)
    file.write_bytes(file.read_bytes()[:-lost])
    with closing(EmbeddedLog(folder, HandClock(), durability=durability)) as log:
        kept = read(log, E0)
        assert 0 < len(kept) < TRANSACTIONS
        assert kept == [str(number) for number in range(len(kept))]
        assert read(log, O0)[0::2] == kept
        assert log.committed("group", [E0]) == {E0: len(kept) - 1}
        log.append(to(E0, "next"))
        assert read(log, E0) == [*kept, "next"]


def test_after_a_loss_of_power_a_process_log_goes_on_with_what_stands_before_the_damage(tmp_path):
    folder = crashed(tmp_path, "process")
    flip(journal(folder), journal(folder).stat().st_size // 2)
    with closing(EmbeddedLog(folder, HandClock())) as log:
        kept = read(log, E0)
        assert 0 < len(kept) < TRANSACTIONS
        assert read(log, O0)[0::2] == kept == [str(number) for number in range(len(kept))]


def test_damage_before_the_end_of_a_disk_log_is_no_loss_of_power_and_is_told(tmp_path):
    folder = crashed(tmp_path, "disk")
    flip(journal(folder), journal(folder).stat().st_size // 2)
    with pytest.raises(LogError, match=str(folder)):
        EmbeddedLog(folder, HandClock(), durability="disk")


def test_a_damaged_table_is_told_to_who_reads_it(tmp_path):
    crashed(tmp_path, "process")
    folder = tmp_path / "live"
    table = max(folder.glob("*.sst"), key=lambda file: file.stat().st_size)
    flip(table, table.stat().st_size // 3)
    with pytest.raises(LogError, match=str(folder)), closing(EmbeddedLog(folder, HandClock())) as log:
        read(log, E0, O0)


def test_a_log_that_lost_its_list_of_tables_is_not_taken_for_an_empty_one(tmp_path):
    crashed(tmp_path, "process")
    (tmp_path / "live" / "CURRENT").unlink()
    with pytest.raises(LogError, match="live"):
        EmbeddedLog(tmp_path / "live", HandClock())
