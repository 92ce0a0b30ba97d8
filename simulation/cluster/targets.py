"""What is called where a run names no task: an endpoint that answers in its own way each time, and a command.

An attempt's answer is a matter of its run and number, so that every execution of it fares alike. Who answers 202
works on, whatever becomes of the worker, and says in a while how that ended, to any node of the API; or never.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import TYPE_CHECKING, Any

from runtime.record import Outgoing
from schemas import codec, topics
from schemas.frozen import frozen
from schemas.internal import OF_LEASES, FinishedLease, WorkerReport
from tidewheel.transports import records

if TYPE_CHECKING:
    from simulation.cluster.site import Site
    from tidewheel.wire import HandOut

URL = "https://callbacks.example/hook"
COMMAND = "report"
REFUSED = "exit:2"  # that command's job never tries this again
OFFERED = ("http:", f"command:{COMMAND}")  # by simulated workers, where runs name more than tasks
NEVER = float("inf")


@frozen
class Answer:
    """How a call ends: with an error of that kind, or well; `later_seconds` after a 202, where there was one."""

    error: str = ""
    retry_after_seconds: float | None = None
    later_seconds: float | None = None


WELL = Answer()
ANSWERS: Mapping[str, tuple[Answer, ...]] = {
    "http": (
        WELL,
        Answer(error="http:429", retry_after_seconds=20.0),
        Answer(error="http:503", retry_after_seconds=7.5),
        Answer(error="http:500"),
        Answer(error="http:404"),
        Answer(error="http:timeout"),
        Answer(later_seconds=15.0),
        Answer(later_seconds=40.0),
        Answer(later_seconds=NEVER),
    ),
    "command": (WELL, Answer(error="exit:3"), Answer(error=REFUSED)),
}


def answer(handout: HandOut) -> Answer:
    """How the call of an attempt ends; a task ends well as far as this is concerned."""
    kinds = ANSWERS.get(str(handout.target.get("type", "")))
    if kinds is None:
        return WELL
    return Random(f"{handout.run['run_id']} {handout.attempt}").choice(kinds)


def complete(site: Site, queue: str, lease: str, result: Mapping[str, Any]) -> None:
    """Somebody who was told a lease says that its attempt has succeeded, as `api.relay` passes that on."""
    shard = int(lease.removeprefix(f"{queue}.").partition(".")[0])
    fact = WorkerReport(
        queue=queue, shard=shard, worker="completion", incarnation="completion", number=OF_LEASES, inbox=0,
        read_up_to=-1, slots=0, tasks=(), finished=(FinishedLease(lease=lease, outcome="succeeded", result=result),),
    )  # fmt: skip
    partition = records.shard_of(queue, site.layout.shard, shard)
    _, value = codec.encode(fact, source="tidewheel/api", time=site.now())
    site.publish(Outgoing(topics.ATTEMPTS, partition, fact.incarnation.encode(), value))
