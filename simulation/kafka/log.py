"""The log port of one process over the modelled brokers: our adapter's own parts, on simulated clients."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from runtime.clock import Clock
from runtime.log import LogError, Owner, UnknownTopic
from runtime.logs.kafka import doubt
from runtime.logs.kafka.appending import WAIT_SECONDS
from runtime.logs.kafka.claim import Claim
from runtime.logs.kafka.errors import translated
from runtime.logs.kafka.producing import Deliveries, KafkaProducer
from runtime.logs.kafka.reading import EPOCH
from runtime.logs.kafka.settings import KafkaSettings, appender_config
from runtime.logs.kafka.topics import (
    ABSENT_PAUSE,
    ABSENT_TRIES,
    ANSWER_SECONDS,
    CHANGELOG_LAG,
    FRESH_SECONDS,
    MOVING_PAUSE,
)
from runtime.logs.producing import Commit
from runtime.record import Outgoing, TopicPartition
from schemas.topics import TopicSpec
from simulation.kafka.broker import MILLISECOND
from simulation.kafka.client import MOVED_SECONDS, PASSING, Host, error, packed
from simulation.kafka.fetcher import SimulatedReader
from simulation.kafka.member import SimulatedMember
from simulation.kafka.network import Network
from simulation.kafka.producer import SimulatedProducer
from simulation.kafka.protocol import (
    NONE,
    Answer,
    Code,
    CreateTopics,
    Describe,
    Described,
    DescribeGroup,
    Edge,
    FetchOffsets,
    ListOffsets,
    ListTopics,
    Membership,
)
from simulation.loop import Killed, Machine, Signal

BOOTSTRAP = "simulated:9092"
UNCHANGED_SECONDS = 600.0  # after which a topic is asked for once more though nothing has changed: real time is dear
SETTINGS = KafkaSettings(bootstrap=BOOTSTRAP, replication_factor=3, min_insync_replicas=2, plaintext=True)


class SimulatedKafka:
    """`Log` of a process on `machine`; called from tasks only. `doubts` and `replaced` as of `KafkaLog`.

    With `generation_checked` off a commit quotes no membership, as if there were no group.
    """

    compaction_lag = CHANGELOG_LAG

    def __init__(
        self, network: Network, machine: Machine, clock: Clock, *, settings: KafkaSettings = SETTINGS,
        doubts: Callable[[doubt.Seen], str] = doubt.doubt,
        replaced: Callable[[str, str], None] = lambda _id, _why: None, generation_checked: bool = True,
        now_ms: Callable[[], int] | None = None,
    ) -> None:  # fmt: skip
        now_ms = now_ms or (lambda: (clock.now() - EPOCH) // MILLISECOND)  # a clock that counts them is quicker
        self._host = Host(loop=network.loop, network=network, machine=machine, now_ms=now_ms)
        self._settings, self._clock = settings, clock
        self._doubts, self._replaced = doubts, replaced
        self._generation_checked = generation_checked
        self._claim: Claim | None = None
        self._state = _State()
        self._topics = Topics(self._host)
        self.cluster_id = network.broker.cluster_id

    # ------------------------------------------------------------------------------------------- what there is

    def create(self, specs: Mapping[TopicSpec, int]) -> None:
        """See `Log.create`."""
        self._topics.create(specs)

    def partitions(self, topic: str) -> int:
        """See `Log.partitions`."""
        return self._topics.topic(topic).partitions

    def topics(self) -> Mapping[str, TopicSpec]:
        """See `Log.topics`."""
        found: Mapping[str, Described] = self._topics.ask(ListTopics(), "the topics")
        return {name: topic.spec for name, topic in found.items()}

    def topic_id(self, topic: str) -> str:
        """See `Log.topic_id`."""
        return self._topics.topic(topic).id

    def begin_offset(self, partition: TopicPartition) -> int:
        """See `Log.begin_offset`."""
        return self._offsets([partition], "begin")[partition]

    def end_offset(self, partition: TopicPartition) -> int:
        """See `KafkaLog.end_offset`: the high watermark."""
        return self._offsets([partition], "end")[partition]

    def end_offsets(self, partitions: Iterable[TopicPartition]) -> Mapping[TopicPartition, int]:
        """See `Log.end_offsets`."""
        return self._offsets(partitions, "end")

    def stable_offset(self, partition: TopicPartition) -> int:
        """See `Log.stable_offset`."""
        return self._offsets([partition], "stable")[partition]

    def committed(self, group: str, partitions: Iterable[TopicPartition]) -> Mapping[TopicPartition, int]:
        """See `Log.committed`."""
        wanted = tuple(partitions)
        if not wanted:
            return {}
        request = FetchOffsets(self._settings.named(group), wanted)
        found: Mapping[TopicPartition, int] = self._topics.ask(request, f"the positions of {group}")
        return found

    def _offsets(self, partitions: Iterable[TopicPartition], edge: Edge) -> dict[TopicPartition, int]:
        self._check_open()
        wanted = tuple(dict.fromkeys(partitions))
        for partition in wanted:
            self._topics.check(*partition)
        if not wanted:
            return {}
        found = self._topics.ask(ListOffsets(wanted, edge), f"the {edge} of {wanted[0].topic}")
        return dict(zip(wanted, found, strict=True))

    # ------------------------------------------------------------------------------------------ reading, writing

    def open_reader(self, positions: Mapping[TopicPartition, int]) -> SimulatedReader:
        """See `Log.open_reader`."""
        return self._reader(positions, undecided=False)

    def open_undecided(self, positions: Mapping[TopicPartition, int]) -> SimulatedReader:
        """See `Log.open_undecided`."""
        return self._reader(positions, undecided=True)

    def _reader(self, positions: Mapping[TopicPartition, int], *, undecided: bool) -> SimulatedReader:
        self._check_open()
        reader = SimulatedReader(
            self._host, self._settings, self._topics, positions, is_log_closed=lambda: self._state.closed, logger=None,
            undecided=undecided,
        )  # fmt: skip
        self._state.readers[reader] = None
        return reader

    def open_producer(self, transactional_id: str, *, group: str) -> Producing:
        """See `Log.open_producer`."""
        self._check_open()
        without = packed(Membership(self._settings.named(group)))
        return Producing(
            self._host, self._settings, self._topics, transactional_id, membership=lambda: without,
            claim=self._claim, now=self._clock.now, doubts=self._doubts, replaced=self._replaced,
            quoting=None if self._generation_checked else without,
        )  # fmt: skip

    def join(self, group: str, topic: str, *, name: str, owner: Owner) -> SimulatedMember:
        """See `Log.join`."""
        self._check_open()
        count, wire = self.partitions(topic), self._settings.named(group)
        return SimulatedMember(
            self._host, self._settings, group, topic, name=name, owner=owner, claimed=self._claimed,
            unowned=lambda: self._unowned(wire, count), logger=None,
        )  # fmt: skip

    def _unowned(self, group: str, partitions: int) -> set[int]:
        """See `runtime.logs.kafka.groups`."""
        given: frozenset[int] | None = self._topics.ask(DescribeGroup(group), f"the members of {group}")
        return set() if given is None else set(range(partitions)) - given

    def append(self, records: Iterable[Outgoing]) -> Commit:
        """See `Log.append`."""
        self._check_open()
        added = list(records)
        for place in dict.fromkeys(record[:2] for record in added):
            self._topics.check(*place)
        return self._state.appender(self._host, self._settings).append(added, self._clock)

    # ---------------------------------------------------------------------------------------------- upkeep, end

    def maintain(self) -> bool:
        """See `Log.maintain`: the brokers do it."""
        return False

    def close(self) -> None:
        """See `Log.close`. Readers that wait return with an error."""
        self._state.close()

    def _claimed(self, claim: Claim) -> SimulatedKafka:
        """The log as the owner of one partition writes to it."""
        view = copy.copy(self)
        view._claim = claim  # noqa: SLF001 -- it is one of us
        return view

    def _check_open(self) -> None:
        self._host.check_alive()
        if self._state.closed:
            raise LogError("the log is closed")


class Producing(KafkaProducer):
    """Our adapter's producer over a simulated client; `quoting` is what it quotes instead of its membership."""

    client: Any
    monotonic: Any

    def __init__(self, host: Host, *arguments: Any, quoting: bytes | None = None, **named: Any) -> None:
        self.client = lambda config, *, logger: SimulatedProducer(host, config, logger=logger)
        self.monotonic = host.monotonic
        self._quoting = quoting
        super().__init__(*arguments, **named)

    def _send_positions(self, client: Any, sent: Sequence[Outgoing], positions: Mapping[TopicPartition, int]) -> None:
        if self._quoting is None:
            super()._send_positions(client, sent, positions)
            return
        claim, self._claim, membership = self._claim, None, self._membership
        quoting = self._quoting
        try:
            self._membership = lambda: quoting
            super()._send_positions(client, sent, positions)
        finally:
            self._claim, self._membership = claim, membership


