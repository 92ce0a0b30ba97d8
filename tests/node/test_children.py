"""Child processes that are kept running."""

from __future__ import annotations

import sys
import threading
from typing import TYPE_CHECKING, Any

import pytest

from node.children import ChildProcess
from node.process import Node
from runtime.telemetry import Event, Telemetry
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from pathlib import Path

SECONDS = 30.0


class Told:
    """A logger that says when it was told something; from any thread."""

    def __init__(self) -> None:
        self.lines: dict[str, dict[str, Any]] = {}
        self._changed = threading.Condition()

    def info(self, name: str, **fields: object) -> None:
        with self._changed:
            self.lines[name] = fields
            self._changed.notify_all()

    warning = error = info

    def wait_for(self, event: Event) -> dict[str, Any]:
        with self._changed:
            assert self._changed.wait_for(lambda: event.value in self.lines, SECONDS), f"{event} was not told"
            return self.lines[event.value]


@pytest.mark.slow
def test_a_child_that_cannot_be_started_is_tried_again(tmp_path: Path) -> None:
    """A machine that is out of memory or of processes refuses it, and a moment later does not."""
    program, told = tmp_path / "program", Told()
    child = ChildProcess("late", [str(program)], Telemetry(logger=told), drain=SECONDS)
    child.start()
    ended = told.wait_for(Event.CHILD_EXITED)
    assert (ended["child"], ended["code"], "No such file" in ended["reason"]) == ("late", None, True)
    assert not child.ready(0)
    program.write_text("#!/bin/sh\nread line\n")
    program.chmod(0o700)
    told.wait_for(Event.CHILD_STARTED)
    assert child.ready(SECONDS)
    assert child.failure is None
    assert child.stop(SECONDS)


@pytest.mark.slow
def test_a_child_is_told_to_end_once(tmp_path: Path) -> None:
    """A server takes the second word for impatience, and ends without finishing what it has in hand."""
    heard, told = tmp_path / "heard", Told()
    program = (
        "import pathlib, signal, sys\n"
        "asked = {signal.SIGTERM}\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, asked)\n"
        "heard = pathlib.Path(sys.argv[1])\n"
        "heard.write_text('ready')\n"
        "signal.sigwait(asked)\n"
        "heard.write_text('once' if signal.sigtimedwait(asked, 1) is None else 'twice')\n"
    )
    child = ChildProcess("patient", [sys.executable, "-c", program, str(heard)], Telemetry(logger=told), drain=SECONDS)
    child.start()
    eventually(lambda: heard.exists() and heard.read_text() == "ready", within=SECONDS, what="it waits")
    assert child.stop(SECONDS)
    assert heard.read_text() == "once"


@pytest.mark.slow
def test_processes_that_do_without_each_other_are_all_told_to_end_before_one_is_waited_for(tmp_path: Path) -> None:
    """Each ends when the other was told too: one after another, the first would be waited for and killed."""
    program = (
        "import pathlib, signal, sys, time\n"
        "asked = {signal.SIGTERM}\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, asked)\n"
        "folder, mine, other = pathlib.Path(sys.argv[1]), sys.argv[2], sys.argv[3]\n"
        "(folder / f'{mine}-ready').touch()\n"
        "signal.sigwait(asked)\n"
        "(folder / f'{mine}-told').touch()\n"
        "while not (folder / f'{other}-told').exists():\n"
        "    signal.sigtimedwait(asked, 0.05)\n"
        "(folder / f'{mine}-ended').touch()\n"
    )
    children = tuple(
        ChildProcess(
            mine, [sys.executable, "-c", program, str(tmp_path), mine, other], Telemetry(logger=Told()), drain=SECONDS
        )
        for mine, other in (("a", "b"), ("b", "a"))
    )
    node = Node(services=children, release=lambda: None, stop_seconds=SECONDS + 2, apart=True)
    for child in children:
        child.start()
    for name in "ab":
        eventually((tmp_path / f"{name}-ready").exists, within=SECONDS, what="it waits")
    node.stop()
    assert sorted(path.name for path in tmp_path.glob("*-ended")) == ["a-ended", "b-ended"]
