"""Processes that come and go together: storms of rebalances, twins of one name, roles that shrink and grow."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

from simulation.cluster.node import Node

if TYPE_CHECKING:
    from simulation.cluster.world import World

ROLES = ("scheduler", "dispatcher")
MINUTE_SECONDS = 60.0  # most occurrences are due at full minutes, and the hour begins at one
MORE_MAX = 2  # nodes of a role beside those that it began with


class Membership:
    """What happens to the groups of a world's role nodes."""

    def __init__(self, world: World, chance: Random) -> None:
        self._world, self._site, self._chance = world, world.site, chance
        self.twins: list[Node] = []

    def storm(self) -> None:
        """B5: somebody joins or leaves again and again, every second for minutes or a few times within one."""
        self._site.story.fault("B5", "processes", "join and leave one after another")
        times, pauses = self._chance.choice(((self._chance.randint(10, 40), (0.5, 5.0)), (120, (0.8, 1.2))))
        for _ in range(times):
            node = self._chance.choice(self._world.nodes)
            if not self._site.under_faults:
                return
            if node.runs and self._chance.choice((True, False)):
                node.stop()
            elif node.runs:
                node.kill("B5")
            elif node.wanted:
                node.start()
            self._site.loop.sleep(self._chance.uniform(*pauses))

    def twin(self, node: Node) -> None:
        """B7: another process has this one's name, for a while."""
        twin = replace(
            node, disk=type(node.disk)(), clock=self._site.clock(), starts=1000 + node.starts, process=None
        )  # fmt: skip
        self._site.story.fault("B7", node.name, "has a twin of the same name")
        twin.start()
        self._site.loop.later(self._chance.uniform(1, 60), lambda: twin.kill("B7: the twin is found"))
        self.twins.append(twin)

    def another_version(self) -> None:
        """F7: a planned stop; it is started again as everybody is, in either version."""
        running = [node for node in self._world.nodes if node.runs and node.process and not node.process.machine.frozen]
        if running:
            node = self._chance.choice(running)
            self._site.story.fault("F7", node.name, "is stopped, to come back in the next version or in this one")
            node.stop()

    def resize(self) -> None:
        """B10: a role shrinks to one process and grows again; or it grows, and shrinks while a burst is due."""
        role = self._chance.choice(ROLES)
        nodes = [node for node in self._world.nodes if node.role == role]
        if len(nodes) == 1 or self._chance.choice((True, False)):
            self._grow_and_shrink(role, nodes)
        else:
            self._shrink_and_grow(role, nodes[1:])

    def _shrink_and_grow(self, role: str, leaving: list[Node]) -> None:
        self._site.story.fault("B10", role, "shrinks to one process")
        for node in leaving:
            node.wanted = False
            node.stop()
        self._site.loop.sleep(self._chance.uniform(10, 300))
        for node in leaving:
            node.wanted = True

    def _grow_and_shrink(self, role: str, nodes: list[Node]) -> None:
        began_with = getattr(self._site.options, f"{role}s")
        room = began_with + MORE_MAX - len(nodes)
        more = [self._world.another(role) for _ in range(min(room, self._chance.randint(1, MORE_MAX)))]
        joining = more or nodes[began_with:]
        self._site.story.fault("B10", role, f"grows by {len(joining)}, to shrink in the middle of a burst")
        for node in joining:
            node.wanted = True
            node.start()
        self._site.loop.sleep(MINUTE_SECONDS * self._chance.randint(0, 3))
        self._site.loop.sleep(MINUTE_SECONDS - self._site.loop.seconds % MINUTE_SECONDS + self._chance.uniform(0, 0.5))
        for node in joining:
            node.wanted = False
            node.stop()
