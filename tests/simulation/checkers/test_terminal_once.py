"""I7: a run reaches one outcome and never leaves it."""

import pytest

from schemas import topics
from simulation.checkers import terminal_once
from tests.simulation.checkers.given import RUN, calm, created, ended, finished, handed_out, of_schedule, started, told


def found(given) -> list[str]:
    return told(terminal_once.check(given.evidence()))


def test_in_a_calm_history_each_run_has_one_outcome():
    given = calm()
    assert found(given) == []
    assert terminal_once.observed(given.evidence()) == 4


@pytest.mark.parametrize(
    ("fact", "kind"),
    [
        (created(), "run.created"),
        (handed_out(created(), 2), "run.handed_out"),
        (started(2), "attempt.started"),
        (ended(2, "failed"), "attempt.finished"),
        (of_schedule("run.retry_scheduled", run_id=RUN, attempt=2), "run.retry_scheduled"),
        (of_schedule("run.cancel_requested", run_id=RUN), "run.cancel_requested"),
        (finished("failed"), "run.finished"),
    ],
)
def test_whatever_happens_to_a_run_behind_its_outcome_is_found(fact, kind):
    given = calm()
    given.transaction("dispatcher", "12:00:15", [fact])
    assert found(given) == [
        (
            f"I7 dispatcher-changelog-0@12: {kind} of acme: run s.20260301T120005Z, which ended succeeded at "
            "dispatcher-changelog-0@5"
        )
    ]


def test_a_known_outcome_may_be_said_again_and_late_reports_be_noted():
    given = calm()
    repeat = finished(repeat=True)
    late = of_schedule("attempt.duplicate", run_id=RUN, handout=0)
    given.transaction("dispatcher", "12:00:15", [repeat, late])
    assert found(given) == []


@pytest.mark.parametrize("topic", [topics.RUN_OUTCOMES, topics.RUN_EVENTS])
def test_another_outcome_that_is_told_is_found(topic):
    given = calm()
    given.append(topic, finished("failed"))
    assert len(found(given)) >= 1
    assert found(given)[0].endswith("acme: run s.20260301T120005Z ended failed, and succeeded at run-outcomes-0@0")


def test_an_outcome_that_is_told_again_under_another_id_is_found():
    given = calm()
    given.append(topics.RUN_OUTCOMES, finished(id_="other"))
    assert found(given) == [
        "I7 run-outcomes-0@2: acme: run s.20260301T120005Z ended succeeded, and succeeded at run-outcomes-0@0"
    ]
