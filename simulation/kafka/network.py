"""The network between machines and brokers: every request and every answer passes it.

A connection keeps the order of its frames. When a request has no answer in its time the client gives the connection up
and opens another; what is still on its way on the old one may arrive all the same, behind what the new one carried.
This is how an end of a transaction comes late.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from random import Random
from typing import Any, NamedTuple, TypeVarTuple

from simulation.kafka.broker import Broker
from simulation.kafka.protocol import Answer, Code, Request, Respond
from simulation.loop import Killed, Loop, Machine

Arguments = TypeVarTuple("Arguments")

TIMED_OUT = Answer(Code.TIMED_OUT)
TRANSPORT = Answer(Code.TRANSPORT)
REFUSED_SECONDS = 0.002  # a machine that listens no more says so at once
RECONNECT_SECONDS_MAX = 0.8  # before it is tried again, twice as long each time: the client's own limit is ten seconds
SURE_SECONDS = 0.5  # what arrives within it is answered before a client loses patience, if at all
NEVER = float("inf")
DEAD_AFTER = 64  # connections, between two looks for those of dead machines


@dataclass(frozen=True, slots=True, kw_only=True)
class Fates:
    """How likely what is: each of a request by itself."""

    lost: float = 0.0  # the request never arrives
    answer_lost: float = 0.0  # it is done, and nobody hears of it
    broken: float = 0.0  # the connection ends before the answer, half of the time before the request has arrived
    late: float = 0.0  # it arrives after `late_seconds`
    repeated: float = 0.0  # it arrives twice, the second time after `late_seconds`; no network does so unnoticed


CALM = Fates()


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkFaults:
    """What a network does. `by_api`: by the name of a request's class, instead of `fates`."""

    latency_seconds: tuple[float, float] = (0.0002, 0.001)  # one way, between these
    late_seconds: tuple[float, float] = (1.0, 8.0)
    fates: Fates = CALM
    by_api: Mapping[str, Fates] = field(default_factory=dict)
    late_after_cut: float = 0.5  # share of what a cut holds up that arrives when it is mended


class Way(NamedTuple):
    """What becomes of one request."""

    arrives: bool = True
    answered: bool = True
    late: bool = False
    again: bool = False
    held: bool = False
    broken: bool = False


STRAIGHT = Way()
LOST, UNANSWERED, LATE = Way(arrives=False), Way(answered=False), Way(late=True)
CUT, BROKEN = Way(arrives=False, broken=True), Way(answered=False, broken=True)
REPEATED = Way(answered=False, again=True)


class Fate(StrEnum):
    """What becomes of one request, when a test says so. Only a client that asks again makes two of one."""

    HOLD = "hold"  # kept until `release`
    DROP = "drop"  # never arrives
    LOSE_ANSWER = "lose_answer"  # arrives, and its answer does not
    STRAY = "stray"  # kept until `release`, and the client's connection ends: it asks again on another
    CUT = "cut"  # never arrives, and the client's connection ends
    BREAK = "break"  # arrives, and the client's connection ends before the answer


WAYS = {
    Fate.HOLD: Way(held=True),
    Fate.DROP: LOST,
    Fate.LOSE_ANSWER: UNANSWERED,
    Fate.STRAY: Way(held=True, broken=True),
    Fate.CUT: CUT,
    Fate.BREAK: BROKEN,
}


@dataclass(slots=True, eq=False)
class Rule:
    """The next request of a kind meets this fate, once; or each one does."""

    api: str
    fate: Fate
    lasting: bool = False
    machine: str | None = None
    met: int = 0
    held: list[Callable[[], None]] = field(default_factory=list)


