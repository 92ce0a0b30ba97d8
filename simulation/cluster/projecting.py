"""Projectors of a simulated cluster: production code over rows in memory, or (option `database`) over SQLite.

The rows in memory keep what the database promises: changes and positions together or not at all, whoever writes second
is refused, of two transactions the later one stands. They outlive the processes, as the database does.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Protocol

from node.projecting import SharedProjector
from projections.batch import PROJECTIONS
from projections.projector import Limits, Projector
from projections.store.database import open_database, positions_of
from projections.store.tables import PROJECTED
from projections.store.writer import Overtaken, Writer
from runtime.lifecycle import ThreadService
from runtime.log import LogError
from runtime.record import TopicPartition
from simulation.cluster.gate import Gate, GatedDatabase
from simulation.cluster.node import POLL_SECONDS
from simulation.cluster.place import Place
from simulation.cluster.story import StoryTelemetry
from simulation.cluster.threads import LoopThreads
from simulation.evidence import Glimpse
from simulation.loop import Killed, Loop, Machine, Task

if TYPE_CHECKING:
    from collections.abc import Callable

    from projections.batch import Changes
    from projections.projection import Key, Row
    from projections.projector import ReadModel
    from runtime.log import Log
    from simulation.clock import MachineClock
    from simulation.cluster.site import Site

FILE = "read-model"
IDLE = timedelta(seconds=60)  # a wait for events, which wake it
STOP_SECONDS = 30.0
_ONCE = {projection.table: projection.once for projection in PROJECTIONS}
Positions = Mapping[TopicPartition, int]


@dataclass(slots=True)
class Rows:
    """A read model in memory: `ReadModel` for any number of projectors."""

    tables: dict[str, dict[Key, Row]] = field(default_factory=dict)
    stood: dict[TopicPartition, int] = field(default_factory=dict)
    source: dict[str, str] | None = None
    gate: Gate = field(default_factory=Gate)

    def belong_to(self, source: Mapping[str, str], *, anew: bool) -> None:
        """See `Writer.belong_to`."""
        if anew or self.source != dict(source):
            self.tables, self.stood, self.source = {}, {}, dict(source)

    def positions(self) -> Positions:
        """See `Writer.positions`."""
        self.gate.passes()
        return dict(self.stood)

    def load(self, table: str, keys: Collection[Key]) -> Mapping[Key, Row]:
        """See `Writer.load`."""
        self.gate.passes()
        rows = self.tables.get(table, {})
        return {key: rows[key] for key in keys if key in rows}

    def apply(self, changes: Changes, old: Positions, new: Positions) -> None:
        """See `Writer.apply`."""
        self.gate.passes()
        if any(self.stood.get(place) != old.get(place) for place in new):
            raise Overtaken("another writer has moved the positions")
        for table, rows in changes.items():
            known = self.tables.setdefault(table, {})
            for key, row in rows.items():
                before = known.get(key)
                if before is None or not (_ONCE[table] or row.get("sequence", 0) < before.get("sequence", 0)):
                    known[key] = row
        self.stood.update(new)

    def forget(self) -> None:
        """See `Writer.forget`."""

    def trim(self, **before: object) -> int:  # noqa: ARG002 -- what is old at which instant
        """See `Writer.trim`: an hour is never old enough."""
        return 0

    def trim_logs(self, *, before: datetime, now: datetime, rows_max: int) -> int:  # noqa: ARG002
        """See `Writer.trim_logs`: as above."""
        return 0


class Thread:
    """As `threading.Thread`, as far as a projector needs it."""

    def __init__(self, loop: Loop, machine: Machine, body: Callable[[], None]) -> None:
        self._loop, self._machine, self._body = loop, machine, body
        self._task: Task | None = None

    @property
    def ident(self) -> int | None:
        """Whether it was started."""
        return None if self._task is None else 1

    def start(self) -> None:
        """Begin."""
        self._task = self._loop.spawn("projector", self._body, self._machine)

    def is_alive(self) -> bool:
        """Whether it has begun and not ended."""
        return self._task is not None and not self._task.done

    def join(self, timeout: float) -> None:
        """Wait for its end."""
        until = self._loop.seconds + timeout
        while self.is_alive() and self._loop.seconds < until:
            self._loop.sleep(0.05)


class Host(Protocol):
    """A process in which a projector runs."""

    node: ProjectorNode
    machine: Machine
    threads: LoopThreads
    log: Log
    dies_when_written: bool

    def die(self) -> None: ...


class TaskProjector(Projector):
    """A projector that waits in virtual time. What it bears is in the story; what it must not meet is a failure."""

    def __init__(self, process: Host, model: ReadModel, share: Collection[int]) -> None:
        clock = process.node.clock
        super().__init__(
            log=process.log, model=model, now=clock.now, share=share, limits=Limits(idle=IDLE)
        )  # fmt: skip
        self._process = process
        self._moved: Any = process.threads.condition()
        self._stopping: Any = process.threads.event()
        self._hurry: Any = process.threads.event()
        self._hurry.clear()
        self._thread: Any = Thread(process.node.site.loop, process.machine, self._run)

    def _follow(self) -> None:
        try:
            super()._follow()
        except (LogError, Overtaken, ConnectionError) as error:
            self._process.node.site.story.say(self._process.machine.name, f"? {type(error).__name__}: {error}")
            raise
        except Exception as error:
            self._process.node.site.story.fail(self._process.machine.name, f"{type(error).__name__}: {error}")
            raise

    def _publish(self, positions: dict[TopicPartition, int], as_of: datetime) -> None:
        if self._process.dies_when_written:
            self._process.die()
        super()._publish(positions, as_of)


class TaskSharedProjector(SharedProjector):
    """The production service, its loop a task."""

    def __init__(self, process: ProjectorProcess, make: Callable[[Collection[int]], Projector]) -> None:
        super().__init__(process.log, member=process.node.name, make=make, telemetry=process.telemetry)
        self._poll_seconds = POLL_SECONDS
        self._thread = ThreadService(
            self._group, self._run, failed=self._failed, threads=process.threads
        )  # fmt: skip


@dataclass(slots=True, eq=False)
class ProjectorNode(Place["ProjectorProcess"]):
    """A place where projector processes run, one after another."""

    site: Site
    name: str
    clock: MachineClock
    model: Callable[[], ReadModel]
    starts: int = 0
    wanted: bool = True
    process: ProjectorProcess | None = None

    def start(self) -> None:
        """Begin a new process, unless there is one."""
        if not self.runs:
            self.starts += 1
            self.site.story.say(self.name, f"starts ({self.starts})")
            self.process = ProjectorProcess(self)

    def stop(self) -> None:
        """A planned end; called from a task, which waits for it."""
        process = self.process
        if process is not None and self.runs:
            process.service.stop(0)
            process.machine.nudge()
            process.service.stop(STOP_SECONDS)
            self.kill("stopped")


class ProjectorProcess:
    """One life of a projector's node."""

    def __init__(self, node: ProjectorNode) -> None:
        site = node.site
        self.node = node
        self.machine = Machine(f"{node.name}#{node.starts}")
        self.threads = LoopThreads(site.loop, self.machine)
        self.telemetry = StoryTelemetry(site.story, self.machine)
        self.log = site.log_of(self.machine, node.clock)
        self.dies_when_written = False  # A14
        self.service = TaskSharedProjector(self, lambda share: TaskProjector(self, node.model(), share))
        self.service.start()

    def die(self) -> None:
        """Here and now."""
        self.node.site.story.fault("A14", self.machine.name, "dies between its rows and its positions")
        self.node.site.loop.kill(self.machine)
        raise Killed


