"""What happens to the disks of those who own partitions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from runtime.workspace import ROW

if TYPE_CHECKING:
    from random import Random

    from simulation.cluster.node import Node
    from simulation.cluster.site import Site


class Disks:
    """The faults of disks; `owner` draws one of the nodes that run, or None."""

    def __init__(self, site: Site, chance: Random, owner: Callable[[], Node | None]) -> None:
        self._site, self._chance, self._owner = site, chance, owner

    def lose(self) -> None:
        """D1: all that a node has kept is gone."""
        node = self._owner()
        if node is not None:
            node.kill("D1")
            node.disk.lose()
            self._site.story.fault("D1", node.name, "has an empty disk")

    def flip_bit(self) -> None:
        """D2: a bit of a store is another."""
        node = self._owner()
        if node is None or not node.disk.folders:
            return
        name = self._chance.choice(sorted(node.disk.folders))
        at = self._some_row(node.disk.folders[name].values) if self._chance.choice((True, False)) else None
        if at is not None or self._chance.choice((True, False)):
            node.kill("D2")  # A process that has a row in its memory would never see it.
        node.disk.damage(name, at)
        self._site.story.fault("D2", node.name, f"a bit of {name} has flipped{'' if at is None else f' at {at!r}'}")

    def _some_row(self, values: Mapping[bytes, bytes]) -> bytes | None:
        rows = sorted(key for key in values if key.startswith(ROW))
        return self._chance.choice(rows) if rows else None

    def run_ahead(self) -> None:
        """D3: stores have what the log has not."""
        node = self._owner()
        if node is not None:
            node.kill("D3")
            if node.disk.run_ahead():
                self._site.story.fault("D3", node.name, "its stores are ahead of the log")

    def roll_back(self) -> None:
        """D4: stores are later what they are now."""
        node = self._owner()
        if node is None:
            return
        node.disk.remember()

        def roll_back() -> None:
            if self._site.under_faults:
                node.kill("D4")
                if node.disk.roll_back():
                    self._site.story.fault("D4", node.name, "its stores are what they were")

        self._site.loop.later(self._chance.uniform(5, 900), roll_back)

    def fill(self) -> None:
        """D8: nothing can be written for a while."""
        node = self._owner()
        if node is not None:
            self._site.story.fault("D8", node.name, "its disk is full")
            node.disk.full = True
            self._site.loop.later(self._chance.uniform(1, 120), lambda: setattr(node.disk, "full", False))
