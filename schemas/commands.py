"""Requests on `schedule-changes`: what an upstream system, the API or the CLI may ask for.

The body names the thing (`tenant`, `name`); key and partition follow from it. A command is known by (tenant, name,
source, id): the same one again changes nothing and is answered as the first time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field, ValidationError, WithJsonSchema

from schemas import codec, identity, limits, rates, refusals
from schemas.codec import Envelope
from schemas.facts import Outcome, Position, RunCreated
from schemas.faults import Fault, Refused
from schemas.frozen import frozen
from schemas.models import Instant, Model, Name, Owner, Text, Whole
from schemas.refusals import Misfit

PREFIX = "tidewheel."
EVERYONE = "_"  # the tenant of what belongs to no tenant: queues; and the name of a tenant's own definition

_OF_CATALOG = re.compile(r"scheduler-(0|[1-9][0-9]{0,4})-(0|[1-9][0-9]{0,17})\Z")  # only schedulers write the catalog


class Request(Model):
    """What every command may carry.

    `after_catalog` is the position (`Tidewheel-Position`, header `tw-seq`) of a record of `catalog`: the command is
    judged by what the catalog said then or later.
    """

    tenant: Name
    name: Name
    expected_version: Whole | None = None
    source_version: Whole | None = None
    after_catalog: Text | None = None
    by: Text = ""
    note: Annotated[str, Field(max_length=4096)] = ""

    @property
    def owner(self) -> str:
        """The name of what decides about it: the key, with its tenant, and what the partition follows from."""
        return self.owner_of(self.name)

    @staticmethod
    def owner_of(name: str) -> str:
        """The same, of a command of this kind that names `name`."""
        return name


class SchedulePut(Request):
    """Create or replace a schedule; `definition` is a definition file's body without kind, tenant and name."""

    definition: dict[str, Any]


class SchedulePause(Request):
    """Skip occurrences until resumed."""


class ScheduleResume(Request):
    """Occurrences have runs again. `backfill` starts a backfill of those that the pause has skipped."""

    backfill: Annotated[bool, Field(strict=True)] = False


class ScheduleDelete(Request):
    """End a schedule; `runs: cancel` also asks its open runs to stop."""

    runs: Literal["keep", "cancel"] = "keep"


class ScheduleTrigger(Request):
    """Create one run now. `overlap` allow_all (default) or skip."""

    payload: dict[str, Any] | None = None
    overlap: Literal["allow_all", "skip"] = "allow_all"


class ScheduleSkipOccurrence(Request):
    """One occurrence that is not due yet has no run; the schedule goes on behind it."""

    nominal_time: Instant


class JobPut(Request):
    """Create or replace a registered job."""

    definition: dict[str, Any]


class JobDelete(Request):
    """Remove a registered job; schedules that name it skip their occurrences with `no_job`."""


class JobRun(Request):
    """One run of a registered job, of no schedule. `overlap` skip: none while another such run of the job is open.

    Such runs go under `_` and the job's name; key and partition of the command follow from that.
    """

    payload: dict[str, Any] | None = None
    overlap: Literal["allow_all", "skip"] = "allow_all"

    @staticmethod
    def owner_of(name: str) -> str:
        return identity.job_owner(name)


class CalendarPut(Request):
    """Create or replace a calendar: the days that schedules exclude by its name."""

    definition: dict[str, Any]


class CalendarDelete(Request):
    """Remove a calendar; schedules that name it exclude nothing by it."""


class _OfNoTenant(Request):
    tenant: Literal["_"] = "_"


class QueuePut(_OfNoTenant):
    """Create or replace the definition of a queue."""

    definition: dict[str, Any]


class QueueDelete(_OfNoTenant):
    """Remove a queue's definition; it goes on with the defaults."""


class _OfTenant(Request):
    name: Literal["_"] = "_"


class TenantPut(_OfTenant):
    """Create or replace the definition of a tenant."""

    definition: dict[str, Any]


class TenantDelete(_OfTenant):
    """Remove a tenant's definition; what it has stays, without quotas."""


class BreakerReset(_OfTenant):
    """Close a breaker of the tenant in a queue (`job:send-report`, `host:api.example.com`), or `all` of them.

    Exactly one of both is given: an empty name is what a script says whose variable is not set, and never means all.
    """

    queue: Name
    breaker: Annotated[str, Field(max_length=300)] | None = None
    all: bool = False


class RunCancel(Request):
    """Ask a run to end. `name` is its schedule, or `_` and the job of a run that has none."""

    name: Owner
    run_id: Text


