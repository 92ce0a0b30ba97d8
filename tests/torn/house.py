"""A small line on a real broker, each of whose owners has a network of its own, and the tearing of its transactions."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from random import Random

import orjson

from node.audit import Report, audit
from node.audit.source import Entry
from runtime.footer import FOOTER_KEY
from runtime.logs.kafka.log import KafkaLog
from runtime.record import REPLY_HEADER, SEQUENCE_HEADER, Outgoing, Record, TopicPartition
from schemas import codec, identity, topics
from schemas.facts import Fact, RunCreated, RunFinished
from schemas.internal import HandOut
from simulation.clock import ManualClock
from simulation.line import SimulatedWorker
from tests.support.proxy import Course, Rule
from tests.torn.changelogs import Changelog
from tests.torn.owners import LAYOUT, SECONDS, Guards, Owner, Standing, settings_of
from tests.torn.tears import Tear

SCHEDULES_PER_PARTITION = 2
SECOND = timedelta(seconds=1)
LOOK_SECONDS = 0.02  # between looks at what has happened
TICK_SECONDS = 1.5  # at most, until our clock goes on although somebody is not done with its last second
TEAR_TICKS = 12  # for a tear to take place: what it waits for may never come
SETTLE_TICKS = 60
READ_SECONDS = 120.0  # for what was written to be read: nothing is judged before
OFFENDERS_MAX = 6  # in a verdict
AUDITED = {topics.VERSIONS, topics.RUN_EVENTS, topics.RUN_OUTCOMES, topics.RUNS}
QUEUE = "default"
PLACES = [("scheduler", 0), ("scheduler", 1), ("dispatcher", 0), ("dispatcher", 1)]
BUSY = [*PLACES[:2], ("dispatcher", identity.partition_of(QUEUE, LAYOUT.shard))]  # the other has no queue to serve


class OnceWorker(SimulatedWorker):
    """Drops hand-outs that it has seen, as workers do: a transaction that is rolled forward sends them again."""

    def _take(self, record: Record) -> Iterator[str]:
        fact = codec.read_fact(record.value or b"")
        if isinstance(fact, HandOut) and fact.offset > self.read_up_to:
            yield from super()._take(record)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What one tear came to. `damage`: faults of the audit and of changelogs by kind, none when all is well."""

    guards: Guards
    kind: str
    role: str
    took_place: bool
    damage: Mapping[str, int]
    told: tuple[str, ...]
    happened: Mapping[str, int]
    owners: Mapping[str, int]  # what the torn one and its successor did
    seconds: float


