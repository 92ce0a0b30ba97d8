"""I18: what was acknowledged is there, once."""

from typing import Any

import pytest

from schemas import topics
from simulation.checkers import durable
from simulation.history import FAILED, OK, UNKNOWN, Call
from tests.simulation.checkers.given import at, calm, created, event, of_schedule, rested, told


def found(given, *calls) -> list[str]:
    return told(durable.check(rested(given, history=calls)))


def call(result, status=None, command_id="command-2", kind="schedule.pause", **other) -> Call:
    return Call(
        number=2, kind=kind, tenant="acme", name="s", started_at=at("12:00:14"), command_id=command_id, source="api",
        result=result, status=status, **other,
    )  # fmt: skip


def command(given, kind="schedule.pause", command_id="command-2", **headers) -> None:
    asked = event(kind, id_=command_id, tenant="acme", name="s") | {"source": "api"}
    given.append(topics.SCHEDULE_CHANGES, asked, headers=headers)


def remembered(status=200, command_id="command-2") -> dict[str, Any]:
    return event(
        "command.remembered", tenant="acme", name="s", source="api", command_id=command_id, status=status, body={}
    )


PAUSED = of_schedule("schedule.paused", source="api", command_id="command-2")


def test_a_call_that_was_done_stands_in_the_log_and_has_happened():
    given = calm()
    command(given)
    given.transaction("scheduler", "12:00:15", [PAUSED, remembered()])
    assert found(given, call(OK, 200)) == []
    assert durable.observed(rested(given, history=(call(OK, 200),))) == 3


def test_a_call_that_was_done_and_is_not_in_the_log_is_found():
    assert found(calm(), call(OK, 200)) == [
        "I18 call 2, schedule.pause command-2: was done, and its command is not in the log"
    ]


def test_a_call_that_was_done_and_that_the_log_refuses_is_found():
    given = calm()
    command(given)
    given.transaction("scheduler", "12:00:15", [remembered(409)])
    assert found(given, call(OK, 200)) == [
        "I18 call 2, schedule.pause command-2: was done (200), and the log says [409]"
    ]


def test_a_call_that_was_refused_and_happened_is_found():
    given = calm()
    command(given)
    given.transaction("scheduler", "12:00:15", [PAUSED, remembered()])
    assert found(given, call(FAILED, 409)) == [
        (
            "I18 call 2, schedule.pause command-2: was refused (409), and has led to schedule.paused at "
            "scheduler-changelog-0@10"
        )
    ]


def test_a_call_that_was_refused_at_the_door_and_stands_in_the_log_is_found():
    given = calm()
    command(given)
    given.transaction("scheduler", "12:00:15", [remembered(409)])
    assert found(given, call(FAILED, 422)) == []
    assert found(given, call(FAILED, 422, reached_log=False)) == [
        "I18 call 2, schedule.pause command-2: was refused at the door, and its command is in the log"
    ]


def test_a_call_whose_end_is_unknown_may_have_happened_or_not():
    given = calm()
    assert found(given, call(UNKNOWN)) == []
    command(given)
    command(given)
    given.transaction("scheduler", "12:00:15", [PAUSED, remembered()])
    assert found(given, call(UNKNOWN)) == []


def test_what_happens_twice_is_found():
    given = calm()
    command(given)
    for now in ("12:00:15", "12:00:16"):
        given.transaction("scheduler", now, [PAUSED, remembered()])
    assert found(given) == [
        "I18 scheduler-changelog-0@12: command command-2 is judged again; first at scheduler-changelog-0@10",
        (
            "I18 scheduler-changelog-0@12: command command-2 leads to schedule.paused again; first at "
            "scheduler-changelog-0@10"
        ),
    ]


def test_a_trigger_that_makes_two_runs_is_found():
    given = calm()
    command(given, "schedule.trigger")
    runs = [created(run_id=run_id, command_id="command-2") for run_id in ("s.m-1", "s.m-2")]
    given.transaction("scheduler", "12:00:15", [runs[0], remembered()])
    assert found(given) == []
    given.transaction("scheduler", "12:00:16", [runs[1]])
    assert found(given) == [
        "I18 scheduler-changelog-0@12: command command-2 leads to run.created again; first at scheduler-changelog-0@10"
    ]


def test_a_published_command_that_was_never_judged_is_found():
    given = calm()
    command(given)
    assert found(given) == ["I18 schedule-changes-0@1: command command-2 (schedule.pause) was never judged"]


@pytest.mark.parametrize("header", ["sim-poison", "tw-origin"])
def test_what_is_poison_or_a_copy_is_judged_elsewhere(header):
    given = calm()
    command(given, **{header: "x"})
    assert found(given) == []


def test_a_command_that_was_rejected_by_its_place_was_judged():
    given = calm()
    command(given)
    position = {"topic": topics.SCHEDULE_CHANGES, "partition": 0, "offset": 1}
    rejected = event("command.rejected", reason="invalid", position=position, command_id="command-2", source="api")
    given.transaction("scheduler", "12:00:15", [rejected])
    assert found(given) == []


def test_a_cancel_that_was_passed_on_was_judged():
    given = calm()
    command(given, "run.cancel")
    asked = of_schedule("run.cancel_requested", run_id="s.1", command_id="command-2", source="api")
    answered = event("command.answered", command_id="command-2", status=200, body={})
    given.transaction("scheduler", "12:00:15", [asked])
    given.transaction("dispatcher", "12:00:16", [answered])
    assert found(given, call(OK, 200, kind="run.cancel")) == []


def test_a_command_that_is_refused_again_is_found():
    given = calm()
    command(given)
    position = {"topic": topics.SCHEDULE_CHANGES, "partition": 0, "offset": 1}
    rejected = event("command.rejected", reason="stale", position=position, command_id="command-2", source="api")
    given.transaction("scheduler", "12:00:15", [rejected, remembered(409)])
    assert found(given) == []
    given.transaction("scheduler", "12:00:16", [rejected])
    assert found(given) == [
        "I18 scheduler-changelog-0@12: command command-2 is refused again; first at scheduler-changelog-0@10"
    ]


def test_a_command_that_is_judged_and_stands_nowhere_is_found():
    given = calm()
    command(given, command_id="command-3")
    given.transaction("scheduler", "12:00:15", [remembered(command_id="command-3"), remembered()])
    assert found(given) == ["I18 scheduler-changelog-0@10: command command-2 is judged, and stands nowhere"]


def test_a_reset_of_breakers_that_was_passed_on_was_judged():
    given = calm()
    command(given, "breaker.reset")
    assert len(found(given)) == 1
    asked = event("breaker.reset_requested", tenant="acme", queue="default", command_id="command-2", source="api")
    given.transaction("scheduler", "12:00:15", [asked])
    assert found(given) == []
