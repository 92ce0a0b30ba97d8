"""What an administrator can do to the topics under a running line: what can be gone on from is, and the rest is said.

One line meets one fault after another, the harmless ones first: a partition that has halted stays so until somebody
decides what to do, and the others go on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, NewPartitions

from runtime.record import TopicPartition
from schemas import topics
from tests.faults.line import PARTITIONS, Line
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

    from deploy.kafka.broker import Cluster
    from tests.faults.mortal import Mortal

SOON = 60
MEMBERS_GONE = 20  # a member that is killed is one for as long as its session lasts
BUSY = 1  # the partition of the one queue, and of most schedules' runs

pytestmark = pytest.mark.timeout(300)  # the first one starts a broker and everybody else


@pytest.fixture(scope="module")
def line(own_broker: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Line]:
    with Line(tmp_path_factory.mktemp("line"), own_broker.bootstrap, "topics.") as line:
        yield line


@pytest.fixture
def admin(line: Line) -> AdminClient:
    return AdminClient({"bootstrap.servers": line.bootstrap})


def must_say(node: Mortal, words: str) -> None:
    eventually(lambda: node.said(words) > 0, within=SOON, what=f"it says {words!r}:\n{node.text[-3000:]}")


def wire(line: Line, name: str) -> str:
    """A topic or a group as the brokers know it."""
    return line.namespace + (name if name.startswith(topics.PREFIX) else topics.PREFIX + name)


def without_members(admin: AdminClient, group: str) -> bool:
    described = admin.describe_consumer_groups([group])[group].result(SOON)
    return not described.members


@pytest.mark.parametrize("role", ["scheduler", "dispatcher"])
def test_e4_positions_that_a_group_has_lost_or_has_wrong_are_not_missed(
    line: Line, admin: AdminClient, role: str
) -> None:
    """The footers' are the ones: nothing is read again, and nothing is passed over."""
    node, group = line.of(role), wire(line, role)
    node.kill()
    eventually(lambda: without_members(admin, group), within=MEMBERS_GONE, what=f"{group} has no members")
    if role == "scheduler":
        admin.delete_consumer_groups([group])[group].result(SOON)
    else:
        places = [confluent_kafka.TopicPartition(wire(line, topics.RUNS), n, 0) for n in range(PARTITIONS)]
        reset = confluent_kafka.ConsumerGroupTopicPartitions(group, places)
        admin.alter_consumer_group_offsets([reset])[group].result(SOON)
    node.start()
    line.must_go_on()
    assert line.wrong() == {}


def test_e5_input_that_was_deleted_unread_halts_its_partition_alone(line: Line, admin: AdminClient) -> None:
    """Retention was shorter than the dispatcher was away. It says how much is gone; the scheduler goes on."""
    line.dispatcher.kill()
    line.must_create_runs()
    end = line.log.end_offset(TopicPartition(topics.RUNS, BUSY))
    place = confluent_kafka.TopicPartition(wire(line, topics.RUNS), BUSY, end)
    admin.delete_records([place])[place].result(SOON)
    line.dispatcher.start()
    must_say(line.dispatcher, f"{topics.RUNS} partition {BUSY} begins at {end}, and was read up to ")
    must_say(line.dispatcher, "records were deleted before they were read")
    must_say(line.dispatcher, "node_ready")
    assert line.dispatcher.said("partition_ready") == PARTITIONS - 1
    assert line.dispatcher.said("partition_failed") == 1
    line.must_create_runs()


def test_e3_a_topic_that_is_deleted_and_made_again_under_a_node_halts_it(line: Line, admin: AdminClient) -> None:
    """Those that do not read it go on."""
    failed = line.dispatcher.said("partition_failed")
    recreate(line, admin, topics.LINKS)
    must_say(line.scheduler, f"topic {topics.LINKS} was deleted and created again while it was in use")
    eventually(
        lambda: line.scheduler.said("partition_failed") == PARTITIONS, within=SOON, what="both partitions read it"
    )
    assert line.dispatcher.is_running
    assert line.dispatcher.said("partition_failed") == failed


def test_e3_a_changelog_that_is_made_again_while_its_node_is_away_is_not_taken_for_an_empty_one(
    line: Line, admin: AdminClient
) -> None:
    """The store is all that is left of the state: it stays where it is, and the node says so."""
    line.scheduler.kill()
    stores = sorted(line.scheduler.state.glob("scheduler-?"))
    recreate(line, admin, topics.changelog_topic("scheduler"))
    line.scheduler.start()
    must_say(line.scheduler, "the state of scheduler partition 0 was logged in the former one, and is gone")
    must_say(line.scheduler, "the state of scheduler partition 1 was logged in the former one, and is gone")
    assert sorted(line.scheduler.state.glob("scheduler-?")) == stores
    assert not line.scheduler.said("partition_ready")


def test_e1_a_topic_that_has_been_given_partitions_is_refused_at_a_start_and_under_a_running_node(
    line: Line, admin: AdminClient
) -> None:
    """Each key would move. Whoever runs halts within the time for which a count is believed; whoever starts refuses."""
    name = wire(line, topics.ATTEMPTS)
    admin.create_partitions([NewPartitions(name, PARTITIONS + 1)])[name].result(SOON)
    must_say(line.dispatcher, f"topic {topics.ATTEMPTS} has {PARTITIONS + 1} partitions, and the layout of this node")
    line.dispatcher.kill()
    line.dispatcher.start()
    eventually(lambda: not line.dispatcher.is_running, within=SOON, what="it ends")
    assert line.dispatcher.wait(0) == 1
    assert line.dispatcher.said(f"{topics.ATTEMPTS} ")


def recreate(line: Line, admin: AdminClient, topic: str) -> None:
    name = wire(line, topic)
    admin.delete_topics([name])[name].result(SOON)
    eventually(lambda: name not in admin.list_topics(timeout=SOON).topics, within=SOON, what=f"{name} is gone")
    line.create_topics()
