"""What is asked to be done once more is done once: a part of I20."""

from typing import Any

from schemas import topics
from simulation.checkers import again
from tests.simulation.checkers.given import JOB, RUN, Given, calm, created, event, finished, told

OLD = created(job=JOB | {"payload": {"day": 1}})


def wish(kind: str = "rerun", id_: str = "wish-1", *, run: str = RUN, **more: Any) -> dict[str, Any]:
    said = event(f"run.{kind}", id_=id_, tenant="acme", name="s", run_id=run, run=OLD["data"], **more)
    return said | {"source": "api"}


def rerun(id_: str = "wish-1", *, of: str = RUN, name: str = "s.r-1", day: int = 1) -> dict[str, Any]:
    job = JOB | {"payload": {"day": day}}
    return created(run_id=name, cause="rerun", of=of, command_id=id_, job=job, created_at="2026-03-01T12:00:08Z")


def remembered(id_: str = "wish-1", status: int = 201) -> dict[str, Any]:
    return event("command.remembered", of="schedule", tenant="acme", name="s", command_id=id_, status=status, body={})


def given(*wishes: dict[str, Any], over_at: str | None = "12:00:06") -> Given:
    history = Given()
    if over_at is not None:
        history.append(topics.RUN_OUTCOMES, finished(), now=over_at)
    for each in wishes:
        history.append(topics.SCHEDULE_CHANGES, each, now="12:00:07")
    return history


def found(history: Given, *facts: dict[str, Any]) -> list[str]:
    runs = [(topics.RUN_EVENTS, fact) for fact in facts if fact["type"] == "tidewheel.run.created.v1"]
    history.transaction("scheduler", "12:00:08", facts, runs)
    return told(again.check(history.evidence()))


def test_a_calm_history_does_nothing_again():
    assert told(again.check(calm().evidence())) == []


def test_a_wish_that_is_granted_and_has_its_run_is_right():
    assert found(given(wish()), rerun(), remembered()) == []
    assert found(given(wish(payload={"day": 2})), rerun(day=2), remembered()) == []
    assert found(given(wish()), remembered(status=409)) == []


def test_a_run_that_nobody_wished_for_is_found():
    said = f"I20 scheduler-changelog-0@0: acme: run s.r-1 is of {RUN}, and nobody wished for that"
    assert found(given(), rerun()) == [said]
    assert found(given(wish(run="s.other")), rerun()) == [said]


def test_a_wish_that_is_granted_and_leads_to_nothing_is_found():
    assert found(given(wish()), remembered()) == [
        "I20 scheduler-changelog-0@0: wish wish-1 for acme/s was granted, and nothing runs"
    ]


def test_a_run_with_another_payload_than_was_wished_for_is_found():
    said = "I20 scheduler-changelog-0@0: acme: run s.r-1 has another payload than wish wish-1 gives it"
    assert found(given(wish()), rerun(day=2)) == [said]
    assert found(given(wish(payload={"day": 2})), rerun()) == [said]


def test_two_runs_of_one_wish_are_found():
    assert found(given(wish()), rerun(), rerun(name="s.r-2")) == [
        "I20 scheduler-changelog-0@0: acme: run s.r-2 is the second run of wish wish-1: s.r-1 is the first"
    ]


def test_a_dead_letter_that_is_redriven_twice_is_found_and_a_run_may_be_rerun_as_often_as_somebody_asks():
    both = rerun(), rerun("wish-2", name="s.r-2")
    assert found(given(wish("redrive"), wish("redrive", "wish-2")), *both) == [
        f"I20 scheduler-changelog-0@0: acme: run s.r-2 is the second run of the letter of {RUN}: s.r-1 is the first"
    ]
    assert found(given(wish(), wish(id_="wish-2")), *both) == []


def test_a_run_that_is_open_and_run_again_is_found():
    said = [f"I20 scheduler-changelog-0@0: acme: run s.r-1 is of {RUN}, which is open"]
    assert found(given(wish(), over_at=None), rerun()) == said
    later = given(wish())
    later.append(topics.RUN_OUTCOMES, finished(run="s.r-1"), now="12:00:07")
    assert found(later, rerun()) == []
    assert found(given(wish(), over_at="12:00:09"), rerun()) == said
