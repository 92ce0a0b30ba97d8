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


class Failing:
    def __init__(self) -> None:
        self.asked = 0

    def tend(self) -> None:
        self.asked += 1
        raise RuntimeError("it is broken")


def test_one_that_fails_is_told_once_and_stops_no_other(caplog):
    tending, failing, idle = Tending(), Failing(), Idle()
    tending.add(failing)
    tending.add(idle)
    for _ in range(2):
        idle.heard.clear()
        assert idle.heard.wait(DEADLINE)
    tending.close()
    assert failing.asked == 1
    assert [record.levelname for record in caplog.records] == ["ERROR"]


def test_tending_nobody_ends_as_well():
    Tending().close()
