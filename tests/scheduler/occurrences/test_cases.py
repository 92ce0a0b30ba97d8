"""The measure: 142 expressions with their exact instants, each drawn from a public complaint about some scheduler.

The lists come from two independent brute-force walks that agree (zone data 2026f); they are data, not our opinion.
"""

import json
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

from scheduler.occurrences import (
    CronTrigger,
    Refused,
    between,
    count_between,
    last_between,
    parse,
    zone,
)
from tests.scheduler.occurrences.instants import at

CASES = json.loads((Path(__file__).parents[2] / "cases" / "cron-occurrences.json").read_text("utf-8"))
REFUSED = [case for case in CASES if case.get("error")]
ANSWERED = [case for case in CASES if not case.get("error")]


def trigger(case: dict[str, Any]) -> CronTrigger:
    expression = parse(case["expression"], day_rule=case.get("day_rule", "vixie"))
    return CronTrigger(expression, zone(case["timezone"]), case["gap_policy"], case["fold_policy"])


def window(case: dict[str, Any]) -> tuple[int, int]:
    """The cases count [start, end) in whole seconds, we count (after, until]."""
    return at(case["start_utc"]) - 1, at(case["end_utc"]) - 1


def expected(case: dict[str, Any]) -> list[int]:
    return [at(text) for text in case["expected_utc"]]


def name(case: dict[str, Any]) -> str:
    return f"{case['id']} {case['expression']!a} {case['timezone']}"


def test_all_cases_are_here():
    assert (len(ANSWERED), len(REFUSED)) == (122, 20)


@pytest.mark.parametrize("case", ANSWERED, ids=name)
def test_the_exact_instants_are_given(case):
    assert list(between(trigger(case), *window(case))) == expected(case)


@pytest.mark.parametrize("case", ANSWERED, ids=name)
def test_asking_afresh_from_each_answer_gives_the_same_list(case):
    subject, (after, until) = trigger(case), window(case)

    def answers() -> Iterator[int]:
        latest = after
        while (due := subject.next_after(latest)) is not None:
            yield due
            latest = due

    assert list(takewhile(lambda due: due <= until, answers())) == expected(case)


@pytest.mark.parametrize("case", ANSWERED, ids=name)
def test_counting_and_looking_back_agree_with_the_list(case):
    subject, (after, until) = trigger(case), window(case)
    assert count_between(subject, after, until, limit=10_000) == len(expected(case))
    assert last_between(subject, after, until) == max(expected(case), default=None)


@pytest.mark.parametrize("case", REFUSED, ids=name)
def test_what_cannot_be_meant_is_refused_with_field_problem_and_remedy(case):
    with pytest.raises(Refused) as refusal:
        trigger(case)
    assert all((refusal.value.field, refusal.value.problem, refusal.value.remedy))
