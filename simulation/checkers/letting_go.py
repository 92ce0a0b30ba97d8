"""Whoever loses a partition, or its name, lets go of it: a part of I3.

- A process that the group has told to give a partition back builds up at most what it was building: not once more.
- Two processes do not take a partition from each other again and again. Whoever is fenced waits until the group has had
  its word, which takes seconds.
- A process that hears from the group that another has its name takes no part any more. One that cannot hear it may have
  the name again, however often: for all it knows its session has ended.
- Nobody commits positions of a group without saying as whom.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta

from simulation.evidence import Evidence, Owning, Violation

ID = "I3"
SOON = timedelta(seconds=3)  # two heartbeats of a group: whoever is fenced waits at least so long
LET_GO = frozenset({"revoked", "lost"})
TURNS = 4  # A, B, A, B: both have taken it from the other


@dataclass(slots=True)
class _Partition:
    """`begun`: how often each process has begun with it since it was to let go. `turns`: who took it from whom."""

    begun: dict[str, int] = field(default_factory=dict)
    turns: list[Owning] = field(default_factory=list)


def check(evidence: Evidence) -> Iterator[Violation]:
    """Everybody who goes on with what is another's."""
    partitions: dict[tuple[str, int], _Partition] = defaultdict(_Partition)
    for word in evidence.owning:
        yield from _follow(partitions[word.role, word.partition], word)
        if word.what == "assigned" and word.at > evidence.fenced.get(word.machine, word.at):
            heard_at = evidence.fenced[word.machine]
            yield _violation(word, f"takes part again, and heard at {heard_at:%H:%M:%S} that another has its name")
    for transactional_id in dict.fromkeys(evidence.unquoted):
        what = f"{evidence.unquoted.count(transactional_id)} commits of positions say nothing of who makes them"
        yield Violation(invariant=ID, what=what, where=transactional_id)


def _follow(partition: _Partition, word: Owning) -> Iterator[Violation]:
    if word.what in LET_GO:
        partition.begun[word.machine] = 0
    elif word.what == "assigned":
        partition.begun.pop(word.machine, None)
        partition.turns.clear()  # The group has had its word.
    elif word.what == "begun":
        if word.machine in partition.begun:
            partition.begun[word.machine] += 1
            if partition.begun[word.machine] == 2:  # noqa: PLR2004 -- what it was building, and once more
                yield _violation(word, "begins once more with what it was told to give back")
        yield from _turns(partition, word)


def _turns(partition: _Partition, word: Owning) -> Iterator[Violation]:
    """Who takes it back so soon that it cannot have waited."""
    turns = partition.turns
    if turns and (turns[-1].machine == word.machine or word.at - turns[-1].at >= SOON):
        turns.clear()
    turns.append(word)
    if len(turns) >= TURNS and turns[-1].machine == turns[-3].machine and turns[-2].machine == turns[-4].machine:
        other = turns[-2].machine
        turns.clear()
        yield _violation(word, f"and {other} take it from each other at once, again and again")


def _violation(word: Owning, what: str) -> Violation:
    return Violation(invariant=ID, what=f"{word.machine} {what}", where=f"{word.role}-{word.partition}")