class Watch:
    """Follows all topics as they are committed, and is what the audit reads: `AuditSource`. Calls from one thread.

    An audit that reads a broker opens ten clients; here one stays, and the record that it has read is read once.
    """

    def __init__(self, log: KafkaLog) -> None:
        self._log = log
        self._changelogs = {TopicPartition(topics.changelog_topic(role), n): Changelog() for role, n in PLACES}
        self._places = [TopicPartition(topic, n) for topic in log.topics() for n in range(log.partitions(topic))]
        self._reader = log.open_reader(dict.fromkeys(self._places, 0))
        self._created: dict[str, datetime] = {}
        self._finished: set[str] = set()
        self._outputs: Counter[str] = Counter()  # by the position of the transaction that they were written in
        self._limits: dict[TopicPartition, int] = {}  # up to where the audit may read
        self._entries: dict[TopicPartition, list[Entry]] = {place: [] for place in self._places}

    def look(self, timeout: float) -> None:
        """Take what has come."""
        for record in self._reader.poll(records_max=2000, bytes_max=1 << 24, timeout=timeout):
            place = TopicPartition(record.topic, record.partition)
            if place in self._changelogs:
                self._changelogs[place].take([record])
            if record.topic in AUDITED or record.key == FOOTER_KEY:
                self._entries[place].append(entry(record))
            self._outputs.update(value.decode() for key, value in record.headers if key == SEQUENCE_HEADER)
            if record.topic in {topics.RUN_EVENTS, topics.RUN_OUTCOMES}:
                self._note(codec.read_fact(record.value or b""))

    def is_settled(self, instant: datetime) -> bool:
        """Whether all up to `instant` is decided, and every run of then has its outcome."""
        open_ = any(at <= instant and run not in self._finished for run, at in self._created.items())
        return not open_ and self.is_decided(instant)

    def is_decided(self, instant: datetime) -> bool:
        """Whether all up to `instant` is decided."""
        marks = [self._decided(n) for n in range(LAYOUT.schedule)]
        return all(mark is not None and mark >= instant for mark in marks)

    def judge(self) -> tuple[Report, list[str]]:
        """The audit, and what is wrong with the changelogs.

        Owners go on meanwhile. So marks and footers are as they are now, events as they are when all has been read that
        stands before those, and everything else as it is when all has been read that stands before these.
        """
        owing = {place: changelog.owing() for place, changelog in self._changelogs.items()}
        self._limit(topics.changelog_topic("scheduler"))
        self._read_all()
        self._limit(topics.RUN_EVENTS)
        self._read_all()
        for place, changelog in self._changelogs.items():
            changelog.settle(owing[place], self._outputs)
        faults = [
            f"{place.topic}-{place.partition}{fault}"
            for place, changelog in self._changelogs.items()
            for fault in changelog.faults
        ]
        return audit(self), faults

    def _limit(self, topic: str) -> None:
        self._limits |= {place: self._reader.position(place) for place in self._places if place.topic == topic}

    def _read_all(self) -> None:
        """Read up to the ends of now."""
        ends = self._log.end_offsets(self._places)
        deadline = time.monotonic() + READ_SECONDS
        while behind := [place for place, end in ends.items() if self._reader.position(place) < end]:
            assert time.monotonic() < deadline, f"somebody's open transaction stands in {behind}"
            self.look(LOOK_SECONDS)

    def partitions(self, topic: str) -> int:
        """See `AuditSource.partitions`."""
        return self._log.partitions(topic)

    def begin(self, _topic: str, _partition: int) -> int:
        """See `AuditSource.begin`: nothing is old enough to be gone."""
        return 0

    def end(self, topic: str, partition: int) -> int:
        """See `AuditSource.end`."""
        place = TopicPartition(topic, partition)
        return self._limits.get(place, self._reader.position(place))

    def entries(self, topic: str, partition: int, start: int) -> Iterator[Entry]:
        """See `AuditSource.entries`."""
        end = self.end(topic, partition)
        return (each for each in self._entries[TopicPartition(topic, partition)] if start <= each.offset < end)

    def close(self) -> None:
        """Follow no more."""
        self._reader.close()

    def _note(self, fact: Fact) -> None:
        if isinstance(fact, RunCreated):
            self._created[fact.run_id] = fact.created_at
        if isinstance(fact, RunFinished):
            self._finished.add(fact.run_id)

    def _decided(self, number: int) -> datetime | None:
        footer = self._changelogs[TopicPartition(topics.changelog_topic("scheduler"), number)].footer
        return None if footer is None else footer.decided_until


def entry(record: Record) -> Entry:
    """A record as the audit takes it."""
    value = None if record.value is None else orjson.loads(record.value)
    return Entry(offset=record.offset, key=(record.key or b"").decode(), value=value, appended_at=record.appended_at)


