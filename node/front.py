"""What a process on Kafka has over the read model: its share of the projections, and the API.

Apart from the composition of processes, because it needs the libraries of databases and of HTTP: a process that only
owns partitions is there a second sooner without them, and is waited for.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from node.door import ReadSide, open_door
from node.process import parts_of, unready
from node.progress import StoredProgress
from node.projecting import SharedProjector
from projections.projector import HISTORY, RUN_LOGS, Kept, Projector, Subject
from projections.store.database import open_database
from projections.store.reader import Reader
from projections.store.writer import Writer

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from node.settings import ClusterSettings
    from projections.store.database import Database
    from runtime.clock import Clock
    from runtime.host import RoleService
    from runtime.lifecycle import Service
    from runtime.log import Log
    from runtime.telemetry import Telemetry


@dataclass(frozen=True, slots=True, kw_only=True)
class Front:
    """The services of the API and of the projector, as far as the process has these roles, and where it answers."""

    door: tuple[Service, ...] = ()
    projectors: tuple[SharedProjector, ...] = ()
    url: str = ""


def compose_front(
    settings: ClusterSettings, log: Log, clock: Clock, telemetry: Telemetry, *, name: str, roles: Sequence[RoleService]
) -> Front:
    """Compose them; `roles` are the others that `/readyz` tells of."""
    model = open_database(settings.model_url)
    projectors: tuple[SharedProjector, ...] = ()
    if settings.does("projector"):
        projectors = tuple(
            shared_projector(settings, model, log, clock, telemetry, name=name, subject=subject)
            for subject in (HISTORY, RUN_LOGS)
        )
    if not settings.does("api"):
        return Front(projectors=projectors)
    reader = Reader(model)
    progress, log_progress = (
        StoredProgress(log, positions=reader.positions, now=clock.now, telemetry=telemetry, subject=subject)
        for subject in (HISTORY, RUN_LOGS)
    )
    rows = ReadSide(reader=reader, progress=progress, log_progress=log_progress)
    door = open_door(
        settings, log, clock, telemetry, node_id=name, rows=rows,
        unready=lambda: unready((*parts_of(roles), *projectors, progress, log_progress)),
    )  # fmt: skip
    return Front(door=(progress, log_progress, *door.services), projectors=projectors, url=door.web.url)


def shared_projector(
    settings: ClusterSettings, model: Database, log: Log, clock: Clock, telemetry: Telemetry, *, name: str,
    subject: Subject = HISTORY,
) -> SharedProjector:  # fmt: skip
    """Our share of the projections, or of the logs of runs."""
    kept = Kept(history=settings.retention.history, logs=settings.retention.logs)

    def make(share: Collection[int]) -> Projector:
        return Projector(log=log, model=Writer(model), now=clock.now, kept=kept, share=share, subject=subject)

    return SharedProjector(log, member=name, make=make, telemetry=telemetry, subject=subject)
