"""What a server and the children to which it lends its log say to each other: orders first, then how they are.

Apart from the programs of the children, in which names would be those of `__main__`.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from runtime.record import TopicPartition
from schemas import topics

if TYPE_CHECKING:
    from node.joined import Figures


class ProjectorOrders(NamedTuple):
    """What a projector is told."""

    model_url: str
    history: timedelta
    log_format: str
    log_level: str


class ProjectorStanding(NamedTuple):
    """How far it is: up to where its rows follow, whether it has caught up, and what it is up against."""

    positions: dict[TopicPartition, int]
    as_of: datetime
    ready: bool
    problem: str | None


class RoleOrders(NamedTuple):
    """What the owner of a role's partitions is told."""

    role: str
    state: Path
    layout: topics.Layout
    retention: topics.Retention
    accept_clock_after: timedelta | None
    member: str
    catch_up_rate: str
    log_format: str
    log_level: str


class PartStanding(NamedTuple):
    """How a service of its process is: enough of it for `node.process.unready`."""

    name: str
    works: bool
    failure: str | None
    problem: str | None

    def ready(self, timeout: float) -> bool:  # noqa: ARG002 -- as a service has it
        """Whether it did its work when it was looked at."""
        return self.works


class RoleStanding(NamedTuple):
    """How the role is, and each of its partitions."""

    parts: tuple[PartStanding, ...]


class Counted(NamedTuple):
    """Its figures."""

    figures: Figures
