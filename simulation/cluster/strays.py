"""Reports that should not have been sent as they were: elsewhere, in another's name, or long after all is over; and
runs that stand in the log twice, as a copy of it may have them.
"""

from __future__ import annotations

from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING, Any

import orjson

from runtime.record import Outgoing, TopicPartition
from schemas import topics
from simulation.cluster.ledger import SUCCEEDED
from simulation.evidence import POISON, Execution

if TYPE_CHECKING:
    from collections.abc import Callable

    from simulation.cluster.world import World

LATER_SECONDS_MAX = 900.0  # that a word comes late: longer than leases and most retries
RECENT = 200  # executions, of which one is spoken of again
CREATED = "tidewheel.run.created.v1"


class Strays:
    """Makes reports of those that workers have made."""

    def __init__(self, world: World, chance: Random) -> None:
        self._world, self._site, self._chance = world, world.site, chance

    def stray(self) -> str:
        """One report; what is wrong with it. Nothing when nobody has said anything yet."""
        said = [sent for worker in self._world.workers if worker.process is not None for sent in worker.process.said]
        if not said:
            return ""
        ways = (self._elsewhere, self._in_its_name, self._as_the_holder, self._late, self._run_again)
        make: Callable[[Outgoing], str] = self._chance.choice(ways)
        return make(self._chance.choice(said))

    def _elsewhere(self, said: Outgoing) -> str:
        wrong = (said.partition + self._chance.randint(1, self._site.layout.shard - 1)) % self._site.layout.shard
        self._world.upstream.append(said._replace(partition=wrong, headers=((POISON, b"another partition"),)))
        return "a report stands in another partition"

    def _in_its_name(self, said: Outgoing) -> str:
        """Somebody who knows a worker's incarnation, or a true lease key, and not both of one lease."""
        leases = [execution.lease for execution in self._site.ledger.executions[-RECENT:] if not execution.outcome]
        if not leases:
            return ""
        document = orjson.loads(said.value or b"")
        lease, data = self._chance.choice(leases), document["data"]
        if lease in {*data["held"], *data["started"]} or self._chance.choice((True, False)):
            lease = f"{lease.rpartition('.')[0]}.{self._chance.getrandbits(128):032x}"
        data["finished"] = [{"lease": lease, "outcome": "succeeded", "result": {"forged": True}}]
        data["number"] = 0  # so that only what it says of leases could count
        self._world.upstream.append(said._replace(value=orjson.dumps(document)))
        return f"{data['worker']} is said to have finished {lease}"

    def _as_the_holder(self, said: Outgoing) -> str:
        """Somebody who has read what a worker said last, and knows the next number, and no key."""
        last = next(
            worker.process.said[-1] for worker in self._world.workers
            if worker.process is not None and said in worker.process.said
        )  # fmt: skip
        document = orjson.loads(last.value or b"")
        data = document["data"]
        if not data["held"]:
            return ""
        lease = f"{self._chance.choice(data['held']).rpartition('.')[0]}.{self._chance.getrandbits(128):032x}"
        data["number"] += 1
        data["finished"] = [{"lease": lease, "outcome": "succeeded", "result": {"forged": True}}]
        self._world.upstream.append(last._replace(value=orjson.dumps(document)))
        return f"{data['worker']} is said to say next that {lease} is finished"

    def _late(self, said: Outgoing) -> str:
        over = [each for each in self._site.ledger.executions[-RECENT:] if each.outcome]
        if not over:
            return ""
        execution = self._chance.choice(over)
        document = orjson.loads(said.value or b"")
        document["data"] |= _last_word(execution)
        document["subject"] = execution.incarnation
        sent = said._replace(key=execution.incarnation.encode(), value=orjson.dumps(document))
        seconds = self._chance.uniform(0, LATER_SECONDS_MAX)
        self._site.loop.later(seconds, lambda: self._world.upstream.append(sent))
        return f"{execution.worker} says in {seconds:.0f} s how {execution.lease.rpartition('.')[0]} ended"

    def _run_again(self, _said: Outgoing) -> str:
        """A run stands in `runs` once more, some while after it began: its dispatcher knows it."""
        number = self._chance.randrange(self._site.layout.shard)
        partition = self._world.broker.partition(TopicPartition(topics.RUNS, number))
        assert partition is not None, "created at the beginning"
        since = self._site.now() - timedelta(seconds=LATER_SECONDS_MAX)
        began = {each.run_id.encode() for each in self._site.ledger.executions[-RECENT:] if each.started_at > since}
        known = [record for record in partition.records[-RECENT:] if _run_of(record.value) in began]
        if not known:
            return ""
        record = self._chance.choice(known)
        self._world.upstream.append(Outgoing(topics.RUNS, number, record.key, record.value))
        return f"{(_run_of(record.value) or b'').decode()} is created once more"


def _run_of(value: bytes | None) -> bytes | None:
    """Which run a record creates; that it stands there at all says nothing of its transaction."""
    document = orjson.loads(value or b"{}")
    return str(document["data"]["run_id"]).encode() if document.get("type") == CREATED else None


def _last_word(execution: Execution) -> dict[str, Any]:
    ended: dict[str, Any] = {"lease": execution.lease, "outcome": "failed"}
    if execution.outcome == SUCCEEDED:
        ended |= {"outcome": "succeeded", "result": execution.result}
    else:
        ended |= {"error": {"type": "RuntimeError", "message": "this is known too late"}}
    return {
        "incarnation": execution.incarnation, "worker": execution.worker, "held": [], "started": [],
        "finished": [ended], "number": 0, "slots": 0,
    }  # fmt: skip
