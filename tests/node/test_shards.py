"""A queue with three shards, through the whole line on an embedded log, with workers of both forms over HTTP."""

from __future__ import annotations

import asyncio
import threading
from contextlib import contextmanager
from functools import partial
from queue import Queue
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.api.serving import serving
from tests.node.line import SOON, opened, put, running, told
from tests.support.waiting import eventually
from tidewheel import Worker, sessions, shards

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from runtime.logs.embedded import EmbeddedLog

SCHEDULES = ("a", "b", "c", "d", "e", "f")
WITHIN = 4 * SOON  # in which each of them has runs; the machine may do other things


@pytest.fixture
def line(tmp_path: Path) -> Iterator[tuple[EmbeddedLog, str]]:
    """A log, and the address of a server; the queue `wide` has three shards, and runs every second in all of them."""
    with opened(tmp_path) as log, running(log, tmp_path):
        (tmp_path / "api").mkdir()
        with serving(tmp_path / "api", log=log) as (_, url):
            answer = httpx.put(f"{url}/v1/queues/wide", json={"shards": 3}, timeout=SOON)
            assert answer.status_code == 201, answer.text
            job = {"target": {"type": "task", "name": "it"}, "queue": "wide"}
            for name in SCHEDULES:
                put(log, name, {"trigger": {"cron": "* * * * * *"}, "overlap": {"policy": "allow_all"}, "job": job})
            yield log, url


def outcomes(log: EmbeddedLog) -> dict[str, set[str]]:
    """By schedule: how its runs ended."""
    return {name: {run["outcome"] for run in told(log, "run.finished", name)} for name in SCHEDULES}


def shards_used(log: EmbeddedLog) -> set[int]:
    return {attempt.get("shard", 0) for name in SCHEDULES for attempt in told(log, "attempt.started", name)}


@contextmanager
def working(url: str, slots: int) -> Iterator[None]:
    """A worker of the SDK, in a thread of its own."""
    begun: Queue[Callable[[], object]] = Queue()

    async def work() -> None:
        loop, stop = asyncio.get_running_loop(), asyncio.Event()
        worker = Worker("wide", url=url, slots=slots, name="w1", grace_seconds=5)
        worker.task("it")(lambda: "done")
        await worker.start()
        begun.put(partial(loop.call_soon_threadsafe, stop.set))
        await stop.wait()
        await worker.stop()

    thread = threading.Thread(target=lambda: asyncio.run(work()), daemon=True)
    thread.start()
    end = begun.get(timeout=SOON)
    try:
        yield
    finally:
        end()
        thread.join(SOON)
    assert not thread.is_alive()


@pytest.mark.parametrize("slots", [6, 1])
def test_a_worker_with_many_slots_or_one_serves_all_shards(
    line: tuple[EmbeddedLog, str], slots: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shards, "STAY_SECONDS", 0.2)
    monkeypatch.setattr(sessions, "BARRED_SECONDS", 0.5)
    monkeypatch.setattr(sessions, "LINGER_SECONDS", 0.2)
    log, url = line
    with working(url, slots):
        eventually(lambda: all(outcomes(log).values()), within=WITHIN, what=lambda: str(outcomes(log)))
    assert shards_used(log) == {0, 1, 2}
    assert set().union(*outcomes(log).values()) == {"succeeded"}


def test_a_worker_of_the_simple_form_gets_runs_of_all_shards(line: tuple[EmbeddedLog, str]) -> None:
    log, url = line
    seen: set[str] = set()

    def claimed() -> bool:
        asked: dict[str, Any] = {"worker": "perl-1", "slots": 2, "tasks": ["it"], "wait": 5}
        leases = httpx.post(f"{url}/v1/queues/wide/leases:claim", json=asked, timeout=SOON).json()["leases"]
        assert len(leases) <= 2
        for lease in leases:
            seen.add(lease["lease"].split(".")[1])
            answer = httpx.post(
                f"{url}/v1/leases/{lease['lease']}:complete", json={"outcome": "succeeded"}, timeout=SOON
            )
            assert answer.status_code == 200, answer.text
        return seen == {"0", "1", "2"}

    eventually(claimed, within=WITHIN, what=lambda: str(seen))
    eventually(
        lambda: sum(len(told(log, "run.finished", name)) for name in SCHEDULES) >= 3, within=SOON, what="their outcomes"
    )  # fmt: skip
    assert set().union(*outcomes(log).values()) == {"succeeded"}
