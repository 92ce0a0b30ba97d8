"""The network of these tests is itself under test: in front of a broker that answers everything and notes what came."""

import socket
import struct
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, suppress
from itertools import islice
from random import Random

import pytest

from tests.support.proxy import ADD_PARTITIONS, END_TXN, PRODUCE, SECONDS, Fate, Proxy, Rule, proxied, rough


class Server:
    """Answers each frame with its correlation id; `arrived` are (API key, correlation id) in order of arrival."""

    def __init__(self) -> None:
        self.arrived: list[tuple[int, int]] = []
        self._changed = threading.Condition()
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._connections: list[socket.socket] = []
        self.bootstrap = f"127.0.0.1:{self._socket.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def wait_for(self, *expected: tuple[int, int]) -> None:
        with self._changed:
            assert self._changed.wait_for(lambda: self.arrived == list(expected), SECONDS), self.arrived

    def close(self) -> None:
        self._socket.close()
        for connection in self._connections:
            with suppress(OSError):  # Its other end has gone already.
                connection.shutdown(socket.SHUT_RDWR)  # Its thread hears of it and closes it.

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self._connections.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, suppress(ConnectionError):
            while (frame := received(connection)) is not None:
                key, _, correlation = struct.unpack(">hhi", frame[:8])
                with self._changed:
                    self.arrived.append((key, correlation))
                    self._changed.notify_all()
                connection.sendall(struct.pack(">ii", 4, correlation))


class Client:
    """One connection to the proxy; `ask` answers whether the answer came, or the connection's end."""

    def __init__(self, proxy: Proxy) -> None:
        host, port = proxy.bootstrap.split(":")
        self._socket = socket.create_connection((host, int(port)), timeout=SECONDS)

    def send(self, key: int, correlation: int) -> None:
        self._socket.sendall(struct.pack(">ihhi", 8, key, 3, correlation))

    def answer(self) -> int | None:
        frame = received(self._socket)
        return None if frame is None else struct.unpack(">i", frame)[0]

    def ask(self, key: int, correlation: int) -> int | None:
        self.send(key, correlation)
        return self.answer()

    def close(self) -> None:
        self._socket.close()


def received(connection: socket.socket) -> bytes | None:
    """The next frame without its length, None at the end of the connection."""
    try:
        head = connection.recv(4, socket.MSG_WAITALL)
        return connection.recv(struct.unpack(">i", head)[0], socket.MSG_WAITALL) if len(head) == 4 else None
    except ConnectionError:
        return None


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


@pytest.fixture
def proxy(server: Server) -> Iterator[Proxy]:
    with proxied(server.bootstrap) as proxy:
        yield proxy


@pytest.fixture
def client(proxy: Proxy) -> Iterator[Client]:
    with closing(Client(proxy)) as client:
        yield client


@pytest.fixture
def other(proxy: Proxy) -> Iterator[Client]:
    with closing(Client(proxy)) as client:
        yield client


def test_without_rules_everything_arrives_and_is_answered(proxy, client, server):
    assert [client.ask(PRODUCE, number) for number in (1, 2)] == [1, 2]
    assert server.arrived == [(PRODUCE, 1), (PRODUCE, 2)]
    assert (proxy.seen(PRODUCE), proxy.happened) == (2, {})


def test_a_held_request_is_overtaken_and_its_answer_still_comes(proxy, client, server):
    held = proxy.next(END_TXN, Fate.HOLD)
    client.send(END_TXN, 1)
    assert client.ask(PRODUCE, 2) == 2
    proxy.release(held)
    assert client.answer() == 1
    assert server.arrived == [(PRODUCE, 2), (END_TXN, 1)]


def test_a_stray_request_arrives_after_its_client_has_asked_again(proxy, client, other, server):
    stray = proxy.next(END_TXN, Fate.STRAY)
    assert client.ask(END_TXN, 1) is None
    assert other.ask(END_TXN, 2) == 2
    proxy.release(stray)
    assert stray.answered.is_set()
    assert server.arrived == [(END_TXN, 2), (END_TXN, 1)]
    assert proxy.happened == {"EndTxn stray": 1, "EndTxn late": 1, "EndTxn late, answered": 1}


