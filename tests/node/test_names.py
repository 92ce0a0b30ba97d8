"""A name that two nodes have: one of them ends, and says where the name comes from and what to do."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from node.cluster import named_by, node_id
from node.process import Node, NotStarted
from node.settings import ClusterSettings
from runtime.host import PartitionService, RoleService
from runtime.log import Fenced, Log, Owner
from runtime.logs.alone import OnlyMember
from runtime.logs.simulated import SimulatedLog
from runtime.telemetry import Telemetry
from schemas import topics
from simulation.clock import ManualClock
from tests.runtime.shell import LAYOUT, NOON

if TYPE_CHECKING:
    from pathlib import Path

SOON = 20.0
SAID = "member scheduler-abc-0 of group scheduler: FENCED_INSTANCE_ID; another process has this name"


class Doubled(OnlyMember):
    """A member whose name another process has taken."""

    def poll(self, timeout: float) -> None:
        raise Fenced(SAID)


class Group(SimulatedLog):
    """A log in whose groups our name is another's."""

    def join(self, group: str, topic: str, *, name: str, owner: Owner) -> OnlyMember:
        return Doubled(self, topic, owner)


def nobodys(number: int, log: Log) -> PartitionService:
    raise AssertionError("no partition is ours")


def test_a_process_whose_name_is_anothers_ends_and_says_what_to_do() -> None:
    """At the start, and later."""
    log = Group(7, ManualClock(NOON))
    log.create({spec: LAYOUT.partitions(spec.family) for spec in topics.topic_table(topics.Retention())})
    role = RoleService(
        "scheduler", topics.SCHEDULE_CHANGES, log, member="scheduler-abc-0", make=nobodys, telemetry=Telemetry()
    )
    node = Node(services=(role,), release=lambda: None, named_by="It has its name from /data/node-id")
    with pytest.raises(NotStarted) as ended:
        node.start(threading.Event())
    assert str(ended.value) == f"scheduler: {SAID}. It has its name from /data/node-id"
    with pytest.raises(NotStarted, match=r"another process has this name\. It has its name from /data/node-id"):
        node.check()
    node.stop()


def test_a_name_that_was_made_is_kept_in_a_file_of_the_data_folder(tmp_path: Path) -> None:
    """A copied folder copies it: the advice names the file, and that nothing is lost with it."""
    settings = ClusterSettings(data=tmp_path)
    made = node_id(settings)
    assert (tmp_path / "node-id").read_text() == made
    advice = named_by(settings)
    assert f"has its name from {tmp_path / 'node-id'}: where a data folder was copied" in advice
    assert "Delete that file in one of the folders and start the node again" in advice
    (tmp_path / "node-id").unlink()
    assert node_id(settings) != made


def test_a_name_that_was_given_is_a_setting(tmp_path: Path) -> None:
    settings = ClusterSettings(data=tmp_path, node_id="blue")
    assert named_by(settings) == "The setting node_id names both of them blue: every node needs a name of its own"
