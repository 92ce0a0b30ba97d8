"""What worker and server say to each other, as far as a worker reads it.

A reader ignores fields it does not know, so an older worker understands a newer server.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tidewheel import _wire, jsontext

RESULT_BYTES_MAX = 16 * 1024  # contract: a result travels in every outcome record
RESULT_DEPTH_MAX = 16  # contract; the owner reads no report that is much deeper, whatever else it tells
SHARDS_MAX = 64  # contract; of one queue
ERROR_TYPE_LENGTH_MAX = 256
ERROR_MESSAGE_LENGTH_MAX = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One thing wrong with a request: where (a JSON pointer), a word for programs, what, and what to do instead."""

    pointer: str
    code: str
    message: str
    remedy: str = ""

    @classmethod
    def read_all(cls, problem: Mapping[str, Any]) -> tuple[Fault, ...]:
        """The faults of a problem+json body."""
        return tuple(
            cls(
                pointer=str(fault.get("pointer", "")),
                code=str(fault.get("code", "")),
                message=str(fault.get("message", "")),
                remedy=str(fault.get("remedy", "")),
            )
            for fault in problem.get("faults") or ()
        )

    def __str__(self) -> str:
        remedy = f" ({self.remedy})" if self.remedy else ""
        return f"{self.pointer or '/'}: {self.message}{remedy}"


@dataclass(frozen=True, slots=True, kw_only=True)
class HandOut:
    """A run given to this worker. `offset` is its place in the shard's hand-outs; `run` is the whole run."""

    incarnation: str
    offset: int
    lease: str
    lease_seconds: float
    start_by_seconds: float
    timeout_seconds: float
    attempt: int
    may_have_run: bool
    run: _wire.RunCreated

    @classmethod
    def read(cls, data: _wire.HandOut) -> HandOut:
        """From the server's JSON; KeyError or ValueError when it is not what this version understands."""
        return cls(
            incarnation=data["incarnation"],
            offset=data["offset"],
            lease=data["lease"],
            lease_seconds=seconds(data["lease_duration"]),
            start_by_seconds=seconds(data["start_by"]),
            timeout_seconds=seconds(data["timeout"]),
            attempt=data["attempt"],
            may_have_run=data.get("may_have_run", False),
            run=data["run"],
        )

    @property
    def target(self) -> Mapping[str, Any]:
        """What to call: type and name."""
        target: Mapping[str, Any] = self.run["job"]["target"]
        return target

    @property
    def payload(self) -> Mapping[str, Any]:
        """What to call it with."""
        payload: Mapping[str, Any] = self.run["job"].get("payload") or {}
        return payload


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """How one shard of the queue stands, of so many `shards`. `queued` runs want nothing but a slot there."""

    shard: int
    shards: int
    queued: int = 0
    running: int = 0
    free: int = 0
    workers: int = 0

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> Layout:
        """From the server's JSON; KeyError or ValueError when it is not what this version understands."""
        shard, shards = int(data["shard"]), int(data["shards"])
        if not (0 <= shard < SHARDS_MAX and 0 < shards <= SHARDS_MAX):
            msg = f"shard {shard} of {shards}"
            raise ValueError(msg)
        return cls(
            shard=shard,
            shards=shards,
            queued=int(data["queued"]),
            running=int(data["running"]),
            free=int(data["free"]),
            workers=int(data["workers"]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The server's answer to a report."""

    leases: tuple[HandOut, ...] = ()
    cancelled: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    incarnation_ended: bool = False
    ended_by: str = ""
    layouts: tuple[Layout, ...] = ()  # of a queue with several shards: what this worker has not heard yet
    # From the report's arrival to that of the first lease (less than 0: it came before); None of an older server.
    waited_seconds: float | None = None

    @classmethod
    def read(cls, data: Mapping[str, Any]) -> Answer:
        """From the server's JSON. A lease the server does not know (`unknown`) is as lost as one that ended."""
        return cls(
            leases=tuple(map(HandOut.read, data.get("leases") or ())),
            cancelled=tuple(data.get("cancelled") or ()),
            lost=(*(data.get("lost") or ()), *(data.get("unknown") or ())),
            incarnation_ended=bool(data.get("incarnation_ended")),
            ended_by=data.get("ended_by") or "",
            layouts=tuple(map(Layout.read, data.get("layouts") or ())),
            waited_seconds=None if data.get("waited") is None else float(data["waited"]),
        )


def keyless(lease: str) -> str:
    """A lease as it may stand in a log: its last part is a secret that whoever has it can report with."""
    return lease.rpartition(".")[0]


def succeeded(lease: str, result: Any) -> bytes:
    """The entry of a finished attempt whose result counts, or of a failed one when the result can't be kept."""
    if result is None:
        return jsontext.dumps({"lease": lease, "outcome": "succeeded"})
    try:
        text = jsontext.dumps_strictly(result)
    except ValueError as error:
        return failed(lease, "ResultNotJson", f"the task ran, but what it returned is not JSON: {error}")
    if len(text) > RESULT_BYTES_MAX:
        message = (
            f"the task ran, but its result is {len(text)} bytes of JSON, over {RESULT_BYTES_MAX}: return a reference"
        )
        return failed(lease, "ResultTooLarge", message)
    if text.count(b"[") + text.count(b"{") > RESULT_DEPTH_MAX and is_deeper(result, RESULT_DEPTH_MAX):
        message = f"the task ran, but its result is nested deeper than {RESULT_DEPTH_MAX}: return it flatter"
        return failed(lease, "ResultTooDeep", message)
    return b'{"lease":%b,"outcome":"succeeded","result":%b}' % (jsontext.dumps(lease), text)


def is_deeper(value: Any, limit: int) -> bool:
    """Whether lists and objects are nested more than `limit` deep."""
    if not isinstance(value, (dict, list, tuple)):
        return False
    inside = value.values() if isinstance(value, dict) else value
    return limit == 0 or any(is_deeper(item, limit - 1) for item in inside)


def failed(lease: str, kind: str, message: str, *, retry_after_seconds: float | None = None) -> bytes:
    """The entry of an attempt that ended with an error, and that asks not to be made again for so long."""
    later = {} if retry_after_seconds is None else {"retry_after": f"PT{math.ceil(retry_after_seconds)}S"}
    error = {"type": kind[:ERROR_TYPE_LENGTH_MAX], "message": _sendable(message)[:ERROR_MESSAGE_LENGTH_MAX]}
    return jsontext.dumps({"lease": lease, "outcome": "failed", "error": error, **later})


def stopped(lease: str, outcome: str) -> bytes:
    """The entry of an attempt that was `cancelled` or `interrupted`."""
    return jsontext.dumps({"lease": lease, "outcome": outcome})


def _sendable(text: str) -> str:
    """Text that has a UTF-8 form: lone surrogates (of undecodable file names) are replaced."""
    return text.encode("utf-8", "replace").decode()


_DURATION = re.compile(
    r"P(?:(?P<days>\d+)D)?(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d+)?)S)?)?", re.ASCII
)
_UNIT_SECONDS = {"days": 86_400, "hours": 3600, "minutes": 60, "seconds": 1}


@lru_cache(maxsize=1024)  # leases and timeouts of definitions: few distinct ones
def seconds(duration: str) -> float:
    """Seconds of an ISO 8601 duration as the server writes it: days, hours, minutes, seconds."""
    match = _DURATION.fullmatch(duration)
    if match is None or not any(match.groups()):
        msg = f"{duration!r} is not a duration"
        raise ValueError(msg)
    return sum(float(count) * _UNIT_SECONDS[unit] for unit, count in match.groupdict().items() if count)
