"""Names that are functions of content: run ids, event ids, partitions.

A pure function of what a thing is, never of when or by whom it was written: that is what makes a second
creation of the same thing recognisable as the same thing.
"""

from __future__ import annotations

import hashlib
import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

NAME_LENGTH_MAX = 128
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}\Z")


def is_name(text: str) -> bool:
    """Whether `text` may name a tenant, schedule, job, queue or calendar."""
    return NAME.match(text) is not None


def job_owner(job: str) -> str:
    """The name under which the runs of a registered job go that belong to no schedule; no schedule can have it."""
    return f"_{job}"


def job_of(owner: str) -> str | None:
    """The job whose own runs go under a name; None for the name of a schedule."""
    return owner[1:] if owner.startswith("_") and is_name(owner[1:]) else None


def is_owner(text: str) -> bool:
    """Whether runs may go under this name: a schedule's, or that of a job's own runs."""
    return is_name(text) or job_of(text) is not None


def occurrence_run_id(schedule: str, nominal: datetime) -> str:
    """The run id of a scheduled, caught-up or backfilled occurrence."""
    text = nominal.isoformat()  # cut by hand: strftime takes ten times as long, and every run passes here
    return f"{schedule}.{text[:4]}{text[5:7]}{text[8:13]}{text[14:16]}{text[17:19]}Z"


def manual_run_id(tenant: str, schedule: str, source: str, command_id: str) -> str:
    """The run id of a run asked for by a command; the same command names the same run."""
    return f"{schedule}.m-{_digest16(tenant, schedule, 'manual', source, command_id, '')}"


def backfill_id(tenant: str, schedule: str, source: str, command_id: str) -> str:
    """What a backfill is known by within its schedule; the same command names the same one."""
    return f"b-{_digest16(tenant, schedule, 'manual', source, command_id, '')}"


def reprocessed_run_id(tenant: str, schedule: str, backfill: str, nominal: datetime) -> str:
    """The run id of an occurrence that a backfill runs again."""
    return f"{schedule}.r-{_digest16(tenant, schedule, 'reprocess', '', backfill, nominal.isoformat())}"


def rerun_run_id(tenant: str, schedule: str, source: str, command_id: str) -> str:
    """The run id of what a run did, done once more because a command asked; the same command names the same run."""
    return f"{schedule}.r-{_digest16(tenant, schedule, 'rerun', source, command_id, '')}"


def dependency_run_id(tenant: str, schedule: str, upstream: str, upstream_run_id: str, nominal: str) -> str:
    """The run id of a run that a run of another schedule led to; the same run names the same one."""
    return f"{schedule}.d-{_digest16(tenant, schedule, 'dependency', upstream, upstream_run_id, nominal)}"


def is_dependency(run_id: str) -> bool:
    """Whether a run of another schedule led to this one."""
    return run_id.rpartition(".")[2].startswith("d-")


def schedule_of(run_id: str) -> str:
    """The schedule that owns a run: what stands before the last dot."""
    return run_id.rpartition(".")[0]


def _digest16(*parts: str) -> str:
    digest = hashlib.sha256()
    for part in parts:
        encoded = part.encode()
        digest.update(len(encoded).to_bytes(4, "big"))
        digest.update(encoded)
    return digest.hexdigest()[:16]


def event_id(type_: str, subject: str, data: bytes) -> str:
    """The first 128 bits of SHA-256 over type, subject and canonical data (sorted keys, absent for null)."""
    return hashlib.sha256(b"\0".join((type_.encode(), subject.encode(), data))).hexdigest()[:32]


def lease_key(entropy: bytes, shard: str, offset: int) -> str:
    """The secret that a report must quote: 128 bits that only the owner could have made."""
    return hashlib.sha256(b"\0".join((entropy, shard.encode(), offset.to_bytes(8, "big")))).hexdigest()[:32]


def log_proof(lease: str) -> str:
    """What who has a lease writes its attempt's log with: it proves the right to do so, and gives nothing else away."""
    return hashlib.sha256(b"tidewheel.log\0" + lease.encode()).hexdigest()[:32]


def log_check(proof: str) -> str:
    """What everybody may know of a proof: by it a log is known as that of an attempt, and nobody can write one."""
    return hashlib.sha256(b"tidewheel.log.check\0" + proof.encode()).hexdigest()[:32]


@lru_cache(maxsize=65_536)  # some 10 MB; the keys of a busy partition come again and again
def partition_of(key: str, partitions: int) -> int:
    """The partition Java's default partitioner gives `key` (murmur2, sign bit cleared, modulo)."""
    return (murmur2(key.encode()) & 0x7FFFFFFF) % partitions


def shard_of(tenant: str, held_by: str, shards: int) -> int:
    """The shard of its queue that a run goes to. `held_by` is its concurrency key, else its schedule.

    So all runs of a key, and of a schedule without one, are in one shard: whoever counts them sees all of them.
    """
    return partition_of(f"{tenant}/{held_by}", shards)


def murmur2(data: bytes) -> int:
    """MurmurHash2, 32 bit, seed 0x9747b28c: the hash of Apache Kafka's Java producer."""
    m, mask = 0x5BD1E995, 0xFFFFFFFF
    length = len(data)
    h = (0x9747B28C ^ length) & mask
    whole = length & ~3
    for at in range(0, whole, 4):
        k = (int.from_bytes(data[at : at + 4], "little") * m) & mask
        k = ((k ^ (k >> 24)) * m) & mask
        h = ((h * m) & mask) ^ k
    if whole < length:
        h = ((h ^ int.from_bytes(data[whole:], "little")) * m) & mask
    h = ((h ^ (h >> 13)) * m) & mask
    return h ^ (h >> 15)
