"""Projectors that share a read model, and a process that only reads it."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from node.progress import StoredProgress
from node.projecting import SharedProjector
from projections.projector import Projector
from projections.store.database import open_database
from projections.store.reader import ALL, Reader, RunFilter
from projections.store.writer import Writer
from runtime.clock import SystemClock
from runtime.logs.embedded import EmbeddedLog
from runtime.telemetry import Telemetry
from schemas import identity, topics
from tests.projections.histories import created, records
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator
    from pathlib import Path

SECONDS = 20.0
LAYOUT = topics.Layout(schedule=2, shard=2)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    log = EmbeddedLog(tmp_path / "log", SystemClock())
    log.create({spec: LAYOUT.partitions(spec.family) for spec in topics.topic_table(topics.Retention())})
    yield log
    log.close()


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'model.sqlite'}"


def shared(log: EmbeddedLog, url: str) -> SharedProjector:
    model = open_database(url)

    def make(share: Collection[int]) -> Projector:
        return Projector(log=log, model=Writer(model), now=SystemClock().now, share=share)

    return SharedProjector(log, member="m", make=make, telemetry=Telemetry())


def progress(log: EmbeddedLog, url: str) -> StoredProgress:
    clock = SystemClock()
    reader = Reader(open_database(url))
    return StoredProgress(log, positions=reader.positions, now=clock.now, telemetry=Telemetry())


def schedules(url: str) -> set[str]:
    return {row["schedule"] for row in Reader(open_database(url)).runs(ALL, RunFilter()).rows}


def test_a_projector_follows_the_partitions_that_the_group_gives_it_and_no_others(log: EmbeddedLog, url: str) -> None:
    """`c` lives in partition 0 and `a` in 1; when 1 is taken away its runs stop, and come when it is given back."""
    assert [identity.partition_of(f"acme/{name}", 2) for name in ("c", "a")] == [0, 1]
    both = shared(log, url)
    both.start()
    assert both.ready(SECONDS)
    both.revoked([1])
    log.append(records([created("c", 0), created("a", 0)]))
    eventually(lambda: schedules(url) == {"c"}, within=SECONDS, what="the run of partition 0 is a row")
    both.assigned([1], log)
    eventually(lambda: schedules(url) == {"a", "c"}, within=SECONDS, what="the run of partition 1 is a row")
    assert both.stop(SECONDS)


def test_a_process_that_only_reads_knows_how_far_the_rows_are(log: EmbeddedLog, url: str) -> None:
    """Not there before a projector has followed; there afterwards, and whoever waits is told."""
    following = progress(log, url)
    following.start()
    assert following.ready(SECONDS)
    log.append(records([created("a", 0)]))
    ends = log.end_offsets(following.inputs())
    assert not following.reached(ends)
    moved = threading.Event()
    silence = following.on_progress(moved.set)
    projector = shared(log, url)
    projector.start()
    while not following.reached(ends):
        assert moved.wait(SECONDS)
        moved.clear()
    silence()
    assert schedules(url) == {"a"}
    for service in (projector, following):
        assert service.stop(SECONDS)


def test_what_is_in_the_rows_is_known_as_of_an_instant_that_moves_on(log: EmbeddedLog, url: str) -> None:
    """Also while nothing happens: everything appended before it is in the rows."""
    following, projector = progress(log, url), shared(log, url)
    before = SystemClock().now()
    for service in (projector, following):
        service.start()
    eventually(lambda: following.as_of > before, within=SECONDS, what="as of an instant behind the start")
    first = following.as_of
    eventually(lambda: following.as_of > first, within=SECONDS, what="as of a later instant")
    for service in (projector, following):
        assert service.stop(SECONDS)
