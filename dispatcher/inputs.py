"""Records of `runs` and `attempts` as inputs of a shard, and what is said of those that are none.

`runs` is written by schedulers only: a type that this version does not know comes from a newer one, and dropping it
could lose a run, so it stops the partition. `attempts` is written by workers, whom nobody vouches for: what does not
fit costs itself.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from dispatcher.adoption import CatalogRead
from runtime.machine import PARTITION, Moment
from runtime.record import SEQUENCE_HEADER, Record
from schemas import codec, identity, topics
from schemas.facts import AttemptOutcome, CatalogEntry, CommandRejected, Fact, Position, RunCancelRequested, RunCreated
from schemas.faults import Fault, Refused
from schemas.internal import BreakerResetRequested, FinishedLease, RunInquired, WorkerReport
from schemas.topics import Layout

RAW_BYTES_MAX = 1024
NAME_LENGTH_MAX = 256  # of incarnations and tasks
SLOTS_MAX = 10_000  # of one worker: what it holds is listed in each of its reports
LEASES_MAX = 3 * SLOTS_MAX
TASKS_MAX = 2_000
LEASE_LENGTH_MAX = 256  # a queue's name, two numbers and a key
REPORTED = frozenset(
    {AttemptOutcome.SUCCEEDED, AttemptOutcome.FAILED, AttemptOutcome.CANCELLED, AttemptOutcome.INTERRUPTED}
)  # what a worker can know of an attempt


class UnknownInput(AssertionError):
    """A record of `runs` that only a newer version understands: the partition must not go on without it."""


@lru_cache(maxsize=4096)  # the shards of one partition, asked for each fact
def shard_key(queue: str, shard: int) -> bytes:
    """The key of a shard's state."""
    return f"q/{queue}/{shard}".encode()


def name_of(key: bytes) -> tuple[str, int]:
    """Queue and number of a shard's key."""
    _, queue, number = key.decode().split("/")
    return queue, int(number)


def partition_of(queue: str, shard: int, layout: Layout) -> int:
    """Where a shard's records stand."""
    return (identity.partition_of(queue, layout.shard) + shard) % layout.shard


def read(record: Record, layout: Layout, partition: int) -> tuple[bytes, Any] | None:
    """The key and input of a record; `Refused` for one that is no input of ours."""
    if record.topic == topics.RUNS:
        return _of_shard(_read_run(record), layout, partition)
    if record.topic == topics.ATTEMPTS:
        report = _decode(record)
        if not isinstance(report, WorkerReport):
            raise Refused(Fault(pointer="/type", code="unknown_type", message="`attempts` holds worker reports only"))
        if faults := tuple(faults_of(report)):
            raise Refused(*faults)
        return _of_shard(report, layout, partition)
    if record.topic == topics.CATALOG:
        return _catalog(record)
    return None


def strand(record: Record, input_: Any) -> bytes:
    """See `Core.strand`."""
    if record.topic != topics.RUNS or input_ is None:
        return b""
    tenant: str = (input_.run if type(input_) is RunInquired else input_).tenant
    return tenant.encode()


def refuse(record: Record, faults: Sequence[Fault], moment: Moment) -> Sequence[Fact]:
    """A rejection. Of a report nothing is quoted: it may hold keys of leases."""
    raw = None
    if record.topic != topics.ATTEMPTS:
        raw = base64.b64encode((record.value or b"")[:RAW_BYTES_MAX]).decode()
    position = Position(topic=record.topic, partition=record.partition, offset=record.offset)
    return [
        CommandRejected(
            tenant="_", name=f"dispatcher-{record.partition}", reason=faults[0].code if faults else "refused",
            faults=tuple(faults), position=position, rejected_at=moment.now, raw=raw,
        )
    ]  # fmt: skip


