"""kill -9 at every point of the cycle of reading, deciding and writing, of a scheduler and of a dispatcher on Kafka.

Whatever was under way, the next life goes on, and the topics show nothing missing and nothing twice; at the end the
stores hold what their changelogs say, row by row. The numbers are those of the catalogue of faults.
"""

from __future__ import annotations

import shutil
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from runtime.record import TopicPartition
from schemas import topics
from tests.faults.line import PARTITIONS, Line
from tests.support.proxy import END_TXN, SECONDS, Fate, proxied
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from tests.faults.mortal import Mortal

DEATH_SECONDS = 60
LIVES_MAX = 30
POINTS = [
    ("A1", "before begin"),
    ("A2", "begun"),
    ("A3", "decision sent"),
    ("A3", "half sent"),
    ("A4", "all sent"),
    ("A5", "positions sent"),
    ("A7", "committed"),
    ("A8", "in the write"),
    ("A9", "applied"),
    ("A12", "aborting"),
    ("A12", "aborted"),
]

pytestmark = [
    pytest.mark.parametrize("role", ["scheduler", "dispatcher"]),
    pytest.mark.timeout(300),  # the first one starts a broker and everybody else
]


def dies(node: Mortal, point: str) -> None:
    node.dies_at(point)
    must_be_dead(node)


def must_be_dead(node: Mortal) -> None:
    eventually(lambda: not node.is_running, within=DEATH_SECONDS, what="it ends")
    assert node.is_dead, f"it has ended otherwise:\n{node.text[-3000:]}"


@pytest.mark.parametrize(("number", "point"), POINTS)
def test_whoever_dies_there_goes_on_in_its_next_life(line: Line, node: Mortal, number: str, point: str) -> None:
    dies(node, point)
    line.must_go_on_with(node)


@pytest.mark.parametrize("fate", [Fate.DROP, Fate.LOSE_ANSWER, Fate.HOLD])
def test_a6_a_commit_whose_answer_never_came_is_looked_up_in_the_log(line: Line, node: Mortal, fate: Fate) -> None:
    """It never arrived; or it did, and only its answer was lost; or it arrives when the next life has begun."""
    node.kill()
    with proxied(line.bootstrap) as proxy:
        node.start("--bootstrap", proxy.bootstrap)
        line.must_go_on()
        commit = proxy.next(END_TXN, fate)
        assert commit.met.wait(SECONDS)
        node.kill()
        node.start()
        if fate is Fate.HOLD:
            eventually(lambda: node.is_ready, within=SECONDS, what="it is back")
            proxy.release(commit)
        line.must_go_on_with(node)


def test_a10_a_restore_that_is_cut_short_is_done_again(line: Line, node: Mortal) -> None:
    """And so is the next one, which gets a little further."""
    dies(node, "committed")  # its store is behind
    for point in ("begun", "stored", "applied", "done"):
        node.dies_at(f"restoring: {point}")
        node.start()
        must_be_dead(node)
    line.must_go_on_with(node)


def test_a10_a_restore_that_is_cut_short_again_and_again_gets_on_each_time(line: Line, node: Mortal, role: str) -> None:
    """Its disk is lost, and no life is long enough to read the whole changelog: the next goes on where one ended."""
    node.kill()
    shutil.rmtree(node.state)
    changelog = [TopicPartition(topics.changelog_topic(role), number) for number in range(PARTITIONS)]
    tenth = max(line.log.end_offsets(changelog).values()) // 10
    lives = 0
    while lives == 0 or not node.is_ready:
        assert lives < LIVES_MAX, f"it does not get on:\n{node.text[-3000:]}"
        lives += 1
        node.dies_at("restoring: applied", PARTITIONS + 1)
        node.start(records_at_once=tenth)
        eventually(lambda: node.is_dead or node.is_ready, within=DEATH_SECONDS, what="it has died, or is back")
    assert lives > 2
    node.lives_on()
    line.must_go_on_with(node)


@pytest.mark.parametrize("point", ["settling: positions sent", "settling: committed", "revoked"])
def test_a11_a_stop_in_good_order_may_be_cut_short(line: Line, node: Mortal, point: str) -> None:
    """SIGTERM, and then SIGKILL while it says its last words."""
    node.dies_at(point)
    node.ask_to_stop()
    must_be_dead(node)
    line.must_go_on_with(node)


def test_a11_so_may_giving_partitions_to_another_process(line: Line, node: Mortal, role: str) -> None:
    """It is back before its group has missed it; what it was giving away is somebody's all the same."""
    other = line.node(role, 1)
    node.dies_at("revoked")
    other.start()
    try:
        must_be_dead(node)
        line.must_go_on_with(node)
    finally:
        other.ask_to_stop()
        assert other.wait(SECONDS) == 0, other.text[-3000:]
    line.must_go_on()


def test_after_all_these_deaths_the_stores_are_what_the_log_says(line: Line, node: Mortal, role: str) -> None:
    """Row by row; and of each partition's transactions each has its number once, and an owner not older than before."""
    assert line.wrong() == {}
    node.ask_to_stop()
    assert node.wait(SECONDS) == 0, node.text[-3000:]
    assert line.rows_stored(role) == line.rows_logged(role)
    for number in range(PARTITIONS):
        footers = line.footers(role, number)
        assert [footer.sequence for footer in footers] == list(range(1, len(footers) + 1))
        assert all(before.epoch <= after.epoch for before, after in pairwise(footers))
        assert all(before.clock_mark <= after.clock_mark for before, after in pairwise(footers))
