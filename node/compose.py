"""Everything of `tidewheel dev`, wired by hand: all roles in one process over the embedded log.

Started in the order of the line, from the log outwards; stopped in the reverse order, so that what is in hand is
finished by those who still run. A crash needs no order: the log tells the next start where everything stood.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from node.door import open_door
from node.folder import DataFolder
from node.roles import Roles
from node.upkeep import Upkeep
from node.workers import worker_process
from projections.projector import Kept, Projector
from projections.store.database import open_database
from projections.store.reader import Reader
from projections.store.writer import Writer
from runtime.clock import SystemClock
from runtime.host import GroupService
from runtime.log import Fenced
from runtime.logs.embedded import EmbeddedLog
from schemas import topics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from threading import Event

    from node.children import ChildProcess
    from node.settings import NodeSettings, Settings
    from runtime.clock import Clock
    from runtime.host import RoleService
    from runtime.lifecycle import Service
    from runtime.log import Log
    from runtime.telemetry import Telemetry

NODE_ID = "dev"  # one process, one node
READY_SECONDS = 60.0  # a restore of the largest state that `dev` is meant for takes some seconds
LOOK_SECONDS = 1.0  # between looks whether somebody wants us to stop
STOP_SECONDS = 20.0  # workers have ten of them to end their runs


class NotStarted(Exception):
    """A part of the process could not start; the text names it and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A composed process: its services in the order in which they start, and where it answers."""

    services: tuple[Service, ...]
    release: Callable[[], None]
    url: str = ""
    log: Log | None = None
    ready_seconds: float = READY_SECONDS
    named_by: str = ""  # what to do when another process has our name

    def start(self, told: Event) -> None:
        """Start everything and wait until it works, or until told to stop; `NotStarted` names what does not.

        What is up against a problem goes on by itself when that is over: a read model that is away holds up nobody.
        """
        for service in self.services:
            service.start()
            waited = 0.0
            while not (service.ready(LOOK_SECONDS) or told.is_set() or problem_of(service)):
                waited += LOOK_SECONDS
                if service.failure is not None or waited >= self.ready_seconds:
                    raise NotStarted(f"{service.name}: {self._why(service) or 'not ready in time'}")

    def check(self) -> None:
        """NotStarted when a service that others take the place of has ended."""
        for service in self.services:
            if isinstance(service, GroupService) and service.failure is not None:
                raise NotStarted(f"{service.name}: {self._why(service)}")

    def _why(self, service: Service) -> str:
        """What ended a service, and what to do about it where that is ours to know."""
        failure = service.failure
        text = "" if failure is None else str(failure)
        is_ours = isinstance(service, GroupService) and isinstance(failure, Fenced)
        return f"{text}. {self.named_by}" if is_ours and self.named_by else text

    def stop(self) -> None:
        """End everything, in the reverse order; idempotent."""
        for service in reversed(self.services):
            service.stop(STOP_SECONDS)
        self.release()


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
    engine = open_database(settings.model_url)
    projector = Projector(log=log, model=Writer(engine), now=clock.now, kept=Kept(history=settings.retention.history))
    door = open_door(
        settings, log, clock, telemetry, node_id=NODE_ID, reader=Reader(engine), progress=projector,
        unready=lambda: unready((*parts_of(roles), projector)),
    )  # fmt: skip
    upkeep = Upkeep(log, clock, telemetry, accept_clock_after=settings.clock_accept_after)
    workers = worker_processes(settings, tasks, door.web.url, telemetry)
    return Node(
        services=(*roles, projector, *door.services, upkeep, *workers), log=log, url=door.web.url,
        release=release.close,
    )  # fmt: skip


def create_topics(log: Log, settings: NodeSettings) -> None:
    """Every topic of the table that does not exist yet."""
    log.create({spec: settings.layout.partitions(spec.family) for spec in topics.topic_table(settings.retention)})


def role_services(settings: Settings, log: Log, clock: Clock, telemetry: Telemetry) -> tuple[RoleService, RoleService]:
    """Both roles that own partitions."""
    roles = Roles(
        log, clock, telemetry, state=settings.data / "state", layout=settings.layout, retention=settings.retention,
        accept_clock_after=settings.clock_accept_after, member=NODE_ID,
    )  # fmt: skip
    return roles.scheduler(), roles.dispatcher()


def worker_processes(
    settings: NodeSettings, tasks: Sequence[str], url: str, telemetry: Telemetry
) -> tuple[ChildProcess, ...]:
    """A child process for each `module:worker`."""
    return tuple(
        worker_process(target, url, telemetry, slots=settings.worker_slots, log_level=settings.log_level)
        for target in tasks
    )


def parts_of(roles: Iterable[RoleService]) -> Iterator[Service]:
    """The roles, and the partitions that each runs at the moment."""
    for role in roles:
        yield role
        yield from role.partitions()


def unready(services: Iterable[Service]) -> Mapping[str, str]:
    """What does not work, and why."""
    return {
        service.name: str(service.failure or problem_of(service) or "starting")
        for service in services
        if service.failure is not None or problem_of(service) is not None or not service.ready(0)
    }


def problem_of(service: Service) -> str | None:
    """What a service is up against that will go on by itself, where it knows such a thing."""
    problem: str | None = getattr(service, "problem", None)
    return problem
