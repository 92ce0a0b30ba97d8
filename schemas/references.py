"""What stands in the catalog besides jobs: calendars, queues and tenants. Schedules and runs refer to them by name.

A calendar belongs to a tenant. A queue belongs to nobody: in keys and records its tenant is `_`. A tenant is named by
its own name, and what is defined there is called `_`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Annotated, Any, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema, model_validator

from schemas import definitions, identity, rates, topics
from schemas.definitions import Breaker, Cron
from schemas.models import Day, Instant, LongerDuration, Model, Name, Whole, at_most, whole_seconds
from schemas.placing import ANY_QUEUE
from schemas.refusals import Misfit

WEIGHT_MAX = 1_000
DATES_MAX = 10_000  # of one calendar: thirty years of the holidays of thirty countries, in 130 KB
FREEZES_MAX = 100  # of one tenant or queue: each is looked at when an occurrence is due
QUEUES_MAX = 1_000  # that a tenant has quotas for
WEIGHTS_MAX = 1_000  # tenants of a queue that differ from the others
RECURRING_MAX = timedelta(days=31)  # of one recurring window: a longer one is a calendar, or a pause


def _rate(value: Any) -> str:
    if not isinstance(value, str):
        raise Misfit("rate", "must be a rate", "write 10/s, 600/m or 5000/h")
    try:
        rates.parse(value)
    except ValueError as error:
        raise Misfit("rate", str(error)) from error
    return value


Rate = Annotated[
    str,
    BeforeValidator(_rate),
    WithJsonSchema({"type": "string", "pattern": "^[1-9][0-9]{0,6}/[smh]$", "description": "10/s, 600/m, 5000/h"}),
]


def _queue_name(text: str) -> str:
    if text != ANY_QUEUE and not identity.is_name(text):
        raise Misfit("name", "must be the name of a queue, or * for all others")
    return text


QueueName = Annotated[str, AfterValidator(_queue_name)]
Note = Annotated[str, Field(max_length=4096)]
Weight = Annotated[int, Field(strict=True, ge=1, le=WEIGHT_MAX)]


def _in_order(days: tuple[date, ...]) -> tuple[date, ...]:
    """Each once, so that the same calendar written another way is the same."""
    return tuple(sorted(set(days)))


class Calendar(Model):
    """Days that schedules may exclude: whole local days of the zone of whoever refers to them."""

    note: Note = ""
    dates: Annotated[tuple[Day, ...], Field(max_length=DATES_MAX), at_most(DATES_MAX), AfterValidator(_in_order)] = ()


class Freeze(Model):
    """A window in which nothing that is due becomes a run: [from, to), or `duration` from each instant of `cron` on.

    `skip`: it is skipped. `defer`: it is held until the window's end.
    """

    from_: Annotated[Instant | None, Field(alias="from")] = None
    to: Instant | None = None
    cron: Cron | None = None
    duration: Annotated[LongerDuration, AfterValidator(whole_seconds)] | None = None
    timezone: Annotated[str, Field(min_length=1, max_length=64)] = "UTC"
    action: Literal["defer", "skip"] = "defer"
    note: Annotated[str, Field(max_length=256)] = ""

    @model_validator(mode="after")
    def _one_kind(self) -> Freeze:
        once, again = (self.from_ is not None, self.to is not None), (self.cron is not None, self.duration is not None)
        if any(once) is any(again) or (any(once) and not all(once)) or (any(again) and not all(again)):
            raise Misfit("one_kind", "give from and to, or cron and duration", "write {from: …, to: …}")
        if self.from_ is not None and self.to is not None and self.from_ >= self.to:
            raise Misfit("range", "to is not after from", "name a later one: the window is [from, to)")
        if self.duration is not None and self.duration > RECURRING_MAX:
            raise Misfit("range", f"duration is over {RECURRING_MAX.days} days", "give from and to instead")
        return self


Freezes = Annotated[tuple[Freeze, ...], Field(max_length=FREEZES_MAX), at_most(FREEZES_MAX)]
NOT_YET = "leave it out"


class Paused(Model):
    """Nothing is handed out. What runs goes on, and what is due becomes a run that waits."""

    note: Note = ""


class Queue(Model):
    """A pool of workers, in so many `shards`. `weights`: shares of tenants other than 1. `rate`: hand-outs of all."""

    note: Note = ""
    shards: Annotated[int, Field(strict=True, ge=1, le=topics.SHARDS_MAX)] = 1
    weights: Annotated[dict[Name, Weight], Field(max_length=WEIGHTS_MAX)] = Field(default_factory=dict)
    rate: Rate | None = None
    paused: Paused | None = None
    freezes: Freezes = ()

    BELOW: ClassVar[Mapping[str, type[Model]]] = {"paused": Paused, "freezes": Freeze}


class QueueQuota(Model):
    """What one tenant may have in one queue: runs at work, runs that wait, hand-outs; none of these while paused.

    `breaker` is that of the hosts it calls, and of its jobs that give none.
    """

    running: Annotated[int, Field(strict=True, ge=1, le=2**53)] | None = None
    queued: Whole | None = None
    rate: Rate | None = None
    paused: Paused | None = None
    breaker: Breaker | None = None

    BELOW: ClassVar[Mapping[str, type[Model]]] = {"paused": Paused, "breaker": Breaker}


class Quota(Model):
    """`schedules` that a tenant may have, and what it may have in queues, by their names or `*` for all others."""

    schedules: Whole | None = None
    queues: Annotated[dict[QueueName, QueueQuota], Field(max_length=QUEUES_MAX)] = Field(default_factory=dict)

    BELOW: ClassVar[Mapping[str, type[Model]]] = {"queues": QueueQuota}
    NAMED: ClassVar[frozenset[str]] = frozenset({"queues"})


class Tenant(Model):
    """An owner of names, its quotas, and the windows in which its schedules stand still."""

    note: Note = ""
    quota: Quota = Quota()
    freezes: Freezes = ()

    BELOW: ClassVar[Mapping[str, type[Model]]] = {"quota": Quota, "freezes": Freeze}


# What each kind is called in the catalog, in commands and in keys.
KINDS: Mapping[str, type[Model]] = {
    "job": definitions.Job,
    "calendar": Calendar,
    "queue": Queue,
    "tenant": Tenant,
}
