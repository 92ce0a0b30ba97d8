"""The ways in which the network tears a transaction: scripts for the proxy, drawn from a seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from random import Random
from types import MappingProxyType

from tests.support.proxy import (
    ADD_OFFSETS,
    ADD_PARTITIONS,
    END_TXN,
    INIT_PRODUCER_ID,
    PRODUCE,
    TXN_OFFSET_COMMIT,
    Fate,
    Rule,
    rough,
)

# Where in a later transaction something comes late: before the nth request of a kind. The first `EndTxn` is the one
# with which the client repeats what was kept; the second ends the transaction after it.
STRIKES = (
    (ADD_PARTITIONS, 1), (ADD_PARTITIONS, 2), (ADD_PARTITIONS, 2), (ADD_PARTITIONS, 3), (PRODUCE, 1), (PRODUCE, 2),
    (PRODUCE, 2), (PRODUCE, 3), (PRODUCE, 3), (PRODUCE, 4), (PRODUCE, 5), (ADD_OFFSETS, 1), (TXN_OFFSET_COMMIT, 1),
    (END_TXN, 2),
)  # fmt: skip
WITHIN = (PRODUCE, ADD_PARTITIONS, ADD_OFFSETS, TXN_OFFSET_COMMIT, END_TXN)
DEATHS = ((PRODUCE, 1), (PRODUCE, 2), (ADD_PARTITIONS, 1), (END_TXN, 1), (INIT_PRODUCER_ID, 1), (TXN_OFFSET_COMMIT, 1))
PAUSES = (0.0, 0.01, 0.03)  # around the late arrival: markers are written, records arrive


Draw = Callable[[Random], "Tear"]


HELD = 0.1  # of late commits: without the end of a connection the client waits for seconds before it asks again


@dataclass(frozen=True, slots=True)
class Tear:
    """A script; `dies`: its last rule freezes the owner, and a successor takes over from it."""

    kind: str
    rules: tuple[Rule, ...]
    dies: bool = False
    at_start: bool = False  # the script begins with the owner's first call to the broker
    fails: bool = False  # the owner's next transaction fails before its end, so that it aborts
    role: str = ""  # of the owner, where it matters


def late_commit(chance: Random) -> Tear:
    """A commit is kept, asked for again, and arrives in the middle of a later transaction."""
    kept = Rule(key=END_TXN, fate=Fate.HOLD if chance.random() < HELD else Fate.STRAY)
    return _struck("late commit", chance, kept)


def repeated_commit(chance: Random) -> Tear:
    """The network itself delivers a commit twice: the client can know nothing of it."""
    return _struck("repeated commit", chance, Rule(key=END_TXN, fate=Fate.REPEAT))


def late_abort(chance: Random) -> Tear:
    """The same with an abort."""
    kept = Rule(key=END_TXN, fate=Fate.STRAY)
    return Tear("late abort", (kept, *_strike(chance)), fails=True)


def lost_answer(chance: Random) -> Tear:
    """A commit arrives, and its answer does not; half of the owners die before they can ask again."""
    dies = chance.random() < 0.5
    death = (Rule(key=END_TXN, fate=Fate.FREEZE),) if dies else ()
    return Tear("lost answer", (Rule(key=END_TXN, fate=Fate.LOSE_ANSWER), *death), dies=dies)


def lost_commit(chance: Random) -> Tear:
    """A commit does not arrive; half of the owners die before they can ask again."""
    dies = chance.random() < 0.5
    death = (Rule(key=END_TXN, fate=Fate.FREEZE),) if dies else ()
    return Tear("lost commit", (Rule(key=END_TXN, fate=Fate.CUT), *death), dies=dies)


def late_records(chance: Random) -> Tear:
    """Records are kept and sent again by the client, or are delivered twice by the network."""
    fate, nth = chance.choice((Fate.STRAY, Fate.REPEAT)), chance.randint(1, 4)
    return _struck("late records", chance, Rule(key=PRODUCE, fate=fate, nth=nth))


def late_positions(chance: Random) -> Tear:
    """Positions arrive late, or once more."""
    return _struck("late positions", chance, Rule(key=TXN_OFFSET_COMMIT, fate=chance.choice((Fate.STRAY, Fate.REPEAT))))


def late_partitions(chance: Random) -> Tear:
    """That a transaction writes to a partition is said late, or once more."""
    return _struck("late partitions", chance, Rule(key=ADD_PARTITIONS, fate=chance.choice((Fate.STRAY, Fate.REPEAT))))


def late_takeover(chance: Random) -> Tear:
    """What fences the predecessor arrives once more and fences whoever sent it."""
    kept = Rule(key=INIT_PRODUCER_ID, fate=chance.choice((Fate.STRAY, Fate.REPEAT)))
    return Tear("late takeover", (kept, *_strike(chance)), at_start=True)


def death(chance: Random) -> Tear:
    """An owner dies anywhere in a transaction, and its last words arrive after its successor has begun."""
    key = chance.choice((PRODUCE, PRODUCE, ADD_PARTITIONS, ADD_OFFSETS, TXN_OFFSET_COMMIT, END_TXN))
    return Tear("death", (Rule(key=key, fate=Fate.FREEZE, nth=chance.randint(1, 4)),), dies=True)


def rough_network(chance: Random) -> Tear:
    """Several things in a row, of which each may meet what the one before has left."""
    fates = (Fate.STRAY, Fate.DELAY, Fate.CUT, Fate.LOSE_ANSWER)
    rules = rough(chance, keys=WITHIN, between=(1, 4), fates=fates, seconds=(0.0, 0.3))
    return Tear("rough network", tuple(islice(rules, chance.randint(2, 4))))


def _struck(kind: str, chance: Random, kept: Rule) -> Tear:
    dies = chance.random() < 0.3
    key, nth = chance.choice(DEATHS)
    death = (Rule(key=key, fate=Fate.FREEZE, nth=nth),) if dies else ()
    return Tear(kind, (kept, *_strike(chance), *death), dies=dies)


def _strike(chance: Random) -> Sequence[Rule]:
    key, nth = chance.choice(STRIKES)
    return (Rule(key=key, fate=Fate.RELEASE, nth=nth, seconds=chance.choice(PAUSES)),)


# Late commits are what this is about: they are as frequent as all others together.
KINDS: Mapping[Draw, int] = MappingProxyType({
    late_commit: 10, late_abort: 1, lost_answer: 1, lost_commit: 1, late_records: 2, late_positions: 1,
    late_partitions: 1, late_takeover: 1, death: 2, rough_network: 2,
})  # fmt: skip
UNSEEN: Mapping[Draw, int] = MappingProxyType({repeated_commit: 5})


def drawn(chance: Random, *, unseen: bool) -> Tear:
    """A tear. `unseen`: also those of which a client cannot know, against which no doubt helps."""
    kinds = {**KINDS, **UNSEEN} if unseen else KINDS
    return chance.choices(list(kinds), list(kinds.values()))[0](chance)
