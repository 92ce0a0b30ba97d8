"""The log port on Kafka: the door to all of this package."""

from __future__ import annotations

import copy
import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from threading import Event, Lock
from typing import Any

import confluent_kafka
from confluent_kafka import Consumer, IsolationLevel, KafkaError, libversion
from confluent_kafka.admin import AdminClient, OffsetSpec

from runtime.clock import Clock
from runtime.log import LogError, Owner
from runtime.logs.kafka import doubt
from runtime.logs.kafka.appending import Appender
from runtime.logs.kafka.claim import Claim
from runtime.logs.kafka.ends import Ends, Place
from runtime.logs.kafka.errors import RAISED, translated, translating
from runtime.logs.kafka.groups import unowned
from runtime.logs.kafka.membership import KafkaMember
from runtime.logs.kafka.producing import KafkaProducer
from runtime.logs.kafka.reading import KafkaReader
from runtime.logs.kafka.sayings import Sayings
from runtime.logs.kafka.settings import KafkaSettings, admin_config, check, check_version, group_config
from runtime.logs.kafka.tending import Tending
from runtime.logs.kafka.topics import ANSWER_SECONDS, CHANGELOG_LAG, Topics, answer, patiently
from runtime.logs.producing import Commit
from runtime.record import Outgoing, TopicPartition
from schemas.topics import TopicSpec

COMPLAINTS = 10  # of the asking client, the last ones: enough to say why nobody can be reached

_log = logging.getLogger(__name__)