class RunRerun(Request):
    """Another run of what a run did that is over. `name` is as of `run.cancel`, `run` the run as it was created, whole.

    The owner forgets a run when it is over, so the command brings it: data of `run.created`. `definition` says by which
    job the new run goes: the old run's (same), or the schedule's as it stands (current). Its payload is the old run's,
    unless another one is given. `outcome` is how the run ended, where the sender knows; without it the owner's word
    counts, who may not have read it yet.
    """

    name: Owner
    run_id: Text
    run: dict[str, Any]
    definition: Literal["same", "current"] = "same"
    payload: dict[str, Any] | None = None
    outcome: Outcome | None = None


class RunRedrive(RunRerun):
    """The same, of a run that was given up: once. What it leads to may be redriven, if it is given up as well."""


# Commands about what stands in the catalog, and which kind of thing it is.
REFERENCES: Mapping[type[Request], str] = {
    JobPut: "job",
    JobDelete: "job",
    CalendarPut: "calendar",
    CalendarDelete: "calendar",
    QueuePut: "queue",
    QueueDelete: "queue",
    TenantPut: "tenant",
    TenantDelete: "tenant",
    BreakerReset: "tenant",
}


ACTIVE_RUNS_MAX = 256  # of one backfill: cancelling it asks all of them to stop in one step


FASTEST = 100  # runs a second of one backfill: what it may take of a partition that others share


def _rate(text: str) -> str:
    try:
        rate = rates.parse(text)
    except ValueError as error:
        raise Misfit("rate", str(error)) from error
    if rate.count > FASTEST * rate.per.total_seconds():
        raise Misfit("rate", f"{text} is faster than {FASTEST}/s", f"give at most {FASTEST}/s")
    return text


Rate = Annotated[
    str, AfterValidator(_rate), WithJsonSchema({"type": "string", "description": "10/s, 100/m, 5/h; at most 100/s"})
]


class BackfillStart(Request):
    """Run the occurrences of a past range [from, to); `to` is now where it is not given. `name` is the schedule.

    `reprocess` says which of those that had a run get another one: none, the failed ones (all that did not succeed), or
    all that are completed. `as_of` is the version whose definition counts: the current one where it is not given.
    """

    model_config = ConfigDict(serialize_by_alias=True)

    from_: Instant = Field(alias="from")
    to: Instant | None = None
    order: Literal["oldest", "newest"] = "oldest"
    reprocess: Literal["none", "failed", "completed"] = "none"
    max_active: Annotated[int, Field(strict=True, ge=1, le=ACTIVE_RUNS_MAX)] = 1
    rate: Rate = "10/s"
    as_of: Annotated[Whole, Field(ge=1)] | None = None
    dry_run: Annotated[bool, Field(strict=True)] = False


class BackfillPause(Request):
    """Create no further runs until resumed; those that are open go on."""

    backfill: Text


class BackfillResume(Request):
    """Go on creating runs."""

    backfill: Text


class BackfillCancel(Request):
    """End it: runs that nobody has begun are cancelled, the others finish."""

    backfill: Text


COMMANDS: Mapping[str, type[Request]] = {
    "tidewheel.schedule.put.v1": SchedulePut,
    "tidewheel.schedule.pause.v1": SchedulePause,
    "tidewheel.schedule.resume.v1": ScheduleResume,
    "tidewheel.schedule.delete.v1": ScheduleDelete,
    "tidewheel.schedule.trigger.v1": ScheduleTrigger,
    "tidewheel.schedule.skip_occurrence.v1": ScheduleSkipOccurrence,
    "tidewheel.backfill.start.v1": BackfillStart,
    "tidewheel.backfill.pause.v1": BackfillPause,
    "tidewheel.backfill.resume.v1": BackfillResume,
    "tidewheel.backfill.cancel.v1": BackfillCancel,
    "tidewheel.job.put.v1": JobPut,
    "tidewheel.job.delete.v1": JobDelete,
    "tidewheel.job.run.v1": JobRun,
    "tidewheel.calendar.put.v1": CalendarPut,
    "tidewheel.calendar.delete.v1": CalendarDelete,
    "tidewheel.queue.put.v1": QueuePut,
    "tidewheel.queue.delete.v1": QueueDelete,
    "tidewheel.tenant.put.v1": TenantPut,
    "tidewheel.tenant.delete.v1": TenantDelete,
    "tidewheel.breaker.reset.v1": BreakerReset,
    "tidewheel.run.cancel.v1": RunCancel,
    "tidewheel.run.rerun.v1": RunRerun,
    "tidewheel.run.redrive.v1": RunRedrive,
}


