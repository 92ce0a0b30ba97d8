"""Clients that nobody calls are listened to."""

from threading import Event

from runtime.logs.kafka.tending import Tending
from tests.runtime.logs.words import DEADLINE


class Idle:
    def __init__(self) -> None:
        self.heard = Event()

    def tend(self) -> None:
        self.heard.set()


def test_an_idle_client_is_listened_to_until_the_log_is_closed():
    tending, idle = Tending(), Idle()
    tending.add(idle)
    assert idle.heard.wait(DEADLINE)
    tending.close()


def test_tending_nobody_ends_as_well():
    Tending().close()
