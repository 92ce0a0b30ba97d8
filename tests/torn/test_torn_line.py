"""Transactions of real owners on a real broker, torn by the network in between, under each combination of guards.

The anomaly: our client speaks the first version of the transaction protocol, in which a commit does not name its
transaction. One that is late ends the next transaction half done. Two guards keep that from doing harm: a producer is
replaced after a commit that leaves doubt, and a transaction without its footer is rolled forward from its decision
record. Without either the audit finds damage. With each of them alone it finds none, with one exception, which is by
construction: of a commit that the network itself delivers twice the client cannot know, so there is nothing to doubt.

How often is set from outside (`make torn TIMES=1000 SEED=1 RESULTS=torn.jsonl`); CI tears a few.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import pytest

from runtime.telemetry import Event
from tests.support.proxy import ADD_PARTITIONS, END_TXN, PRODUCE, Fate, Rule
from tests.torn.campaign import Found, Planned, campaign
from tests.torn.owners import Guards
from tests.torn.tears import Draw, Tear, drawn

TIMES = int(os.environ.get("TORN_TIMES", "0"))  # with guards, in all; a tenth of them without any
SEED = int(os.environ.get("TORN_SEED", "1"))
RESULTS = os.environ.get("TORN_RESULTS")  # a file to which each combination adds a line
LANES = 3  # houses side by side: a tear is mostly waiting

NONE = Guards(doubt=False, decisions=False)
DOUBT = Guards(doubt=True, decisions=False)
DECISIONS = Guards(doubt=False, decisions=True)
BOTH = Guards(doubt=True, decisions=True)
GUARDED = (DOUBT, DECISIONS, BOTH)


# Half a minute of a machine of one's own; on a busy one, minutes.
pytestmark = pytest.mark.timeout(900)


def struck(role: str, key: int, nth: int, pause: float, fate: Fate = Fate.STRAY) -> Tear:
    """A commit that arrives late, before the nth request of a kind of the next transaction."""
    rules = (Rule(key=END_TXN, fate=fate), Rule(key=key, fate=Fate.RELEASE, nth=nth, seconds=pause))
    return Tear("late commit", rules, role=role)


# A scheduler's transaction sends its decision, runs, events, and footer with rows, each in a request of its own.
BEFORE_THE_OUTPUTS = struck("scheduler", ADD_PARTITIONS, 2, 0.03)
AMONG_OUTPUTS = struck("scheduler", PRODUCE, 3, 0.01)
BEFORE_THE_FOOTER = struck("scheduler", PRODUCE, 4, 0.0)
AMONG_HAND_OUTS = struck("dispatcher", PRODUCE, 4, 0.01)
FEW = (BEFORE_THE_OUTPUTS, BEFORE_THE_FOOTER, AMONG_HAND_OUTS)
# Whether a transaction has outputs when something strikes is not in our hands: until it had some.
UNTIL_DAMAGED = (BEFORE_THE_FOOTER, AMONG_OUTPUTS) * 24
UNSEEN = struck("scheduler", PRODUCE, 4, 0.0, Fate.REPEAT)


def always(tear: Tear) -> Draw:
    """No matter what is drawn."""
    return lambda _chance: tear


@pytest.fixture(scope="module")
def few(broker: str, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Found]:
    """A few tears under each combination."""
    plan = [Planned(str(guards), guards, always(tear)) for guards in GUARDED for tear in FEW]
    plan += [Planned("unseen, decisions", DECISIONS, always(UNSEEN))]
    plan += [Planned("unseen, doubt", DOUBT, always(UNSEEN), until_damaged=True)] * len(UNTIL_DAMAGED)
    plan += [Planned(str(NONE), NONE, always(tear), until_damaged=True) for tear in UNTIL_DAMAGED]
    return campaign(broker, tmp_path_factory.mktemp("few"), plan, seed=SEED)


def test_without_guards_a_late_commit_does_damage_that_the_audit_finds(few):
    assert few[str(NONE)].is_damaged, few[str(NONE)].as_json()


@pytest.mark.parametrize("guards", GUARDED, ids=str)
def test_each_guard_alone_and_both_together_keep_a_late_commit_from_doing_any(few, guards):
    found = few[str(guards)]
    assert found.happened["EndTxn late, answered"] == len(FEW), found.as_json()
    assert (found.tears, found.damaged) == (len(FEW), 0), found.as_json()


def test_the_rule_of_doubt_replaces_the_producer_and_nothing_is_torn(few):
    owners = few[str(DOUBT)].owners
    assert owners["replaced"] >= len(FEW)
    assert (owners[Event.COMMIT_RETRIED], owners[Event.DECISION_ROLLED_FORWARD]) == (0, 0)


def test_the_decision_record_alone_lets_it_be_torn_and_rolls_it_forward(few):
    owners = few[str(DECISIONS)].owners
    assert owners["replaced"] == 0
    assert owners[Event.DECISION_ROLLED_FORWARD] > 0


def test_of_a_commit_that_the_network_repeats_there_is_nothing_to_doubt(few):
    """Only the decision record helps against it. Networks of TCP do not repeat requests; whoever sits in them might."""
    assert few["unseen, doubt"].is_damaged, few["unseen, doubt"].as_json()
    assert few["unseen, decisions"].damaged == 0, few["unseen, decisions"].as_json()


@pytest.mark.timeout(0)  # as long as it is asked for
def test_many_tears_of_all_kinds_do_no_damage_where_a_guard_is_up(broker, tmp_path):
    """`make torn`: the seed draws kinds, places and deaths. The default run looks at one of each combination."""
    rounds = -(-TIMES // len(GUARDED)) or 1
    plan = [each for _ in range(rounds) for each in map(anything, GUARDED)] + [anything(NONE)] * (TIMES // 10)
    found = campaign(broker, tmp_path, plan, seed=SEED, lanes=LANES if TIMES else 1)
    for each in found.values():
        tell(each)
    assert {name: each.told for name, each in found.items() if each.damaged and each.guards != NONE} == {}
    assert not TIMES or found[str(NONE)].is_damaged, "without damage where no guard is up, nothing is proven"


def anything(guards: Guards) -> Planned:
    """Whatever the seed draws, as far as these guards can know of it."""
    return Planned(str(guards), guards, partial(drawn, unseen=guards.decisions))


def tell(found: Found) -> None:
    """Add a line to the results."""
    told = json.dumps(found.as_json())
    logging.getLogger(__name__).warning(told)
    if RESULTS:
        with Path(RESULTS).open("a", encoding="utf-8") as results:
            results.write(told + "\n")
