"""A composed process: what its start waits for."""

from __future__ import annotations

import threading

import pytest

from node.process import Node, NotStarted


class Part:
    """A service that is ready or never is."""

    problem: str | None = None

    def __init__(self, name: str, *, ready: bool, failure: BaseException | None = None) -> None:
        self.name, self.failure = name, failure
        self._ready = ready
        self.started = False

    def start(self) -> None:
        self.started = True

    def ready(self, timeout: float) -> bool:
        return self._ready

    def stop(self, timeout: float) -> bool:
        return True


def test_rows_that_are_made_anew_hold_up_nobody():
    """They may take an hour, and a start that gives up would begin that hour again and again."""
    behind, door = Part("projector", ready=False), Part("api", ready=True)
    node = Node(services=(behind, door), release=lambda: None, followers=(behind,))
    node.start(threading.Event())
    assert door.started


def test_whoever_decides_is_waited_for_and_no_longer_than_is_plausible():
    behind, door = Part("scheduler", ready=False), Part("api", ready=True)
    node = Node(services=(behind, door), release=lambda: None)
    with pytest.raises(NotStarted, match="scheduler: not ready in time"):
        node.start(threading.Event())
    assert not door.started


def test_a_follower_that_has_failed_is_no_start():
    failed = Part("projector", ready=False, failure=ValueError("no such database"))
    node = Node(services=(failed,), release=lambda: None, followers=(failed,))
    with pytest.raises(NotStarted, match="projector: no such database"):
        node.start(threading.Event())