def test_a_kept_request_goes_on_by_itself_after_its_seconds(proxy, client, server):
    proxy.add(Rule(key=END_TXN, fate=Fate.STRAY, seconds=0.01))
    assert client.ask(END_TXN, 1) is None
    server.wait_for((END_TXN, 1))


def test_a_dropped_request_never_arrives_and_a_cut_one_takes_its_connection_along(proxy, client, server):
    proxy.next(END_TXN, Fate.DROP)
    proxy.next(PRODUCE, Fate.CUT)
    client.send(END_TXN, 1)
    assert client.ask(ADD_PARTITIONS, 2) == 2
    assert client.ask(PRODUCE, 3) is None
    assert server.arrived == [(ADD_PARTITIONS, 2)]


def test_a_lost_answer_is_one_to_a_request_that_arrived(proxy, client, server):
    proxy.next(END_TXN, Fate.LOSE_ANSWER)
    assert client.ask(END_TXN, 1) is None
    server.wait_for((END_TXN, 1))


def test_a_delayed_request_keeps_its_place_in_the_line(proxy, client, server):
    proxy.add(Rule(key=END_TXN, fate=Fate.DELAY, seconds=0.01))
    client.send(END_TXN, 1)
    client.send(PRODUCE, 2)
    assert [client.answer(), client.answer()] == [1, 2]
    assert server.arrived == [(END_TXN, 1), (PRODUCE, 2)]


def test_a_repeated_request_arrives_twice_and_its_client_hears_of_one(proxy, client, server):
    repeated = proxy.next(PRODUCE, Fate.REPEAT)
    assert client.ask(PRODUCE, 1) == 1
    assert client.ask(END_TXN, 2) == 2
    proxy.release(repeated)
    assert client.ask(END_TXN, 3) == 3
    assert server.arrived == [(PRODUCE, 1), (END_TXN, 2), (PRODUCE, 1), (END_TXN, 3)]


def test_a_release_lets_everything_kept_arrive_first(proxy, client, other, server):
    proxy.next(END_TXN, Fate.STRAY)
    proxy.next(PRODUCE, Fate.RELEASE)
    assert client.ask(END_TXN, 1) is None
    assert other.ask(PRODUCE, 2) == 2
    assert server.arrived == [(END_TXN, 1), (PRODUCE, 2)]


def test_frozen_is_frozen_for_all_connections_until_it_thaws(proxy, client, other, server):
    frozen = proxy.next(END_TXN, Fate.FREEZE)
    assert other.ask(PRODUCE, 1) == 1
    client.send(END_TXN, 2)
    assert frozen.met.wait(SECONDS)
    other.send(PRODUCE, 3)
    assert server.arrived == [(PRODUCE, 1)]
    proxy.thaw()
    assert {client.answer(), other.answer()} == {2, 3}


def test_only_the_nth_request_meets_a_rule_and_a_lasting_one_is_met_again(proxy, client, server):
    proxy.add(Rule(key=PRODUCE, fate=Fate.DROP, nth=2))
    proxy.every(END_TXN, Fate.DROP)
    for number, key in enumerate((PRODUCE, PRODUCE, END_TXN, PRODUCE, END_TXN)):
        client.send(key, number)
    assert [client.answer(), client.answer()] == [0, 3]
    assert proxy.happened == {"Produce drop": 1, "EndTxn drop": 2}


def test_the_rules_of_a_course_count_one_after_another(proxy, client, server):
    course = proxy.follow([Rule(key=END_TXN, fate=Fate.DROP), Rule(key=PRODUCE, fate=Fate.DROP, nth=2)])
    for number, key in enumerate((PRODUCE, PRODUCE, END_TXN, PRODUCE, PRODUCE, END_TXN)):
        client.send(key, number)
    assert [client.answer() for _ in range(4)] == [0, 1, 3, 5]
    assert course.over.is_set()


def test_a_rough_network_is_the_same_for_the_same_seed_and_knows_every_fate():
    rules = list(islice(rough(Random(3)), 200))
    assert rules == list(islice(rough(Random(3)), 200))
    assert Counter(rule.fate for rule in rules).keys() == {
        Fate.STRAY, Fate.DELAY, Fate.CUT, Fate.LOSE_ANSWER, Fate.REPEAT,
    }  # fmt: skip
    assert {rule.nth for rule in rules} == set(range(1, 21))
