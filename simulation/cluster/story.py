"""What happened in a simulation, in order: for who replays a seed, and for the counts of what really happened."""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from runtime.log import LogError
from runtime.store import StoreError
from runtime.telemetry import Event, Metric, Telemetry
from simulation.loop import Loop, Machine

NONE: Mapping[str, str] = MappingProxyType({})
FRAMES = 5  # of a traceback, the innermost ones: enough to find it
LINES_MAX = 200_000  # some hundred hours of an ordinary seed; beyond it only the counts go on


@dataclass(slots=True)
class Story:
    """Lines of text with their time. `tell` hears each at once, when somebody watches."""

    loop: Loop
    tell: Callable[[str], None] | None = None
    lines: list[str] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)
    events: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)  # what no fault excuses
    restored: list[tuple[str, int, float]] = field(default_factory=list)  # role, partition, and when somebody had it
    owning: list[tuple[float, str, str, int, str]] = field(default_factory=list)  # see `evidence.Owning`

    def say(self, who: str, what: str) -> None:
        """Something happened."""
        line = f"{self.loop.seconds:10.3f}  {who:18} {what}"
        if len(self.lines) < LINES_MAX:
            self.lines.append(line)
        if self.tell is not None:
            self.tell(line)

    def fault(self, name: str, who: str, what: str) -> None:
        """A fault of the catalogue really happened."""
        self.faults[name] += 1
        self.say(who, f"!! {name} {what}")

    def own(self, machine: str, role: str, partition: int, what: str) -> None:
        """Something is said of who has a partition."""
        self.owning.append((self.loop.seconds, machine, role, partition, what))

    def fail(self, who: str, what: str) -> None:
        """Something happened that must not."""
        self.failures.append(f"{who}: {what}")
        self.say(who, f"## {what}")


# What the group says of partitions.
SHARES: Mapping[Event, str] = {
    Event.PARTITIONS_ASSIGNED: "assigned", Event.PARTITIONS_REVOKED: "revoked", Event.PARTITIONS_LOST: "lost",
}  # fmt: skip

# What a partition or a role may end with: its process is told by others, or by its disk. All else is our fault.
EXPLAINED = (LogError, StoreError)


class StoryTelemetry(Telemetry):
    """Telemetry of one process: metrics cost nothing, log events become lines of the story."""

    def __init__(self, story: Story, machine: Machine) -> None:  # The registry of the real one is nobody's here.
        self._story, self._machine = story, machine

    def count(self, name: Metric, labels: Mapping[str, str] = NONE, amount: float = 1) -> None:
        """Nobody counts."""

    def set(self, name: Metric, labels: Mapping[str, str], value: float) -> None:
        """Nobody looks."""

    def observe(self, name: Metric, labels: Mapping[str, str], *seconds: float) -> None:
        """Nobody measures."""

    def forget(self, name: Metric, labels: Mapping[str, str]) -> None:
        """Nobody looked."""

    def info(self, event: Event, **fields: Any) -> None:
        """A line."""
        self._line("", event, fields)

    def warning(self, event: Event, **fields: Any) -> None:
        """A line that stands out."""
        self._line("? ", event, fields)

    def error(self, event: Event, **fields: Any) -> None:
        """A line that stands out more. An error that no fault of the catalogue brings about is a failure."""
        error = fields.pop("exc_info", None)
        self._line("! ", event, fields)
        if error is not None and self._machine.alive and not isinstance(error, EXPLAINED):
            self._story.fail(self._machine.name, f"{event.value}: {told(error)}")

    def _line(self, mark: str, event: Event, fields: Mapping[str, Any]) -> None:
        if not self._machine.alive:
            return  # The dead tell nothing.
        self._story.events[event.value] += 1
        if event is Event.PARTITION_RESTORED:
            self._story.restored.append((fields["role"], int(fields["partition"]), self._story.loop.seconds))
        for number in fields["partitions"] if event in SHARES else ():
            self._story.own(self._machine.name, fields["role"], number, SHARES[event])
        words = " ".join(f"{name}={value}" for name, value in fields.items())
        self._story.say(self._machine.name, f"{mark}{event.value} {words}")


def told(error: BaseException) -> str:
    """An error and where it was raised."""
    frames = traceback.extract_tb(error.__traceback__)[-FRAMES:]
    where = " < ".join(f"{frame.filename.rpartition('/')[2]}:{frame.lineno} {frame.name}" for frame in reversed(frames))
    return f"{type(error).__name__}: {error} ({where})"
