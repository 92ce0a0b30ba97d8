"""A command that names a position of the catalog is judged by what stands there: a part of I20."""

from schemas import topics
from simulation.checkers import awaited
from tests.simulation.checkers.given import Given, calm, event, of_schedule, told, z

ACCEPTED = of_schedule(
    "schedule.accepted", version=1, definition={}, effective_at=z("12:00:00"), source="api", command_id="c"
)


def found(given: Given) -> list[str]:
    return told(awaited.check(given.evidence()))


def given_command(after: str = "scheduler-1-7") -> Given:
    given = Given()
    put = event("schedule.put", id_="c", tenant="acme", name="s", after_catalog=after)
    given.append(topics.SCHEDULE_CHANGES, put | {"source": "api"})
    return given


def adopted(position: str) -> dict[str, object]:
    return event("catalog.adopted", subject="_/scheduler-0", position=position)


def test_a_calm_history_waits_for_nothing():
    assert found(calm()) == []


def test_a_command_that_is_taken_before_the_catalog_is_used_as_far_as_it_says_is_found():
    given = given_command()
    given.transaction("scheduler", "12:00:01", [adopted("scheduler-1-6"), adopted("scheduler-0-9"), ACCEPTED])
    assert found(given) == [
        "I20 scheduler-changelog-0@0: schedule.accepted of c, which waits for scheduler-1-7, before that is used"
    ]


def test_a_command_that_is_taken_once_that_or_something_later_is_used_has_waited():
    for position in ("scheduler-1-7", "scheduler-1-12"):
        given = given_command()
        given.transaction("scheduler", "12:00:01", [adopted(position), ACCEPTED])
        assert found(given) == []


def test_other_commands_wait_for_nothing():
    given = Given()
    put = event("schedule.put", id_="c", tenant="acme", name="s")
    given.append(topics.SCHEDULE_CHANGES, put | {"source": "api"})
    given.transaction("scheduler", "12:00:01", [ACCEPTED])
    assert found(given) == []
