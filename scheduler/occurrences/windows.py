"""Windows of time that take occurrences out: [from, to), and a length of time from each instant of a trigger on."""

from collections.abc import Iterator
from dataclasses import dataclass

from scheduler.occurrences.triggers import Trigger, between, last_between


@dataclass(frozen=True, slots=True)
class Windows:
    """Instants in any of `spans`, or at most so many seconds behind one of a trigger."""

    spans: tuple[tuple[int, int], ...] = ()
    again: tuple[tuple[Trigger, int], ...] = ()

    def holds(self, instant: int) -> bool:
        """Say whether an instant lies in one of them."""
        return any(opens <= instant < closes for opens, closes in self.spans) or any(
            last_between(trigger, instant - seconds, instant) is not None for trigger, seconds in self.again
        )

    def ends(self, instant: int) -> int | None:
        """Return the last end of those in which an instant lies; None outside of all."""
        ends = [closes for opens, closes in self.spans if opens <= instant < closes]
        begun = ((last_between(trigger, instant - seconds, instant), seconds) for trigger, seconds in self.again)
        return max((*ends, *(begins + seconds for begins, seconds in begun if begins is not None)), default=None)

    def bits(self, opens: int, closes: int) -> int:
        """Return the instants in [opens, closes) as a set: bit n is the instant `opens + n`."""
        found = 0
        for begins, ends in self._near(opens, closes):
            first, behind = max(begins, opens), min(ends, closes)
            if first < behind:
                found |= ((1 << (behind - first)) - 1) << (first - opens)
        return found

    def _near(self, opens: int, closes: int) -> Iterator[tuple[int, int]]:
        yield from self.spans
        for trigger, seconds in self.again:
            for begins in between(trigger, opens - seconds, closes - 1):
                yield begins, begins + seconds
