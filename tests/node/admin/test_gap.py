"""`tidewheel admin accept-gap` and `clock accept` on a stopped folder: said first, then accepted, then stated."""

from __future__ import annotations

import json
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from node.admin.command import admin
from node.admin.losses import find
from node.folder import DataFolder
from node.roles import partitions_of
from runtime.clock import SystemClock
from runtime.continuity import Halted
from runtime.logs.embedded import EmbeddedLog
from runtime.logs.simulated import SimulatedLog
from runtime.processor import Processor, World
from runtime.telemetry import Telemetry
from schemas import topics
from schemas.facts import ClockReleased, GapAccepted, ScheduleResumed
from simulation.clock import ManualClock
from tests.runtime.shell import CHANGELOG, CHANGES, LAYOUT, NOON, PARTITION, Shell
from tests.runtime.toy import Add

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from click.testing import Result


class Strict(Shell):
    """A partition whose clock nobody but an operator accepts."""

    def start(self) -> Processor:
        world = World(clock=self.clock, entropy=lambda: bytes(16), telemetry=Telemetry())
        processor = Processor(self.core, PARTITION, self.log, self.store, world, accept_clock_after=None)
        processor.open()
        return processor


class Folder:
    """A data folder, its partition, and the command line."""

    def __init__(self, data: Path, began_at: datetime = NOON) -> None:
        self.data = data
        self.clock = ManualClock(began_at)
        folder = DataFolder.hold(data)
        folder.check_layout(LAYOUT)
        folder.release()

    def open(self) -> Iterator[Shell]:
        """The partition at work, until the server is stopped."""
        with closing(EmbeddedLog(self.data / "log", self.clock)) as log:
            shell = Strict(log, self.clock)
            shell.settle()
            yield shell
            shell.processor.close()

    def admin(self, *arguments: str, answer: str | None = None) -> Result:
        return CliRunner().invoke(admin, [*arguments, "--data", str(self.data)], input=answer)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """A server that answered one input, stood still for forty days, and found three others gone."""
    folder = Folder(tmp_path / "data")
    for shell in folder.open():
        shell.publish(Add(name="a"))
        shell.settle()
        shell.publish(Add(name="a"), Add(name="a"), Add(name="a"))
        folder.clock.advance(timedelta(days=40))
        while shell.log.maintain():
            pass
        shell.publish(Add(name="a", times=10))
    return folder


TOLD = """\
owner        topic                       partition  lost    goes on at  what that is
scheduler 0  tidewheel.schedule-changes  0          1 to 3  4           records that nobody had read: what they asked \
for or reported did not happen
"""


def halts(folder: Folder) -> bool:
    try:
        for _ in folder.open():
            return False
    except Halted:
        return True
    return False


def test_a_gap_is_said_accepted_and_stated(folder: Folder) -> None:
    """What is asked for first is what is lost, to the offset; the partition goes on behind it, and says who said so."""
    assert halts(folder)
    said = folder.admin("accept-gap", "--by", "ada", "--note", "four weeks away", answer="y\n")
    assert said.exit_code == 0, said.output
    assert said.stdout.startswith(TOLD + "Go on without them? [y/N]: y\nAccepted by ada.")
    for shell in folder.open():
        facts = shell.facts()
        assert [(fact.schedule, fact.version) for fact in facts if isinstance(fact, ScheduleResumed)] == [("a", 11)]
        (gap,) = [fact for fact in facts if isinstance(fact, GapAccepted)]
        assert (gap.accepted_by, gap.note, gap.lost_from, gap.lost_to) == ("ada", "four weeks away", 1, 4)
    assert folder.admin("accept-gap").stdout == "No partition has lost anything of its inputs.\n"


@pytest.mark.parametrize("answer", ["n\n", ""])
def test_what_is_not_accepted_stays_as_it_is(folder: Folder, answer: str) -> None:
    said = folder.admin("accept-gap", answer=answer)
    assert said.exit_code == 1
    assert said.stdout.startswith(TOLD)
    assert halts(folder)


def test_machines_are_told_and_accept_with_yes_only(folder: Folder) -> None:
    said = folder.admin("accept-gap", "--json", "--role", "scheduler", "--partition", "0")
    gap = {
        "role": "scheduler", "partition": 0, "topic": "tidewheel.schedule-changes", "topic_partition": 0,
        "reason": "deleted", "read_up_to": 1, "lost_from": 1, "lost_to": 4, "go_on_at": 4,
    }  # fmt: skip
    assert (said.exit_code, json.loads(said.stdout)) == (1, {"gaps": [gap], "refused": [], "accepted": False})
    assert halts(folder)
    said = folder.admin("accept-gap", "--json", "--yes")
    assert (said.exit_code, json.loads(said.stdout)["accepted"]) == (0, True)
    assert not halts(folder)


