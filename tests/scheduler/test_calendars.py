"""`exclude.calendars`: days by name. What a calendar says when an occurrence is due takes part in its decision."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.facts import OccurrenceSkipped, RunCreated, ScheduleAccepted
from tests.scheduler.harness import Shell, at, definition

UK = {"tenant": "acme", "name": "uk"}
KEY = "calendar/acme/uk"


def excluding(expression: str = "0 */6 * * *", *, zone: str = "UTC", **exclude: Any) -> dict[str, Any]:
    given = {"calendars": ["uk"], **exclude}
    return definition(
        expression, trigger={"timezone": zone, "exclude": given}, overlap={"policy": "allow_all"}
    )  # fmt: skip


def calendar(shell: Shell, *dates: str, **thing: Any) -> None:
    """Put a calendar, and let the partition adopt it."""
    shell.send("CalendarPut", definition={"dates": list(dates)}, **{**UK, **thing})
    shell.catalog(f"scheduler-0-{shell.commands}")


def versions(shell: Shell) -> list[int]:
    """Of the calendar, as the decisions name them, in their order."""
    decided = [fact for fact in shell.facts if isinstance(fact, RunCreated | OccurrenceSkipped)]
    return [fact.used[KEY] for fact in decided]


def test_the_days_of_a_calendar_are_local_days_and_decisions_name_its_version():
    shell = Shell("2026-12-24T00:00:00")
    calendar(shell, "2026-12-25")
    shell.put(body=excluding(zone="America/New_York"))
    shell.until("2026-12-26T06:00:00")
    # New York is five hours behind: its Christmas Day is from 05:00Z to 05:00Z.
    assert shell.created() == ["05:00", "11:00", "17:00", "23:00", "05:00"]
    assert shell.skipped() == [f"{hour}:00 excluded" for hour in ("05", "11", "17", "23")]
    assert {fact.detail for fact in shell.all(OccurrenceSkipped)} == {"by calendar uk (version 1)"}
    assert versions(shell) == [1] * 9


def test_a_calendar_that_is_not_there_excludes_nothing_and_warns():
    shell = Shell("2026-12-25T00:00:00")
    shell.put(body=excluding())
    warning = "/trigger/exclude/calendars: there is no calendar 'uk' yet; until there is, it excludes nothing"
    assert shell.answer().body["warnings"] == [warning]
    shell.until("2026-12-25T12:00:00")
    assert (shell.created(), versions(shell)) == (["06:00", "12:00"], [0, 0])


def test_a_changed_calendar_moves_only_what_is_not_decided():
    shell = Shell("2026-12-25T00:00:00")
    calendar(shell, "2026-12-25")
    shell.put(body=excluding())
    shell.until("2026-12-25T06:00:00")
    calendar(shell, "2026-12-26")
    shell.until("2026-12-26T06:00:00")
    shell.send("CalendarDelete", **UK)
    shell.catalog("scheduler-0-99")
    shell.until("2026-12-26T18:00:00")
    assert shell.skipped() == ["06:00 excluded", "00:00 excluded", "06:00 excluded"]
    assert shell.created() == ["12:00", "18:00", "12:00", "18:00"]
    assert versions(shell) == [1, 2, 2, 2, 2, 0, 0]


def test_a_calendar_of_another_tenant_is_another_one():
    shell = Shell("2026-12-25T00:00:00")
    calendar(shell, "2026-12-25", tenant="zoo")
    shell.put(body=excluding())
    shell.until("2026-12-25T06:00:00")
    assert shell.created() == ["06:00"]


def test_several_calendars_and_other_rules_take_out_together():
    shell = Shell("2026-12-24T00:00:00")
    calendar(shell, "2026-12-25")
    calendar(shell, "2026-12-26", name="us")
    shell.put(body=excluding("0 12 * * *", calendars=["uk", "us"], dates=["2026-12-27"]))
    shell.until("2026-12-28T12:00:00")
    assert shell.created() == ["12:00", "12:00"]
    assert [fact.detail for fact in shell.all(OccurrenceSkipped)] == [
        "by calendar uk (version 1)", "by calendar us (version 1)", "by dates"
    ]  # fmt: skip
    assert shell.all(RunCreated)[-1].used == {KEY: 1, "calendar/acme/us": 1}


def test_a_schedule_says_its_calendars_in_words_and_its_next_occurrences_without_their_days():
    shell = Shell("2026-12-24T12:00:00")
    calendar(shell, "2026-12-25", "2026-12-27")
    shell.put(body=excluding("0 12 * * *"))
    assert shell.all(ScheduleAccepted)[0].words.endswith(", except calendar uk")
    assert shell.answer().body["next"] == ["2026-12-26T12:00:00Z", "2026-12-28T12:00:00Z", "2026-12-29T12:00:00Z"]


def test_after_an_outage_the_latest_that_no_calendar_takes_out_is_caught_up():
    shell = Shell("2026-12-24T00:00:00")
    calendar(shell, "2026-12-25")
    shell.put(body=excluding())
    shell.until("2026-12-24T06:00:00")
    shell.sleep_until("2026-12-25T17:00:00")
    shell.settle()
    assert shell.created() == ["06:00", "18:00@17:00"]
    assert shell.skipped() == ["12:00 catch_up", "00:00..12:00 x3 excluded"]


def test_days_that_are_over_are_skipped_in_stretches_of_a_day_at_most():
    shell = Shell("2026-12-24T00:00:00")
    calendar(shell, "2026-12-24", "2026-12-25")
    shell.put(body=excluding("* * * * *"))
    shell.sleep_until("2026-12-26T00:00:00")
    shell.settle()
    assert shell.skipped() == ["00:01..00:00 x1440 excluded", "00:01..23:59 x1439 excluded"]
    assert shell.created() == ["00:00"]


def test_an_occurrence_that_a_calendar_takes_out_needs_no_skip():
    shell = Shell("2026-12-24T00:00:00")
    calendar(shell, "2026-12-25")
    shell.put(body=excluding("0 12 * * *"))
    shell.send("ScheduleSkipOccurrence", nominal_time="2026-12-25T12:00:00Z")
    assert (shell.answer().status, shell.answer().faults[0].code) == (422, "no_occurrence")


def test_a_paused_schedule_skips_what_its_calendar_takes_out_as_paused():
    shell = Shell("2026-12-25T00:00:00")
    calendar(shell, "2026-12-25")
    shell.put(body=excluding())
    shell.send("SchedulePause")
    shell.until("2026-12-25T06:00:00")
    assert shell.skipped() == ["06:00 paused"]


def test_runs_that_are_counted_are_those_that_a_calendar_leaves():
    shell = Shell("2026-12-24T00:00:00")
    calendar(shell, "2026-12-25")
    body = excluding("0 12 * * *")
    body["trigger"]["max_runs"] = 2
    shell.put(body=body)
    shell.until("2026-12-28T12:00:00")
    assert (shell.created(), shell.skipped()) == (["12:00", "12:00"], ["12:00 excluded"])


@settings(max_examples=25, deadline=None)
@given(
    days=st.sets(st.integers(24, 31), max_size=5),
    naps=st.lists(st.integers(1, 30), max_size=6),
    policy=st.sampled_from(["all", "latest", "skip"]),
)
def test_what_a_calendar_takes_out_does_not_depend_on_how_time_was_cut(days: set[int], naps: list[int], policy: str):
    """Of what is looked at in time and of what is looked at late, the same occurrences are excluded."""
    shell = Shell("2026-12-24T00:00:00")
    calendar(shell, *(f"2026-12-{day}" for day in days))
    body = excluding("0 */4 * * *") | {"catch_up": {"policy": policy, "window": "P30D", "limit": 1000}}
    shell.put(body=body)
    for hours in naps:
        shell.now = shell.now.replace(day=min(31, shell.now.day + hours // 24), hour=hours % 24)
        shell.settle()
    shell.now = shell.now.replace(day=31, hour=23)
    shell.settle()
    excluded = sum(1 if fact.range is None else fact.range.count for fact in _excluded(shell))
    assert all(run.nominal_time is not None and run.nominal_time.day not in days for run in shell.all(RunCreated))
    if policy == "all":
        assert excluded == sum(6 - (day == 24) for day in days)
    shell.reload()


def _excluded(shell: Shell) -> list[OccurrenceSkipped]:
    return [fact for fact in shell.all(OccurrenceSkipped) if fact.reason.value == "excluded"]


def test_a_backfill_leaves_out_what_the_calendar_takes_out_now():
    shell = Shell("2026-12-24T00:00:00")
    shell.put(body=excluding("0 12 * * *"))
    shell.send("SchedulePause")
    shell.until("2026-12-27T00:00:00")
    calendar(shell, "2026-12-25")
    span = {"from": "2026-12-24T00:00:00Z", "to": "2026-12-27T00:00:00Z"}
    shell.send("BackfillStart", max_active=2, **span)
    shell.until("2026-12-27T01:00:00")
    assert [(run.cause.value, run.nominal_time, run.used) for run in shell.all(RunCreated)] == [
        ("backfill", at("2026-12-24T12:00:00"), {KEY: 1}), ("backfill", at("2026-12-26T12:00:00"), {KEY: 1})
    ]  # fmt: skip
