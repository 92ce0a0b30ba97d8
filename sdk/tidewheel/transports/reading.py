"""How much of an inbox has been read, and since when that is known to be all of it. Pure.

A worker that stood still, or whose broker did, reads post that was written for it long ago; whoever wrote that may
have given up on it. How old a record is cannot be told by its time, as clocks differ. But where the inbox ended is
asked again and again: what stands behind an end was written after it was asked for.
"""

from __future__ import annotations

from dataclasses import dataclass

ASK_SECONDS = 2.5  # Hand-outs are to be begun within ten; what may be younger than that by this much is run.
CURRENT_SECONDS = 10.0  # Without knowing the end for as long, nothing is asked for: it would come too late.


@dataclass(slots=True)
class Reading:
    """One incarnation's reading of its inbox, from the end that was asked for at `current_at`.

    At `current_at` there was nothing that has not been read by now. Instants are seconds of the leases' clock.
    """

    incarnation: str
    position: int
    current_at: float
    is_begun: bool = False  # whether the inbox was seen to be readable
    _asked: tuple[float, int] | None = None  # an end that has not been reached yet, and when it was asked for

    def is_due(self, now: float) -> bool:
        """Whether to ask where the inbox ends. Once the answer is reached, and not again before."""
        return self._asked is None and now - self.current_at >= ASK_SECONDS

    def ends_at(self, end: int, asked_at: float) -> None:
        """The inbox ended there when it was asked."""
        self._asked = (asked_at, end)
        self._look()

    def passed(self, position: int) -> None:
        """All before this position has been read; gaps count as well (transactions, what they took back)."""
        self.position = max(self.position, position)
        self._look()

    def is_current(self, now: float) -> bool:
        """Whether what is written now would be read before it is too old."""
        return now - self.current_at < CURRENT_SECONDS

    def _look(self) -> None:
        if self._asked is not None and self.position >= self._asked[1]:
            self.current_at, self._asked = self._asked[0], None
