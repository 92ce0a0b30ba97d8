"""The projector in a child process, which reads the log through its parent."""

from __future__ import annotations

import os
import signal
import threading
import time
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from structlog.testing import CapturingLogger

from node.projector_process import ProjectorProcess
from node.words import ProjectorOrders
from projections.store.database import open_database
from projections.store.reader import ALL, Reader, RunFilter
from runtime.clock import SystemClock
from runtime.logs.embedded import EmbeddedLog
from runtime.logs.lending import Lender
from runtime.telemetry import Telemetry
from tests.node.borrowers import HANGS_SECONDS, SECONDS, started, wait_until_silence_is_told
from tests.projections.histories import at, create_topics, created, records
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    log = EmbeddedLog(tmp_path / "log", SystemClock())
    create_topics(log)
    yield log
    log.close()


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'model.sqlite'}"


@pytest.fixture
def projector(log: EmbeddedLog, url: str) -> Iterator[ProjectorProcess]:
    projector = projector_over(log, url)
    yield projector
    assert projector.stop(SECONDS)


def projector_over(
    log: EmbeddedLog, url: str, said: CapturingLogger | None = None, *, seconds: Callable[[], float] = time.monotonic
) -> ProjectorProcess:
    return ProjectorProcess(log, orders(url), Telemetry(logger=said or CapturingLogger()), seconds=seconds)


def orders(url: str) -> ProjectorOrders:
    return ProjectorOrders(url, timedelta(days=30), "console", "warning")


def schedules(url: str) -> set[str]:
    return {row["schedule"] for row in Reader(open_database(url)).runs(ALL, RunFilter()).rows}


def wait_for_rows(projector: ProjectorProcess, log: EmbeddedLog) -> None:
    """As the API does: ask, and ask again whenever rows have moved."""
    moved, targets = threading.Event(), log.end_offsets(projector.inputs())
    silence = projector.on_progress(moved.set)
    while not projector.reached(targets):
        assert moved.wait(SECONDS), f"the rows do not follow: {projector.problem}"
        moved.clear()
    silence()


@pytest.mark.slow
def test_rows_follow_the_log_and_whoever_waits_for_them_is_told(
    projector: ProjectorProcess, log: EmbeddedLog, url: str
) -> None:
    log.append(records([created("before", 0)]))
    projector.start()
    assert projector.ready(SECONDS)
    assert schedules(url) == {"before"}
    log.append(records([created("after", 0)]))
    wait_for_rows(projector, log)
    assert schedules(url) == {"before", "after"}
    assert projector.problem is None
    assert projector.as_of > at(0)


@pytest.mark.slow
def test_it_gives_way_to_what_runs_wait_for(log: EmbeddedLog, url: str) -> None:
    said = CapturingLogger()
    projector = projector_over(log, url, said)
    projector.start()
    assert projector.ready(SECONDS)
    child = said.calls[0].kwargs["pid"]
    assert os.getpriority(os.PRIO_PROCESS, child) == os.getpriority(os.PRIO_PROCESS, 0) + 5
    assert projector.stop(SECONDS)


@pytest.mark.slow
def test_a_projector_that_was_killed_is_started_again_and_says_so_meanwhile(log: EmbeddedLog, url: str) -> None:
    said = CapturingLogger()
    projector = projector_over(log, url, said)
    projector.start()
    assert projector.ready(SECONDS)
    told, ages = threading.Event(), [projector.as_of]
    silence = projector.on_progress(lambda: told.set() if projector.problem else None)
    projector.on_progress(lambda: ages.append(projector.as_of))
    os.kill(said.calls[0].kwargs["pid"], signal.SIGKILL)
    assert told.wait(SECONDS)
    silence()
    log.append(records([created("after", 0)]))
    wait_for_rows(projector, log)
    assert projector.ready(SECONDS)
    assert projector.problem is None
    assert schedules(url) == {"after"}
    assert projector.stop(SECONDS)
    assert ages == sorted(ages)  # what was shown did not grow older


@pytest.mark.slow
def test_a_read_model_that_cannot_be_written_is_a_problem_that_ends_when_it_can(
    log: EmbeddedLog, tmp_path: Path
) -> None:
    projector = projector_over(log, f"sqlite:///{tmp_path / 'later' / 'model.sqlite'}")
    projector.start()
    eventually(lambda: projector.problem is not None, within=SECONDS, what="the problem is told")
    assert "unable to open database file" in str(projector.problem)
    assert not projector.ready(0)
    (tmp_path / "later").mkdir()
    assert projector.ready(SECONDS)
    assert projector.stop(SECONDS)


@pytest.mark.slow
def test_what_lies_where_the_server_was_started_is_none_of_its_modules(
    log: EmbeddedLog, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tasks are there, beside whatever their author calls `schemas`."""
    (tmp_path / "schemas.py").write_text("raise SystemExit('this is not ours')")
    monkeypatch.chdir(tmp_path)
    projector = projector_over(log, url)
    projector.start()
    assert projector.ready(SECONDS), projector.problem
    assert projector.stop(SECONDS)


@pytest.mark.slow
def test_one_that_hangs_is_a_problem_and_goes_on_when_it_does(log: EmbeddedLog, url: str) -> None:
    said, now = CapturingLogger(), [0.0]
    projector = projector_over(log, url, said, seconds=lambda: now[0])
    projector.start()
    assert projector.ready(SECONDS)
    child = said.calls[0].kwargs["pid"]
    os.kill(child, signal.SIGSTOP)
    wait_until_silence_is_told(projector, child, now)
    os.kill(child, signal.SIGCONT)
    eventually(lambda: projector.problem is None, within=SECONDS, what="it has a word again")
    assert projector.stop(SECONDS)


@pytest.mark.slow
def test_one_that_hangs_is_killed_when_all_stop(log: EmbeddedLog, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("node.projector_process.DRAIN_SECONDS", HANGS_SECONDS)
    said = CapturingLogger()
    projector = projector_over(log, url, said)
    projector.start()
    assert projector.ready(SECONDS)
    os.kill(said.calls[0].kwargs["pid"], signal.SIGSTOP)
    assert projector.stop(SECONDS)


@pytest.mark.slow
def test_a_child_to_which_nobody_lends_the_log_any_more_ends(log: EmbeddedLog, url: str) -> None:
    """Also while its parent is there: who cannot read would say for ever that it cannot."""
    with started("node.projector_child", orders(url), askers=2) as (child, ours):
        # With its first word it is left alone.
        Lender(log, lambda _standing: ours[0].end()).serve(ours)
        assert child.wait(SECONDS) == 1


def test_one_that_was_never_started_stops_at_once(log: EmbeddedLog, url: str) -> None:
    projector = projector_over(log, url)
    assert not projector.ready(0)
    assert projector.stop(0)
