"""No more is handed out than rates of tenants and queues allow: a part of I20.

Counted anew from the dispatcher's facts, from one rate that was adopted to the next. Hand-outs of a rate stand at least
its interval apart; where that is shorter than an owner looks, they come together, at most one look ahead of their turn.
In a queue with several shards each keeps to a rate that is so many times slower.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from simulation.checkers import portions
from simulation.checkers.reading import DISPATCHER, Data, Fact, facts, instant
from simulation.evidence import Evidence, Violation

ID = "I20"
LOOK = timedelta(milliseconds=50)  # how much of a faster rate comes at once, at most
MILLISECOND = timedelta(milliseconds=1)  # to which instants are cut
SECONDS = {"s": 1, "m": 60, "h": 3600}
OWNER = tuple[str, int, str]  # queue, shard, tenant; no tenant: the queue itself
Paces = dict[OWNER, "_Pace"]


@dataclass(slots=True)
class _Pace:
    """A rate as given, the time from one hand-out to the next, of how many shards, and when the next one's turn is."""

    rate: str
    apart: timedelta
    over: int = 1
    turn: datetime | None = None


def check(evidence: Evidence) -> Iterator[Violation]:
    """Every hand-out before its turn."""
    paces: Paces = {}
    defined: dict[OWNER, Data] = {}
    for fact in facts(evidence, DISPATCHER):
        if fact.type == "limits.adopted":
            _adopt(paces, defined, fact.data)
        elif fact.type == "run.handed_out":
            run = fact.data["run"]
            for owner in ("", run["tenant"]):
                pace = paces.get((run["job"]["queue"], fact.data.get("shard", 0), owner))
                if pace is not None:
                    yield from _handed_out(pace, owner, fact)


def _adopt(paces: Paces, defined: dict[OWNER, Data], data: Data) -> None:
    """What a shard takes over; with another number of shards the rates of all are others here."""
    shard = data["queue"], data.get("shard", 0)
    for name, limits in data.get("tenants", {}).items():
        defined[*shard, name] = limits
    if data.get("limits") is not None:
        defined[*shard, ""] = data["limits"]
    shards = defined.get((*shard, ""), {}).get("shards", 1)
    for owner, limits in defined.items():
        if owner[:2] == shard:
            _pace(paces, owner, limits.get("rate"), portions.over(limits, shards) if owner[2] else shards)


def _pace(paces: Paces, owner: OWNER, rate: str | None, over: int) -> None:
    if rate is None:
        paces.pop(owner, None)
    elif owner not in paces or (paces[owner].rate, paces[owner].over) != (rate, over):
        paces[owner] = _Pace(rate, _apart(rate) * over, over)


def _handed_out(pace: _Pace, owner: str, fact: Fact) -> Iterator[Violation]:
    at = instant(fact.data["handed_out_at"])
    ahead = MILLISECOND + (LOOK if pace.apart < LOOK else timedelta(0))
    if pace.turn is not None and at < pace.turn - ahead:
        said = pace.rate if pace.over == 1 else f"{pace.rate} over {pace.over} shards"
        run, whose = fact.data["run"], f"tenant {owner}" if owner else "the queue"
        what = f"is handed out at {at:%H:%M:%S.%f}, where {said} of {whose} allows {pace.turn:%H:%M:%S.%f}"
        yield Violation(invariant=ID, what=f"{run['tenant']}: run {run['run_id']} {what}", where=fact.place)
    pace.turn = max(at, pace.turn or at) + pace.apart


def _apart(rate: str) -> timedelta:
    count, _, per = rate.partition("/")
    return timedelta(seconds=SECONDS[per]) / int(count)
