"""The order in which a transaction is written, on which rolling it forward rests: told by the calls of its producer."""

from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from runtime.footer import DECISION_KEY, FOOTER_KEY
from runtime.logs.simulated import SimulatedLog
from runtime.machine import Output
from runtime.record import Outgoing
from schemas import topics
from simulation.clock import ManualClock
from tests.runtime.shell import CHANGELOG, NOON, Shell
from tests.runtime.toy import Add, ToyCore


class Telling:
    """A log and its producer, which note what is asked of them."""

    def __init__(self, inner: Any, calls: list[str]) -> None:
        self._inner, self._calls = inner, calls

    def open_producer(self, transactional_id: str, *, group: str) -> Any:
        return Telling(self._inner.open_producer(transactional_id, group=group), self._calls)

    def send(self, records: Iterable[Outgoing]) -> None:
        records = list(records)
        self._calls += [kind(record) for record in records]
        self._inner.send(records)

    def flush(self) -> None:
        self._calls.append("flush")
        self._inner.flush()

    def commit(self, positions: Any) -> Any:
        self._calls.append("commit")
        return self._inner.commit(positions)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class Silent(ToyCore):
    """Publishes nothing, as a scheduler does of most outcomes."""

    def route(self, state: Any, fact: Any) -> Sequence[Output]:
        return ()


def kind(record: Outgoing) -> str:
    if record.topic != CHANGELOG.topic:
        return "output"
    if record.key == FOOTER_KEY:
        return "footer"
    return "decision" if (record.key or b"").startswith(DECISION_KEY) else "row"


@pytest.fixture
def calls() -> list[str]:
    return []


@pytest.fixture
def shell(calls: list[str]) -> Shell:
    clock = ManualClock(NOON)
    return Shell(Telling(SimulatedLog(1, clock), calls), clock)


def test_nothing_is_sent_before_the_decision_has_arrived_and_no_footer_before_the_outputs_have(shell, calls):
    """Records to several partitions overtake one another on their way: an acknowledgement is all that keeps order."""
    shell.publish(Add(name="a"))
    shell.settle()
    assert calls == ["decision", "flush", "output", "flush", "row", "footer", "commit"]


def test_what_is_decided_without_outputs_has_nothing_to_wait_for(shell, calls):
    """All of it goes to one partition, where it keeps its order: the brokers take it in one request."""
    shell.restart(core=Silent())
    calls.clear()
    shell.publish(Add(name="a"))
    shell.settle()
    assert calls == ["decision", "row", "footer", "commit"]


def test_without_outputs_there_is_nothing_that_a_footer_could_overtake(shell, calls):
    """Row and footer go to one partition, where their order is kept: on their way together."""
    shell.clock.advance(shell.limits.heartbeat * 2)
    shell.settle()
    assert [call for call in calls if call != "row"] == ["footer", "commit"]


def test_all_outputs_are_waited_for(shell, calls):
    shell.core.also_to = topics.REJECTIONS
    shell.publish(Add(name="a"), Add(name="b"))
    shell.settle()
    assert calls == ["decision", "flush", *["output"] * 4, "flush", *["row"] * 2, "footer", "commit"]
