"""The API of a process: the web server, and what passes commands and reports on for it."""

from __future__ import annotations

import importlib.metadata
from dataclasses import dataclass
from typing import TYPE_CHECKING

from api.app import create_app
from api.appender import Appender
from api.commander import Commander
from api.inboxes import InboxFeed
from api.leases import SimpleLeases
from api.relay import WorkerRelay
from api.services import LOOPBACK, ApiServices, ApiSettings
from node.forecast import Arithmetic, forecast
from node.model_figures import ModelFigures
from node.web import WebServer
from schemas import topics

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from prometheus_client import CollectorRegistry

    from api.services import Progress
    from node.settings import NodeSettings
    from projections.store.reader import Reader
    from runtime.clock import Clock
    from runtime.lifecycle import Service
    from runtime.log import Log
    from runtime.telemetry import Telemetry


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """The web server, and its services in the order in which they start."""

    web: WebServer
    services: tuple[Service, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadSide:
    """Who answers questions, and how far the rows follow the log: those of runs, and those of what runs wrote."""

    reader: Reader
    progress: Progress
    log_progress: Progress


def open_door(
    settings: NodeSettings, log: Log, clock: Clock, telemetry: Telemetry, *, node_id: str, rows: ReadSide,
    unready: Callable[[], Mapping[str, str]], registry: CollectorRegistry | None = None,
) -> Door:  # fmt: skip
    """Compose the API of one process. The port is taken at once; nothing answers yet.

    `registry` has the figures that are shown; by default those of this process.
    """
    web = WebServer(host=settings.host, port=settings.port)
    appender = Appender(log)
    commander = Commander(log=log, appender=appender, node_id=node_id, now=clock.now)
    feed = InboxFeed(log=log, node_id=node_id, ensure_queue=lambda queue: ensure_queue(log, settings, queue))
    relay = WorkerRelay(log=log, appender=appender, feed=feed, now=clock.now)
    services = ApiServices(
        log=log, now=clock.now, reader=rows.reader, progress=rows.progress, log_progress=rows.log_progress,
        commander=commander, appender=appender, relay=relay, leases=SimpleLeases(relay),
        arithmetic=Arithmetic(rows.reader.entry), registry=registry or telemetry.registry, unready=unready,
        forecast=forecast(clock.now, rows.reader.entry, settings.retention.history),
        settings=ApiSettings(
            version=importlib.metadata.version("tidewheel-server"),
            history=settings.retention.history,
            logs=settings.retention.logs,
            require_declared=settings.require_declared,
            allowed_hosts=frozenset() if settings.trusted_network else LOOPBACK,
        ),
    )  # fmt: skip
    web.serve(create_app(services))
    figures = ModelFigures(log, rows.reader, rows.progress, telemetry)
    return Door(web=web, services=(appender, commander, feed, figures, web))


def ensure_queue(log: Log, settings: NodeSettings, queue: str) -> None:
    """The inboxes of a queue's workers; a queue comes into being on first use."""
    log.create({topics.dispatch_spec(queue, settings.retention): topics.INBOXES})
