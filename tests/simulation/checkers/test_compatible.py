"""I16: nothing unknown is dropped in silence."""

from schemas import topics
from simulation.checkers import compatible
from tests.simulation.checkers.given import calm, event, of_schedule, told


def found(given) -> list[str]:
    return told(compatible.check(given.evidence()))


def put(given) -> None:
    command = event("schedule.put", id_="command-9", tenant="acme", name="s", colour="red")
    given.append(topics.SCHEDULE_CHANGES, command, headers={"sim-unknown": "colour"})


def accept(given, *warnings) -> None:
    accepted = of_schedule("schedule.accepted", command_id="command-9", warnings=list(warnings))
    given.append(topics.RUN_EVENTS, accepted)


def reject(given) -> None:
    position = {"topic": topics.SCHEDULE_CHANGES, "partition": 0, "offset": 1}
    given.append(topics.REJECTIONS, event("command.rejected", reason="unknown_type", position=position))


def test_a_calm_history_has_nothing_that_anyone_does_not_know():
    assert compatible.observed(calm().evidence()) == 0


def test_a_field_that_nobody_knows_is_kept_with_a_warning():
    given = calm()
    put(given)
    accept(given, "/data/colour is not known")
    assert found(given) == []
    assert compatible.observed(given.evidence()) == 1


def test_a_change_that_changes_nothing_has_the_warning_in_its_answer():
    given = calm()
    put(given)
    body = {"changed": False, "warnings": ["/data/colour is not known"]}
    remembered = event("command.remembered", command_id="command-9", source="publisher", status=200, body=body)
    given.transaction("scheduler", "12:00:15", [remembered])
    assert found(given) == []


def test_a_field_that_is_dropped_without_a_word_is_found():
    given = calm()
    put(given)
    accept(given, "something else")
    assert found(given) == [
        "I16 schedule-changes-0@1: the unknown field colour of schedule.put is dropped without a word"
    ]


def test_a_command_that_is_rejected_is_not_dropped_in_silence():
    given = calm()
    put(given)
    reject(given)
    assert found(given) == []


def test_a_type_that_nobody_knows_needs_a_rejection():
    given = calm()
    given.append(topics.SCHEDULE_CHANGES, event("schedule.paint", tenant="acme", name="s"))
    assert found(given) == ["I16 schedule-changes-0@1: a command of the unknown type schedule.paint has no rejection"]
    reject(given)
    assert found(given) == []