def faults_of(report: WorkerReport) -> Iterator[Fault]:
    """What is wrong with a report: everything in it that could grow has a bound."""
    if not identity.is_name(report.queue):
        yield _fault("/data/queue", "is not a name")
    if not 0 <= report.shard < topics.SHARDS_MAX:
        yield _fault("/data/shard", f"must be under {topics.SHARDS_MAX}")
    for name in ("worker", "incarnation"):
        if not 0 < len(getattr(report, name)) <= NAME_LENGTH_MAX:
            yield _fault(f"/data/{name}", f"must be 1-{NAME_LENGTH_MAX} characters")
    if not 0 <= report.inbox < topics.INBOXES:
        yield _fault("/data/inbox", f"must be under {topics.INBOXES}")
    for name in ("slots", "slots_total", "stuck"):
        if not 0 <= (getattr(report, name) or 0) <= SLOTS_MAX:
            yield _fault(f"/data/{name}", f"must be 0-{SLOTS_MAX}")
    for name in ("client", "transport"):
        if len(getattr(report, name)) > NAME_LENGTH_MAX:
            yield _fault(f"/data/{name}", f"must be at most {NAME_LENGTH_MAX} characters")
    if len(report.tasks) > TASKS_MAX or any(len(task) > NAME_LENGTH_MAX for task in report.tasks):
        yield _fault("/data/tasks", f"must be at most {TASKS_MAX} of {NAME_LENGTH_MAX} characters")
    for name in ("held", "started"):
        yield from _lease_faults(f"/data/{name}", getattr(report, name))
    yield from _lease_faults("/data/finished", [entry.lease for entry in report.finished])
    yield from _outcome_faults(report.finished)


def _lease_faults(pointer: str, texts: Sequence[str]) -> Iterator[Fault]:
    if len(texts) > LEASES_MAX or any(len(text) > LEASE_LENGTH_MAX for text in texts):
        yield _fault(pointer, f"must be at most {LEASES_MAX} leases of {LEASE_LENGTH_MAX} characters")


def _outcome_faults(finished: Sequence[FinishedLease]) -> Iterator[Fault]:
    for index, entry in enumerate(finished):
        if entry.outcome not in REPORTED:
            yield _fault(f"/data/finished/{index}/outcome", "must be one of " + ", ".join(sorted(REPORTED)))
            return


def _fault(pointer: str, message: str) -> Fault:
    return Fault(pointer=pointer, code="invalid_report", message=message)


def _read_run(record: Record) -> RunCreated | RunCancelRequested | RunInquired | BreakerResetRequested:
    fact = _own_fact(record) or _decode(record)
    if type(fact) is RunCreated:
        return fact  # nearly all are
    if not isinstance(fact, RunCancelRequested | RunInquired | BreakerResetRequested):
        raise UnknownInput(f"{fact.TYPE} at {record.topic}-{record.partition}@{record.offset}")
    return fact


def _own_fact(record: Record) -> Fact | None:
    """The fact of a record that one of our own processes wrote; None for one that wants a closer look."""
    if record.value is None or not record.headers or record.headers[0][0] != SEQUENCE_HEADER or record.headers[1:]:
        return None
    try:
        return codec.read_carried(record.value)
    except Refused:
        return None


def _decode(record: Record) -> Fact:
    envelope = codec.read_envelope(record.value, record.headers)
    if record.topic == topics.RUNS and envelope.type not in codec.TYPES:
        raise UnknownInput(f"{envelope.type!r} at {record.topic}-{record.partition}@{record.offset}")
    return codec.decode(envelope)


def _catalog(record: Record) -> tuple[bytes, CatalogRead] | None:
    """What the catalog says, for the whole partition; a tombstone removes what said already that there is nothing."""
    fact = None if record.value is None else codec.read_fact(record.value)
    if not isinstance(fact, CatalogEntry):
        return None
    position = (record.header(SEQUENCE_HEADER) or b"").decode()
    return PARTITION, CatalogRead(entry=fact, offset=record.offset, position=position)


def _of_shard(
    fact: RunCreated | RunCancelRequested | RunInquired | BreakerResetRequested | WorkerReport,
    layout: Layout,
    partition: int,
) -> tuple[bytes, Fact]:
    """The input with its shard's key; one that stands in another shard's partition is refused."""
    if isinstance(fact, RunCreated):
        queue, shard = fact.job.queue, fact.shard
    elif isinstance(fact, RunInquired):
        queue, shard = fact.run.job.queue, fact.run.shard
    else:
        queue, shard = fact.queue, fact.shard
    if shard < 0 or partition_of(queue, shard, layout) != partition:
        message = f"shard {shard} of queue {queue!r} is not in partition {partition}"
        raise Refused(Fault(pointer="/data/shard", code="wrong_partition", message=message))
    return shard_key(queue, shard), fact
