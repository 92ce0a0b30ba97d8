"""A composed process: its services, how they start and stop together, and what every composition needs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from node.workers import worker_process
from runtime.host import GroupService
from runtime.log import Fenced
from schemas import topics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from threading import Event

    from node.children import ChildProcess
    from node.settings import NodeSettings
    from runtime.lifecycle import Service
    from runtime.log import Log
    from runtime.telemetry import Telemetry

FOLLOW_SECONDS = 10.0  # rows that are not there by then are told by /readyz, and by how old an answer is
READY_SECONDS = 60.0  # a restore of the largest state that `dev` is meant for takes some seconds
LOOK_SECONDS = 1.0  # between looks whether somebody wants us to stop
STOP_SECONDS = 20.0  # of a service, to end what it has in hand: workers have ten of them to end their runs
# Of a whole process: its four roles end one after another. Who supervises it waits a little longer before a kill
# (`TimeoutStopSec`, `terminationGracePeriodSeconds`), and so does the parent of several processes.
PROCESS_STOP_SECONDS = 4 * STOP_SECONDS


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
    followers: tuple[Service, ...] = ()  # those of them whose work nobody's waits for: tables made anew take an hour
    follow_seconds: float = FOLLOW_SECONDS
    named_by: str = ""  # what to do when another process has our name
    stop_seconds: float = STOP_SECONDS  # for each service to end
    apart: bool = False  # whether the services do without each other: then all are told at once to end

    def start(self, told: Event) -> None:
        """Start everything and wait until it works, or until told to stop; `NotStarted` names what does not.

        What is up against a problem goes on by itself when that is over: a read model that is away holds up nobody.
        Nor does one that is far behind: those who only follow are waited for a little.
        """
        for service in self.services:
            service.start()
            follows = service in self.followers
            waited = 0.0
            while not (service.ready(LOOK_SECONDS) or told.is_set() or problem_of(service)):
                waited += LOOK_SECONDS
                if follows and service.failure is None and waited >= self.follow_seconds:
                    break
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
        if self.apart:
            for service in self.services:
                service.stop(0.0)
        for service in reversed(self.services):
            service.stop(self.stop_seconds)
        self.release()


def create_topics(log: Log, settings: NodeSettings) -> None:
    """Every topic of the table that does not exist yet."""
    log.create({spec: settings.layout.partitions(spec.family) for spec in topics.topic_table(settings.retention)})


def worker_processes(
    settings: NodeSettings, tasks: Sequence[str], url: str, telemetry: Telemetry
) -> tuple[ChildProcess, ...]:
    """A child process for each `module:worker`."""
    return tuple(
        worker_process(target, url, telemetry, slots=settings.worker_slots, log_level=settings.log_level)
        for target in tasks
    )


class Part(Protocol):
    """What is to be known of a service, wherever it runs."""

    @property
    def name(self) -> str: ...
    @property
    def failure(self) -> object: ...
    def ready(self, timeout: float) -> bool: ...


class Parted(Part, Protocol):
    """A role here, or in a child."""

    def partitions(self) -> Sequence[Part]: ...


def parts_of(roles: Iterable[Parted]) -> Iterator[Part]:
    """The roles, and the partitions that each runs at the moment."""
    for role in roles:
        yield role
        yield from role.partitions()


def unready(services: Iterable[Part]) -> Mapping[str, str]:
    """What does not work, and why."""
    return {
        service.name: str(service.failure or problem_of(service) or "starting")
        for service in services
        if service.failure is not None or problem_of(service) is not None or not service.ready(0)
    }


def problem_of(service: Part) -> str | None:
    """What a service is up against that will go on by itself, where it knows such a thing."""
    problem: str | None = getattr(service, "problem", None)
    return problem
