"""A process's share of the roles: its stores, and the layout it was made for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from node.roles import Roles
from runtime.clock import SystemClock
from runtime.logs.embedded import EmbeddedLog
from runtime.telemetry import Event, Telemetry
from schemas import topics

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SOON = 20.0


class Told:
    """A logger that remembers; from any thread."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, dict[str, Any]]] = []

    def of(self, event: Event) -> list[dict[str, Any]]:
        """The fields of each line of that name."""
        return [fields for name, fields in list(self.lines) if name == event.value]

    def info(self, name: str, **fields: object) -> None:
        self.lines.append((name, fields))

    warning = error = info


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    """Made for two partitions of each family."""
    log = EmbeddedLog(tmp_path / "log", SystemClock())
    layout = topics.Layout(schedule=2, shard=2)
    log.create({spec: layout.partitions(spec.family) for spec in topics.topic_table(topics.Retention())})
    yield log
    log.close()


def roles(log: EmbeddedLog, tmp_path: Path, told: Told, *, partitions: int = 2) -> Roles:
    return Roles(
        log, SystemClock(), Telemetry(logger=told), state=tmp_path / "state",
        layout=topics.Layout(schedule=partitions, shard=partitions), retention=topics.Retention(),
        accept_clock_after=None, member="m", catch_up_rate="100/s",
    )  # fmt: skip


@pytest.mark.parametrize("role", ["scheduler", "dispatcher"])
def test_a_role_refuses_a_topic_that_has_more_partitions_than_its_layout(
    log: EmbeddedLog, tmp_path: Path, role: str
) -> None:
    """Somebody added partitions to a topic in use: each key would move. The role ends, and nothing of it runs on."""
    told = Told()
    service = getattr(roles(log, tmp_path, told, partitions=1), role)()
    service.start()
    assert service.stopped(SOON)
    lead = topics.SCHEDULE_CHANGES if role == "scheduler" else topics.RUNS
    assert f"topic {lead} has 2 partitions, and the layout of this node says 1" in str(service.failure)
    (failed,) = told.of(Event.ROLE_FAILED)
    assert (failed["role"], str(service.failure) in failed["reason"]) == (role, True)
    assert service.partitions() == ()
    assert told.of(Event.PARTITION_READY) == []


def test_a_role_refuses_a_partition_that_its_layout_does_not_have(log: EmbeddedLog, tmp_path: Path) -> None:
    """The group knows of new partitions before a count that was asked for a moment ago is asked for again."""
    service = roles(log, tmp_path, Told()).scheduler()
    with pytest.raises(Exception, match="has 3 partitions, and the layout of this node says 2"):
        service.assigned([2], log)
    assert service.partitions() == ()


def test_a_store_that_does_not_open_is_set_aside_and_the_role_works(log: EmbeddedLog, tmp_path: Path) -> None:
    """Its folder stands beside the new one, and the log line names it."""
    first = roles(log, tmp_path, Told()).scheduler()
    first.start()
    assert first.ready(SOON)
    assert first.stop(SOON)
    folder = next((tmp_path / "state").glob("scheduler-1"))
    next(folder.glob("MANIFEST-*")).unlink()
    told = Told()
    again = roles(log, tmp_path, told).scheduler()
    again.start()
    assert again.ready(SOON)
    assert [partition.failure for partition in again.partitions()] == [None, None]
    assert again.stop(SOON)
    (line,) = told.of(Event.STORE_QUARANTINED)
    assert (line["role"], line["partition"]) == ("scheduler", "1")
    assert line["kept"] == str(tmp_path / "state" / "scheduler-1.quarantined-1")
    assert "MANIFEST" in line["reason"]
    assert (tmp_path / "state" / "scheduler-1.quarantined-1" / "CURRENT").exists()
