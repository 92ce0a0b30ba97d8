"""A place on which processes run, one after another, under one name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from simulation.cluster.site import Site
    from simulation.loop import Machine


class Process(Protocol):
    """What runs on a place."""

    machine: Machine


P = TypeVar("P", bound=Process)


class Place(Generic[P]):
    """What is the same of every place, whatever runs there."""

    __slots__ = ()

    site: Site
    name: str
    process: P | None

    @property
    def runs(self) -> bool:
        """Whether a process of it is alive, be it frozen."""
        return self.process is not None and self.process.machine.alive

    def kill(self, why: str) -> None:
        """`kill -9`, whatever the process is about to do."""
        if self.process is not None and self.runs:
            self.site.story.say(self.name, f"killed: {why}")
            self.site.loop.kill(self.process.machine)