class Network:
    """Between all machines and the brokers. Chance is drawn by machine, so that one does not change another's."""

    def __init__(self, loop: Loop, broker: Broker, seed: str, faults: NetworkFaults = NetworkFaults()) -> None:
        self.loop, self.broker = loop, broker
        self.faults = faults  # of machines that have none of their own
        self.by_machine: dict[str, NetworkFaults] = {}
        self.requests = 0
        self.readers = 0  # ever made: each has a name of its own
        self.fenced: dict[str, float] = {}  # machines that heard from a group that another has their name, and when
        self._seed = seed
        self._chances: dict[str, Random] = {}
        self._cut: dict[str, list[Callable[[], None]]] = {}
        self._mended_at: dict[str, float] = {}
        self._recovered_at = 0.0
        self._rules: list[Rule] = []
        self._connections: dict[Connection, None] = {}

    # --- what happens to it ---------------------------------------------------------------------------------------

    def next(self, api: str, fate: Fate, *, machine: str | None = None) -> Rule:
        """What becomes of the next request of a kind."""
        return self._rule(Rule(api, fate, machine=machine))

    def every(self, api: str, fate: Fate, *, machine: str | None = None) -> Rule:
        """What becomes of all requests of a kind from now on; `forget` ends it."""
        return self._rule(Rule(api, fate, lasting=True, machine=machine))

    def forget(self, rule: Rule) -> None:
        """End a rule."""
        self._rules.remove(rule)

    def release(self, rule: Rule) -> None:
        """Let what a rule holds arrive now."""
        held, rule.held = rule.held, []
        for arrive in held:
            arrive()

    def cut(self, machine: str) -> None:
        """Nothing passes between a machine and the brokers."""
        self._cut.setdefault(machine, [])
        for connection in self._connections:
            if connection.machine.name == machine:
                connection.watch()

    def mend(self, machine: str) -> None:
        """What was held up arrives now, or never."""
        self._mended_at[machine] = self.loop.seconds
        for arrive in self._cut.pop(machine, []):
            if self.chance(machine).random() < self.faults_of(machine).late_after_cut:
                arrive()

    def outage(self) -> None:
        """The brokers are away: connections end, and new ones are refused."""
        self.broker.sleep()
        for connection in list(self._connections):
            connection.fail()

    def recover(self) -> None:
        """The brokers are back, as they were."""
        self._recovered_at = self.loop.seconds
        self.broker.wake()

    def undisturbed_since(self, machine: Machine) -> float:
        """Since when a machine runs, reaches the brokers and they are there; NEVER while that is not so."""
        if machine.frozen or machine.name in self._cut or not self.broker.is_up:
            return NEVER
        return max(machine.thawed_at, self._mended_at.get(machine.name, 0.0), self._recovered_at)

    # --- what passes it -------------------------------------------------------------------------------------------

    def connect(self, machine: Machine, name: str) -> Connection:
        """A connection of a client on a machine."""
        self._forget_the_dead()
        connection = Connection(self, machine, name)
        self._connections[connection] = None
        return connection

    def _forget_the_dead(self) -> None:
        """Whoever was killed has closed nothing; now and then that is done for it."""
        if len(self._connections) % DEAD_AFTER == 0:
            self._connections = {one: None for one in self._connections if one.machine.alive}

    def disconnect(self, connection: Connection) -> None:
        """It is not used any more."""
        self._connections.pop(connection, None)

    def later(self, machine: Machine, seconds: float, do: Callable[[*Arguments], None], *arguments: *Arguments) -> None:
        """Call `do` on a machine: when it is frozen then, after it; when it is dead, never."""
        self.loop.later(seconds, _on, machine, do, arguments)

    def carry(self, connection: Connection, number: int, request: Request, answered: Respond) -> bool:
        """Take a request on its way. Whether an answer is sure to come; else the client must watch its time."""
        self.requests += 1
        machine, now, chance = connection.machine.name, self.loop.seconds, connection.chance
        faults = self.by_machine.get(machine, self.faults)
        low, high = faults.latency_seconds
        seconds = low + (high - low) * chance.random()
        if not self._rules and faults.fates is CALM and not faults.by_api:  # nearly always
            at = connection.behind = max(connection.behind, now + seconds)
            if at == NEVER:
                return False
            self.loop.later(at - now, self._arrive, machine, request, partial(self._back, connection, number, answered))
            return at - now < SURE_SECONDS and machine not in self._cut
        return self._carry(connection, number, request, answered, seconds)

    def _carry(self, connection: Connection, number: int, request: Request, answered: Respond, seconds: float) -> bool:
        """As `carry`, where something may happen to it on the way."""
        machine, now, chance = connection.machine.name, self.loop.seconds, connection.chance
        faults = self.faults_of(machine)
        api = type(request).__name__
        rule = self._met(api, machine) if self._rules else None
        way = _drawn(faults.by_api.get(api, faults.fates), chance) if rule is None else WAYS[rule.fate]
        back = partial(self._back, connection, number, answered) if way.answered else _unheard
        arrive = partial(self._arrive, machine, request, back)
        if rule is not None and way.held:
            rule.held.append(arrive)
        elif way.again:
            self.loop.later(seconds + chance.uniform(*faults.late_seconds), arrive)
        if way.late:
            seconds += chance.uniform(*faults.late_seconds)
        if way.held:
            connection.behind = NEVER
        if way.broken:
            self.later(connection.machine, 2 * seconds, connection.fail)
        at = connection.behind = max(connection.behind, now + seconds)
        if at == NEVER or not way.arrives:
            return False
        self.loop.later(at - now, arrive)
        return way is STRAIGHT and at - now < SURE_SECONDS and machine not in self._cut

    def _arrive(self, machine: str, request: Request, back: Respond) -> None:
        if machine in self._cut:
            self._cut[machine].append(partial(self._arrive, machine, request, back))
        elif self.broker.is_up:
            self.broker.handle(request, back)

    def _back(self, connection: Connection, number: int, answered: Respond, answer: Answer) -> None:
        machine = connection.machine
        if machine.name not in self._cut:
            low, high = self.by_machine.get(machine.name, self.faults).latency_seconds
            seconds = low + (high - low) * connection.chance.random()
            self.loop.later(seconds, _on, machine, connection.answered, (number, answer, answered))

    def faults_of(self, machine: str) -> NetworkFaults:
        """What the network does to a machine."""
        return self.by_machine.get(machine, self.faults)

    def chance(self, machine: str) -> Random:
        """The chance of what happens to a machine's frames."""
        found = self._chances.get(machine)
        if found is None:
            found = self._chances[machine] = Random(f"{self._seed}:network:{machine}")
        return found

    def _rule(self, rule: Rule) -> Rule:
        self._rules.append(rule)
        return rule

    def _met(self, api: str, machine: str) -> Rule | None:
        for rule in self._rules:
            if rule.api == api and rule.machine in {None, machine}:
                rule.met += 1
                if not rule.lasting:
                    self._rules.remove(rule)
                return rule
        return None


