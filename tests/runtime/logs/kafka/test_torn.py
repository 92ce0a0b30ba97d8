"""A commit that the network holds back and delivers later, in the middle of the next transaction.

The client asks again, is told that it succeeded, and goes on. With the rule of `doubt` the late frame meets a new epoch
and is refused. Without it half of the next transaction is seen for ever: that is shown too, so that the rule is known
to be what prevents it.
"""

import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from runtime.clock import SystemClock
from runtime.log import LogError
from runtime.logs.kafka.doubt import Seen, doubt
from runtime.logs.kafka.log import KafkaLog
from runtime.logs.kafka.producing import KafkaProducer
from runtime.logs.kafka.settings import KafkaSettings
from runtime.record import Outgoing
from tests.runtime.logs.words import E0, SPECS, read, to, write
from tests.support.proxy import ADD_OFFSETS, END_TXN, Fate, Proxy, proxied

LONG = timedelta(seconds=20)  # a transaction outlives a commit that is repeated after a second and a half

Opened = Callable[..., KafkaLog]


@pytest.fixture
def proxy(broker: str) -> Iterator[Proxy]:
    with proxied(broker) as found:
        yield found


@pytest.fixture
def opened(proxy: Proxy, topic_prefix: str) -> Iterator[Opened]:
    """Opens a log whose clients speak through the proxy; `replaced` gathers why producers were."""
    logs: list[KafkaLog] = []

    def open_(
        doubts: Callable[[Seen], str] = doubt, replaced: list[str] | None = None, session: timedelta = LONG
    ) -> KafkaLog:
        settings = KafkaSettings(
            bootstrap=proxy.bootstrap, namespace=topic_prefix, replication_factor=1, min_insync_replicas=1,
            session_timeout=session, properties={"socket.timeout.ms": "1500"},
        )  # fmt: skip
        reasons = [] if replaced is None else replaced
        logs.append(KafkaLog(settings, SystemClock(), doubts=doubts, replaced=lambda _id, why: reasons.append(why)))
        logs[-1].create(SPECS)
        return logs[-1]

    yield open_
    for log in logs:
        log.close()


def commit_late_into_the_next(proxy: Proxy, producer: KafkaProducer) -> None:
    """A is committed twice: at once, as far as the client knows, and once more while B is open."""
    write(producer, *to(E0, "warm"))
    held = proxy.next(END_TXN, Fate.HOLD)
    write(producer, *to(E0, "A"))
    producer.begin()
    producer.send(to(E0, "B1"))
    producer.flush()
    proxy.release(held)


def abort_with_more(producer: KafkaProducer, *records: Outgoing) -> None:
    producer.send(records)
    producer.abort()


def test_a_late_commit_ends_the_next_transaction_half_done_when_nobody_doubts(opened, proxy):
    log = opened(doubts=lambda _seen: "")
    producer = log.open_producer("writer", group="group")
    commit_late_into_the_next(proxy, producer)
    reader = log.open_reader({E0: 0})
    seen = []
    while "B1" not in seen:
        seen += [record.value.decode() for record in reader.poll(records_max=9, bytes_max=999, timeout=1)]
    assert seen == ["warm", "A", "B1"]
    with pytest.raises(LogError):
        abort_with_more(producer, *to(E0, "B2"))
    producer.close()
    assert read(log, E0) == ["warm", "A", "B1"]


def test_a_doubtful_commit_replaces_the_producer_and_the_late_one_is_refused(opened, proxy):
    reasons: list[str] = []
    log = opened(replaced=reasons)
    producer = log.open_producer("writer", group="group")
    epoch = producer.epoch
    commit_late_into_the_next(proxy, producer)
    assert reasons
    assert producer.epoch > epoch
    abort_with_more(producer, *to(E0, "B2"))
    write(producer, *to(E0, "C"))
    assert read(log, E0) == ["warm", "A", "C"]


def test_a_commit_whose_answer_is_lost_is_repeated_and_doubted(opened, proxy):
    reasons: list[str] = []
    log = opened(replaced=reasons)
    producer = log.open_producer("writer", group="group")
    proxy.next(END_TXN, Fate.LOSE_ANSWER)
    write(producer, *to(E0, "A"), positions={E0: 3})
    write(producer, *to(E0, "B"))
    assert reasons
    assert read(log, E0) == ["A", "B"]
    assert log.committed("group", [E0]) == {E0: 3}


@pytest.mark.parametrize("sign", ["lines", "seconds"])
def test_the_client_s_log_alone_and_the_time_alone_give_a_held_commit_away(opened, proxy, sign):
    """Nothing else does: no error is reported and no connection lost, as far as the client can tell."""
    reasons: list[str] = []
    log = opened(doubts=lambda seen: doubt(Seen(**{sign: getattr(seen, sign)})), replaced=reasons)
    producer = log.open_producer("writer", group="group")
    commit_late_into_the_next(proxy, producer)
    assert reasons
    producer.abort()
    assert read(log, E0) == ["warm", "A"]


def test_a_late_abort_does_not_take_half_of_the_next_transaction(opened, proxy):
    reasons: list[str] = []
    producer = (log := opened(replaced=reasons)).open_producer("writer", group="group")
    held = proxy.next(END_TXN, Fate.HOLD)
    producer.begin()
    producer.send(to(E0, "A"))
    producer.flush()
    producer.abort()
    producer.begin()
    producer.send(to(E0, "B1"))
    producer.flush()
    proxy.release(held)
    producer.send(to(E0, "B2"))
    producer.commit({E0: 2})
    assert reasons
    assert read(log, E0) == ["B1", "B2"]


@pytest.mark.parametrize(("fate", "seen"), [(Fate.DROP, []), (Fate.LOSE_ANSWER, ["A"])])
def test_a_commit_of_which_nobody_hears_is_an_error_and_the_log_tells_what_became_of_it(opened, proxy, fate, seen):
    log = opened(session=timedelta(seconds=2))
    producer = log.open_producer("writer", group="group")
    proxy.every(END_TXN, fate)
    with pytest.raises(LogError, match="commit"):
        write(producer, *to(E0, "A"), positions={E0: 3})
    producer.close()
    log.open_producer("writer", group="group").close()
    assert read(log, E0) == seen
    assert log.committed("group", [E0]) == ({E0: 3} if seen else {})


def test_a_producer_that_has_failed_lets_go_of_its_client_when_it_is_closed(opened, proxy):
    """A client has threads and connections; the garbage collector would come for it some time."""
    producer = opened(session=timedelta(seconds=2)).open_producer("writer", group="group")
    client = weakref.ref(producer._client)
    proxy.every(ADD_OFFSETS, Fate.DROP)
    with pytest.raises(LogError, match="positions") as failed:
        write(producer, *to(E0, "A"), positions={E0: 3})
    producer.close()
    del failed
    assert client() is None


def test_a_calm_network_replaces_nobody(opened):
    reasons: list[str] = []
    # A machine that is busy with something else may take its time: that alone is not what this is about.
    log = opened(doubts=lambda seen: doubt(replace(seen, seconds=0.0)), replaced=reasons)
    producer = log.open_producer("writer", group="group")
    for number in range(20):
        write(producer, *to(E0, str(number)))
    assert reasons == []
