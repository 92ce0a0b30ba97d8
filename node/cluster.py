"""A process of `tidewheel serve`: the roles that it was given, over Kafka.

Nothing but the log connects it with the others. What it keeps in its data folder (states, its name) makes a restart
quick and can be lost.
"""

from __future__ import annotations

import secrets
import sys
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from node.children import ChildProcess
from node.folder import DataFolder
from node.ingress import Binding, IngressService, of_others
from node.process import PROCESS_STOP_SECONDS, Node, create_topics, worker_processes
from node.roles import Roles
from node.scraping import MetricsServer
from runtime.clock import SystemClock
from runtime.logs.kafka.log import KafkaLog
from runtime.telemetry import Event, Metric

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from node.settings import ClusterSettings
    from runtime.host import RoleService
    from runtime.lifecycle import Service
    from runtime.telemetry import Telemetry

RESTORE_SECONDS = 3600.0  # a partition without its store is built from the log; who cannot in an hour never will
NODE_ID = "node-id"  # the file that keeps a node's name
# A killed child is waited for so long: the parent must not be gone before, as its end is that of its children.
KILL_SECONDS = 2.0


def compose_process(
    settings: ClusterSettings, telemetry: Telemetry, *, number: int = 0, tasks: Sequence[str] = ()
) -> Node:
    """Build process `number` of this node; nothing runs yet.

    FolderRefused and LogError say why the folder or the cluster cannot be used.
    """
    settings = settings if number == 0 else settings.for_one_more()
    with ExitStack() as undo:
        folder = DataFolder.hold(settings.data / f"process-{number}")
        undo.callback(folder.release)
        folder.check_layout(settings.layout)
        log = KafkaLog(settings.log, SystemClock(), replaced=lambda id_, why: producer_replaced(telemetry, id_, why))
        undo.callback(log.close)
        create_topics(log, settings)
        name = f"{node_id(settings)}-{number}"
        node = _compose(settings, telemetry, log, folder.path, name, tasks)
        scraped = metrics_servers(settings, telemetry, number)
        bound = ingress_services(settings, telemetry, name=name, undo=undo)
        release = undo.pop_all()
    return replace(
        node, services=(*scraped, *node.services, *bound), release=release.close, named_by=named_by(settings)
    )


def _compose(
    settings: ClusterSettings, telemetry: Telemetry, log: KafkaLog, folder: Path, name: str, tasks: Sequence[str]
) -> Node:
    """The API first: it tells how the others are getting on."""
    clock = SystemClock()
    roles = role_services(settings, log, clock, telemetry, folder=folder, name=name)
    services: tuple[Service, ...] = roles
    url = ""
    followers: tuple[Service, ...] = ()
    if settings.does("projector") or settings.does("api"):
        from node.front import compose_front  # noqa: PLC0415 -- its first lines say why

        front = compose_front(settings, log, clock, telemetry, name=name, roles=roles)
        services, url = (*front.door, *roles, *front.projectors), front.url
        followers = front.projectors
    if settings.does("worker"):
        services += worker_processes(settings, tasks, url or settings.api_url, telemetry)
    return Node(
        services=services, release=lambda: None, url=url, log=log, ready_seconds=RESTORE_SECONDS, followers=followers
    )  # fmt: skip


def role_services(
    settings: ClusterSettings, log: KafkaLog, clock: SystemClock, telemetry: Telemetry, *, folder: Path, name: str
) -> tuple[RoleService, ...]:
    """Our share of the roles that own partitions. On Kafka a clock that is not believed is never accepted by itself."""
    roles = Roles(
        log, clock, telemetry, state=folder / "state" / log.cluster_id, layout=settings.layout,
        retention=settings.retention, accept_clock_after=None, member=name, catch_up_rate=settings.catch_up_rate,
    )  # fmt: skip
    built = {"scheduler": roles.scheduler, "dispatcher": roles.dispatcher}
    return tuple(build() for role, build in built.items() if role in settings.roles)


def ingress_services(
    settings: ClusterSettings, telemetry: Telemetry, *, name: str, undo: ExitStack
) -> tuple[IngressService, ...]:
    """Our share of others' topics, which is the scheduler's. They come last: what they read, the line is there for."""
    if not (settings.ingress and settings.does("scheduler")):
        return ()
    clock = SystemClock()
    log = KafkaLog(of_others(settings.log), clock)
    undo.callback(log.close)
    bindings = (
        Binding(topic=topic, tenant=tenant, namespace=settings.namespace, partitions=settings.layout.schedule)
        for topic, tenant in sorted(settings.ingress.items())
    )
    return tuple(IngressService(each, log, member=name, clock=clock, telemetry=telemetry) for each in bindings)


def metrics_servers(settings: ClusterSettings, telemetry: Telemetry, number: int) -> tuple[MetricsServer, ...]:
    """Each process of a machine has a port of its own. First of all services, so that a long restore can be watched."""
    if not settings.metrics_port:
        return ()
    return (MetricsServer(telemetry.registry, host=settings.host, port=settings.metrics_port + number),)


def producer_replaced(telemetry: Telemetry, transactional_id: str, reason: str) -> None:
    """A commit left doubt, and its producer is another one now (`runtime.logs.kafka.doubt`)."""
    role, _, partition = transactional_id.rpartition(".")
    telemetry.count(Metric.PRODUCERS_REPLACED, {"role": role, "partition": partition})
    telemetry.warning(Event.PRODUCER_REPLACED, role=role, partition=partition, reason=reason)


def processes_of(settings: ClusterSettings, telemetry: Telemetry) -> Node:
    """The parent of several processes: each is this very command, told which one it is."""
    children = tuple(
        ChildProcess(
            f"process {number}", (sys.executable, *sys.argv, "--process", str(number)), telemetry,
            drain=PROCESS_STOP_SECONDS,
        )
        for number in range(settings.processes)
    )  # fmt: skip
    return Node(
        services=children, release=lambda: None, stop_seconds=PROCESS_STOP_SECONDS + KILL_SECONDS, apart=True
    )  # fmt: skip


def named_by(settings: ClusterSettings) -> str:
    """Where this node has its name from, and what to do when another process has the same one."""
    if settings.node_id:
        return f"The setting node_id names both of them {settings.node_id}: every node needs a name of its own"
    file = settings.data.absolute() / NODE_ID
    return (
        f"This node has its name from {file}: where a data folder was copied, two nodes have one name. Delete that "
        "file in one of the folders and start the node again: it gets a new name, and loses nothing"
    )


def node_id(settings: ClusterSettings) -> str:
    """The name of this node: given, or made at the first start and kept in the data folder.

    The groups know a process by it, and give back after a restart what it had.
    """
    if settings.node_id:
        return settings.node_id
    file = settings.data / NODE_ID
    if not file.exists():
        part = file.with_suffix(f".{secrets.token_hex(4)}")
        part.write_text(secrets.token_hex(8), encoding="ascii")
        with suppress(FileExistsError):
            file.hardlink_to(part)  # the first of several processes decides
        part.unlink()
    return file.read_text(encoding="ascii").strip()
