"""One core over one partition: read a batch -> decide -> evolve -> stage -> commit once.

A batch answers inputs before wakeups, and a key's wakeups only up to an instant at which everything the log then held
about it has been answered: a pause that was published during an outage is known before the occurrences of the outage
are decided. There are two such instants. Up to `read_until` all is answered, whomever it is about. More than that is
read (`runtime.read_ahead`); a key of which nothing is among it, nor of what all keys share, is known up to there. So a
flood of records of some keys leaves the others their time.

`runtime.transactions` writes what a batch decided. When a commit fails in a way that leaves doubt, the processor is
closed and opened again: the log tells the truth.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from runtime import continuity
from runtime import footer as framing
from runtime.batch import NOTHING_GIVEN, Batch, Given, outgoing
from runtime.clock_watch import NEVER_READ, ClockWatch, Remembered
from runtime.footer import Decision, Footer
from runtime.horizons import Horizons
from runtime.limits import Limits
from runtime.log import LogError, OffsetOutOfRange, UnknownTopic
from runtime.machine import Moment, Output
from runtime.observer import LOOK_SECONDS, UNOBSERVED
from runtime.operations import Operations
from runtime.partition import Partition
from runtime.read_ahead import Allowance, ReadAhead, Unanswered
from runtime.record import SEQUENCE_HEADER, Record, TopicPartition
from runtime.restore import Progress, restore, set_aside
from runtime.store import StoreCorrupt
from runtime.telemetry import Event, Metric, Telemetry
from runtime.transactions import Transactions
from runtime.wakeups import Wakeups
from runtime.workspace import Workspace
from schemas import codec, topics
from schemas.facts import ClockHeld, ClockReleased, Fact, GapAccepted
from schemas.faults import Refused

if TYPE_CHECKING:
    from runtime.clock import Clock
    from runtime.log import Log, Reader
    from runtime.machine import Core
    from runtime.observer import Observer
    from runtime.store import Store

SHARED_SECONDS = 1.0  # since some key was known further than others: it may be due every second
SOON = timedelta(milliseconds=500)  # before a full batch of commands ends, on a busy machine
FEW = 100  # of a batch such a part: its commands are then a small part of what each batch costs in any case
UNREAD_SECONDS = 0.005  # a look at the log, while a due wakeup waits for what is not read yet: brokers may be away
ABSENT_FOR = timedelta(minutes=1)  # that a topic was not there is believed: Kafka is asked for it for half a second
OF_THE_SHELL = frozenset({ClockHeld, ClockReleased, GapAccepted})  # facts that the shell states, of no state of a core


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What comes in from outside besides records: time and randomness; and whom to tell.

    `remembered` and `ahead` are a process's, of all its partitions.
    """

    clock: Clock
    entropy: Callable[[], bytes]  # 16 fresh bytes
    telemetry: Telemetry
    remembered: Remembered = field(default_factory=Remembered)
    ahead: Allowance = field(default_factory=Allowance)


