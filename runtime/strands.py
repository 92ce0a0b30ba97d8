"""The records of one input that are not answered yet: strands take turns, and within one the order of the log holds.

A strand is what a core says keeps its order (`Core.strand`): what a tenant has published, or a whole input. So a flood
of one tenant takes every other turn from those behind it, and no more. What all keys share is no strand: it is answered
behind all that stands before it, and before all that stands behind it.

    position    the first record without an answer; what is committed, and where a successor begins to read
    further     strands that are beyond it: below its number here each record of a strand is answered

Both together say exactly what is answered. A successor reads again from the position and passes over the rest.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING
from zlib import crc32

if TYPE_CHECKING:
    from runtime.read_ahead import Unanswered

# Of an input, so that what is written down is bounded: some 14 bytes each. Names would be exact, and without a bound.
# A tenant shares the fate of a flood of another with a probability of one in so many. A format: it never changes.
STRANDS = 1024
SHARED = -1  # the number of what is no strand

Further = Mapping[int, int]  # strand → next offset


def number_of(strand: bytes) -> int:
    """The number of a strand, the same in each process and version."""
    return crc32(strand) % STRANDS


class _Stretch:
    """Records that may be answered in any order of their strands; or those that may not, all in one line."""

    __slots__ = ("is_shared", "lines", "turns")

    def __init__(self, *, is_shared: bool) -> None:
        self.is_shared = is_shared
        self.lines: dict[int, deque[Unanswered]] = {}  # none is empty
        self.turns: deque[int] = deque()  # strands of which there is something, the next one first


class Strands:
    """Those of one input. Calls from one thread."""

    def __init__(self) -> None:
        self._stretches: deque[_Stretch] = deque()  # none is empty
        self._answered: dict[int, int] = {}  # by strand, the offset behind the last one that was answered
        self._resumed_until = 0  # behind it nothing was answered by a predecessor

    def __bool__(self) -> bool:
        return bool(self._stretches)

    def resume(self, further: Further) -> None:
        """Go on where a predecessor was: what it has answered is passed over."""
        self._answered = dict(further)
        self._resumed_until = max(further.values(), default=0)

    def is_answered(self, strand: int, offset: int) -> bool:
        """Whether a predecessor has answered what is read again."""
        return offset < self._resumed_until and offset < self._answered.get(strand, 0)

    def append(self, strand: int, entry: Unanswered) -> None:
        """Hold a record behind those of its strand; a strand that is new has its turn behind all others."""
        is_shared = strand == SHARED
        if not self._stretches or self._stretches[-1].is_shared != is_shared:
            self._stretches.append(_Stretch(is_shared=is_shared))
        stretch = self._stretches[-1]
        line = stretch.lines.get(strand)
        if line is None:
            line = stretch.lines[strand] = deque()
            stretch.turns.append(strand)
        line.append(entry)

    def popleft(self) -> Unanswered:
        """The next one to be answered."""
        stretch = self._stretches[0]
        strand = stretch.turns.popleft()
        line = stretch.lines[strand]
        entry = line.popleft()
        self._answered[strand] = entry.record.offset + 1
        if line:
            stretch.turns.append(strand)
        else:
            del stretch.lines[strand]
            if not stretch.turns:
                self._stretches.popleft()
        return entry

    def position(self, polled: int) -> int:
        """Where the first record without an answer stands, given where the next one is read."""
        if not self._stretches:
            return polled
        return min(line[0].record.offset for line in self._stretches[0].lines.values())

    def further(self, position: int) -> Further:
        """Which strands are beyond a position that was reached; the others are forgotten."""
        self._answered = {strand: offset for strand, offset in self._answered.items() if offset > position}
        return self._answered
