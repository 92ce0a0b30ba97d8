"""What is written of what is said."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING

import pytest

from node.logging import Once, logger

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


def line(text: str, name: str = "kafka") -> logging.LogRecord:
    return logging.LogRecord(name, logging.ERROR, __file__, 1, text, (), None)


def test_libraries_write_the_same_json_as_we_do(capsys: pytest.CaptureFixture[str]) -> None:
    logger("json", "info").warning("commit_retried", partition="3")
    logging.getLogger("some.library").error("no broker at %s", "b:1")
    logging.getLogger("some.library").info("connected")
    ours, theirs = (json.loads(written) for written in capsys.readouterr().err.splitlines())
    assert (ours["event"], ours["level"], ours["partition"]) == ("commit_retried", "warning", "3")
    assert (theirs["event"], theirs["level"], theirs["logger"]) == ("no broker at b:1", "error", "some.library")
    assert ours.keys() & theirs.keys() >= {"event", "level", "timestamp"}


def test_what_a_library_repeats_is_written_once_in_a_while() -> None:
    """Lines that differ in their numbers only are the same; another text or another library is not."""
    once = Once()
    texts = ["refused after 1 ms", "refused after 20 ms", "timed out", "refused after 3 ms"]
    assert [once.filter(line(text)) for text in texts] == [True, False, True, False]
    assert once.filter(line("refused after 4 ms", name="another"))


def test_the_next_line_tells_how_many_were_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    once = Once()
    for _ in range(3):
        once.filter(line("refused after 1 ms"))
    monkeypatch.setattr("node.logging.REPEATED_SECONDS", 0.0)
    last = line("refused after 2 ms")
    assert once.filter(last)
    assert last.getMessage() == "refused after 2 ms (2 more like it)"
