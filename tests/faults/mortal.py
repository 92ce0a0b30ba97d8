"""Processes of `tidewheel serve` that die at a named point of their work, the moment a test wants them to.

All that runs is the product's own code, started by its own command. In such a process a handful of its classes are
children of theirs, which look at each point whether the file `fate` names it, and then are gone as by kill -9: no word,
no clean-up. What the point is the death of is told by the phase before it: `settling: positions sent`.

    before begin     begun             a transaction is about to be opened; is open and empty
    decision sent    half sent         the brokers have the decision record; of what follows, half
    all sent         positions sent    everything; the positions too, and the commit is not asked for yet
    committed        applied           the commit is answered, the store is behind; the store has it
    in the write                       some bytes of the store's batch are in its file, and no more (see `allow_bytes`)
    stored                             a batch without a checkpoint: of rows, or of wakeups that follow from them
    aborting         aborted           a commit was given up; the brokers are to hear of it, or have
    restoring: ...   settling: ...     while the state is rebuilt; while a stop or a loss of the partition is prepared
    revoked                            the partitions are let go of, and the group does not know yet

They are forked from a server that has imported everything: a new life begins in a moment, not in seconds.
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import threading
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from node import roles
from node.serving import serve
from runtime import processor, ranges, restore
from runtime.host import RoleService
from runtime.log import LogError
from runtime.logs.kafka import log as kafka
from runtime.logs.kafka import topics
from runtime.logs.kafka.producing import KafkaProducer
from runtime.processor import Processor
from runtime.stores import rocksdb
from runtime.stores.rocksdb import RocksStore
from runtime.workspace import META

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from rocksdict import Options

    from runtime.logs.producing import Commit
    from runtime.record import Outgoing, TopicPartition

WRITTEN_BYTES = 40  # of a batch, before the write is cut short: beyond a record's head, within its first entries
ABORTS = ("aborting", "aborted")
SETTLED_MAX = 1000  # some seconds: a stop has twenty
DEATHS = {-signal.SIGKILL, -signal.SIGXFSZ}


@dataclass(frozen=True, slots=True, kw_only=True)
class Habits:
    """In what a life is other than usual."""

    records_at_once: int | None = None  # that a restore reads
    wal_bytes: int | None = None  # after which a store asks for room
    fresh_seconds: float | None = None  # for which what was asked of topics is believed


USUAL = Habits()


class Fate:
    """Where this process dies: the file holds the point, and the how many-th time it is reached there."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._phase = threading.local()
        self._reached: Counter[str] = Counter()

    def reach(self, point: str) -> None:
        """Die, if it is here."""
        if self.is_at(point):
            self.strike()

    def is_at(self, point: str) -> bool:
        """Whether it is here."""
        point = getattr(self._phase, "name", "") + point
        wanted, count = self._wanted()
        if wanted != point:
            return False
        self._reached[point] += 1
        return self._reached[point] >= count

    def is_in(self, phase: str) -> bool:
        """Whether it is to be in this phase, and still ahead."""
        return self._wanted()[0].startswith(f"{phase}: ")

    def strike(self) -> None:
        """Die. The file goes: the next life is a new one."""
        self.meet()
        os.kill(os.getpid(), signal.SIGKILL)
        threading.Event().wait()  # the signal finds us

    def meet(self) -> None:
        """From now on it is known that the point was reached."""
        self._file.unlink(missing_ok=True)

    def _wanted(self) -> tuple[str, int]:
        """The point, and the how many-th time; none, where nobody is to die."""
        try:
            point, _, count = self._file.read_text(encoding="utf-8").rpartition(" ")
        except FileNotFoundError:
            return "", 0
        return point, int(count)

    @contextmanager
    def during(self, phase: str) -> Iterator[None]:
        """What this thread reaches is called by the phase it is in."""
        self._phase.name = f"{phase}: "
        try:
            yield
        finally:
            self._phase.name = ""


def mortal_producer(fate: Fate) -> type[KafkaProducer]:
    """Dies while it writes a transaction."""

    class MortalProducer(KafkaProducer):
        def begin(self) -> None:
            fate.reach("before begin")
            super().begin()
            fate.reach("begun")

        def send(self, records: Iterable[Outgoing]) -> None:
            added = list(records)
            if len(added) > 1 and fate.is_at("half sent"):
                super().send(added[: len(added) // 2])
                self._arrive()
                fate.strike()
            super().send(added)

        def flush(self) -> None:
            super().flush()
            fate.reach("decision sent")

        def commit(self, positions: Mapping[TopicPartition, int]) -> Commit:
            if fate.is_at("all sent"):
                self._arrive()
                fate.strike()
            if any(map(fate.is_at, ABORTS)):
                self._arrive()
                raise LogError("the test has this transaction given up")
            return super().commit(positions)

        def _end(self, what: str, end: Callable[[float], None]) -> None:
            fate.reach("positions sent" if what == "commit" else "aborting")
            super()._end(what, end)
            fate.reach("committed" if what == "commit" else "aborted")

        def _arrive(self) -> None:
            client, _ = self._open()
            self._flush(client)

    return MortalProducer


def mortal_store(fate: Fate) -> type[RocksStore]:
    """Dies before, in and after a batch that moves the checkpoint."""

    class MortalStore(RocksStore):
        def apply(self, changes: Mapping[bytes, bytes | None]) -> None:
            if META in changes and fate.is_at("in the write"):
                fate.meet()
                allow_bytes(max(Path(self.place).glob("*.log"), key=lambda file: int(file.stem)), WRITTEN_BYTES)
            super().apply(changes)
            fate.reach("applied" if META in changes else "stored")

    return MortalStore


def allow_bytes(file: Path, count: int) -> None:
    """Whoever writes more than that to the file is ended by the system in the middle of the write."""
    limit = file.stat().st_size + count
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))


