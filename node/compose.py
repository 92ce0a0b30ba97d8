"""Everything of `tidewheel dev`, wired by hand: one process over the embedded log, dispatcher and rows in children.

Started in the order of the line, from the log outwards; stopped in the reverse order, so that what is in hand is
finished by those who still run. A crash needs no order: the log tells the next start where everything stood.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from node.door import ReadSide, open_door
from node.folder import DataFolder
from node.joined import Joined
from node.process import Node, create_topics, parts_of, unready, worker_processes
from node.projector_process import ProjectorProcess
from node.role_process import RoleProcess
from node.roles import Roles
from node.upkeep import Upkeep
from node.words import ProjectorOrders, RoleOrders
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

    scheduler = scheduler_of(settings, log, clock, telemetry)
    dispatcher = RoleProcess(log, dispatcher_orders(settings), telemetry, partitions=settings.layout.shard)
    orders = ProjectorOrders(settings.model_url, settings.retention.history, settings.log_format, settings.log_level)
    projector = ProjectorProcess(log, orders, telemetry)
    model = open_database(settings.model_url)
    # What runs write is folded here: one record has a thousand lines, and most installations write few.
    kept = Kept(logs=settings.retention.logs)
    run_logs = Projector(log=log, model=Writer(model), now=clock.now, kept=kept, subject=RUN_LOGS)
    rows = ReadSide(reader=Reader(model), progress=projector, log_progress=run_logs)
    door = open_door(
        settings, log, clock, telemetry, node_id=NODE_ID, rows=rows,
        unready=lambda: unready((*parts_of((scheduler, dispatcher)), projector, run_logs)),
        registry=Joined(telemetry.registry, dispatcher.figures),
    )  # fmt: skip
    upkeep = Upkeep(log, clock, telemetry, accept_clock_after=settings.clock_accept_after)
    workers = worker_processes(settings, tasks, door.web.url, telemetry)
    return Node(
        services=(scheduler, dispatcher, projector, run_logs, *door.services, upkeep, *workers), log=log,
        url=door.web.url, release=release.close, followers=(projector, run_logs),
    )  # fmt: skip


def scheduler_of(settings: Settings, log: Log, clock: Clock, telemetry: Telemetry) -> RoleService:
    """Who decides when."""
    return Roles(
        log, clock, telemetry, state=settings.data / "state", layout=settings.layout, retention=settings.retention,
        accept_clock_after=settings.clock_accept_after, member=NODE_ID, catch_up_rate=settings.catch_up_rate,
    ).scheduler()  # fmt: skip


def dispatcher_orders(settings: Settings) -> RoleOrders:
    """The same for who decides who, and what next."""
    return RoleOrders(
        role="dispatcher", state=settings.data / "state", layout=settings.layout, retention=settings.retention,
        accept_clock_after=settings.clock_accept_after, member=NODE_ID, catch_up_rate=settings.catch_up_rate,
        log_format=settings.log_format, log_level=settings.log_level,
    )  # fmt: skip