def test_partitions_that_are_not_meant_are_left_as_they_are(folder: Folder) -> None:
    assert folder.admin("accept-gap", "--role", "dispatcher", "--yes").stdout == (
        "No partition has lost anything of its inputs.\n"
    )
    assert halts(folder)
    assert "there is no partition 7" in folder.admin("accept-gap", "--partition", "7").stderr


def test_a_folder_that_is_in_use_or_empty_is_refused(folder: Folder, tmp_path: Path) -> None:
    held = DataFolder.hold(folder.data)
    said = folder.admin("accept-gap", "--yes")
    assert (said.exit_code, "is in use by process" in said.stderr) == (1, True)
    held.release()
    (tmp_path / "new").mkdir()
    said = CliRunner().invoke(admin, ["accept-gap", "--data", str(tmp_path / "new")])
    assert (said.exit_code, "holds no log yet" in said.stderr) == (1, True)


# --- what is found, on a log that can lose anything ---------------------------------------------------------------


@pytest.fixture
def shell() -> Shell:
    clock = ManualClock(NOON)
    shell = Shell(SimulatedLog(7, clock), clock)
    for _ in range(3):
        shell.publish(Add(name="a"))
        shell.advance(hours=1)
    return shell


def found(shell: Shell) -> list[Any]:
    return list(find(shell.log, [PARTITION], NOON))


def lose(shell: Shell, end: int) -> None:
    assert isinstance(shell.log, SimulatedLog)
    shell.log.truncate(CHANGES, end)


def test_behind_a_lost_end_a_partition_goes_on_with_what_was_published_since(shell: Shell) -> None:
    """Not at the end: there stand records that nobody has read, where others stood that were answered."""
    lose(shell, 1)
    shell.publish(Add(name="b"))
    (gap,) = found(shell)
    assert (gap.go_on_at, gap.loss.lost(gap.go_on_at)) == (1, (1, 3))
    assert gap.loss.told.endswith("ends at 2, and was read up to 3: 1 records that were answered are lost")


def test_behind_a_lost_end_where_nothing_was_published_since_a_partition_goes_on_at_the_end(shell: Shell) -> None:
    lose(shell, 1)
    (gap,) = found(shell)
    assert (gap.go_on_at, gap.loss.lost(gap.go_on_at)) == (1, (1, 3))


def test_a_partition_that_goes_on_is_found_by_nobody(shell: Shell) -> None:
    assert found(shell) == []


def test_a_partition_that_never_began_has_lost_nothing(shell: Shell) -> None:
    assert list(find(shell.log, partitions_of(LAYOUT), NOON)) == []


def test_a_state_that_is_lost_is_refused_with_what_can_be_done(shell: Shell) -> None:
    assert isinstance(shell.log, SimulatedLog)
    shell.log.truncate(CHANGELOG, 0)
    (refusal,) = found(shell)
    assert refusal.why.startswith("group scheduler has positions: tidewheel.run-outcomes-0 at 0")
    assert (
        "the state is lost from the log. What its store held may still be in the data folder of the node that had"
        in (refusal.why)
    )


def test_the_loss_of_the_catalog_is_refused(shell: Shell) -> None:
    assert isinstance(shell.log, SimulatedLog)
    shell.log.delete(topics.CATALOG)
    shell.log.create({spec: LAYOUT.partitions(spec.family) for spec in topics.topic_table(topics.Retention())})
    (refusal,) = found(shell)
    assert "this loss cannot be accepted" in refusal.why


# --- the clock ----------------------------------------------------------------------------------------------------


def test_the_clock_of_a_server_that_is_to_be_started_is_accepted_beforehand(tmp_path: Path) -> None:
    """Years after its mark it would hold. The word waits on the log, as good as for a running one."""
    folder = Folder(tmp_path / "data", began_at=datetime(2020, 1, 1, tzinfo=UTC))
    for shell in folder.open():
        shell.publish(Add(name="a"))
        shell.settle()
    said = folder.admin("clock", "accept", "--by", "ada", "--role", "scheduler")
    assert said.exit_code == 0, said.output
    assert "The partitions hear it when the server is started within the next five minutes." in said.stdout
    folder.clock.set_wall(SystemClock().now())
    for shell in folder.open():
        (released,) = [fact for fact in shell.facts() if isinstance(fact, ClockReleased)]
        assert released.accepted_by == "ada"
        assert released.reason.endswith("days ahead of the clock mark")
