"""What the last command wrote: a convenience that must not stand in a command's way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidewheel.cli import positions

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

URL = "http://127.0.0.1:8440"


def test_a_position_is_remembered_for_its_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    positions.remember(URL, "scheduler-0-7")
    assert positions.recall(URL) == "scheduler-0-7"
    assert positions.recall("http://elsewhere") is None


def test_a_user_without_a_home_goes_without(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container, where the user id has no entry and HOME is not set."""

    def no_home() -> None:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setattr("pathlib.Path.home", no_home)
    positions.remember(URL, "scheduler-0-7")
    assert positions.recall(URL) is None
