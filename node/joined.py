"""Figures of a process and of its child as one, for whoever scrapes the one port that there is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry
from prometheus_client.samples import Sample

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from prometheus_client.metrics_core import Metric

Samples = Sequence[tuple[str, Mapping[str, str], float]]  # each with name, labels and value
Figures = Mapping[str, Samples]  # by the name of the family


class Joined(CollectorRegistry):
    """What is registered here, what `own` has, and what is counted elsewhere, under each name once.

    What both have under the same labels is added up; of a gauge ours is shown, as the other never set its own.
    """

    def __init__(self, own: CollectorRegistry, elsewhere: Callable[[], Figures]) -> None:
        super().__init__()
        self._own, self._elsewhere = own, elsewhere

    def collect(self) -> Iterator[Metric]:
        """See `CollectorRegistry.collect`."""
        elsewhere = self._elsewhere()
        for family in chain(self._own.collect(), super().collect()):
            _add(family, elsewhere.get(family.name, ()))
            yield family


def figures_of(registry: CollectorRegistry) -> Figures:
    """What is counted in a registry, to be sent to where it is joined with others'."""
    return {
        family.name: [(sample.name, sample.labels, sample.value) for sample in family.samples]
        for family in registry.collect()
    }


def _add(family: Metric, samples: Samples) -> None:
    known = {(each.name, *sorted(each.labels.items())): index for index, each in enumerate(family.samples)}
    for name, labels, value in samples:
        index = known.get((name, *sorted(labels.items())))
        if index is None:
            family.samples.append(Sample(name, dict(labels), value))
        elif family.type != "gauge" and not name.endswith("_created"):
            ours = family.samples[index]
            family.samples[index] = ours._replace(value=ours.value + value)
