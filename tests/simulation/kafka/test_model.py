"""The model against the original: what a play looks like on a broker it looks like on the simulated one.

MODEL_SEQUENCES says how many plays are compared (a sample by default), MODEL_FIRST with which seed to begin.
"""

import os
import uuid
from collections.abc import Iterator

import pytest

from runtime.clock import SystemClock
from runtime.logs.kafka.log import KafkaLog
from runtime.logs.kafka.settings import KafkaSettings
from tests.runtime.logs.words import SPECS
from tests.simulation.kafka.plays import Play, Told, drawn
from tests.simulation.kafka.world import LONG, World

PLAYS = int(os.environ.get("MODEL_SEQUENCES", "20"))
FIRST = int(os.environ.get("MODEL_FIRST", "1"))
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


@pytest.mark.timeout(60 + 5 * PLAYS)
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