def mortal_processor(fate: Fate) -> type[Processor]:
    """Dies while it prepares a stop: who has nothing to say at that moment is asked again until it has."""

    class MortalProcessor(Processor):
        def settle(self) -> None:
            with fate.during("settling"):
                super().settle()
                for _ in range(SETTLED_MAX):
                    if not fate.is_in("settling"):
                        return
                    super().settle()

    return MortalProcessor


def mortal_role(fate: Fate) -> type[RoleService]:
    """Dies with its partitions in its hands, which nobody works on any more."""

    class MortalRole(RoleService):
        def revoked(self, partitions: Sequence[int]) -> None:
            super().revoked(partitions)
            fate.reach("revoked")

    return MortalRole


def mortal_restore(fate: Fate) -> Callable[..., Any]:
    """Dies while a state is rebuilt."""
    rebuild = restore.restore

    def restored(*arguments: Any) -> Any:
        with fate.during("restoring"):
            fate.reach("begun")
            found = rebuild(*arguments)
            fate.reach("done")
        return found

    return restored


def in_small_files(wal_bytes: int) -> Callable[[], Options]:
    """Options with which a store asks for room soon: what it is given in advance lasts for so many bytes."""
    usual = rocksdb._options

    def options() -> Options:
        found = usual()
        found.set_max_total_wal_size(wal_bytes)
        return found

    return options


def live(arguments: Sequence[str], folder: Path, output: Path, habits: Habits) -> None:
    """A life: `tidewheel serve` with these arguments, until told to stop or until its fate."""
    with output.open("ab") as said:
        os.dup2(said.fileno(), 1)
        os.dup2(said.fileno(), 2)
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    fate = Fate(folder / "fate")
    vars(kafka)["KafkaProducer"] = mortal_producer(fate)
    vars(roles)["RocksStore"] = mortal_store(fate)
    vars(roles)["Processor"] = mortal_processor(fate)
    vars(roles)["RoleService"] = mortal_role(fate)
    vars(processor)["restore"] = mortal_restore(fate)
    if habits.records_at_once is not None:
        ranges.READ_RECORDS, restore.HELD_ROWS_MAX = habits.records_at_once, 0
    if habits.wal_bytes is not None:
        vars(rocksdb)["_options"] = in_small_files(habits.wal_bytes)
    if habits.fresh_seconds is not None:
        topics.FRESH_SECONDS = habits.fresh_seconds
    serve(list(arguments))


class Mortal:
    """A process of `tidewheel serve`, in as many lives as it is given."""

    def __init__(self, folder: Path, name: str, arguments: Sequence[str], *, habits: Habits = USUAL) -> None:
        self.name, self.folder, self.output = name, folder / name, folder / f"{name}.log"
        self._habits = habits
        self._arguments = [*arguments, "--data", str(self.folder)]
        self._forks = multiprocessing.get_context("forkserver")
        self._forks.set_forkserver_preload([__name__, "node.sharing"])
        self._process: Any = None
        self._began = 0
        self.folder.mkdir(exist_ok=True)

    @property
    def is_running(self) -> bool:
        """Whether it lives."""
        return self._process is not None and self._process.is_alive()

    @property
    def state(self) -> Path:
        """The folder of its stores."""
        (found,) = (self.folder / "process-0" / "state").iterdir()
        return found

    def start(self, *extra: str, **changed: Any) -> None:
        """Begin a life, with some habits changed."""
        assert not self.is_running, f"{self.name} lives"
        self._began = len(self.text)
        life = ([*self._arguments, *extra], self.folder, self.output, replace(self._habits, **changed))
        self._process = self._forks.Process(target=live, args=life, daemon=True)
        self._process.start()

    def dies_at(self, point: str, count: int = 1) -> None:
        """It will, the moment it is there for the `count`-th time; whoever starts it next has nothing to fear."""
        part = self.folder / "fate.part"
        part.write_text(f"{point} {count}", encoding="utf-8")
        part.rename(self.folder / "fate")

    def lives_on(self) -> None:
        """It does not die where it was to."""
        (self.folder / "fate").unlink(missing_ok=True)

    @property
    def is_ready(self) -> bool:
        """Whether all that it was given works, in this life."""
        return self.said("node_ready") > 0

    @property
    def is_dead(self) -> bool:
        """Whether it died where it was to: not elsewhere, and not of itself."""
        met = not self.is_running and not (self.folder / "fate").exists()
        return met and self._process.exitcode in DEATHS

    def kill(self) -> None:
        """SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._process.join()

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """SIGSTOP, and SIGCONT afterwards: it sees nothing of what is done meanwhile."""
        os.kill(self._process.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self._process.pid, signal.SIGCONT)

    def ask_to_stop(self) -> None:
        """SIGTERM."""
        if self.is_running:
            self._process.terminate()

    def wait(self, seconds: float) -> int | None:
        """Its exit code; killed when it takes longer."""
        if self._process is None:
            return None
        self._process.join(seconds)
        if self.is_running:
            self.kill()
            return None
        code: int = self._process.exitcode
        return code

    def said(self, words: str) -> int:
        """How often it said them in this life."""
        return self.text[self._began :].count(words)

    @property
    def text(self) -> str:
        """All that it ever said."""
        return self.output.read_text(encoding="utf-8") if self.output.exists() else ""