class Processor:
    """Drives one core over one partition. `open`, then `step` again and again from one thread, then `close`."""

    def __init__(
        self,
        core: Core[Any],
        partition: Partition,
        log: Log,
        store: Store,
        world: World,
        *,
        limits: Limits = Limits(),  # noqa: B008 -- a frozen value
        accept_clock_after: timedelta | None = timedelta(seconds=60),
        observer: Observer = UNOBSERVED,
    ) -> None:
        self._core = core
        self._partition = partition
        self._log = log
        self._store = store
        self._clock = world.clock
        self._entropy = world.entropy
        self._telemetry = world.telemetry
        self._limits = limits
        self._observer = observer
        self._look_at = 0.0  # since boot
        self._source = partition.source
        self._reads = partition.inputs.of(partition.number)
        self._lead = TopicPartition(partition.inputs.lead, partition.number)
        self._partitions: dict[str, int] = {}  # of the topics that outputs go to: a count never changes
        self._absent: dict[str, datetime] = {}  # topics of queues that were not there, and when
        self._incarnations: Mapping[str, str] = {}  # of the topics whose places we remember: neither do they
        self._progress = Progress(partition, world.clock, world.telemetry)
        self._given = NOTHING_GIVEN
        self._labels = {"role": partition.role, "partition": str(partition.number)}
        said = Operations(log, partition, world.telemetry)
        self._watch = ClockWatch(partition, world, said, accept_after=accept_clock_after)
        self._notices: Sequence[Fact] = ()  # what was found when the partition was opened, still to be stated
        self._workspace = Workspace(core, store)
        self._transactions = Transactions(partition, log, self._workspace, self._watch, world.clock, world.telemetry)
        self._reader: Reader | None = None
        self._mark = NEVER_READ
        self._ahead = ReadAhead(
            core.read, core.about, core.strand, self._reads, records_max=limits.ahead_records,
            bytes_max=limits.ahead_bytes, allowance=world.ahead,
        )  # fmt: skip
        self._horizons = Horizons(log, self._reads, self._ahead)
        self._ahead_at = -SHARED_SECONDS  # since boot: when some key was last answered further than others
        self._wakeups = Wakeups(core, self._workspace, self._ahead, limits, world.clock, self._apply)
        self._backlog = False
        self._ended = 0.0

    # --- life -----------------------------------------------------------------------------------------------------

    def open(self) -> None:
        """Take the partition over: fence the predecessor, restore the state, start reading where it stopped."""
        try:
            self._open()
        except StoreCorrupt as damage:
            self._set_aside(damage)
            raise

    def _open(self) -> None:
        began = self._clock.since_boot()
        self._transactions.take_over()
        self._partitions = continuity.counts_of(self._log, self._partition.layout)
        self._transactions.end_what_hangs()
        restored = restore(self._log, self._store, self._workspace, self._partition, self._telemetry, self._progress)
        try:
            bearings = continuity.find(self._log, self._partition, restored, self._store.place, self._telemetry)
        except LogError:
            self._transactions.end_positions()  # which may be all that hangs, and nobody says: as if brokers were away
            raise
        self._incarnations, self._notices = bearings.incarnations, bearings.accepted
        self._transactions.expect(self._incarnations, self._partitions)
        if restored.footer is not None:
            self._resume(restored.footer)
        self._ahead.resume(bearings.further)
        if restored.torn:
            self._roll_forward(restored.torn, bearings.positions)
        if self._transactions.tells_time:
            self._watch.ask(lambda: self._commit_nothing(bearings.positions))
        self._reader = self._log.open_reader(bearings.positions)
        self._telemetry.set(Metric.RESTORE_SECONDS, self._labels, self._clock.since_boot() - began)

    @property
    def problem(self) -> str | None:
        """Why it does not work yet, where it is only a matter of time."""
        left = self._progress.left
        return None if left is None else f"restoring, {left} records left"

    def close(self) -> None:
        """Release the partition; idempotent. What was not committed is dropped."""
        if self._reader is not None:
            self._reader.close()
        self._transactions.close()
        self._store.close()
        self._observer.close()

    def settle(self) -> None:
        """Before a stop: log how far everything is decided, for those who read the log meanwhile."""
        self.step(0.0)
        batch = self._new_batch()
        batch.answered = not self._backlog and not self._watch.held
        if self._transactions.decided(batch) > self._transactions.decided_until:
            self._commit(batch, self._opened_reader())

    def wake(self) -> None:
        """Make a waiting `step` return; from any thread."""
        if self._reader is not None:
            self._reader.wake()

    def _resume(self, footer: Footer) -> None:
        self._mark = footer.clock_mark
        self._transactions.resume(footer)

    def _roll_forward(self, torn: Sequence[Decision], positions: Mapping[TopicPartition, int]) -> None:
        """Complete transactions of which only the decision is known to be whole: never decide it again.

        With its footer in the log one has taken effect there. What it was to send goes out in another one then, which
        says nothing else: whoever finds that one hanging knows what it was.
        """
        for decision in torn:
            batch = self._carried_out(decision)
            own: Mapping[TopicPartition, int] = framing.positions_of(decision.positions)
            if decision is torn[-1] and decision.footed is None:
                self._state_notices(batch)  # positions behind a gap, and that it was accepted: both or neither
                own = positions
            self._write(batch, own, decision.decided_until)
            self._mark = max(self._mark, batch.moment.now)
            self._telemetry.count(Metric.DECISIONS_ROLLED_FORWARD, self._labels)
            self._telemetry.warning(Event.DECISION_ROLLED_FORWARD, sequence=batch.sequence, **self._labels)
        if self._notices:
            self._commit_nothing(positions)

    def _carried_out(self, decision: Decision) -> Batch:
        head = decision.head
        self._transactions.outbid(decision.epoch)
        moment = Moment(now=decision.now, read_until=head.read_until, entropy=bytes.fromhex(head.entropy))
        batch = self._batch(moment, decision.sequence)
        for encoded in decision.facts:
            fact = codec.read_fact(encoded)
            self._stage(batch, fact, encoded, *self._destination(fact))
        if decision.footed is not None:
            batch.facts.clear()
        return batch

    def _commit_nothing(self, positions: Mapping[TopicPartition, int]) -> None:
        """For the time of the log, which must be known before anything is decided by ours."""
        self._state_notices(batch := self._new_batch())
        self._write(batch, positions, self._transactions.decided_until)

    # --- one step -------------------------------------------------------------------------------------------------

    def step(self, timeout: float) -> bool:
        """Wait up to `timeout` seconds for work and do one batch of it. Whether there was any."""
        try:
            return self._step(timeout)
        except StoreCorrupt as damage:
            self._set_aside(damage)
            raise

    def _set_aside(self, damage: StoreCorrupt) -> None:
        """A store that was found to be damaged is none any more: the next processor builds it anew."""
        set_aside(self._store, self._partition, self._telemetry, str(damage))

    def _step(self, timeout: float) -> bool:
        reader = self._opened_reader()
        polled, more = self._read_on(reader, 0.0 if self._backlog else self._seconds_to_work(timeout), timeout)
        began = self._clock.since_boot()
        self._mark, notices = self._watch.look(self._mark, began)
        if any(isinstance(notice, ClockReleased) for notice in notices):
            self._workspace.forget_states()  # Whoever measures silence has heard nothing that counts: as a new owner.
        taken = self._take(reader) if self._ahead else []
        self._horizons.look(reader, self._mark, asks=not self._watch.held)
        self._workspace.walk.step(began)
        batch = self._new_batch()
        self._state_notices(batch, *self._workspace.opening(self._mark), *notices)
        for entry in taken:
            self._answer(batch, entry)
        if not self._watch.held:
            self._wakeups.answer(batch)
        if batch.ahead:
            self._ahead_at = began
        worked = bool(polled or taken or batch.facts)
        if polled:
            self._telemetry.count(Metric.RECORDS_READ, self._labels, polled)
        if worked or self._heartbeat_is_due(batch):
            self._commit(batch, reader)
            self._telemetry.observe(Metric.BATCH_SECONDS, self._labels, self._clock.since_boot() - began)
            self._ended = self._clock.since_boot()
        self._backlog = more or bool(self._ahead) or batch.left or not (batch.answered or self._watch.held)
        self._let_look()
        return worked

    def _let_look(self) -> None:
        """Between batches nothing of a state is under way."""
        if (now := self._clock.since_boot()) >= self._look_at:
            self._look_at = now + LOOK_SECONDS
            self._telemetry.set(Metric.RECORDS_UNANSWERED, self._labels, len(self._ahead))
            self._observer.look(self._workspace.states, self._workspace.shared, self._mark)

    def _read_on(self, reader: Reader, wait: float, timeout: float) -> tuple[int, bool]:
        """Read up to where the log is known to go, or seems to: how many records, and whether more may be there.

        Before anything is answered, as far as there is room: whoever is due waits for this, and each commit would too.
        """
        polled, is_first = 0, not self._ahead
        while (wanted := min(self._limits.records, self._ahead.room)) > 0:
            records = self._read(reader, wanted, wait)
            self._ahead.add(records)
            polled += len(records)
            if is_first and timeout and self._is_busy():
                polled += self._company(reader, records)
            is_full = len(records) >= wanted
            if not records or not (is_full or self._horizons.is_behind(reader)):
                return polled, is_full
            wait, is_first = 0.0, False
        return polled, True

    def _take(self, reader: Reader) -> list[Unanswered]:
        """What to answer in this batch: little of the lead input, while others wait for their time or to be known.

        Companions are not spared: until an outcome is answered, its key waits. What cannot be read for want of room
        keeps nobody from working it off: that is how there will be room.
        """
        limits = self._limits
        few = max(1, limits.records // FEW)
        of_each = {self._lead: few} if self._is_shared(reader, few) else {}
        return self._ahead.take(limits.records, limits.record_bytes, of_each)

    def _is_shared(self, reader: Reader, few: int) -> bool:
        """Whether somebody of whom nothing is held waits to be known, or is due before a full batch ends."""
        if self._clock.since_boot() - self._ahead_at < SHARED_SECONDS:
            return True  # as of late
        if self._horizons.is_behind(reader):
            return self._ahead.room > 0
        return len(self._ahead) > few and self._wakeups.is_anyone_due(self._mark + SOON)

    def _read(self, reader: Reader, records_max: int, timeout: float) -> list[Record]:
        """The next records; `Halted` where the log has lost them: to ask again would not bring them back."""
        try:
            return reader.poll(records_max=records_max, bytes_max=self._limits.record_bytes, timeout=timeout)
        except OffsetOutOfRange as error:
            if self._ahead:
                return []  # What we still have of what the log has lost is answered first.
            positions = {item: reader.position(item) for item in self._reads}
            continuity.check_inputs(self._log, self._partition, positions, self._incarnations)
            raise continuity.Halted(str(error)) from error

    def _is_busy(self) -> bool:
        """Whether the last batch ended only just now."""
        return self._clock.since_boot() - self._ended < self._limits.linger

    def _company(self, reader: Reader, records: list[Record]) -> int:
        """How many join a small batch that nobody waits for: one that has only companions' records, while we are busy.

        Outcomes and reports make no one wait as long as they come soon; taken one by one they would each pay for a
        transaction. A record of the lead input, a due wakeup or a full batch ends the wait at once.
        """
        lead, joined, latest = self._partition.inputs.lead, 0, records
        until = self._clock.since_boot() + self._seconds_to_work(self._limits.linger)
        while latest and all(record.topic != lead for record in latest):
            room = min(self._limits.records - len(records) - joined, self._ahead.room)
            left = until - self._clock.since_boot()
            if room <= 0 or left <= 0:
                break
            latest = self._read(reader, room, left)
            self._ahead.add(latest)
            joined += len(latest)
        return joined

    def _seconds_to_work(self, timeout: float) -> float:
        """How long nothing can be due, at most `timeout`."""
        if self._watch.held:
            return min(timeout, 1.0)  # look at the clock again at least that often
        due = self._workspace.earliest_wakeup()
        if due is None:
            return timeout
        soonest = UNREAD_SECONDS if self._horizons.is_behind(self._opened_reader()) else 0.0
        return min(timeout, max(soonest, (due - self._clock.now()).total_seconds()))

    def _new_batch(self) -> Batch:
        read_until, known_until = self._horizons.read_until, self._horizons.known_until
        moment = Moment(now=self._mark, read_until=read_until, entropy=self._entropy())
        batch = self._batch(moment, self._transactions.sequence + 1)
        if known_until > read_until:
            batch.further = Moment(
                now=moment.now, read_until=read_until, entropy=moment.entropy, known_until=known_until
            )
        return batch

    def _batch(self, moment: Moment, sequence: int) -> Batch:
        position = f"{self._partition.role}-{self._partition.number}-{sequence}"
        headers = ((SEQUENCE_HEADER, position.encode()),)
        return Batch(moment=moment, further=moment, sequence=sequence, headers=headers)

    # --- deciding -------------------------------------------------------------------------------------------------

    def _answer(self, batch: Batch, entry: Unanswered) -> None:
        """Decide what follows from one record; one that cannot be read costs itself."""
        if entry.impossible is not None:
            raise entry.impossible
        if entry.key is None:
            self._reject(batch, entry.record, entry.refusal)
            return
        input_, value = entry.input, entry.record.value
        self._given = Given(input_, value) if isinstance(input_, Fact) and value else NOTHING_GIVEN
        state, shared = self._workspace.state(entry.key), self._workspace.shared
        for fact in self._core.decide(state, input_, batch.moment, shared):
            self._apply(batch, fact)

    def _reject(self, batch: Batch, record: Record, refusal: Refused | None) -> None:
        assert refusal is not None, "a record that is about nobody was refused"
        self._telemetry.count(Metric.RECORDS_REJECTED, self._labels)
        self._telemetry.warning(
            Event.RECORD_REJECTED, topic=record.topic, offset=record.offset, reason=str(refusal), **self._labels
        )
        for fact in self._core.refuse(record, refusal.faults, batch.moment):
            self._apply(batch, fact)

    def _state_notices(self, batch: Batch, *more: Fact) -> None:
        for notice in (*self._notices, *more):
            self._apply(batch, notice)
        self._notices = ()

    def _apply(self, batch: Batch, fact: Fact) -> None:
        """Let a fact change its state and stage where it is published."""
        key, routes = self._destination(fact)
        if fact is self._given.fact:
            encoded = self._given.value  # an input that is itself the fact stands in the log already
        elif routes:
            _, encoded = codec.encode(fact, source=self._source, time=batch.moment.now)
        else:
            encoded = codec.unpublished(fact, source=self._source, time=batch.moment.now)
        self._stage(batch, fact, encoded, key, routes)

    def _destination(self, fact: Fact) -> tuple[bytes | None, Sequence[Output]]:
        """The key that a fact evolves (None: no core's), and where it is published."""
        if type(fact) in OF_THE_SHELL:
            return None, (Output(topic=topics.RUN_EVENTS, key=fact.subject, fact=fact),)
        key = self._core.key_of(fact)
        return key, self._core.route(self._workspace.state(key), fact)

    def _stage(self, batch: Batch, fact: Fact, encoded: bytes, key: bytes | None, routes: Sequence[Output]) -> None:
        batch.facts.append(encoded)
        batch.told.append(fact)
        batch.size += len(encoded)
        if key is not None:
            self._workspace.evolve(key, fact)
        for route in routes:
            partitions = self._partitions.get(route.topic) or self._count_partitions(route, batch.moment.now)
            if partitions:
                own = route.fact is fact and route.carried is None
                value = encoded if own else self._value(route, batch)
                batch.outputs.append(outgoing(route, value, partitions, batch.headers))

    def _count_partitions(self, route: Output, now: datetime) -> int:
        """How many a topic has; 0 where an output has nowhere to go: the inboxes of a queue that nobody serves here."""
        topic = route.topic
        if route.optional and topic in self._absent and now - self._absent[topic] < ABSENT_FOR:
            return 0
        try:
            self._partitions[topic] = self._log.partitions(topic)
        except UnknownTopic:
            self._absent[topic] = now
            if not route.optional:
                self._telemetry.error(Event.OUTPUT_DROPPED, topic=topic, **self._labels)
            return 0
        return self._partitions[topic]

    def _value(self, route: Output, batch: Batch) -> bytes | None:
        if route.tombstone:
            return None
        if route.carried is not None:
            return route.carried
        return codec.encode(route.fact, source=self._source, time=batch.moment.now)[1]

    # --- committing -----------------------------------------------------------------------------------------------

    def _commit(self, batch: Batch, reader: Reader) -> None:
        self._write(batch, self._horizons.positions(reader), self._transactions.decided(batch))

    def _write(self, batch: Batch, positions: Mapping[TopicPartition, int], decided_until: datetime) -> None:
        before = self._transactions.decided_until
        self._transactions.write(batch, positions, self._ahead.further(positions), decided_until)
        self._observer.committed(batch.told, decided_until=before)

    def _heartbeat_is_due(self, batch: Batch) -> bool:
        stale = self._transactions.decided(batch) - self._transactions.decided_until
        return self._watch.wants_time if self._watch.held else stale >= self._limits.heartbeat

    def _opened_reader(self) -> Reader:
        assert self._reader is not None, "open the processor first"
        return self._reader
