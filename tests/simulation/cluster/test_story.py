"""What simulated processes tell."""

from __future__ import annotations

from random import Random

from runtime.telemetry import Event, Metric
from simulation.cluster.story import Story, StoryTelemetry
from simulation.loop import Loop, Machine


def test_metrics_cost_nothing_also_when_a_partition_is_given_away() -> None:
    """A process that let go of a partition looked for a registry that it has not, and its role failed."""
    story = Story(Loop(Random("turns")), None)
    telemetry = StoryTelemetry(story, Machine("m"))
    telemetry.set(Metric.QUEUE_PAUSED, {"role": "dispatcher", "partition": "0", "queue": "mail"}, 1)
    telemetry.forget_partition("dispatcher", "0")
    telemetry.info(Event.PARTITION_RESTORED, role="dispatcher", partition=0)
    assert story.events[Event.PARTITION_RESTORED.value] == 1
