"""What an administrator can do to the topics under a running line: what can be gone on from is, and the rest is said.

A partition that has halted stays so until somebody decides what to do, so each fault meets a line of its own. Nobody
does the runs of most of them: what is asked is who goes on creating them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, NewPartitions

from runtime.logs.kafka.topics import answer, patiently
from runtime.record import TopicPartition
from schemas import topics
from tests.faults.line import PARTITIONS, Line, standing
from tests.faults.mortal import Habits
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Future
    from pathlib import Path

    from tests.faults.mortal import Mortal

SOON = 60
MEMBERS_GONE = 30  # a member that is killed is one for as long as its session lasts
BUSY = 1  # the partition of the one queue, and of most schedules' runs
BELIEVED = Habits(fresh_seconds=0.5)  # ten seconds, usually: they are no part of what is tried

pytestmark = pytest.mark.timeout(300)  # the first one starts a broker and everybody else

T = TypeVar("T")


@pytest.fixture
def worked_line(bootstrap: str, tmp_path: Path) -> Iterator[Line]:
    """One whose runs are done."""
    with standing(tmp_path, bootstrap) as line:
        yield line


@pytest.fixture
def line(bootstrap: str, tmp_path: Path) -> Iterator[Line]:
    """One that knows soon what is done to its topics."""
    with standing(tmp_path, bootstrap, works=False, habits=BELIEVED) as line:
        yield line


@pytest.fixture
def admin(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap})


def must_say(node: Mortal, words: str) -> None:
    eventually(lambda: node.said(words) > 0, within=SOON, what=f"it says {words!r}:\n{node.text[-3000:]}")


def wire(line: Line, name: str) -> str:
    """A topic or a group as the brokers know it."""
    return line.namespace + (name if name.startswith(topics.PREFIX) else topics.PREFIX + name)


def asked(ask: Callable[[], Future[T]]) -> T | None:
    """The administrator's client tells that a coordinator or a leader is moving: then it is asked again."""
    return patiently(lambda: answer(ask(), "what an administrator wants"))


def must_have_no_members(admin: AdminClient, group: str) -> None:
    def without() -> bool:
        described = asked(lambda: admin.describe_consumer_groups([group])[group])
        return described is not None and not described.members

    eventually(without, within=MEMBERS_GONE, what=f"{group} has no members")


def test_e4_positions_that_a_group_has_lost_or_has_wrong_are_not_missed(worked_line: Line, admin: AdminClient) -> None:
    """The footers' are the ones: nothing is read again, and nothing is passed over."""
    line = worked_line
    lost, wrong = wire(line, "scheduler"), wire(line, "dispatcher")
    for node in line.nodes:
        node.kill()
    must_have_no_members(admin, lost)
    must_have_no_members(admin, wrong)
    asked(lambda: admin.delete_consumer_groups([lost])[lost])
    places = [confluent_kafka.TopicPartition(wire(line, topics.RUNS), number, 0) for number in range(PARTITIONS)]
    begin = confluent_kafka.ConsumerGroupTopicPartitions(wrong, places)
    asked(lambda: admin.alter_consumer_group_offsets([begin])[wrong])
    line.revive()
    assert line.wrong() == {}


def test_e5_input_that_was_deleted_unread_halts_its_partition_alone(line: Line, admin: AdminClient) -> None:
    """Retention was shorter than the dispatcher was away. It says how much is gone; the scheduler goes on."""
    line.dispatcher.kill()
    line.must_create_runs()
    end = line.log.end_offset(TopicPartition(topics.RUNS, BUSY))
    place = confluent_kafka.TopicPartition(wire(line, topics.RUNS), BUSY, end)
    asked(lambda: admin.delete_records([place])[place])
    line.dispatcher.start()
    must_say(line.dispatcher, f"{topics.RUNS} partition {BUSY} begins at {end}, and was read up to ")
    must_say(line.dispatcher, "records were deleted before they were read")
    must_say(line.dispatcher, "node_ready")
    assert line.dispatcher.said("partition_ready") == PARTITIONS - 1
    assert line.dispatcher.said("partition_failed") == 1
    line.must_create_runs()


def test_e3_a_topic_that_is_deleted_and_made_again_under_a_node_halts_it(line: Line, admin: AdminClient) -> None:
    """It never saw the moment without one. Those that do not read it go on."""
    with line.scheduler.frozen():
        recreate(line, admin, topics.LINKS)
    must_say(line.scheduler, f"topic {topics.LINKS} was deleted and created again while it was in use")
    eventually(
        lambda: line.scheduler.said("partition_failed") == PARTITIONS, within=SOON, what="both partitions read it"
    )
    assert line.dispatcher.is_running
    assert not line.dispatcher.said("partition_failed")


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
    asked(lambda: admin.create_partitions([NewPartitions(name, PARTITIONS + 1)])[name])
    must_say(line.dispatcher, f"topic {topics.ATTEMPTS} has {PARTITIONS + 1} partitions, and the layout of this node")
    line.dispatcher.kill()
    line.dispatcher.start()
    eventually(lambda: not line.dispatcher.is_running, within=SOON, what="it ends")
    assert line.dispatcher.wait(0) == 1
    assert line.dispatcher.said(f"{topics.ATTEMPTS} ")


def recreate(line: Line, admin: AdminClient, topic: str) -> None:
    name = wire(line, topic)
    asked(lambda: admin.delete_topics([name])[name])
    eventually(lambda: name not in admin.list_topics(timeout=SOON).topics, within=SOON, what=f"{name} is gone")
    line.create_topics()
