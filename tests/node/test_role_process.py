"""The dispatcher in a child process, which owns its partitions through a log that its parent has open."""

from __future__ import annotations

import os
import signal
import threading
import time
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from prometheus_client import generate_latest
from structlog.testing import CapturingLogger

from node.joined import Joined
from node.process import parts_of, unready
from node.role_process import RoleProcess
from node.roles import Roles
from node.words import RoleOrders
from runtime.clock import SystemClock
from runtime.logs.lending import Lender
from runtime.record import TopicPartition
from runtime.telemetry import Telemetry
from schemas import topics
from tests.node.borrowers import HANGS_SECONDS, SECONDS, started, wait_until_silence_is_told
from tests.node.line import JOB, PARTITIONS, Quiet, judged, opened, put, told
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from runtime.logs.embedded import EmbeddedLog

LAYOUT = topics.Layout(schedule=PARTITIONS, shard=PARTITIONS)
EVERY_SECOND = {"trigger": {"cron": "* * * * * *"}, "overlap": {"policy": "allow_all"}, "job": JOB}

pytestmark = pytest.mark.slow


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    with opened(tmp_path) as log:
        yield log


def orders(tmp_path: Path) -> RoleOrders:
    return RoleOrders(
        role="dispatcher", state=tmp_path / "state", layout=LAYOUT, retention=topics.Retention(),
        accept_clock_after=timedelta(seconds=60), member="m", catch_up_rate="100/s", log_format="console",
        log_level="critical",
    )  # fmt: skip


def dispatcher_over(
    log: EmbeddedLog, tmp_path: Path, said: CapturingLogger, *, seconds: Callable[[], float] = time.monotonic
) -> RoleProcess:
    return RoleProcess(log, orders(tmp_path), Telemetry(logger=said), partitions=PARTITIONS, seconds=seconds)


@contextmanager
def decided(log: EmbeddedLog, tmp_path: Path) -> Iterator[None]:
    """A schedule is due every second."""
    roles = Roles(
        log, SystemClock(), Telemetry(logger=Quiet()), state=tmp_path / "state", layout=LAYOUT,
        retention=topics.Retention(), accept_clock_after=None, member="m", catch_up_rate="100/s",
    )  # fmt: skip
    scheduler = roles.scheduler()
    scheduler.start()
    assert scheduler.ready(SECONDS)
    put(log, "report", EVERY_SECOND)
    yield
    assert scheduler.stop(SECONDS)


def wait_for_outcomes(log: EmbeddedLog, count: int) -> None:
    eventually(lambda: len(told(log, "run.finished", "report")) >= count, within=SECONDS, what=f"{count} outcomes")


def test_runs_reach_their_outcomes_by_a_dispatcher_in_a_child(log: EmbeddedLog, tmp_path: Path) -> None:
    dispatcher = dispatcher_over(log, tmp_path, CapturingLogger())
    with decided(log, tmp_path):
        dispatcher.start()
        assert dispatcher.ready(SECONDS)
        wait_for_outcomes(log, 2)
    assert unready(parts_of((dispatcher,))) == {}
    assert [part.name for part in parts_of((dispatcher,))] == [
        "dispatcher", "dispatcher-0", "dispatcher-1", "dispatcher-2", "dispatcher-3",
    ]  # fmt: skip
    assert dispatcher.stop(SECONDS)
    assert judged(log).offenders == {}


def test_one_that_was_killed_is_started_again_says_so_meanwhile_and_loses_and_doubles_nothing(
    log: EmbeddedLog, tmp_path: Path
) -> None:
    said = CapturingLogger()
    dispatcher = dispatcher_over(log, tmp_path, said)
    with decided(log, tmp_path):
        dispatcher.start()
        assert dispatcher.ready(SECONDS)
        for killed in range(3):
            wait_for_outcomes(log, 2 * (killed + 1))
            child = [call.kwargs["pid"] for call in said.calls if call.args == ("child_started",)][-1]
            os.kill(child, signal.SIGKILL)
            eventually(
                lambda: unready(parts_of((dispatcher,)))
                == {"dispatcher": "the dispatcher's process has ended; it is started again"},
                within=SECONDS, what="that it has ended is told",
            )  # fmt: skip
            assert dispatcher.ready(SECONDS)
    outcomes = len(told(log, "run.created", "report"))
    wait_for_outcomes(log, outcomes)
    assert dispatcher.stop(SECONDS)
    report = judged(log)
    assert (report.offenders, report.created) == ({}, outcomes)


