"""What a schedule keeps of its dependencies: a few numbers in its state, and rows for edges, listeners and triggers."""

from __future__ import annotations

from schemas.facts import Cause, Outcome, Upstream
from schemas.frozen import frozen


@frozen
class Line:
    """Triggers that stand in rows, in their order: so many, from number `first` on; what is due of the first."""

    count: int = 0
    first: int = 0
    at_ms: int = 0
    version: int = 0


NO_LINE = Line()


@frozen
class Awaits:
    """Occurrences that wait for what others were due, in rows: how many, since when the first one has, the oldest
    version of theirs, when the next of them goes or is given up, and when one asks again.
    """

    count: int = 0
    since_ms: int = 0
    version: int = 0
    due_ms: int | None = None
    due: int = 0
    ask_ms: int | None = None


NO_AWAITS = Awaits()


@frozen
class Standing:
    """What one upstream's owner has answered, known since `at_ms`."""

    upstream: str
    fate: str
    at_ms: int
    instant: int | None = None
    detail: str = ""


@frozen
class Awaited:
    """An occurrence that waits, since `since_ms`, for what its upstreams were due; asked for the last time then.

    One that need not wait for them any more may not go before `frozen_ms`, where a freeze defers it.
    """

    nominal: int
    version: int
    cause: Cause
    since_ms: int
    asked_ms: int
    heard: tuple[Standing, ...] = ()
    frozen_ms: int | None = None


@frozen
class Question:
    """Whether a window of this schedule, (after, until], is met: for an occurrence of one that waits.

    `stuck` is the occurrence that stands in the way, 0 for a schedule that is not there; None: not judged yet.
    """

    downstream: str
    nominal: int
    after: int
    until: int
    condition: str
    once: bool
    expires_ms: int
    at_ms: int
    stuck: int | None = None


@frozen
class Asked:
    """The first question that is to be judged: when all up to `until` is decided, and not before `at_ms`."""

    until: int
    at_ms: int


@frozen
class Links:
    """Both ends of a schedule's edges.

    As the one that follows: how many edges, the last `sequence` of its own, when to ask next, triggers that were noted
    and triggers that wait for room. As an upstream: how many listen, and the `number` of its last report.
    """

    edges: int = 0
    sequence: int = 0
    ask_ms: int | None = None
    noted: Line = NO_LINE
    waiting: Line = NO_LINE
    listeners: int = 0
    reported: int = 0
    awaits: Awaits = NO_AWAITS
    intervals: int = 0  # of the listeners, those that wait for windows
    asked: Asked | None = None


NO_LINKS = Links()


@frozen
class Edge:
    """An upstream of a schedule. `seen` are sequence and number of its last report; what is not newer is known.

    `since` is the sequence with which the edge began: what is older speaks of one that was withdrawn.
    """

    mode: str
    condition: str
    version: int
    since: int
    sequence: int
    announced_ms: int
    asked_ms: int
    linked: bool = False
    refused: str = ""
    seen_sequence: int = 0
    seen_number: int = 0


@frozen
class Listener:
    """A schedule that follows, as its upstream knows it."""

    mode: str
    condition: str
    sequence: int


@frozen
class Trigger:
    """What a run of an upstream leads to, not decided yet, or waiting. `version` decides for one that waits."""

    upstream: Upstream
    at_ms: int
    chain: tuple[str, ...] = ()
    version: int = 0


def meets(condition: str, outcome: Outcome) -> bool:
    """Whether an outcome is what an edge follows. A run that was cancelled neither succeeded nor failed."""
    if condition == "finished":
        return True
    return (outcome is Outcome.SUCCEEDED) == (condition == "succeeded") and outcome is not Outcome.CANCELLED
