"""Everything of `tidewheel dev`, wired by hand: all roles in one process over the embedded log, the rows in a child.

Started in the order of the line, from the log outwards; stopped in the reverse order, so that what is in hand is
finished by those who still run. A crash needs no order: the log tells the next start where everything stood.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from node.door import ReadSide, open_door
from node.folder import DataFolder
from node.process import Node, create_topics, parts_of, unready, worker_processes
from node.projector_child import Orders
from node.projector_process import ProjectorProcess
from node.roles import Roles
from node.upkeep import Upkeep
from projections.projector import RUN_LOGS, Kept, Projector
from projections.store.database import open_database
from projections.store.reader import Reader
from projections.store.writer import Writer
from runtime.clock import SystemClock
from runtime.logs.embedded import EmbeddedLog

if TYPE_CHECKING:
    from node.settings import Settings
    from runtime.clock import Clock
    from runtime.host import RoleService
    from runtime.log import Log
    from runtime.telemetry import Telemetry

NODE_ID = "dev"  # one process, one node


def compose(settings: Settings, telemetry: Telemetry, *, tasks: tuple[str, ...] = ()) -> Node:
    """Build the process; nothing runs yet. `FolderRefused` and LogError say why a folder cannot be used."""
    with ExitStack() as undo:
        folder = DataFolder.hold(settings.data)
        undo.callback(folder.release)
        folder.check_layout(settings.layout)
        clock = SystemClock()
        log = EmbeddedLog(settings.data / "log", clock, durability=settings.durability)
        undo.callback(log.close)
        create_topics(log, settings)
        release = undo.pop_all()

    roles = role_services(settings, log, clock, telemetry)
    orders = Orders(settings.model_url, settings.retention.history, settings.log_format, settings.log_level)
    projector = ProjectorProcess(log, orders, telemetry)
    model = open_database(settings.model_url)
    # What runs write is folded here: one record has a thousand lines, and most installations write few.
    kept = Kept(logs=settings.retention.logs)
    run_logs = Projector(log=log, model=Writer(model), now=clock.now, kept=kept, subject=RUN_LOGS)
    rows = ReadSide(reader=Reader(model), progress=projector, log_progress=run_logs)
    door = open_door(
        settings, log, clock, telemetry, node_id=NODE_ID, rows=rows,
        unready=lambda: unready((*parts_of(roles), projector, run_logs)),
    )  # fmt: skip
    upkeep = Upkeep(log, clock, telemetry, accept_clock_after=settings.clock_accept_after)
    workers = worker_processes(settings, tasks, door.web.url, telemetry)
    return Node(
        services=(*roles, projector, run_logs, *door.services, upkeep, *workers), log=log, url=door.web.url,
        release=release.close, followers=(projector, run_logs),
    )  # fmt: skip


def role_services(settings: Settings, log: Log, clock: Clock, telemetry: Telemetry) -> tuple[RoleService, RoleService]:
    """Both roles that own partitions."""
    roles = Roles(
        log, clock, telemetry, state=settings.data / "state", layout=settings.layout, retention=settings.retention,
        accept_clock_after=settings.clock_accept_after, member=NODE_ID, catch_up_rate=settings.catch_up_rate,
    )  # fmt: skip
    return roles.scheduler(), roles.dispatcher()
