"""The start/ready/stop contract of everything long-lived."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable

import pytest

from runtime.lifecycle import Running, ThreadService

SOON = 10.0  # a deadline, not a duration: everything here ends at once when it is right


def working(running: Running) -> None:
    running.ready()
    running.stopping.wait()


def test_a_service_is_ready_once_its_body_says_so() -> None:
    """`start` returns at once; `ready` waits for the body."""
    go = threading.Event()

    def body(running: Running) -> None:
        go.wait()
        working(running)

    service = ThreadService("late", body)
    service.start()
    assert not service.ready(0)
    go.set()
    assert service.ready(SOON)
    assert service.stop(SOON)


def test_a_stopped_service_is_not_ready() -> None:
    service = ThreadService("plain", working)
    service.start()
    assert service.ready(SOON)
    assert service.stop(SOON)
    assert not service.ready(0)
    assert service.failure is None


def test_stopping_before_the_start_makes_the_start_do_nothing() -> None:
    service = ThreadService("never", working)
    assert service.stop(SOON)
    service.start()
    assert not service.ready(0)


def test_a_body_that_fails_ends_the_wait_for_it() -> None:
    """`ready` says False at once, and `failure` tells what happened."""
    told: list[BaseException] = []

    def body(_running: Running) -> None:
        message = "no such partition"
        raise LookupError(message)

    service = ThreadService("broken", body, failed=told.append)
    service.start()
    assert not service.ready(SOON)
    assert isinstance(service.failure, LookupError)
    assert told == [service.failure]


def test_stop_interrupts_a_body_that_waits_for_something_else() -> None:
    wake = threading.Event()

    def body(running: Running) -> None:
        running.ready()
        wake.wait()

    service = ThreadService("waiting", body, interrupt=wake.set)
    service.start()
    assert service.ready(SOON)
    assert service.stop(SOON)


@pytest.mark.parametrize("seed", range(30))
def test_any_order_of_calls_from_any_threads_ends_stopped(seed: int) -> None:
    """Starts, stops and waits from six threads at once: no exception, no thread left, stopped in the end."""
    chance = random.Random(seed)
    service = ThreadService("stressed", working)
    errors: list[BaseException] = []
    steps: dict[str, Callable[[], object]] = {
        "start": service.start,
        "ready": lambda: service.ready(0),
        "stop": lambda: service.stop(SOON),
    }

    def call(calls: list[str]) -> None:
        try:
            for name in calls:
                steps[name]()
        except BaseException as error:  # noqa: BLE001 -- handed to the assertion below
            errors.append(error)

    plans = [[chance.choice(["start", "start", "ready", "stop"]) for _ in range(8)] for _ in range(6)]
    threads = [threading.Thread(target=call, args=(plan,)) for plan in plans]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SOON)
    assert errors == []
    assert service.stop(SOON)
    assert not any(thread.name == "stressed" and thread.is_alive() for thread in threading.enumerate())