class Topics:
    """What this process knows of topics: asked for again after some seconds, as by the adapter."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._connection = host.network.connect(host.machine, "admin")
        self._known: dict[str, tuple[float, int, Described]] = {}  # when it was asked, after how many changes
        self._agreed: dict[TopicSpec, int] = {}

    def topic(self, name: str) -> Described:
        """What is known of a topic; `UnknownTopic` when it does not exist, LogError when nobody answers."""
        host = self._host
        if not host.machine.alive:
            raise Killed
        entry = self._known.get(name)
        if entry is None:
            return self._ask_again(name, None)
        asked_at, changes, described = entry
        fresh = FRESH_SECONDS if changes != host.network.broker.changes else UNCHANGED_SECONDS
        return described if host.loop.seconds - asked_at < fresh else self._ask_again(name, described)

    def check(self, name: str, partition: int) -> None:
        """`UnknownTopic` for a partition that does not exist."""
        if not 0 <= partition < self.topic(name).partitions:
            raise UnknownTopic(f"there is no partition {partition} of topic {name}")

    def create(self, specs: Mapping[TopicSpec, int]) -> None:
        """See `Log.create`."""
        wanted = {spec: count for spec, count in specs.items() if self._agreed.get(spec) != count}
        if not wanted:
            return
        there: Mapping[str, Described] = self.ask(ListTopics(), "the topics")
        for spec, count in wanted.items():
            _check_agrees(spec, count, there.get(spec.name))
        new = tuple((spec, count) for spec, count in wanted.items() if spec.name not in there)
        if new:
            self.ask(CreateTopics(new), "new topics")
        for spec, count in new:
            self._known.pop(spec.name, None)
            found = self._described(spec.name)
            _check_agrees(spec, count, found)
        self._agreed |= wanted

    def ask(self, request: Any, what: str) -> Any:
        """The answer, asking again for some seconds while something is moving."""
        deadline = self._host.loop.seconds + ANSWER_SECONDS
        while True:
            answer = self._answer(request)
            if answer.code is NONE:
                return answer.value
            if answer.code not in PASSING or self._host.loop.seconds > deadline:
                raise translated(error(answer.code), f"asking for {what}")
            self._host.loop.sleep(MOVING_PAUSE)

    def _answer(self, request: Any) -> Answer:
        """What the brokers say within the time of one question; a client whose brokers are away waits for them."""
        deadline = self._host.loop.seconds + ANSWER_SECONDS
        while True:
            left = deadline - self._host.loop.seconds
            if left <= 0:
                return Answer(Code.TIMED_OUT)
            answer: Answer = self._host.ask(self._connection, request, left)
            if answer.code is not Code.TRANSPORT:
                return answer
            self._host.loop.sleep(MOVED_SECONDS)

    def _ask_again(self, name: str, before: Described | None) -> Described:
        changes = self._host.network.broker.changes
        try:
            found = self._described(name)
        except LogError:
            if before is None:
                raise
            found = before  # Nobody answers; what we know is as good as it was, and writing will tell.
        if found is None and before is not None:
            raise LogError(f"topic {name} was there and is not: deleted, or a broker that has not heard of it yet")
        for _ in range(ABSENT_TRIES - 1):
            if found is not None:
                break
            self._host.loop.sleep(ABSENT_PAUSE)
            found = self._described(name)
        if found is None:
            raise UnknownTopic(f"there is no topic {name}")
        self._known[name] = (self._host.loop.seconds, changes, found)
        return found

    def _described(self, name: str) -> Described | None:
        answer = self._answer(Describe(name))
        if answer.code is Code.UNKNOWN_TOPIC_OR_PART:
            return None
        if answer.code is not NONE:
            raise translated(error(answer.code), f"asking for topic {name}")
        described: Described = answer.value
        return described


def _check_agrees(spec: TopicSpec, count: int, found: Described | None) -> None:
    if found is not None and found.partitions != count:
        raise LogError(f"topic {spec.name} has {found.partitions} partitions, not {count}")
    if found is not None and found.spec.cleanup is not spec.cleanup:
        raise LogError(f"topic {spec.name} is kept by {found.spec.cleanup}, not by {spec.cleanup}")


class _State:
    """What all views of one log share."""

    def __init__(self) -> None:
        self.closed = False
        self.readers: WeakKeyDictionary[SimulatedReader, None] = WeakKeyDictionary()  # in order, which a set has not
        self._appender: Appender | None = None

    def appender(self, host: Host, settings: KafkaSettings) -> Appender:
        """The one that appends; made with the first record."""
        if self._appender is None:
            self._appender = Appender(host, settings)
        return self._appender

    def close(self) -> None:
        """End everything that waits."""
        if not self.closed:
            self.closed = True
            for reader in list(self.readers):
                reader.notice()
            if self._appender is not None:
                self._appender.close()


class Appender:
    """See `runtime.logs.kafka.appending`: each call waits for its own records."""

    def __init__(self, host: Host, settings: KafkaSettings) -> None:
        self._host = host
        self._client = SimulatedProducer(host, appender_config(settings))

    def append(self, records: Sequence[Outgoing], clock: Clock) -> Commit:
        """See `Log.append`."""
        deliveries, done, left = Deliveries(), Signal(self._host.loop), [len(records)]

        def note(problem: Any, message: Any) -> None:
            deliveries.note(problem, message)
            left[0] -= 1
            if not left[0]:
                done.set()

        for record in records:
            self._client.produce(
                record.topic, record.value, record.key, record.partition, on_delivery=note, headers=record.headers
            )
        if records and not done.wait(WAIT_SECONDS):
            raise LogError("append: no answer from the brokers; the records may be there or not")
        if deliveries.error is not None:
            raise translated(deliveries.error, "append")
        return deliveries.receipt([(record.topic, record.partition) for record in records], clock.now)

    def close(self) -> None:
        """What is on its way may arrive or not, as when a process ends."""
        self._client.purge(blocking=False)