def test_one_that_hangs_is_a_problem_and_is_killed_when_all_stop(
    log: EmbeddedLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("node.role_process.DRAIN_SECONDS", HANGS_SECONDS)
    said, now = CapturingLogger(), [0.0]
    dispatcher = dispatcher_over(log, tmp_path, said, seconds=lambda: now[0])
    dispatcher.start()
    assert dispatcher.ready(SECONDS)
    child = said.calls[0].kwargs["pid"]
    os.kill(child, signal.SIGSTOP)
    wait_until_silence_is_told(dispatcher, child, now)
    assert dispatcher.stop(SECONDS)


def test_why_a_partition_does_not_work_is_told_as_if_it_were_here(log: EmbeddedLog, tmp_path: Path) -> None:
    """A store that cannot be opened, until somebody makes room for it."""
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "dispatcher-2").write_text("a file where a folder should be")
    dispatcher = dispatcher_over(log, tmp_path, CapturingLogger())
    dispatcher.start()
    eventually(
        lambda: list(unready(parts_of((dispatcher,)))) == ["dispatcher", "dispatcher-2"],
        within=SECONDS, what="the others work",
    )  # fmt: skip
    assert "dispatcher-2" in unready(parts_of((dispatcher,)))["dispatcher-2"]
    (tmp_path / "state" / "dispatcher-2").unlink()
    assert dispatcher.ready(SECONDS)
    eventually(lambda: unready(parts_of((dispatcher,))) == {}, within=SECONDS, what="all of it works")
    assert dispatcher.stop(SECONDS)


def test_what_it_counts_is_among_the_figures_of_its_parent(log: EmbeddedLog, tmp_path: Path) -> None:
    telemetry = Telemetry(logger=Quiet())
    dispatcher = RoleProcess(log, orders(tmp_path), telemetry, partitions=PARTITIONS)
    registry = Joined(telemetry.registry, dispatcher.figures)
    before = generate_latest(registry).decode()
    assert "tidewheel_runs_finished_total{" not in before
    with decided(log, tmp_path):
        dispatcher.start()
        assert dispatcher.ready(SECONDS)
        wait_for_outcomes(log, 1)
        counted = 'tidewheel_runs_finished_total{outcome="expired",tenant="acme"}'
        eventually(lambda: counted in generate_latest(registry).decode(), within=SECONDS, what="it is counted")
    shown = generate_latest(registry).decode()
    assert 'tidewheel_role_partitions{role="dispatcher"} 4.0' in shown
    assert shown.count("# TYPE tidewheel_runs_finished_total counter") == 1
    assert dispatcher.stop(SECONDS)
    left = generate_latest(registry).decode()
    assert counted not in left
    assert 'tidewheel_role_partitions{role="dispatcher"} 4.0' in left  # which nobody owns now


def test_a_child_to_which_nobody_lends_the_log_any_more_ends(log: EmbeddedLog, tmp_path: Path) -> None:
    """Also while its parent is there, and in the midst of its waiting."""
    with started("node.role_child", orders(tmp_path), askers=PARTITIONS + 2) as (child, ours):
        # With the first word of all its partitions it is left alone.
        lender = Lender(log, lambda word: ours[0].end() if len(word.parts) == 1 + PARTITIONS else None)
        lending = threading.Thread(target=lender.serve, args=(ours,))
        lending.start()
        assert child.wait(SECONDS) == 1
        lending.join(SECONDS)
        assert not lending.is_alive()


def test_one_whose_parent_is_gone_ends(log: EmbeddedLog, tmp_path: Path) -> None:
    """However its parent ended: nobody holds its standard input any more."""
    said = CapturingLogger()
    dispatcher = dispatcher_over(log, tmp_path, said)
    dispatcher.start()
    assert dispatcher.ready(SECONDS)
    child = dispatcher._child  # what only a parent that was killed does to it
    assert child is not None
    assert child.stdin is not None
    child.stdin.close()
    assert child.wait(SECONDS) == 1
    assert dispatcher.stop(SECONDS)


def test_a_stop_says_how_far_all_is_decided(log: EmbeddedLog, tmp_path: Path) -> None:
    """The batch in hand is ended: the positions of all inputs are committed."""
    dispatcher = dispatcher_over(log, tmp_path, CapturingLogger())
    with decided(log, tmp_path):
        dispatcher.start()
        assert dispatcher.ready(SECONDS)
        wait_for_outcomes(log, 1)
    assert dispatcher.stop(SECONDS)
    places = [TopicPartition(topics.RUNS, number) for number in range(PARTITIONS)]
    assert log.committed("dispatcher", places) == {place: log.end_offset(place) for place in places}
