"""What the API needs of the process it lives in. Everything comes in here; nothing is found by itself."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from api.appender import Appender
    from api.commander import Commander
    from api.leases import SimpleLeases
    from api.relay import WorkerRelay
    from projections.store.reader import Reader
    from runtime.log import Log
    from runtime.record import TopicPartition

LOOPBACK = frozenset({"127.0.0.1", "localhost", "[::1]"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """One occurrence that a definition would have. `due_at`: where jitter moves it; `held_until`: by a freeze."""

    nominal_time: datetime
    local_time: str
    note: str = ""
    due_at: datetime | None = None
    held_until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """What will have no run, and why: an occurrence, neighbouring ones, or a local reading that a policy drops."""

    at: datetime  # where it stands among the others
    reason: str
    said: Mapping[str, Any]  # nominal_time, range or local_time; detail


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook:
    """What a definition means: in words, and its occurrences in a range, with the clock changes among them.

    `definition` is its normal form; `rule` and `tz_version` are what a decision would quote; `warnings` are those of an
    apply.
    """

    words: str
    occurrences: tuple[Expected, ...]
    skipped: tuple[Skipped, ...] = ()
    dst: tuple[Mapping[str, Any], ...] = ()
    rule: str = ""
    tz_version: str = ""
    definition: Mapping[str, Any] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()


Definitions = Mapping[tuple[str, str, str], Mapping[str, Any]]  # in their normal form, by kind, tenant and name
NONE: Definitions = {}


class Forecast(Protocol):
    """The same arithmetic that decides, asked beforehand."""

    def __call__(  # noqa: PLR0913 -- a question of many parts, each said by name
        self, subject: str, definition: Mapping[str, Any], *, from_: datetime, to: datetime, limit: int,
        accepted: bool = False, since: datetime | None = None, by_catalog: bool = True, beside: Definitions = NONE,
    ) -> Outlook:  # fmt: skip
        """The first `limit` occurrences in [from, to) of `tenant/name`, and what is skipped before the last of them.

        `Refused` for what an apply would refuse.

        `since` is the end of the run before, for a schedule that counts from there. Without `by_catalog` nothing is
        asked of the read model: what calendars and freezes take out stays in. What would be put `beside` it counts as
        if it stood in the catalog.

        Unknown fields are refused with the nearest known name. An `accepted` definition is not judged again: its
        instants may have passed by now, and its unknown fields were kept.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned:
    """A definition in force, or one that is thought of, and the queue that its runs go to."""

    tenant: str
    name: str
    queue: str
    definition: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """How many runs are due by (queue, tenant) and minute since 1970; `cut` are schedules not counted to the end."""

    minutes: Mapping[tuple[str, str], Mapping[int, int]]
    schedules: Mapping[tuple[str, str], int]
    occurrences: int
    cut: Sequence[str]


class Arithmetic(Protocol):
    """The scheduler's arithmetic, asked about everything at once."""

    def load(
        self, schedules: Iterable[Planned], from_: datetime, to: datetime, *, beside: Definitions = NONE
    ) -> Load:  # fmt: skip
        """How many runs come in which minute; what would be put `beside` counts as for a `Forecast`."""
        ...

    def zones(self) -> tuple[str, Mapping[str, str]]:
        """The version of the time zone database that decides here, and what it says of each zone."""
        ...


class Progress(Protocol):
    """How far the rows follow the log: the projector."""

    @property
    def as_of(self) -> datetime:
        """Everything appended before this instant is in the rows."""
        ...

    def inputs(self) -> list[TopicPartition]:
        """The partitions that rows follow from."""
        ...

    def reached(self, targets: Mapping[TopicPartition, int]) -> bool:
        """Whether everything before the targets is in the rows."""
        ...

    def on_progress(self, callback: Callable[[], None]) -> Callable[[], None]:
        """Call back, from any thread, whenever rows have moved; the answer ends that."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiSettings:
    """What an operator may choose."""

    version: str = "0"
    history: timedelta = timedelta(days=30)  # how long decisions are kept
    logs: timedelta = timedelta(days=7)  # how long what runs wrote is kept
    require_declared: bool = False  # tenants and queues have to be declared before anything names them
    # Hosts that requests may name, with any port; empty for any. On loopback, without keys, this is what keeps a page
    # in the same browser from reaching us under a name of its own.
    allowed_hosts: frozenset[str] = LOOPBACK


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiServices:
    """The ports of the API."""

    log: Log
    now: Callable[[], datetime]
    reader: Reader
    progress: Progress
    log_progress: Progress  # of the logs of runs, which are followed by themselves
    commander: Commander
    appender: Appender
    relay: WorkerRelay
    leases: SimpleLeases
    forecast: Forecast
    arithmetic: Arithmetic
    registry: CollectorRegistry
    unready: Callable[[], Mapping[str, str]]  # what is not ready, and why; empty when all is
    settings: ApiSettings = field(default_factory=ApiSettings)
