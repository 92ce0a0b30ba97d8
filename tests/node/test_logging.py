"""What is written of what is said."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING

import pytest

from node.logging import logger

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    """Python's logging is one for the whole process."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def test_libraries_write_the_same_json_as_we_do(capsys: pytest.CaptureFixture[str]) -> None:
    logger("json", "info").warning("commit_retried", partition="3")
    logging.getLogger("some.library").error("no broker at %s", "b:1")
    logging.getLogger("some.library").info("connected")
    ours, theirs = (json.loads(written) for written in capsys.readouterr().err.splitlines())
    assert (ours["event"], ours["level"], ours["partition"]) == ("commit_retried", "warning", "3")
    assert (theirs["event"], theirs["level"], theirs["logger"]) == ("no broker at b:1", "error", "some.library")
    assert ours.keys() & theirs.keys() >= {"event", "level", "timestamp"}
