"""Three brokers, of which one at a time is killed under traffic: the leader of what is written, the coordinator
of a group, and each of them in turn, so that transactions lose their coordinator too.

It takes minutes, most of them for brokers to start: `make faults` runs it, the whole test run does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka.admin import AdminClient

from schemas import topics
from tests.faults.line import Line

if TYPE_CHECKING:
    from deploy.kafka.broker import Cluster

SOON = 60
BUSY = 1  # the partition of the one queue

pytestmark = pytest.mark.timeout(900)  # three brokers start, and each of them once more


@pytest.fixture(scope="module")
def bootstrap(three_brokers: Cluster) -> str:
    return three_brokers.bootstrap


def leader(admin: AdminClient, line: Line, _: list[int]) -> int:
    """The number of the broker that leads the busy partition of `runs`."""
    name = line.namespace + topics.RUNS
    number: int = admin.list_topics(name, timeout=SOON).topics[name].partitions[BUSY].leader
    return number


def coordinator(admin: AdminClient, line: Line, _: list[int]) -> int:
    """The number of the broker that coordinates the schedulers' group."""
    group = line.namespace + topics.PREFIX + "scheduler"
    number: int = admin.describe_consumer_groups([group])[group].result(SOON).coordinator.id
    return number


def rest(_admin: AdminClient, _line: Line, struck: list[int]) -> int:
    """One that was not struck yet."""
    return min({1, 2, 3} - set(struck))


def test_a_broker_that_is_killed_whatever_it_leads_or_coordinates_loses_nothing(
    line: Line, three_brokers: Cluster
) -> None:
    """Two of three have every record: the line goes on while one is away, and when it is back.

    A member whose coordinator dies while it joins may find its name taken, by itself: it ends and is started again.
    """
    admin = AdminClient({"bootstrap.servers": three_brokers.bootstrap})
    struck: list[int] = []
    for choose in (leader, coordinator, rest):
        number = choose(admin, line, struck)
        struck.append(number)
        three_brokers.nodes[number - 1].kill()
        line.must_go_on_supervised()
        three_brokers.start()
        line.must_go_on_supervised()
    line.settle()
    assert line.wrong() == {}
    assert line.audited()["open_runs"] == 0