class KafkaLog:
    """`Log`. LogError when no broker answers or the client is too old, `SettingsRefused` for what cannot be used.

    `replaced` hears of each producer that was replaced because of a doubtful commit: its id and the reason.
    """

    cluster_id: str
    compaction_lag = CHANGELOG_LAG

    def __init__(
        self, settings: KafkaSettings, clock: Clock, *, doubts: Callable[[doubt.Seen], str] = doubt.doubt,
        replaced: Callable[[str, str], None] = lambda id_, why: _log.warning("producer %s is replaced: %s", id_, why),
    ) -> None:  # fmt: skip
        text, version = libversion()
        check_version(version, text)
        check(settings)
        self._settings = settings
        self._clock = clock
        self._doubts = doubts
        self._replaced = replaced
        self._claim: Claim | None = None
        self._closed = Event()
        self._complaints: deque[KafkaError] = deque(maxlen=COMPLAINTS)
        self._admin = _made(AdminClient, admin_config(settings) | {"error_cb": self._complaints.append})
        self._topics = Topics(self._admin, settings)
        self._ends = Ends(settings)
        self._sayings = Sayings(_log)
        self._appender = Appender(settings, clock.now, self._sayings)
        self._memberships = _Memberships(settings)
        self._tending = Tending()
        self.cluster_id = self._cluster_id()

    # ------------------------------------------------------------------------------------------- what there is

    def create(self, specs: Mapping[TopicSpec, int]) -> None:
        """See `Log.create`."""
        self._topics.create(specs)

    def partitions(self, topic: str) -> int:
        """See `Log.partitions`."""
        return self._topics.topic(topic).partitions

    def topics(self) -> Mapping[str, TopicSpec]:
        """See `Log.topics`."""
        return self._topics.all()

    def topic_id(self, topic: str) -> str:
        """See `Log.topic_id`."""
        return self._topics.topic(topic).id

    def begin_offset(self, partition: TopicPartition) -> int:
        """See `Log.begin_offset`."""
        return self._offsets([partition], OffsetSpec.earliest())[partition]  # type: ignore[no-untyped-call]

    def end_offset(self, partition: TopicPartition) -> int:
        """See `Log.end_offset`.

        It is the high watermark. The last stable offset, up to where a reader gets, lags behind what was committed by
        the markers that are still being written, and behind what was appended while somebody's transaction was open.
        """
        return self.end_offsets([partition])[partition]

    def end_offsets(self, partitions: Iterable[TopicPartition]) -> Mapping[TopicPartition, int]:
        """See `Log.end_offsets`."""
        return self._offsets(partitions, OffsetSpec.latest(), quickly=self._ends.ask)  # type: ignore[no-untyped-call]

    def stable_offset(self, partition: TopicPartition) -> int:
        """See `Log.stable_offset`: the last stable offset."""
        spec = OffsetSpec.latest()  # type: ignore[no-untyped-call]
        return self._offsets([partition], spec, isolation=IsolationLevel.READ_COMMITTED)[partition]

    def committed(self, group: str, partitions: Iterable[TopicPartition]) -> Mapping[TopicPartition, int]:
        """See `Log.committed`."""
        wanted = {self._wire(partition): partition for partition in partitions}
        found = patiently(lambda: self._ask_committed(group, list(wanted))) if wanted else ()
        places = {(place.topic, place.partition): partition for place, partition in wanted.items()}
        return {places[item.topic, item.partition]: item.offset for item in found if item.offset >= 0}

    def _ask_committed(
        self, group: str, wanted: list[confluent_kafka.TopicPartition]
    ) -> Sequence[confluent_kafka.TopicPartition]:
        """By a consumer: the administrator's client dies when the group's coordinator has yet to be found.

        (librdkafka 2.16, the first question to a new broker.) It reads committed records only, so it waits for
        positions of transactions that are still under way.
        """
        what = f"asking for the positions of {group}"
        consumer = _made(Consumer, group_config(self._settings, group))
        try:
            with translating(what):
                found: list[confluent_kafka.TopicPartition] = consumer.committed(wanted, timeout=ANSWER_SECONDS)
        finally:
            consumer.close()
        for item in found:
            if item.error is not None:
                raise translated(item.error, what)
        return found

    # ------------------------------------------------------------------------------------------ reading, writing

    def open_reader(self, positions: Mapping[TopicPartition, int]) -> KafkaReader:
        """See `Log.open_reader`."""
        return self._reader(positions, undecided=False)

    def open_undecided(self, positions: Mapping[TopicPartition, int]) -> KafkaReader:
        """See `Log.open_undecided`."""
        return self._reader(positions, undecided=True)

    def _reader(self, positions: Mapping[TopicPartition, int], *, undecided: bool) -> KafkaReader:
        self._check_open()
        return KafkaReader(
            self._settings, self._topics, positions, is_log_closed=self._closed.is_set, logger=self._sayings,
            undecided=undecided,
        )  # fmt: skip

    def open_producer(self, transactional_id: str, *, group: str) -> KafkaProducer:
        """See `Log.open_producer`."""
        self._check_open()
        producer = KafkaProducer(
            self._settings, self._topics, transactional_id, membership=lambda: self._memberships.without(group),
            claim=self._claim, now=self._clock.now, doubts=self._doubts, replaced=self._replaced,
        )  # fmt: skip
        self._tending.add(producer)
        return producer

    def join(self, group: str, topic: str, *, name: str, owner: Owner) -> KafkaMember:
        """See `Log.join`."""
        self._check_open()
        count, wire = self.partitions(topic), self._settings.named(group)
        return KafkaMember(
            self._settings, group, topic, name=name, owner=owner, claimed=self._claimed,
            unowned=lambda: unowned(self._admin, wire, count), logger=self._sayings,
        )  # fmt: skip

    def append(self, records: Iterable[Outgoing]) -> Commit:
        """See `Log.append`."""
        self._check_open()
        added = list(records)
        for place in dict.fromkeys(record[:2] for record in added):
            self._topics.check(*place)
        return self._appender.append(added)

    # ---------------------------------------------------------------------------------------------- upkeep, end

    def maintain(self) -> bool:
        """See `Log.maintain`: the brokers do it."""
        return False

    def tend(self) -> None:
        """See `Talkative.tend`: what the asking clients complain of is forgotten once they have answered."""
        with suppress(*RAISED):
            self._ends.tend()
            self._admin.poll(0)
            self._topics.renew()

    def close(self) -> None:
        """See `Log.close`. Readers that wait return with an error."""
        if not self._closed.is_set():
            self._closed.set()
            self._tending.close()
            self._appender.close()
            self._ends.close()

    def _claimed(self, claim: Claim) -> KafkaLog:
        """The log as the owner of one partition writes to it."""
        view = copy.copy(self)
        view._claim = claim  # noqa: SLF001 -- it is one of us
        return view

    def _cluster_id(self) -> str:
        """LogError says what stands between us and the brokers, as far as the client knows."""
        found: str | None = None
        with suppress(*RAISED):  # It says only that nobody answered.
            found = self._admin.cluster_id(timeout=ANSWER_SECONDS)
        if not found:
            self._admin.poll(0)
            reasons = "; ".join(dict.fromkeys(error.str() for error in self._complaints)) or "no answer"
            raise LogError(f"no broker can be reached at {self._settings.bootstrap}: {reasons}")
        self._tending.add(self)
        return found

    def _offsets(
        self, partitions: Iterable[TopicPartition], spec: Any,
        quickly: Callable[[Iterable[Place]], Mapping[Place, int] | None] = lambda _places: None,
        isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    ) -> dict[TopicPartition, int]:  # fmt: skip
        self._check_open()
        wanted = {self._wire(partition): partition for partition in partitions}
        for partition in wanted.values():
            self._topics.check(*partition)
        if not wanted:
            return {}
        places = {(place.topic, place.partition): partition for place, partition in wanted.items()}
        found = quickly(places)
        if found is None:
            found = patiently(lambda: self._ask_offsets(wanted, spec, isolation), between=self._learn_leaders)
        return {places[place]: offset for place, offset in found.items()}

    def _learn_leaders(self) -> None:
        """The client asks the leader that it remembers, in the name of an epoch that it remembers; here it learns both.

        (librdkafka 2.16. Asked while a broker was away, it would be refused for minutes after that one is back.)
        """
        with suppress(*RAISED):  # The question that follows tells what is wrong.
            self._admin.list_topics(timeout=ANSWER_SECONDS)

    def _ask_offsets(
        self, wanted: Iterable[confluent_kafka.TopicPartition], spec: Any, isolation: IsolationLevel
    ) -> dict[Place, int]:
        futures = self._admin.list_offsets(
            dict.fromkeys(wanted, spec), isolation_level=isolation, request_timeout=ANSWER_SECONDS
        )
        found = {}
        for place, future in futures.items():
            result = answer(future, f"asking for an end of {place.topic}-{place.partition}")
            assert result is not None, "no error is expected here"
            found[place.topic, place.partition] = result.offset
        return found

    def _wire(self, partition: TopicPartition) -> confluent_kafka.TopicPartition:
        return confluent_kafka.TopicPartition(self._settings.namespace + partition.topic, partition.partition)

    def _check_open(self) -> None:
        if self._closed.is_set():
            raise LogError("the log is closed")


class _Memberships:
    """What a producer quotes for a group in which it takes no part; from any thread."""

    def __init__(self, settings: KafkaSettings) -> None:
        self._settings = settings
        self._lock = Lock()
        self._known: dict[str, bytes] = {}

    def without(self, group: str) -> bytes:
        """Only a client that could take part in the group can say how it is named."""
        with self._lock:
            if group not in self._known:
                consumer = _made(Consumer, group_config(self._settings, group))
                self._known[group] = consumer.consumer_group_metadata()
                consumer.close()
            return self._known[group]


def _made(kind: Callable[[Any], Any], config: Mapping[str, Any]) -> Any:
    """A client; `SettingsRefused` tells of a property that it does not know."""
    with translating("making a client of Kafka"):
        return kind(dict(config))
