"""The smallest line that does everything: a scheduler, a dispatcher and a worker that speaks to the brokers itself."""

from __future__ import annotations

import uuid
from contextlib import ExitStack, closing, contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self

from node.audit import audit
from node.audit.source import LogSource
from runtime.clock import SystemClock
from runtime.footer import FOOTER_KEY, Footer, read_footer
from runtime.logs.kafka.log import KafkaLog
from runtime.logs.kafka.settings import KafkaSettings
from runtime.record import TopicPartition
from runtime.stores.rocksdb import RocksStore
from runtime.workspace import ROW
from schemas import topics
from tests.faults.mortal import USUAL, Habits, Mortal
from tests.storm.fleet import TIDEWHEEL, Member
from tests.storm.traffic import Watch, definition, event, publish
from tests.support.kafka import delete_topics
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

START_SECONDS = 60  # a deadline, for busy cores
SETTLE_SECONDS = 60
LATE_SECONDS = 60
SUPERVISED_SECONDS = 150  # a session that ends, a name that is taken back, a start on busy cores
SCHEDULES = 4
PARTITIONS = 2
PARTITIONS_OF = {
    family: topics.Layout(schedule=PARTITIONS, shard=PARTITIONS).partitions(family) for family in topics.Family
}
SLOTS = 50


