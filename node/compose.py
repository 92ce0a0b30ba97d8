"""Everything of `tidewheel dev`, wired by hand: all roles in one process over the embedded log.

Started in the order of the line, from the log outwards; stopped in the reverse order, so that what is in hand is
finished by those who still run. A crash needs no order: the log tells the next start where everything stood.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from api.app import create_app
from api.appender import Appender
from api.commander import Commander
from api.inboxes import InboxFeed
from api.leases import SimpleLeases
from api.relay import WorkerRelay
from api.services import LOOPBACK, ApiServices, ApiSettings
from node.folder import DataFolder
from node.forecast import forecast
from node.roles import Roles
from node.upkeep import Upkeep
from node.web import WebServer
from node.workers import WorkerProcess
from projections.projector import Kept, Projector
from projections.store.database import open_database
from projections.store.reader import Reader
from projections.store.writer import Writer
from runtime.clock import SystemClock
from runtime.logs.embedded import EmbeddedLog
from schemas import topics

if TYPE_CHECKING:
    from node.settings import Settings
    from runtime.host import RoleService
    from runtime.lifecycle import Service
    from runtime.log import Log
    from runtime.telemetry import Telemetry

NODE_ID = "dev"  # one process, one node
READY_SECONDS = 60.0  # a restore of the largest state that `dev` is meant for takes some seconds
STOP_SECONDS = 20.0  # workers have ten of them to end their runs


class NotStarted(Exception):
    """A part of the process could not start; the text names it and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A composed process: its services in the order in which they start."""

    services: tuple[Service, ...]
    log: EmbeddedLog
    folder: DataFolder
    web: WebServer

    @property
    def url(self) -> str:
        """Where it answers."""
        return self.web.url

    def start(self) -> None:
        """Start everything and wait until it works; `NotStarted` names what does not."""
        for service in self.services:
            service.start()
            if not service.ready(READY_SECONDS):
                raise NotStarted(f"{service.name}: {service.failure or 'not ready in time'}")

    def stop(self) -> None:
        """End everything, in the reverse order; idempotent."""
        for service in reversed(self.services):
            service.stop(STOP_SECONDS)
        self.log.close()
        self.folder.release()


def compose(settings: Settings, telemetry: Telemetry, *, tasks: tuple[str, ...] = ()) -> Node:
    """Build the process; nothing runs yet. `FolderRefused` and LogError say why a folder cannot be used."""
    folder = DataFolder.hold(settings.data)
    folder.check_layout(settings.layout)
    clock = SystemClock()
    log = EmbeddedLog(settings.data / "log", clock, durability=settings.durability)
    create_topics(log, settings)

    roles = role_services(settings, log, clock, telemetry)
    engine = open_database(f"sqlite:///{settings.data / 'read-model.sqlite'}")
    projector = Projector(log=log, model=Writer(engine), now=clock.now, kept=Kept(history=settings.retention.history))
    appender = Appender(log)
    commander = Commander(log=log, appender=appender, node_id=NODE_ID, now=clock.now)
    feed = InboxFeed(log=log, node_id=NODE_ID, ensure_queue=lambda queue: ensure_queue(log, settings, queue))
    relay = WorkerRelay(log=log, appender=appender, feed=feed, now=clock.now)
    web = WebServer(host=settings.host, port=settings.port)
    services = ApiServices(
        log=log, now=clock.now, reader=Reader(engine), progress=projector, commander=commander, relay=relay,
        leases=SimpleLeases(relay), forecast=forecast(clock.now), registry=telemetry.registry,
        unready=lambda: unready((*roles, *chain.from_iterable(role.partitions() for role in roles), projector)),
        settings=ApiSettings(version=importlib.metadata.version("tidewheel-server"), allowed_hosts=LOOPBACK),
    )  # fmt: skip
    web.serve(create_app(services))
    upkeep = Upkeep(log, clock, telemetry, accept_clock_after=settings.clock_accept_after)
    workers = tuple(
        WorkerProcess(target, web.url, telemetry, slots=settings.worker_slots, log_level=settings.log_level)
        for target in tasks
    )
    return Node(
        services=(*roles, projector, appender, commander, feed, web, upkeep, *workers),
        log=log, folder=folder, web=web,
    )  # fmt: skip


def create_topics(log: Log, settings: Settings) -> None:
    """Every topic of the table that does not exist yet."""
    log.create({spec: settings.layout.partitions(spec.family) for spec in topics.topic_table(settings.retention)})


def ensure_queue(log: Log, settings: Settings, queue: str) -> None:
    """The inboxes of a queue's workers; a queue comes into being on first use."""
    log.create({topics.dispatch_spec(queue, settings.retention): topics.INBOXES})


def role_services(
    settings: Settings, log: Log, clock: SystemClock, telemetry: Telemetry
) -> tuple[RoleService, RoleService]:
    """Both roles that own partitions."""
    roles = Roles(
        log, clock, telemetry, state=settings.data / "state", layout=settings.layout, retention=settings.retention,
        accept_clock_after=settings.clock_accept_after, member=NODE_ID,
    )  # fmt: skip
    return roles.scheduler(), roles.dispatcher()


def unready(services: tuple[Service, ...]) -> Mapping[str, str]:
    """What does not work, and why."""
    return {
        service.name: str(service.failure or getattr(service, "problem", None) or "starting")
        for service in services
        if service.failure is not None or not service.ready(0)
    }
