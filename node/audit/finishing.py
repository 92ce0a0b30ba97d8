"""When a schedule is due whose interval counts from the end of the run before: walked from outcomes.

The first one comes an interval behind the anchor; each later one is counted from the second in which the run of the
one before ended, but not from before that one's nominal instant, nor from before a change of the schedule that was in
force when the outcome was written; of one that was skipped, from its nominal instant. While a run is open nothing is
due, and neither while its outcome was written behind the mark.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Ended:
    """The end of a run as its first record says it, in whole seconds; `written` in milliseconds."""

    finished: int
    written_ms: int


class Chain:
    """What one schedule's topics say of that; asked version by version, in their order."""

    def __init__(
        self, created: Mapping[int, str], skipped: Mapping[int, int], ended: Mapping[str, Ended], changes_ms: list[int],
        trimmed_until: int | None,
    ) -> None:  # fmt: skip
        self._created = created  # nominal -> run
        self._skipped = skipped  # first nominal of a record -> last one
        self._begins = sorted(skipped)
        self._ended = ended
        self._changes_ms = sorted(changes_ms)
        self._since: int | None = None  # what the next one counts from; None while one is open
        self._last: int | None = None
        self._begun = trimmed_until is not None
        known = [nominal for nominal in (*created, *skipped) if trimmed_until is not None and nominal > trimmed_until]
        self._believed = min(known, default=None)  # what it rests on is not told any more

    def due(self, interval: int, anchor: int, after: int, until: int) -> Iterator[int]:
        """The instants in (after, until] at which a version is due."""
        if self._believed is not None:
            if self._believed > until:
                return
            yield self._believed
            self._decide(self._believed)
            after, self._believed = max(after, self._believed), None
        nominal = self._next(interval, anchor, after, until)
        while nominal is not None and nominal <= until:
            yield nominal
            self._decide(nominal)
            nominal = self._next(interval, anchor, max(after, nominal), until)

    def _decide(self, nominal: int) -> None:
        self._last, self._begun = nominal, True
        index = bisect_right(self._begins, nominal) - 1
        is_skipped = index >= 0 and nominal <= self._skipped[self._begins[index]]
        self._since = nominal if is_skipped and nominal not in self._created else None

    def _next(self, interval: int, anchor: int, after: int, until: int) -> int | None:
        since = self._counted_from(until) if self._begun else anchor
        if since is None:
            return None
        since = max(anchor, since)
        return since + interval * max(1, (max(after, since) - since) // interval + 1)

    def _counted_from(self, until: int) -> int | None:
        """The second that counts as the end of the last run; None when it had not ended by the mark."""
        if self._since is not None or self._last is None:
            return self._since
        ended = self._ended.get(self._created.get(self._last, ""))
        if ended is None or ended.written_ms > until * 1000:
            return None
        changed = [at for at in self._changes_ms if at <= ended.written_ms]
        return max(ended.finished, self._last, changed[-1] // 1000 if changed else 0)
