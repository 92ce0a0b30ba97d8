"""librdkafka's consumer of assigned partitions: it fetches ahead in the background, and one takes what has come."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from runtime.logs.kafka.reading import KafkaReader
from runtime.record import Record, TopicPartition
from simulation.kafka.client import Host, Message, backoff, error
from simulation.kafka.protocol import NONE, Answer, Code, Fetch, Fetched
from simulation.loop import Signal

WAIT_SECONDS = 45.0  # of a fetch that finds nothing: a broker ends it when there is something, so this is only a rest
ANSWER_SECONDS = 60.0  # more than it may wait
AHEAD = 10_000  # records fetched and not taken: then nothing more is asked for


class SimulatedFetcher:
    """As `confluent_kafka.Consumer` of a reader: assigned, never subscribed."""

    def __init__(self, host: Host, config: Mapping[str, Any], *, logger: Any = None) -> None:  # noqa: ARG002 -- its signature
        host.check_alive()
        self._host = host
        self._committed = config.get("isolation.level", "read_committed") == "read_committed"
        self._connection = host.network.connect(host.machine, "reader")
        host.network.readers += 1
        self._name = f"{host.machine.name}:{host.network.readers}"
        self._positions: dict[TopicPartition, int] = {}
        self._arrived: deque[Message] = deque()
        self._session = 0  # an answer to what was asked before an assignment changed is void
        self._asking = False
        self._closed = False
        self._changed = Signal(host.loop)

    def incremental_assign(self, places: Sequence[Any]) -> None:
        """Read these too."""
        self._host.check_alive()
        for place in places:
            self._positions[TopicPartition(place.topic, place.partition)] = place.offset
        self._renew()

    def incremental_unassign(self, places: Sequence[Any]) -> None:
        """Read these no more; what has come of them is dropped."""
        self._host.check_alive()
        gone = {TopicPartition(place.topic, place.partition) for place in places}
        for place in gone:
            self._positions.pop(place, None)
        self._arrived = deque(
            message for message in self._arrived if (message.topic(), message.partition()) not in gone
        )
        self._renew()

    def poll(self, timeout: float) -> Message | None:
        """The next message, waiting for one so long."""
        self._host.check_alive()
        deadline = self._host.loop.seconds + timeout
        while not self._arrived:
            left = deadline - self._host.loop.seconds
            if left <= 0:
                return None
            self._changed.clear()
            if not self._changed.wait(left):
                return None
            if not self._arrived:
                return None  # woken
        message = self._arrived.popleft()
        self._ask()
        return message

    def consume(self, count: int, timeout: float) -> list[Message]:  # noqa: ARG002 -- the client's own signature
        """More of what has come, without waiting."""
        taken = [self._arrived.popleft() for _ in range(min(count, len(self._arrived)))]
        self._ask()
        return taken

    def position(self, places: Sequence[Any]) -> Sequence[Any]:
        """Nothing that has not been said: here an end comes with the last records in front of it."""
        return places

    def close(self) -> None:
        """Read no more."""
        self._closed = True
        self._connection.close()
        self._changed.set()

    def wake(self) -> None:
        """End a wait."""
        self._changed.set()

    # --- fetching -------------------------------------------------------------------------------------------------

    def _renew(self) -> None:
        self._session += 1
        self._asking = False
        self._ask()

    def _ask(self) -> None:
        if self._asking or self._closed or not self._positions or len(self._arrived) >= AHEAD:
            return
        self._asking = True
        session = self._session
        request = Fetch(self._name, tuple(self._positions.items()), WAIT_SECONDS, self._committed)
        self._connection.send(request, partial(self._answered, session), ANSWER_SECONDS)

    def _answered(self, session: int, answer: Answer) -> None:
        if session != self._session or self._closed:
            return
        if answer.code is not NONE:
            self._host.later(backoff(answer.code), self._again, session)
            return
        moving = False
        for found in answer.value:
            moving = self._take(found) or moving
        if moving:
            self._host.later(backoff(Code.NOT_COORDINATOR), self._again, session)
        else:
            self._again(session)
        if self._arrived:
            self._changed.set_and_go_on()

    def _again(self, session: int) -> None:
        if session == self._session:
            self._asking = False
            self._ask()

    def _take(self, found: Fetched) -> bool:
        """Take what has come of one partition; whether it has to be asked for again later."""
        place = found.partition
        if place not in self._positions:
            return False
        if found.code is Code.OFFSET_OUT_OF_RANGE:
            del self._positions[place]
            text = f"Broker: Offset out of range: fetch offset {found.position}"
            self._arrived.append(Message(place, found.position, problem=error(Code.AUTO_OFFSET_RESET, text)))
            return False
        if found.code is not NONE:
            self._arrived.append(Message(place, problem=error(found.code)))
            return True
        self._arrived.extend(Message(place, record.offset, record=record) for record in found.records)
        self._positions[place] = found.position
        if found.position == found.stable:
            self._arrived.append(Message(place, found.position, problem=error(Code.PARTITION_EOF)))
        return False


class SimulatedReader(KafkaReader):
    """Our adapter's reader over such a consumer; it is woken at once, and needs no slices."""

    client: Any
    monotonic: Any
    slice_seconds = 60.0

    def __init__(self, host: Host, *arguments: Any, **named: Any) -> None:
        self.client = lambda config, *, logger: SimulatedFetcher(host, config, logger=logger)
        self.monotonic = host.monotonic
        super().__init__(*arguments, **named)

    def wake(self) -> None:
        """See `Reader.wake`."""
        super().wake()
        self.notice()

    def notice(self) -> None:
        """Look around: the reader or its log may have been closed."""
        fetcher: Any = self._consumer
        fetcher.wake()

    def _record(self, message: Any) -> Record:
        record: Record = message.record
        return record
