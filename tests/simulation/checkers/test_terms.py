"""I20: what a schedule, a worker's report and a job's retry rule say is kept to the letter."""

from typing import Any

from schemas import topics
from simulation.checkers import terms
from tests.simulation.checkers.given import Given, calm, created, event, handed_out, of_schedule, told, z

SKIP = {"overlap": {"policy": "skip", "limit": 1}}


def found(given: Given) -> list[str]:
    return [line.partition(": ")[2] for line in told(terms.check(given.evidence()))]


def decided(role: str, *facts: dict[str, Any]) -> list[str]:
    given = Given()
    given.transaction(role, "12:00:30", list(facts))
    return found(given)


def report(slots: int, *, shard: int = 0, **other: Any) -> dict[str, Any]:
    said: dict[str, Any] = {"queue": "default", "shard": shard, "incarnation": "i", "slots": slots, "read_up_to": -1}
    return event("worker.reported", **said, **other)


def lapsed(*, shard: int) -> dict[str, Any]:
    return event("worker.lapsed", queue="default", shard=shard, incarnation="i")


def test_a_calm_history_keeps_its_word():
    assert found(calm()) == []


def test_a_run_for_an_instant_at_which_its_schedule_was_paused_is_found():
    paused = of_schedule("schedule.paused", version=1, effective_at=z("12:00:00"))
    resumed = of_schedule("schedule.resumed", version=1, effective_at=z("12:00:10"))
    assert decided("scheduler", paused, created("12:00:05")) == ["acme/s was paused at 12:00:05, and has a run"]
    assert decided("scheduler", paused, resumed, created("12:00:15")) == []


def test_a_run_beside_as_many_as_its_schedule_allows_is_found():
    accepted = of_schedule("schedule.accepted", version=1, definition=SKIP, effective_at=z("12:00:00"), created=True)
    first, second = created("12:00:05"), created("12:00:10")
    settled = of_schedule("run.settled", run_id=first["data"]["run_id"])
    assert decided("scheduler", accepted, first, second) == [
        "acme/s has 1 active runs, of at most 1, and another is created"
    ]
    assert decided("scheduler", accepted, first, settled, second) == []


def test_an_occurrence_that_is_skipped_for_a_run_that_is_over_is_found():
    accepted = of_schedule("schedule.accepted", version=1, definition=SKIP, effective_at=z("12:00:00"), created=True)
    first = created("12:00:05")
    settled = of_schedule("run.settled", run_id=first["data"]["run_id"])
    skipped = of_schedule("occurrence.skipped", version=1, reason="overlap", nominal_time=z("12:00:10"))
    assert decided("scheduler", accepted, first, settled, skipped) == [
        "acme/s skips 2026-03-01T12:00:10Z for a run in the way, and none is active"
    ]
    assert decided("scheduler", accepted, first, skipped) == []


def test_a_change_that_takes_effect_when_it_was_read_is_found():
    given = Given()
    given.append(topics.SCHEDULE_CHANGES, event("schedule.pause", id_="c") | {"source": "up"}, now="12:00:01")
    late = of_schedule(
        "schedule.paused", version=1, effective_at=z("12:00:20"), command_id="c", source="up"
    )  # fmt: skip
    given.transaction("scheduler", "12:00:20", [late])
    assert found(given) == ["schedule.paused of acme/s takes effect at 12:00:20.000000, published 12:00:01.000000"]


def test_an_older_word_of_a_source_is_found():
    def accepted(version: int) -> dict[str, Any]:
        return of_schedule(
            "schedule.accepted", version=1, definition={}, effective_at=z("12:00:00"), source_version=version
        )  # fmt: skip

    assert decided("scheduler", accepted(7), accepted(7)) == ["version 7 of the source of acme/s is accepted after 7"]


def test_a_worker_that_another_shard_has_lost_is_still_to_be_had():
    """When a queue gets more shards a worker moves, and the shard that it left hears of it no more."""
    moved, first = report(2, shard=2), handed_out(created(), 0, incarnation="i")
    assert decided("dispatcher", moved, report(2), lapsed(shard=2), first) == []


def test_a_hand_out_beyond_free_slots_or_to_who_takes_none_is_found():
    first, second = handed_out(created(), 0, incarnation="i"), handed_out(created("12:00:06"), 1, incarnation="i")
    assert len(decided("dispatcher", report(1), first, second)) == 1
    assert decided("dispatcher", report(2), first, second) == []
    assert len(decided("dispatcher", report(2, draining=True), first)) == 1
    assert len(decided("dispatcher", report(2), lapsed(shard=0), first)) == 1