class House:
    """The line: four owners, a worker, a clock that moves when told. Use it with `closing`."""

    def __init__(self, bootstrap: str, namespace: str, folder: Path, chance: Random) -> None:
        self._settings, self._folder, self._chance = settings_of(bootstrap, namespace), folder, chance
        self._standing = Standing(Guards(doubt=True, decisions=True))
        self.clock = ManualClock(datetime.now(UTC).replace(microsecond=0))
        self._numbers = count()
        self._known: Counter[str] = Counter()
        self.log = KafkaLog(self._settings, self.clock)
        self.log.create({spec: LAYOUT.partitions(spec.family) for spec in topics.topic_table(topics.Retention())})
        self._worker = OnceWorker(log=self.log, layout=LAYOUT)
        self._stopping, self._is_to_report = threading.Event(), threading.Event()
        self._working = threading.Thread(target=self._work, daemon=True)
        self._watch = Watch(self.log)
        self._publish_schedules()
        self._owners = {place: self._owner(*place, self._new_store()) for place in PLACES}
        for owner in self._owners.values():
            owner.start()
        for owner in self._owners.values():
            owner.wait_until_ready()
        self._is_to_report.set()
        self._working.start()
        assert self.settle(), "it does not even work untorn"

    # --- a tear ---------------------------------------------------------------------------------------------------

    def tear(self, tear: Tear, guards: Guards) -> Verdict:
        """Tear a transaction of one owner, have it replaced, and see what has come of it."""
        began, self._standing.guards = time.monotonic(), guards
        place = self._chance.choice([place for place in BUSY if tear.role in {"", place[0]}])
        if tear.at_start:
            course = self._replace(place, rules=tear.rules)
        else:
            course = self._owners[place].proxy.follow(tear.rules)
        owner = self._owners[place]
        before = owner.counts()
        owner.log.fail_next = tear.fails
        took_place = self._ticking_until(course.over.is_set, TEAR_TICKS)
        self._replace(place, dies=tear.dies and took_place)
        damage, told = self._damage(settled=self.settle())
        return Verdict(
            guards=guards, kind=tear.kind, role=owner.role, took_place=took_place, damage=damage, told=told,
            happened=owner.proxy.happened, owners=dict(owner.counts() - before + self._owners[place].counts()),
            seconds=round(time.monotonic() - began, 2),
        )  # fmt: skip

    def _replace(self, place: tuple[str, int], *, dies: bool = False, rules: Iterable[Rule] = ()) -> Course:
        """Another owner takes a partition over: from one that stops, or from one that no longer moves.

        The successor of the dead lives elsewhere, or in half of the cases where its predecessor did.
        """
        old = self._owners[place]
        same_store = not dies and self._chance.random() < 0.5
        if not dies:
            self._end(old)
        new = self._owners[place] = self._owner(*place, old.store if same_store else self._new_store())
        course = new.proxy.follow(rules)
        new.start()
        if not tuple(rules):
            new.wait_until_ready()
        if dies:
            self._end(old, politely=False)
        return course

    def _end(self, owner: Owner, *, politely: bool = True) -> None:
        assert owner.close(politely=politely), f"{owner.role} {owner.number} does not end: {owner.told.reasons}"

    def _ticking_until(self, holds: Callable[[], bool], ticks: int) -> bool:
        """Let our clock go on until something holds; whether it came to that.

        A second begins when all is decided up to it, so that a busy machine is not asked for more and more.
        """
        for _ in range(ticks):
            self._tick()
            deadline, now = time.monotonic() + TICK_SECONDS, self.clock.now()
            while not holds() and not self._watch.is_decided(now) and time.monotonic() < deadline:
                self._watch.look(LOOK_SECONDS)
            self._watch.look(LOOK_SECONDS)
            if holds():
                return True
        return False

    def _tick(self) -> None:
        self.clock.advance(SECOND)
        self._is_to_report.set()
        for owner in self._owners.values():
            owner.log.wake()

    # --- judgement ------------------------------------------------------------------------------------------------

    def settle(self) -> bool:
        """Wait until all is decided up to now and every run has its outcome; whether it came to that in time."""
        self._tick()
        now = self.clock.now()
        deadline = time.monotonic() + TICK_SECONDS
        while not self._watch.is_settled(now) and time.monotonic() < deadline:
            self._watch.look(LOOK_SECONDS)
        return self._watch.is_settled(now) or self._ticking_until(lambda: self._watch.is_settled(now), SETTLE_TICKS)

    def _damage(self, *, settled: bool) -> tuple[dict[str, int], tuple[str, ...]]:
        """What is wrong and was not before, by kind and in words."""
        report, changelogs = self._watch.judge()
        found = Counter(report.faults)
        stopped = [repr(failure) for owner in self._owners.values() if (failure := owner.service.failure) is not None]
        found |= Counter({"changelog": len(changelogs), "unsettled": int(not settled), "stopped": len(stopped)})
        new, self._known = found - self._known, found
        offenders = [f"{kind}: {each.what} {each.detail}" for kind, named in report.offenders.items() for each in named]
        return dict(new), tuple([*offenders, *changelogs, *stopped][:OFFENDERS_MAX]) if new else ()

    # --- life -----------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """End everything."""
        self._stopping.set()
        self._working.join(SECONDS)
        for owner in self._owners.values():
            owner.close(politely=False)
        self._watch.close()
        self.log.close()

    def _owner(self, role: str, number: int, store: Path) -> Owner:
        return Owner(self._settings, self.log, role, number, standing=self._standing, clock=self.clock, store=store)

    def _new_store(self) -> Path:
        return self._folder / f"store-{next(self._numbers)}"

    def _work(self) -> None:
        while not self._stopping.wait(LOOK_SECONDS):
            if self._is_to_report.is_set():
                self._is_to_report.clear()
                self._worker.announce()
            self._worker.work()

    def _publish_schedules(self) -> None:
        """As many in each partition, all due every second."""
        wanted = Counter(dict.fromkeys(range(LAYOUT.schedule), SCHEDULES_PER_PARTITION))
        for number in count():
            key = f"torn/every-second-{number}"
            partition = identity.partition_of(key, LAYOUT.schedule)
            if wanted[partition]:
                wanted[partition] -= 1
                self.log.append([_command(key, partition)])
            if not wanted.total():
                return


def _command(key: str, partition: int) -> Outgoing:
    definition = {
        "trigger": {"cron": "* * * * * *"}, "overlap": {"policy": "allow_all"},
        "job": {"target": {"type": "task", "name": "work"}},
    }  # fmt: skip
    tenant, name = key.split("/")
    envelope = {
        "specversion": "1.0", "id": f"put-{name}", "source": "tests", "type": "tidewheel.schedule.put.v1",
        "subject": key, "data": {"tenant": tenant, "name": name, "definition": definition},
    }  # fmt: skip
    headers = ((REPLY_HEADER, b"0"),)
    return Outgoing(topics.SCHEDULE_CHANGES, partition, key.encode(), orjson.dumps(envelope), headers)
