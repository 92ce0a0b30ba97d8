"""The data folder has one writer, and its partition counts never change."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from node.folder import DataFolder, FolderRefused
from schemas.topics import Layout

if TYPE_CHECKING:
    from pathlib import Path


def test_a_folder_is_held_by_one(tmp_path: Path) -> None:
    """The second one is told which process has it; after a release it may have it."""
    first = DataFolder.hold(tmp_path / "data")
    with pytest.raises(FolderRefused, match=f"in use by process {os.getpid()}"):
        DataFolder.hold(tmp_path / "data")
    first.release()
    DataFolder.hold(tmp_path / "data").release()


def test_partition_counts_are_written_down_once(tmp_path: Path) -> None:
    """Another count is refused by name: it would move every key."""
    folder = DataFolder.hold(tmp_path / "data")
    folder.check_layout(Layout(schedule=4, shard=4))
    folder.check_layout(Layout(schedule=4, shard=4))
    with pytest.raises(FolderRefused, match=r"partitions: .* made with 4 partitions, not 8; set partitions to 4"):
        folder.check_layout(Layout(schedule=8, shard=8))
    folder.release()


def test_the_folder_is_for_its_owner_only(tmp_path: Path) -> None:
    folder = DataFolder.hold(tmp_path / "data")
    assert (tmp_path / "data").stat().st_mode & 0o077 == 0
    folder.release()
