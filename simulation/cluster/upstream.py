"""Trusted systems that publish changes, and records that should never have been published.

What must be refused carries the header `sim-poison`, whose value says what is wrong; nothing of the product looks at
it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

import orjson

from runtime.log import LogError
from runtime.record import Headers, Outgoing
from schemas import identity, topics
from simulation.cluster import hour
from simulation.evidence import POISON, UNKNOWN
from simulation.loop import Machine

if TYPE_CHECKING:
    from simulation.cluster.site import Site
    from simulation.cluster.worker import WorkerNode

TRIES_MAX = 50  # of a publisher that hears nothing, some seconds apart: longer than any outage
DEEP = 200  # levels of nesting
HUGE = 10**400
MINUTE_SECONDS = 60.0
OFTEN_MISPLACED = (("globex", "retried"), ("acme", "minutely"), ("initech", "latest"))
ENDS_SECONDS = 10.0  # behind all that is published
NO_VERSION = 10_000  # more than an hour's edits
LARGE_BYTES = 600 * 1024  # more than a record of ours may have, less than a broker refuses


@dataclass(frozen=True, slots=True)
class Poison:
    """A record that must be refused."""

    what: str
    value: bytes


def poisons(id_: str) -> tuple[Poison, ...]:
    """What cannot be read, or means nothing. The id is new each time: a command that is repeated is refused once."""
    good = {"specversion": "1.0", "id": id_, "source": "upstream", "type": "tidewheel.schedule.put.v1"}
    good |= {"subject": "acme/poison"}

    def event(**fields: Any) -> bytes:
        return orjson.dumps(good | fields)

    def raw(data: str) -> bytes:
        return event(data="DATA").replace(b'"DATA"', data.encode())

    data = {"tenant": "acme", "name": "poison", "definition": {"trigger": {"cron": "* * * * *"}}}
    return (
        Poison("bytes", b"\x00\xff\xfe not json"),
        Poison("empty", b""),
        Poison("no event", b"[1, 2, 3]"),
        Poison("no type", orjson.dumps({"specversion": "1.0", "id": "x", "source": "y", "data": {}})),
        Poison("wrong types", event(data={"tenant": 7, "name": ["a"], "definition": "b"})),
        Poison("no job", event(data=data)),
        Poison("deep", raw("[" * DEEP + "]" * DEEP)),
        Poison("not a number", raw('{"tenant": "acme", "name": "poison", "expected_version": NaN}')),
        Poison("huge number", raw(f'{{"tenant": "acme", "name": "poison", "expected_version": {HUGE}}}')),
        Poison("a name that is none", event(data=data | {"name": "../poison\u0000"})),
    )


class Upstream:
    """A publisher with patience, outside of the cluster."""

    def __init__(self, site: Site) -> None:
        self._site, self._agenda = site, site.agenda
        self._machine = Machine("upstream")
        self._chance = Random(f"{site.options.seed} upstream")
        self._log = site.log_of(self._machine, site.clock())
        self._count = 0
        self._versions: dict[tuple[str, str], int] = {}

    # --- what is right --------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Register all jobs and schedules, each with a source version."""
        for tenant, name in self._agenda.jobs:
            self.publish("job.put", self._agenda.job(tenant, name))
        for subject in self._agenda.subjects:
            self._put(subject)

    def end(self) -> None:
        """Delete all schedules, which would go on for ever."""
        for tenant, name in self._agenda.subjects:
            self.publish("schedule.delete", {"tenant": tenant, "name": name})
        if self._site.options.has("F9"):
            self._site.loop.later(ENDS_SECONDS, self._give_up_everywhere)

    def publish(self, kind: str, data: Mapping[str, Any], headers: Headers = (), times: int = 1) -> None:
        """Append a command so many times, with one id, in a task of its own that tries until it succeeds."""
        record = hour.record_of(kind, data, self._next_id(), self._site.layout, headers=headers)
        for _ in range(times):
            self.append(record)

    def append(self, *records: Outgoing) -> None:
        """Append records as they are, at once."""
        self._site.spawn("upstream publishes", lambda: self._append(records), self._machine)

    def flood(self, flooded: tuple[str, str], count: int, triggered_of: int) -> str:
        """So many commands for one schedule, some of which trigger it, and one behind them that puts another's.

        Another tenant's in the same partition, whose name it is; nobody's, where there is none.
        """
        put = self._put_again(flooded)
        trigger = {"tenant": flooded[0], "name": flooded[1]}
        flood = [
            put if self._chance.randrange(triggered_of) else self._record("schedule.trigger", trigger)
            for _ in range(count)
        ]
        others = [self._put_again(subject) for subject in self._agenda.subjects if subject[0] != flooded[0]]
        near = [record for record in others if record.partition == put.partition]
        behind = self._chance.sample(near, min(1, len(near)))
        self.append(*flood, *behind)
        return " and ".join((record.key or b"").decode() for record in behind) or "nobody"

    def _put_again(self, subject: tuple[str, str]) -> Outgoing:
        return self._record("schedule.put", self._agenda.put(*subject))

    def _record(self, kind: str, data: Mapping[str, Any]) -> Outgoing:
        return hour.record_of(kind, data, self._next_id(), self._site.layout)

    def _append(self, records: Sequence[Outgoing]) -> None:
        for _ in range(TRIES_MAX):
            try:
                self._log.append(records)
            except LogError:
                self._site.loop.sleep(self._chance.uniform(1, 5))
            else:
                return

    def _next_id(self) -> str:
        self._count += 1
        return f"upstream-{self._count}"

    def _put(self, subject: tuple[str, str], *, version: int | None = None, times: int = 1) -> None:
        newest = self._versions[subject] = max(self._versions.get(subject, 0) + 1, version or 0)
        data = self._agenda.put(*subject) | {"source_version": newest if version is None else version}
        self.publish("schedule.put", data, times=times)

    # --- what is not ----------------------------------------------------------------------------------------------

    def twice(self) -> str:
        """F3: a change comes two or three times; or one that is refused each time, for the same reason."""
        subject, times = self._subject(), self._chance.randint(2, 3)
        if self._chance.randrange(4) == 0:
            data = {"tenant": subject[0], "name": subject[1], "expected_version": NO_VERSION}
            self.publish(self._chance.choice(("schedule.pause", "schedule.delete")), data, times=times)
            return f"{subject} is to be changed more than once, in a version that it never has"
        self._put(subject, times=times)
        return f"{subject} is put more than once"

    def stale(self) -> str:
        """F4: what a schedule once was comes again after a later change, under another id."""
        subject = self._subject()
        newest = self._versions.get(subject, 1)
        data = self._agenda.put(*subject) | {"source_version": max(0, newest - self._chance.randint(0, 2))}
        data["definition"] = data["definition"] | {"note": f"before version {newest}"}
        self._put(subject)
        self.publish("schedule.put", data)
        return f"{subject} comes again as it was"

    def poison(self) -> str:
        """F1: what cannot be read."""
        poison = self._chance.choice(poisons(self._next_id()))
        self._spoil(poison.what, poison.value, self._chance.choice((topics.SCHEDULE_CHANGES, topics.ATTEMPTS)))
        return poison.what

    def too_large(self) -> str:
        """F2: larger than a record may be."""
        data = self._agenda.put("acme", "minutely") | {"name": "large"}
        data["definition"] = data["definition"] | {"note": "x" * LARGE_BYTES}
        self.publish("schedule.put", data, ((POISON, b"too large"),))
        return "a definition of 600 KiB"

    def unknown(self) -> str:
        """F5: a type of the future, or a field of it."""
        if self._chance.choice((True, False)):
            self.publish("schedule.dream", {"tenant": "acme", "name": "minutely"}, ((POISON, b"unknown type"),))
            return "a type that nobody knows"
        data = self._agenda.put("acme", "once") | {
            "definition": self._agenda.schedules["acme", "once"] | {"colour": "red"}
        }
        self.publish("schedule.put", data, ((UNKNOWN, b"colour"),))
        return "a field that nobody knows"

    def misplaced(self) -> str:
        """F8: another's subject, or another partition."""
        data = self._agenda.put(*self._chance.choice(OFTEN_MISPLACED))
        record = hour.record_of("schedule.put", data, self._next_id(), self._site.layout)
        if self._chance.choice((True, False)):
            wrong = (record.partition + 1) % self._site.layout.schedule
            seconds = self._chance.choice((0.0, self._until_due()))
            self._site.loop.later(seconds, lambda: self.append(record._replace(partition=wrong)))
            return f"a change stands in another partition in {seconds:.3f} s"
        document = orjson.loads(record.value or b"") | {"subject": "globex/minutely"}
        self.append(record._replace(value=orjson.dumps(document), headers=((POISON, b"another's subject"),)))
        return "a change with another's subject"

    def _until_due(self) -> float:
        """The seconds until just before most occurrences are due."""
        return max(0.0, MINUTE_SECONDS - self._site.loop.seconds % MINUTE_SECONDS - self._chance.uniform(0.001, 0.05))

    def _spoil(self, what: str, value: bytes, topic: str) -> None:
        layout = self._site.layout
        count = layout.schedule if topic == topics.SCHEDULE_CHANGES else layout.shard
        partition = identity.partition_of(f"acme/{what}", count)
        self.append(Outgoing(topic, partition, b"acme/poison", value, ((POISON, what.encode()),)))

    def pause_and_resume(self, seconds: float) -> None:
        """A schedule is paused and resumed within so many seconds, and is perhaps another one in between."""
        subject = self._chance.choice((self._subject(), self._chance.choice(self._agenda.frequent)))
        data = {"tenant": subject[0], "name": subject[1]}
        paused, resumed = sorted(self._chance.uniform(0, seconds) for _ in range(2))
        self._site.loop.later(paused, lambda: self.publish("schedule.pause", data))
        if self._chance.choice((True, False)):
            edition = self._agenda.edited(*subject, self._chance.randint(0, 2))
            self._site.loop.later((paused + resumed) / 2, lambda: self._unless_over("schedule.put", edition))
        self._site.loop.later(resumed, lambda: self.publish("schedule.resume", data))

    def _subject(self) -> tuple[str, str]:
        return self._chance.choice(self._agenda.subjects)

    def _unless_over(self, kind: str, data: Mapping[str, Any]) -> None:
        """Publish a command, unless the faults have ended: then all schedules are deleted, and stay so."""
        if self._site.under_faults:
            self.publish(kind, data)

    def _give_up_everywhere(self) -> None:
        self.give_up(everywhere=True)

    def give_up(self, *, everywhere: bool = False) -> str:
        """F9: a transaction of somebody else holds a change, and is aborted; in all partitions, or in that one's."""
        subject = self._chance.choice(self._agenda.frequent)
        data = {"tenant": subject[0], "name": subject[1]}
        record = hour.record_of("schedule.pause", data, self._next_id(), self._site.layout)
        numbers = range(self._site.layout.schedule) if everywhere else (record.partition,)
        self._count += 1
        name, records = f"publisher.{self._count}", [record._replace(partition=number) for number in numbers]
        self._site.spawn("a publisher gives up", lambda: self._give_up(name, records), self._machine)
        return f"a pause of {subject} is published, and taken back"

    def _give_up(self, name: str, records: list[Outgoing]) -> None:
        try:
            producer = self._log.open_producer(name, group="publishers")
            producer.begin()
            producer.send(records)
            producer.flush()
            self._site.loop.sleep(self._chance.uniform(0, 0.5))
            producer.abort()
            producer.close()
        except LogError:
            return  # It is aborted when its time is up.

    # --- reports that nobody made ---------------------------------------------------------------------------------

    def forge(self, worker: WorkerNode) -> str:
        """H10: a report of a worker, with a lease key, a shard or an incarnation that is not its own."""
        if worker.process is None or not worker.process.said:
            return ""
        said = self._chance.choice(list(worker.process.said))
        document = orjson.loads(said.value or b"")
        data = document["data"]
        how = self._chance.choice(("key", "finished", "incarnation", "lease"))
        leases = [*data["held"], *data["started"], *(entry["lease"] for entry in data["finished"])]
        lease = self._chance.choice(leases) if leases else "default.0.0.00000000000000000000000000000000"
        wrong = f"{lease.rpartition('.')[0]}.{self._chance.getrandbits(128):032x}"
        _FORGERIES[how](data, wrong, self._chance)
        if how != "incarnation":
            data["incarnation"] = f"forged-{self._chance.getrandbits(32):08x}"
            data["worker"] = "forger"
            data["slots"], data["number"] = 0, 1
        key = data["incarnation"].encode()
        self.append(said._replace(key=key, value=orjson.dumps(document | {"subject": data["incarnation"]})))
        return f"{how} {wrong}"

    def repeat(self, worker: WorkerNode) -> str:
        """H3: a report comes again, or late."""
        if worker.process is None or not worker.process.said:
            return ""
        said = self._chance.choice(list(worker.process.said))
        self._site.loop.later(self._chance.uniform(0, 60), lambda: self.append(said))
        return "a report comes once more"


def _wrong_key(data: dict[str, Any], lease: str, _chance: Random) -> None:
    data["finished"] = [{"lease": lease, "outcome": "succeeded", "result": {"forged": True}}]


def _wrong_held(data: dict[str, Any], lease: str, _chance: Random) -> None:
    data["held"], data["started"] = [lease], [lease]


_FORGERIES: Mapping[str, Callable[[dict[str, Any], str, Random], None]] = {
    "key": _wrong_key,
    "finished": _wrong_key,
    "incarnation": _wrong_held,
    "lease": _wrong_held,
}
