"""Projectors of several processes that share one read model: each follows the partitions that their group gives it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from projections.projector import HISTORY
from runtime.host import GroupService
from runtime.telemetry import Event

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from projections.projector import Projector, Subject
    from runtime.log import Log
    from runtime.telemetry import Telemetry

STOP_SECONDS = 10.0  # for the batch in hand to be written


class SharedProjector(GroupService):
    """Our share of the projections. All topics of a subject have the same partitions, so one group says all.

    A projector is cheap to begin anew: where it stood is written beside the rows. So a change of our share ends one
    and begins another.
    """

    def __init__(
        self, log: Log, *, member: str, make: Callable[[Collection[int]], Projector], telemetry: Telemetry,
        subject: Subject = HISTORY,
    ) -> None:  # fmt: skip
        group = subject.name
        super().__init__(group, subject.inputs[0], log, member=f"{group}-{member}", telemetry=telemetry)
        self._make = make
        self._share: frozenset[int] = frozenset()
        self._projector: Projector | None = None

    @property
    def problem(self) -> str | None:
        """What our projector is up against, or what we are that have none."""
        projector = self._projector
        return super().problem if projector is None else projector.problem

    def works(self) -> bool:
        """See `GroupService.works`. A database that is away is a problem of its own, which `/readyz` names."""
        return self._projector is None or self._projector.problem is not None or self._projector.ready(0)

    def assigned(self, partitions: Sequence[int], log: Log) -> None:  # noqa: ARG002 -- rows need no membership
        """See `Owner.assigned`."""
        self._telemetry.info(Event.PARTITIONS_ASSIGNED, role=self._group, partitions=list(partitions))
        self._follow(self._share | set(partitions))

    def revoked(self, partitions: Sequence[int]) -> None:
        """See `Owner.revoked`."""
        self._telemetry.info(Event.PARTITIONS_REVOKED, role=self._group, partitions=list(partitions))
        self._follow(self._share - set(partitions))

    def lost(self, partitions: Sequence[int]) -> None:
        """See `Owner.lost`. Another may follow them already: whoever writes second is refused."""
        self.revoked(partitions)

    def _follow(self, share: frozenset[int]) -> None:
        if self._projector is not None and not self._projector.stop(STOP_SECONDS):
            self._telemetry.error(Event.PARTITION_HANGS, role=self._group, partition="all")
        self._share = share
        self._projector = self._make(share) if share else None
        if self._projector is not None:
            self._projector.start()
