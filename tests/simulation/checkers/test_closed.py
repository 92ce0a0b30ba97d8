"""What calendars and freezes take out has no run, and nothing begins while a freeze defers it: a part of I20."""

from typing import Any

from simulation.checkers import closed
from tests.simulation.checkers.given import Given, calm, created, event, of_schedule, told, z

AT = "I20 scheduler-changelog-0@0: acme/s"
CLOSED = {"calendar/acme/closed": 1}
TENANT = {"tenant/acme/_": 1}


def found(*facts: dict[str, Any]) -> list[str]:
    given = Given()
    given.transaction("scheduler", "12:00:05", facts)
    return told(closed.check(given.evidence()))


def adopted(kind: str, definition: Any, *, version: int = 1, name: str = "_", tenant: str = "acme") -> dict[str, Any]:
    entry = {"kind": kind, "tenant": tenant, "name": name, "version": version, "definition": definition}
    return event("catalog.adopted", subject="_/scheduler-0", entries=[entry])


def freezes(begins: str, ends: str, action: str, **other: Any) -> dict[str, Any]:
    return adopted("tenant", {"freezes": [{"from": z(begins), "to": z(ends), "action": action}]}, **other)


def accepted(*calendars: str) -> dict[str, Any]:
    trigger = {"cron": "* * * * *", "timezone": "UTC", "exclude": {"calendars": list(calendars)}}
    return of_schedule("schedule.accepted", version=1, definition={"trigger": trigger})


def held(since: str, **used: int) -> dict[str, Any]:
    return of_schedule(
        "occurrence.deferred",
        version=1,
        nominal_time=z("12:00:05"),
        reason="frozen",
        since=z(since),
        used=used or TENANT,
    )


def test_where_there_are_neither_calendars_nor_freezes_all_is_right():
    assert told(closed.check(calm().evidence())) == []


def test_a_run_on_a_day_that_a_calendar_takes_out_is_found():
    closing = adopted("calendar", {"dates": ["2026-03-01"]}, name="closed")
    assert found(accepted("closed"), closing, created(used=CLOSED)) == [
        f"{AT} has a run of 2026-03-01T12:00:05Z, which a calendar takes out"
    ]
    other_day = adopted("calendar", {"dates": ["2026-03-02"]}, name="closed")
    assert found(accepted("closed"), other_day, created(used=CLOSED)) == []


def test_a_run_that_goes_by_another_version_than_is_used_is_found():
    newer = adopted("calendar", {"dates": []}, name="closed", version=2)
    assert found(accepted("closed"), newer, created(used=CLOSED)) == [
        f"{AT}: the run of 2026-03-01T12:00:05Z goes by {CLOSED}, where {{'calendar/acme/closed': 2}} is used"
    ]
    assert found(accepted("closed"), created(used={"calendar/acme/closed": 0})) == []
    gone = adopted("calendar", None, name="closed", version=2)
    assert found(accepted("closed"), newer, gone, created(used={"calendar/acme/closed": 0})) == []


def test_a_run_of_an_occurrence_that_a_freeze_takes_out_is_found_unless_it_waited_before():
    skips = freezes("12:00:00", "12:01:00", "skip")
    assert found(skips, created(used=TENANT)) == [f"{AT} has a run of 2026-03-01T12:00:05Z, which a freeze takes out"]
    waits = of_schedule("occurrence.deferred", version=1, nominal_time=z("12:00:05"), reason="buffered")
    assert found(waits, skips, created(used=TENANT)) == []


def test_a_run_that_is_made_while_a_freeze_defers_it_is_found():
    defers = freezes("12:00:00", "12:05:00", "defer")
    said = f"{AT} has a run of 2026-03-01T12:00:05Z, made at {{}}, while a freeze defers it"
    assert found(defers, created(used=TENANT)) == [said.format(z("12:00:05"))]
    assert found(defers, held("12:00:05"), created(used=TENANT, created_at=z("12:04:59"))) == [
        said.format(z("12:04:59"))
    ]
    assert found(defers, held("12:00:05"), created(used=TENANT, created_at=z("12:05:00"))) == []


def test_a_run_that_was_due_before_counts_where_the_window_has_lasted_for_a_minute():
    defers = freezes("12:01:00", "12:05:00", "defer")
    assert found(defers, created(used=TENANT, created_at=z("12:01:30"))) == []
    assert len(found(defers, created(used=TENANT, created_at=z("12:02:00")))) == 1


def test_what_is_held_by_nothing_or_by_what_is_not_used_any_more_is_found():
    defers = freezes("12:00:00", "12:05:00", "defer")
    assert found(defers, held("12:00:05")) == []
    said = f"{AT}: 2026-03-01T12:00:05Z is held at 2026-03-01T12:06:00Z, and no freeze defers it"
    assert found(defers, held("12:06:00")) == [said]
    stale = f"{AT}: 2026-03-01T12:00:05Z is held by {TENANT}, which is not used any more"
    assert found(defers, freezes("12:00:00", "12:05:00", "defer", version=2), held("12:00:05")) == [stale]