class Line:
    """Schedules due every second, and processes to be struck one at a time. Without a worker nothing is done."""

    def __init__(
        self, folder: Path, bootstrap: str, namespace: str, *, works: bool = True, habits: Habits = USUAL
    ) -> None:
        self.bootstrap, self.namespace = bootstrap, namespace
        self._folder, self._works, self._habits = folder, works, habits
        replicas = bootstrap.count(",") + 1  # as many as there are brokers
        self._settings = KafkaSettings(
            bootstrap=bootstrap, namespace=namespace, replication_factor=replicas, min_insync_replicas=min(replicas, 2),
        )  # fmt: skip
        self._config = folder / "tidewheel.toml"
        self._config.write_text(
            f'bootstrap = "{bootstrap}"\nnamespace = "{namespace}"\npartitions = {PARTITIONS}\n'
            f"replication_factor = {replicas}\nmin_insync_replicas = {min(replicas, 2)}\n",
            encoding="utf-8",
        )
        self.scheduler, self.dispatcher = self.node("scheduler"), self.node("dispatcher")
        tasks = ["worker", "tests.storm.tasks:worker", "--slots", str(SLOTS)]
        command = [TIDEWHEEL, *tasks, "--bootstrap", bootstrap, "--namespace", namespace]
        self.worker = Member("worker", command, folder / "worker.log")
        self.nodes = [self.scheduler, self.dispatcher]
        self.log: KafkaLog
        self.watch: Watch

    def __enter__(self) -> Self:
        with ExitStack() as undo:
            self.log = self.opened()
            undo.callback(self.log.close)
            undo.callback(self._end)
            self.create_topics()
            self._start()
            self.watch = undo.enter_context(Watch(self.log, schedules=SCHEDULES, partitions=PARTITIONS))
            self.must_go_on() if self._works else self.must_create_runs()
            self._undo = undo.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._undo.close()

    def _start(self) -> None:
        if self._works:
            self.worker.start()
        for node in self.nodes:
            node.start()
        first = datetime.now(UTC).replace(microsecond=0)
        publish(self.bootstrap, self.namespace, [event("schedule.put", n, definition(first)) for n in range(SCHEDULES)])
        for node in self.nodes:
            eventually(lambda node=node: node.is_ready, within=START_SECONDS, what=f"it is ready:\n{self.told()}")  # type: ignore[misc]

    def _end(self) -> None:
        """Nobody is missed: not one of them is asked."""
        self.worker.kill()
        for node in self.nodes:
            node.kill()

    def node(self, role: str, number: int = 0) -> Mortal:
        """A process that has this role."""
        arguments = ["--config", str(self._config), "--roles", role]
        return Mortal(self._folder, f"{role}-{number}", arguments, habits=self._habits)

    def of(self, role: str) -> Mortal:
        """The one that is struck."""
        return {"scheduler": self.scheduler, "dispatcher": self.dispatcher}[role]

    def opened(self) -> KafkaLog:
        """The log, as somebody sees it who sees it for the first time."""
        return KafkaLog(self._settings, SystemClock())

    def create_topics(self) -> None:
        """Those that are not there."""
        table = {spec: PARTITIONS_OF[spec.family] for spec in topics.topic_table(topics.Retention())}
        with closing(self.opened()) as log:
            log.create(table | {topics.dispatch_spec("default", topics.Retention()): topics.INBOXES})

    def revive(self) -> None:
        """Begin a new life for everyone who has none."""
        dead = [node for node in self.nodes if not node.is_running]
        for node in dead:
            node.lives_on()
            node.start()
        if dead:
            self.must_go_on()

    def must_go_on_with(self, node: Mortal) -> None:
        """In its next life."""
        if not node.is_running:
            node.start()
        self.must_go_on()

    def must_go_on(self) -> None:
        """Runs of each schedule that are due from now on are created and done."""
        goes_on = self.watch.goes_on_after(datetime.now(UTC), within=LATE_SECONDS)
        assert goes_on, f"the line stands still\n{self.told()}"

    def settle(self) -> None:
        """Pause everything, and see every run to its end."""
        publish(self.bootstrap, self.namespace, [event("schedule.pause", number) for number in range(SCHEDULES)])
        self.watch.wait_for_outcomes(lambda: None, within=SETTLE_SECONDS)

    def stop(self) -> None:
        """End both processes in good order."""
        for node in self.nodes:
            node.ask_to_stop()
        assert [node.wait(30) for node in self.nodes] == [0, 0], self.told()

    def audited(self) -> dict[str, Any]:
        """What the topics alone say."""
        found: dict[str, Any] = audit(LogSource(self.log)).as_json()
        return found

    def must_go_on_supervised(self) -> None:
        """The same with somebody who starts again what has ended by itself, as a supervisor does."""
        since = datetime.now(UTC)
        eventually(lambda: self._goes_on_supervised(since), within=SUPERVISED_SECONDS, what="the line goes on")

    def _goes_on_supervised(self, since: datetime) -> bool:
        for node in self.nodes:
            if not node.is_running:
                node.start()
        return self.watch.goes_on_after(since, within=1)

    def must_create_runs(self) -> None:
        """Runs of each schedule that are due from now on are created, whoever does them."""
        goes_on = self.watch.creates_after(datetime.now(UTC), within=LATE_SECONDS)
        assert goes_on, f"no runs are created\n{self.told()}"

    def wrong(self) -> dict[str, Any]:
        """What the audit finds wrong: nothing, if all is well."""
        found = self.audited()
        return {name: found[name] for name in ("missing", "duplicated", "unexpected", "double_outcomes") if found[name]}

    def told(self) -> str:
        """The last words of each, for a test that fails."""
        texts = (f"--- {node.name}\n{node.text[-3000:]}" for node in self.nodes)
        return "\n".join(texts)

    # --- states ---------------------------------------------------------------------------------------------------

    def rows_stored(self, role: str) -> dict[int, dict[bytes, bytes]]:
        """The rows that the stores of a stopped process hold, by partition."""
        return {number: stored_in(self.of(role).state / f"{role}-{number}") for number in range(PARTITIONS)}

    def rows_logged(self, role: str) -> dict[int, dict[bytes, bytes]]:
        """The same rows, folded from what is committed on the changelog."""
        found: dict[int, dict[bytes, bytes]] = {}
        for number in range(PARTITIONS):
            rows = dict(self._changes(role, number))  # of each key the last one
            found[number] = {key: value for key, value in rows.items() if value is not None and key.startswith(ROW)}
        return found

    def footers(self, role: str, number: int) -> list[Footer]:
        """The footers of a partition's transactions, in the order of the log."""
        changes = self._changes(role, number)
        return [read_footer(value) for key, value in changes if key == FOOTER_KEY and value is not None]

    def _changes(self, role: str, number: int) -> Iterator[tuple[bytes, bytes | None]]:
        place = TopicPartition(topics.changelog_topic(role), number)
        end = self.log.end_offset(place)
        with closing(self.log.open_reader({place: self.log.begin_offset(place)})) as reader:
            while reader.position(place) < end:
                for record in reader.poll(records_max=5000, bytes_max=1 << 24, timeout=0.2):
                    yield record.key or b"", record.value


@contextmanager
def standing(folder: Path, bootstrap: str, *, works: bool = True, habits: Habits = USUAL) -> Iterator[Line]:
    """A line of which nothing is left afterwards: its topics, groups and transactional ids are nobody else's."""
    namespace = f"test-{uuid.uuid4().hex[:12]}."
    try:
        with Line(folder, bootstrap, namespace, works=works, habits=habits) as line:
            yield line
    finally:
        delete_topics(bootstrap, namespace)


def stored_in(folder: Path) -> dict[bytes, bytes]:
    """The rows of a store that nobody has open."""
    with closing(RocksStore(folder)) as store:
        return dict(store.scan(ROW, bytes([ROW[0] + 1])))