class WatchedWriter(Writer):
    """A writer behind whose back somebody looks each time how far the rows are, as whoever waits for a change does."""

    def __init__(self, database: Any, glimpses: list[Glimpse]) -> None:
        super().__init__(database)
        self._glimpses = glimpses

    def apply(self, changes: Changes, old: Positions, new: Positions) -> None:
        """See `Writer.apply`."""
        super().apply(changes, old, new)
        with self._database.connect() as connection:
            stood = positions_of(connection)
        self._glimpses += (
            Glimpse(table="positions", key=f"{place.topic}-{place.partition}", version=stood[place])
            for place in sorted(new)
        )


class ReadModelPlace:
    """Where the rows of a cluster are, and what they are at the end. `glimpses`: how far they were each time."""

    def __init__(self, *, database: bool) -> None:
        self.gate = Gate()
        self.glimpses: list[Glimpse] = []
        self._rows = Rows(gate=self.gate)
        self._folder = TemporaryDirectory(prefix="tidewheel-simulation-") if database else None
        self._database = open_database(f"sqlite:///{self._folder.name}/{FILE}.sqlite") if self._folder else None

    def writer(self) -> ReadModel:
        """What one projector writes through."""
        if self._database is None:
            return self._rows
        return WatchedWriter(GatedDatabase(self._database, self.gate), self.glimpses)

    def rows(self) -> Mapping[str, Mapping[Key, Row]]:
        """The rows in memory as they are now; none where they are in a database."""
        return self._rows.tables

    def tables(self) -> Mapping[str, tuple[Mapping[str, Any], ...]]:
        """All rows by table."""
        if self._folder is None:
            return {name: tuple(rows[key] for key in sorted(rows)) for name, rows in sorted(self._rows.tables.items())}
        (path,) = Path(self._folder.name).glob(f"{FILE}-*.sqlite")
        with closing(sqlite3.connect(path)) as connection:
            connection.row_factory = sqlite3.Row
            return {name: tuple(map(dict, connection.execute(f"SELECT * FROM {name}"))) for name in PROJECTED}  # noqa: S608 -- our own names

    def close(self) -> None:
        """Forget them."""
        if self._database is not None and self._folder is not None:
            self._database.dispose()
            self._folder.cleanup()


class SecondProjector:
    """A projector that follows all partitions beside those of the group, until its machine is killed."""

    def __init__(self, site: Site, name: str, model: ReadModel) -> None:
        self.node = ProjectorNode(site, name, site.clock(), lambda: model)
        self.machine = Machine(name)
        self.threads = LoopThreads(site.loop, self.machine)
        self.log = site.log_of(self.machine, self.node.clock)
        self.dies_when_written = False
        self._model = model
        site.spawn(name, self._run, self.machine)

    def _run(self) -> None:
        count = self.node.site.layout.schedule
        self.projector = TaskProjector(self, self._model, range(max(count, 1)))
        self.projector.start()

    def die(self) -> None:
        """It is killed from outside only."""