@frozen
class Command:
    """A request as it stood in the log. `reply_to` is the asking node's partition of `replies`."""

    id: str
    source: str
    type: str
    request: Request
    position: Position
    appended_at: datetime
    reply_to: int | None = None

    @property
    def tenant(self) -> str:
        """Owner of the thing the command is about."""
        return self.request.tenant

    @property
    def name(self) -> str:
        """Name of the thing that decides about the command."""
        return self.request.owner


def read_request(envelope: Envelope) -> Request:
    """The request in an envelope, or `Refused` naming every field that does not fit."""
    model = COMMANDS.get(envelope.type)
    if model is None:
        raise Refused(_unknown_type(envelope.type))
    if faults := tuple(limits.definition_limits(envelope.data, "/data")):
        raise Refused(*faults)
    try:
        request = model.model_validate(envelope.data)
    except ValidationError as error:
        raise Refused(*refusals.faults(error, "/data")) from error
    if faults := tuple(_further_faults(request, envelope)):
        raise Refused(*faults)
    return request


def _further_faults(request: Request, envelope: Envelope) -> Iterator[Fault]:
    subject = f"{request.tenant}/{request.name}"
    known = (subject, f"{request.tenant}/{request.owner}")
    if envelope.subject.count("/") == 1 and envelope.subject not in known:
        # A record that a client put on the wrong topic or partition is recognised by what it says of itself.
        message = f"the data is about {subject}, the subject says {envelope.subject}"
        yield Fault(pointer="/subject", code="wrong_subject", message=message, remedy="name the same thing in both")
    if request.after_catalog is not None and not _OF_CATALOG.match(request.after_catalog):
        message = f"{request.after_catalog!r} is no position of a record of the catalog"
        remedy = "name the Tidewheel-Position of the answer to a change of a job, such as scheduler-2-41"
        yield Fault(pointer="/data/after_catalog", code="position", message=message, remedy=remedy)
    if isinstance(request, RunCancel | RunRerun) and identity.schedule_of(request.run_id) != request.name:
        message = f"is not a run of schedule {request.name}"
        yield Fault(pointer="/data/run_id", code="wrong_schedule", message=message, remedy="name the run's schedule")
    if isinstance(request, ScheduleTrigger | JobRun) and request.payload is not None:
        yield from limits.json_limits(request.payload, "/data/payload")
    if isinstance(request, RunRerun):
        yield from _of_rerun(request)
    if isinstance(request, BreakerReset):
        yield from _of_reset(request)
    if isinstance(request, BackfillStart) and request.to is not None and request.from_ >= request.to:
        yield Fault(pointer="/data/to", code="range", message="is not after `from`", remedy="ranges are [from, to)")


def _of_reset(request: BreakerReset) -> Iterator[Fault]:
    """One breaker by its name, or all of them, said in so many words."""
    remedy = 'name one, such as job:send-report, or say "all": true'
    if request.breaker == "":
        yield Fault(pointer="/data/breaker", code="empty", message="is empty and names no breaker", remedy=remedy)
    elif request.breaker is None and not request.all:
        yield Fault(pointer="/data/breaker", code="missing", message="says neither which nor all", remedy=remedy)
    elif request.breaker is not None and request.all:
        message = f"says all, and `breaker` says {request.breaker!r}"
        yield Fault(pointer="/data/all", code="contradiction", message=message, remedy="give one of both")


def _of_rerun(request: RunRerun) -> Iterator[Fault]:
    """A command that brings no run, or another one than it names."""
    if request.payload is not None:
        yield from limits.json_limits(request.payload, "/data/payload")
    try:
        run = codec.load(RunCreated, request.run, "/data/run")
    except Refused as error:
        yield from error.faults
        return
    yield from limits.json_limits(run.job.payload, "/data/run/job/payload")
    if (run.tenant, run.schedule, run.run_id) != (request.tenant, request.name, request.run_id):
        message = f"is run {run.run_id} of {run.tenant}/{run.schedule}, and not {request.run_id}"
        yield Fault(pointer="/data/run", code="wrong_run", message=message, remedy="copy the data of its run.created")
    if request.outcome is not None and isinstance(request, RunRedrive) and request.outcome != Outcome.DEAD_LETTERED:
        message, remedy = f"a run that ended {request.outcome} is no dead letter", "rerun it instead"
        yield Fault(pointer="/data/outcome", code="not_dead_lettered", message=message, remedy=remedy)


def _unknown_type(type_: str) -> Fault:
    near = refusals.nearest(type_, tuple(COMMANDS))
    remedy = f"did you mean {near!r}?" if near else "known: " + ", ".join(sorted(COMMANDS))
    return Fault(pointer="/type", code="unknown_type", message=f"unknown command type {type_[:200]!r}", remedy=remedy)