def _on(machine: Machine, do: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    if machine.frozen:
        machine.held_back.append((_on, (machine, do, arguments)))
    elif machine.alive:
        do(*arguments)


def _unheard(_answer: Answer) -> None:
    """Nobody hears of it."""


def _drawn(fates: Fates, chance: Random) -> Way:
    if fates is CALM:
        return STRAIGHT
    draw = chance.random()
    for share, way in (
        (fates.lost, LOST), (fates.answer_lost, UNANSWERED), (fates.broken / 2, CUT), (fates.broken / 2, BROKEN),
        (fates.late, LATE), (fates.repeated, REPEATED),
    ):  # fmt: skip
        if draw < share:
            return way
        draw -= share
    return STRAIGHT


class Connection:
    """One connection of a client, opened anew when it has failed. Each request is answered once, be it by a failure."""

    def __init__(self, network: Network, machine: Machine, name: str) -> None:
        self.machine, self.name = machine, name
        self.chance = network.chance(machine.name)
        self.behind = 0.0  # no frame of ours arrives before this
        self.closed = False
        self.timeouts = 0
        self.losses = 0
        self._refused_after = REFUSED_SECONDS
        self._refusing = False
        self._network = network
        self._count = 0
        self._open: dict[int, tuple[Respond, float]] = {}  # with the second at which its time is up

    def send(self, request: Request, answered: Respond, timeout: float) -> None:
        """Send a request; `answered` hears of TIMED_OUT when its time is up, of TRANSPORT when the connection ends."""
        if not self.machine.alive:
            raise Killed
        if self.closed:
            return
        network = self._network
        self._count += 1
        number = self._count
        self._open[number] = (answered, network.loop.seconds + timeout)
        if not network.broker.is_up:
            self._refuse()
            if timeout < RECONNECT_SECONDS_MAX:
                self._watch(number, timeout)
        elif not network.carry(self, number, request, answered):
            self._watch(number, timeout)

    def watch(self) -> None:
        """Answers are not sure to come any more: mind the time of those who wait for them."""
        for number, (_, until) in self._open.items():
            self._watch(number, max(0.0, until - self._network.loop.seconds))

    def answered(self, number: int, answer: Answer, answered: Respond) -> None:
        """An answer has come; nobody waits for it any more when the connection was given up."""
        if self._open.pop(number, None) is not None and not self.closed:
            self._refused_after = REFUSED_SECONDS
            answered(answer)

    def _refuse(self) -> None:
        """Nobody is there: whoever asks hears of it, the later the more often it was so."""
        if not self._refusing:
            self._refusing = True
            self._network.later(self.machine, self._refused_after, self._refused)
            self._refused_after = min(2 * self._refused_after, RECONNECT_SECONDS_MAX)

    def _refused(self) -> None:
        self._refusing = False
        self.fail()

    def fail(self) -> None:
        """The connection has ended: whatever is under way is without an answer."""
        self.behind = 0.0
        if not self._open:
            return
        self.losses += 1
        waiting, self._open = list(self._open.values()), {}
        for answered, _ in waiting:
            self._network.later(self.machine, 0.0, self._lost, answered)

    def _lost(self, answered: Respond) -> None:
        if not self.closed:
            answered(TRANSPORT)

    def close(self) -> None:
        """Nobody is interested any more; what was sent may arrive."""
        self.closed = True
        self._open.clear()
        self._network.disconnect(self)

    def _watch(self, number: int, timeout: float) -> None:
        self._network.later(self.machine, timeout, self._time_up, number)

    def _time_up(self, number: int) -> None:
        waiting = self._open.pop(number, None)
        if waiting is not None and not self.closed:
            answered, _ = waiting
            self.timeouts += 1
            self.fail()
            answered(TIMED_OUT)
