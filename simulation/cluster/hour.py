"""What a simulated cluster is asked to do in every seed; what is asked besides is in `situations`.

Twelve schedules of three tenants, about 250 runs in one virtual hour that begins at NOON, or where the seed says:

    acme      minutely       each minute, 5 s                                   60 runs
              slow           each 2 min, 150 s, overlap skip                    about half of 30 are skipped
              hourly         at half past, catch-up all                          1
              once           13 min later                                         1
    globex    buffered       each 3 min, 200 s, buffer_one                      20
              crowded        each 4 min, 300 s, allow_all, stubborn             15    with the next two: two at once
              retried        each 5 min, fails at first, then succeeds          12
              doomed         each 6 min, fails always, 2 attempts               10 dead letters
    initech   named          each 4 min, by the registered job `report`         15
              timed-out      each 10 min, 60 s with a timeout of 30 s            6
              latest         each minute, catch-up latest, 1 s                  60
              deadly         each 10 min, `every`; with H7 its worker dies       6

When the hour is over the faults end, and a minute later all schedules are deleted, which leaves their runs alone. Then
everything must drain within DRAIN_SECONDS of virtual time: every run has its outcome, no lease is held, every partition
has an owner that works and has read all its input.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from runtime.record import REPLY_HEADER, Headers, Outgoing
from schemas import identity, topics
from schemas.envelope import Envelope, write_envelope
from schemas.topics import Layout
from simulation.evidence import marker

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
HOUR_SECONDS = 3600.0
DRAIN_SECONDS = 900.0
LAST_CALLS_SECONDS = 60.0  # for callers and publishers who are in the middle of something when the faults end
UPSTREAM, API = "upstream", "tidewheel/api"

Definition = dict[str, Any]


def schedule(
    tenant: str, trigger: Definition, seconds: float, *, job: Definition | None = None, **more: Any
) -> Definition:
    """A schedule whose runs take so many seconds; `job` and `payload` are added to what a job has anyway."""
    payload = {"seconds": seconds, "marker": marker(tenant)} | more.pop("payload", {})
    own = {"target": {"type": "task", "name": "work"}, "payload": payload, "retry": {"initial": "PT2S"}}
    labels = {"of": marker(tenant)}
    return {"trigger": trigger, "labels": labels, "job": own | (job or {})} | more


def each(minutes: int) -> Definition:
    """A trigger at every so many full minutes."""
    return {"cron": f"*/{minutes} * * * *"}


# Three schedules share it: `crowded` alone has both places taken for a minute of every four.
SHARED: Definition = {"concurrency": {"key": "ledger", "limit": 2}}
JOB = ("initech", "report")
JOB_DEFINITION: Definition = {
    "target": {"type": "task", "name": "work"},
    "payload": {"seconds": 20, "marker": marker("initech")},
}


def schedules(began_at: datetime) -> dict[tuple[str, str], Definition]:
    """The twelve, of an hour that begins then."""

    def later(minutes: int) -> str:
        return (began_at + timedelta(minutes=minutes)).strftime("%Y-%m-%dT%H:%M:%SZ")

    return {
        ("acme", "minutely"): schedule("acme", each(1), 5),
        ("acme", "slow"): schedule("acme", each(2), 150),
        ("acme", "hourly"): schedule("acme", {"cron": "30 * * * *"}, 10, catch_up={"policy": "all"}),
        ("acme", "once"): schedule("acme", {"at": [later(13)]}, 10),
        ("globex", "buffered"): schedule("globex", each(3), 200, overlap={"policy": "buffer_one"}),
        ("globex", "crowded"): schedule(
            "globex", each(4), 300, overlap={"policy": "allow_all"}, payload={"stubborn": True}, job=SHARED
        ),
        ("globex", "retried"): schedule("globex", each(5), 10, payload={"fails": "first"}, job=SHARED),
        ("globex", "doomed"): schedule(
            "globex",
            each(6),
            5,
            payload={"fails": "always"},
            job={"retry": {"max_attempts": 2, "initial": "PT5S"}} | SHARED,
        ),
        ("initech", "named"): schedule("initech", each(4), 20) | {"job": JOB[1]},
        ("initech", "timed-out"): schedule("initech", each(10), 60, job={"timeout": "PT30S"}),
        ("initech", "latest"): schedule("initech", each(1), 1, catch_up={"policy": "latest", "window": "PT10M"}),
        ("initech", "deadly"): schedule("initech", {"every": "PT10M", "anchor": later(5)}, 3, payload={"kills": True}),
    }


def record_of(
    kind: str, data: Mapping[str, Any], command_id: str, layout: Layout, *, source: str = UPSTREAM,
    reply_to: int | None = None, headers: Headers = (),
) -> Outgoing:  # fmt: skip
    """A command as it stands in the log."""
    key = f"{data['tenant']}/{data['name']}"
    envelope = Envelope(id=command_id, source=source, type=f"tidewheel.{kind}.v1", subject=key, data=data)
    wanted: Headers = () if reply_to is None else ((REPLY_HEADER, str(reply_to).encode()),)
    partition = identity.partition_of(key, layout.schedule)
    return Outgoing(topics.SCHEDULE_CHANGES, partition, key.encode(), write_envelope(envelope), (*wanted, *headers))
