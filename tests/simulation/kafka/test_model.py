"""The model against the original: what a play looks like on a broker it looks like on the simulated one.

MODEL_SEQUENCES says how many plays are compared (a sample by default), MODEL_FIRST with which seed to begin.
"""

import os
import uuid
from collections.abc import Iterator
from dataclasses import replace
from threading import Event

import pytest

from runtime.clock import SystemClock
from runtime.logs.kafka.doubt import Seen, doubt
from runtime.logs.kafka.log import KafkaLog
from runtime.logs.kafka.settings import KafkaSettings
from simulation.kafka.network import Fate, Rule
from tests.runtime.logs.words import E0, SPECS, write
from tests.simulation.kafka import disturbed
from tests.simulation.kafka.plays import Play, Told, drawn
from tests.simulation.kafka.world import LONG, World
from tests.support import proxy as proxying

PLAYS = int(os.environ.get("MODEL_SEQUENCES", "20"))
FIRST = int(os.environ.get("MODEL_FIRST", "1"))
DISTURBED = PLAYS // 50  # each takes many seconds, as clients wait before they ask again: none in a sample
MARKER_SECONDS = 0.1  # after an answer for its markers, of which nobody tells
TOLD_MAX = 5  # of plays that differ: enough to see what it is


@pytest.fixture
def real(broker: str, topic_prefix: str) -> Iterator[KafkaLog]:
    settings = KafkaSettings(
        bootstrap=broker, namespace=topic_prefix, replication_factor=1, min_insync_replicas=1, session_timeout=LONG
    )
    log = KafkaLog(settings, SystemClock(), replaced=lambda _id, _why: None)
    log.create(SPECS)
    yield log
    log.close()


def simulated(seed: int) -> Told:
    world = World(seed)
    told: Told = world.run(lambda: Play(world.log(), f"p{seed}", drawn(seed)).run())
    return told


# The names of the model, and what they are called on the way to a broker.
KEYS = {
    "AddPartitions": proxying.ADD_PARTITIONS,
    "AddOffsets": proxying.ADD_OFFSETS,
    "CommitOffsets": proxying.TXN_OFFSET_COMMIT, "EndTransaction": proxying.END_TXN,
}  # fmt: skip
WAYS = {
    "stray": proxying.Fate.STRAY,
    "cut": proxying.Fate.CUT,
    "break": proxying.Fate.LOSE_ANSWER,
}


class RealNetwork:
    """A proxy before a broker."""

    def __init__(self, proxy: proxying.Proxy) -> None:
        self._proxy = proxy

    def arm(self, api: str, fate: str) -> proxying.Armed:
        return self._proxy.next(KEYS[api], WAYS[fate])

    def release(self, armed: proxying.Armed) -> None:
        if not armed.met.is_set():
            self._proxy.clear()
        elif armed.send is not None:
            self._proxy.release(armed)
            Event().wait(MARKER_SECONDS)


class SimulatedNetwork:
    """The network of a world."""

    def __init__(self, world: World) -> None:
        self._world = world

    def arm(self, api: str, fate: str) -> Rule:
        return self._world.network.next(api, Fate(fate))

    def release(self, rule: Rule) -> None:
        if not rule.met:
            self._world.network.forget(rule)
        elif rule.held:
            self._world.network.release(rule)
            self._world.pause(MARKER_SECONDS)


def calmly(seen: Seen) -> str:
    """The rule without its look at the time: the machine of a test may be busy."""
    return doubt(replace(seen, seconds=0.0))


def never(_seen: Seen) -> str:
    return ""


def disturbed_here(seed: int) -> disturbed.Told:
    world, (doubts, steps) = World(seed), disturbed.drawn(seed)
    notes = disturbed.Notes()

    def body() -> disturbed.Told:
        log = world.log(doubts=calmly if doubts else never, replaced=notes.note)
        play = disturbed.Play(log, SimulatedNetwork(world), f"d{seed}", steps, notes)
        return play.run(lambda: log.open_producer("red", group=f"d{seed}"))

    told: disturbed.Told = world.run(body)
    return told


@pytest.mark.timeout(60 + 30 * DISTURBED, func_only=True)
def test_a_disturbed_play_looks_the_same_on_a_broker_and_on_the_model(real, broker, topic_prefix):
    different: list[str] = []
    run = uuid.uuid4().hex[:6]
    write(real.open_producer(f"{run}-first", group=f"{run}-first"), positions={E0: 1})  # finds the coordinators
    with proxying.proxied(broker) as proxy:
        for seed in range(FIRST, FIRST + DISTURBED):
            here, there = disturbed_here(seed), disturbed_there(proxy, topic_prefix, f"{run}d{seed}", seed)
            if there != here:
                different.append(f"seed {seed} {disturbed.drawn(seed)}\n  broker {there}\n  model  {here}")
            if len(different) == TOLD_MAX:
                break
    assert not different, "\n".join(different)


def disturbed_there(proxy: proxying.Proxy, prefix: str, name: str, seed: int) -> disturbed.Told:
    doubts, steps = disturbed.drawn(seed)
    notes = disturbed.Notes()
    settings = KafkaSettings(
        bootstrap=proxy.bootstrap, namespace=prefix, replication_factor=1, min_insync_replicas=1, session_timeout=LONG
    )
    log = KafkaLog(settings, SystemClock(), doubts=calmly if doubts else never, replaced=notes.note)
    log.create(SPECS)
    play = disturbed.Play(log, RealNetwork(proxy), name, steps, notes)
    try:
        return play.run(lambda: log.open_producer(f"{name}-red", group=name))
    finally:
        log.close()


@pytest.mark.timeout(60 + 5 * PLAYS, func_only=True)
def test_a_play_looks_the_same_on_a_broker_and_on_the_model(real):
    different: list[str] = []
    run = uuid.uuid4().hex[:6]
    for seed in range(FIRST, FIRST + PLAYS):
        there = Play(real, f"{run}p{seed}", drawn(seed)).run()
        here = simulated(seed)
        if there != here:
            different.append(f"seed {seed}\n  broker {there}\n  model  {here}")
        if len(different) == TOLD_MAX:
            break
    assert not different, "\n".join(different)


def test_plays_go_through_everything_that_a_writer_can_meet():
    """Else the comparison would prove little."""
    told = [simulated(seed) for seed in range(1, 61)]
    refusals = {(what, kind) for play in told for _, what, kind in play.refused}
    assert {kind for _, kind in refusals} == {"Fenced", "LogError", "OffsetOutOfRange", "UnknownTopic"}
    assert {what for what, kind in refusals if kind == "Fenced"} >= {"commit", "flush"}
    assert sum(len(values) for play in told for values in play.order.values()) > 50
    assert any(positions for play in told for _, positions in play.positions)


def test_a_disturbed_writer_that_doubts_tears_nothing_and_one_that_does_not_tears_some():
    torn: dict[bool, int] = {True: 0, False: 0}
    for seed in range(1, 41):
        doubts, steps = disturbed.drawn(seed)
        told = disturbed_here(seed)
        for number, (step, ended) in enumerate(zip(steps, told.ended, strict=True)):
            parts = sum(value[:-1] == str(number) for values in told.records.values() for value in values)
            wanted = {0, 3} if ended != "done" else {3} if step.commits else {0}
            torn[doubts] += parts not in wanted
    assert torn[True] == 0
    assert torn[False] > 2
