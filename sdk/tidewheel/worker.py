"""A worker: registered tasks, and a process or an embedding loop that runs them for a queue."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import secrets
import signal
import socket
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeVar

from tidewheel import isolated, tasks
from tidewheel.brokers import Kafka
from tidewheel.errors import KafkaUnusable, WorkerReplaced, WorkerStuck
from tidewheel.logs.redaction import Redaction
from tidewheel.logs.settings import Logs
from tidewheel.logs.sources import printing
from tidewheel.sessions import Sessions
from tidewheel.targets import commands
from tidewheel.targets.http import Caller
from tidewheel.targets.offers import Target
from tidewheel.targets.settings import Settings
from tidewheel.transport import Transport
from tidewheel.transports.http import HttpTransport

_LOG = logging.getLogger("tidewheel.worker")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", re.ASCII)
F = TypeVar("F", bound=Callable[..., object])

SLOTS_MAX = 1000  # Every report lists every lease held,
TASKS_MAX = 1000  # and every task.
ONE_SIGNAL_SECONDS = 0.5  # One Ctrl-C may arrive twice: from the terminal, and from whoever started this process.


class Worker:
    """Runs tasks for one queue.

        worker = Worker(queue="default")

        @worker.task("reports.nightly")
        def nightly(ctx: RunContext, day: str) -> dict: …

        worker.run()

    `slots` is how many tasks run at once. `name` should be given only where one process at a time has it: a second
    one of the same name takes over the leases, and the first one ends.

    It speaks HTTP to the server at `url`, with `token` (TIDEWHEEL_URL, TIDEWHEEL_TOKEN), or directly to the brokers of
    `kafka`: a `Kafka`, or `host:port` by commas with what else the environment says of it. Where neither is given,
    TIDEWHEEL_BOOTSTRAP chooses Kafka.

    What its runs log and print is sent to the server, without its secrets: `logs` says what those are, or the
    environment does. Prints are heard where the worker is a process (`run`), log records everywhere.
    """

    def __init__(
        self,
        queue: str = "default",
        *,
        url: str | None = None,
        kafka: Kafka | str | None = None,
        slots: int = 10,
        name: str | None = None,
        token: str | None = None,
        grace_seconds: float = 30.0,
        logs: Logs | None = None,
    ) -> None:
        if url is not None and kafka is not None:
            raise ValueError("a worker speaks HTTP to `url` or directly to `kafka`, not both")
        self.queue = _checked("queue", queue)
        self.url = url
        self.kafka = kafka
        self.slots = _checked_slots(slots)
        self.name = _default_name() if name is None else _checked("worker", name)
        self.grace_seconds = grace_seconds
        self.logs = logs
        self._token = token
        self._secrets: list[str] = []  # of what it serves,
        self._environments: list[Mapping[str, str]] = []  # and what else may be called like one
        self._tasks: dict[str, tasks.Task | Target] = {}
        self._caller: Caller | None = None
        self._session: Sessions | None = None
        self._draining: asyncio.Task[None] | None = None
        self._asked_at = 0.0
        self._stuck: WorkerStuck | None = None

    def task(self, name: str, *, isolate: str = "thread") -> Callable[[F], F]:
        """Register a function under a name. Plain functions run in a thread, coroutines in the loop; with
        `isolate="process"` either runs in a process of its own, which can be killed.

        The payload's fields become keyword arguments; a first parameter `ctx` receives the RunContext. What is
        returned must be JSON of at most 16 KiB. A coroutine that blocks the loop stops the worker's reports as well.
        """

        def register(function: F) -> F:
            self._add(tasks.register(name, function, isolate=isolate))
            return function

        return register

    def serve(self, settings: Settings) -> None:
        """Run the commands and call the endpoints that the settings allow, beside the registered tasks."""
        self._secrets += settings.secrets()
        self._environments += [command.env for command in settings.commands.values()]
        if settings.http is not None:
            self._caller = Caller(settings.http)
            self._add(self._caller.target)
        for target in commands.targets(settings.commands):
            self._add(target)

    def _add(self, task: tasks.Task | Target) -> None:
        if task.name in self._tasks:
            raise ValueError(f"task {task.name!r} is registered twice")
        if len(self._tasks) >= TASKS_MAX:
            raise ValueError(f"a worker has at most {TASKS_MAX} tasks: each report names them all")
        self._tasks[task.name] = task

    def configure(
        self,
        *,
        queue: str | None = None,
        slots: int | None = None,
        url: str | None = None,
        kafka: Kafka | str | None = None,
        grace_seconds: float | None = None,
    ) -> None:
        """Settle what the one who starts the worker knows better than the module that defines it.

        A `url` has it speak HTTP and brokers have it speak to them, whatever it would do otherwise.
        """
        self.queue = self.queue if queue is None else _checked("queue", queue)
        self.slots = self.slots if slots is None else _checked_slots(slots)
        if url is not None or kafka is not None:
            self.url, self.kafka = url, kafka
        self.grace_seconds = self.grace_seconds if grace_seconds is None else grace_seconds

    @property
    def task_names(self) -> tuple[str, ...]:
        """The registered tasks."""
        return tuple(sorted(self._tasks))

    def registered(self, name: str) -> tasks.Task:
        """A registered task; KeyError names those that there are."""
        task = self._tasks.get(name)
        if not isinstance(task, tasks.Task):
            raise KeyError(f"worker has no task {name!r}; it has {', '.join(self.task_names) or 'none'}")
        return task

    # --- as a process ---

    def run(self) -> None:
        """Work until SIGTERM or SIGINT, then drain: take nothing new, finish what is held within `grace_seconds`.

        A second signal ends the process at once. Exits with a message when another process takes this worker's name,
        or when it is to speak to Kafka and cannot.
        """
        isolated.refuse_inside()
        try:
            with printing():
                asyncio.run(self._run())
        except (KafkaUnusable, WorkerReplaced, WorkerStuck) as error:
            raise SystemExit(str(error)) from error

    async def _run(self) -> None:
        await self.start()
        if threading.current_thread() is threading.main_thread():
            loop = asyncio.get_running_loop()
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, self._on_signal, number)
        await self.wait()

    def _on_signal(self, number: signal.Signals) -> None:
        if self._draining is not None:
            if time.monotonic() - self._asked_at > ONE_SIGNAL_SECONDS:
                signal.signal(number, signal.SIG_DFL)
                os.kill(os.getpid(), number)
            return
        self._asked_at = time.monotonic()
        busy = 0 if self._session is None else self._session.busy
        _LOG.info("draining: %d tasks may take up to %g s; once more ends at once", busy, self.grace_seconds)
        self.drain()

    # --- embedded ---

    async def start(self) -> None:
        """Begin to work in the running loop."""
        if not self._tasks:
            raise ValueError("a worker needs at least one task or target: register one with @worker.task(name)")
        if self._session is not None:
            raise RuntimeError("this worker has been started already")
        in_processes = [task for task in self._tasks.values() if isinstance(task, tasks.Task) and task.in_process]
        for task in in_processes:
            isolated.check(task)
        if in_processes:
            isolated.prepare()
        way = self._way()
        if self._caller is not None:
            self._caller.open(self.slots)
        session = Sessions(
            way, self._tasks, name=self.name, slots=self.slots, on_stuck=self._drain_as_stuck,
            redaction=self.redaction(),
        )  # fmt: skip
        session.start()
        self._session = session
        _LOG.info(
            "worker %s serves queue %s of %s with %d slots: %s",
            self.name, self.queue, session.place, self.slots, ", ".join(self.task_names),
        )  # fmt: skip

    def redaction(self) -> Redaction | None:
        """What hides secrets in what runs write; None where nothing of that is sent."""
        logs = self.logs or Logs.of_environment(os.environ)
        if not logs.enabled:
            return None
        secrets = [*self._secrets, *([self._token] if self._token else [])]
        for environment in (os.environ, *self._environments):
            secrets += logs.secrets_in(environment)
        if isinstance(self.kafka, Kafka):
            secrets += self.kafka.secrets()
        return Redaction(secrets, logs.patterns)

    @property
    def running(self) -> bool:
        """Whether it was started and has not ended yet."""
        return self._session is not None

    async def wait(self) -> None:
        """Until the worker has ended; raises WorkerReplaced when another process took its name.

        WorkerStuck, when half of its slots were held by tasks that do not stop: start a new process then.
        """
        session = self._started()
        try:
            await session.wait()
        finally:
            self._session = None
            self._draining = None
            if self._caller is not None:
                await self._caller.close()
        if self._stuck is not None:
            raise self._stuck

    def drain(self) -> None:
        """Begin to drain, once; `wait` returns when it is done."""
        if self._draining is None:
            self._draining = asyncio.ensure_future(self._started().drain(self.grace_seconds))

    async def stop(self) -> None:
        """Drain and end."""
        self.drain()
        await self.wait()

    def _drain_as_stuck(self, count: int) -> None:
        self._stuck = WorkerStuck(
            f"worker {self.name!r} ends: {count} of {self.slots} slots are held by tasks that were asked to stop and "
            "did not; let them look at ctx.cancelled, or isolate them in processes"
        )
        _LOG.error("%s", self._stuck)
        self.drain()

    def _way(self) -> Callable[[int], Transport]:
        """The way to a shard of the queue."""
        kafka = self.kafka
        if not isinstance(kafka, Kafka):
            kafka = None if self.url is not None else _of_environment(kafka or "")
        if kafka is None:
            return partial(HttpTransport, self.url, self._token, self.queue)
        return _directly(kafka, self.queue)

    def _started(self) -> Sessions:
        if self._session is None:
            raise RuntimeError("this worker has not been started")
        return self._session


def _of_environment(bootstrap: str) -> Kafka | None:
    try:
        return Kafka.of_environment(os.environ, bootstrap)
    except ValueError as error:
        raise KafkaUnusable(str(error)) from error


def _directly(kafka: Kafka, queue: str) -> Callable[[int], Transport]:
    try:
        from tidewheel.transports.kafka import KafkaTransport  # noqa: PLC0415 -- its client is an extra
    except ImportError as error:
        message = f"a worker that speaks to Kafka needs its client: pip install 'tidewheel[kafka]' ({error})"
        raise KafkaUnusable(message) from error
    return partial(KafkaTransport, kafka, queue)


def _default_name() -> str:
    host = re.sub(r"[^A-Za-z0-9._-]", "-", socket.gethostname()).lstrip("._-")[:100]
    return f"{host or 'worker'}-{secrets.token_hex(3)}"


def _checked(kind: str, name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError(f"{kind} name {name!r}: 1-128 of A-Z a-z 0-9 . _ -, starting with a letter or digit")
    return name


def _checked_slots(slots: int) -> int:
    if not 1 <= slots <= SLOTS_MAX:
        raise ValueError(f"slots must be 1-{SLOTS_MAX}, not {slots}")
    return slots
