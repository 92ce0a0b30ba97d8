"""When a definition would be due, and what a clock change does to it, before anyone accepts it."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler.occurrences import tz_version
from scheduler.preview import check, preview
from schemas.facts import OccurrenceSkipped, RunCreated
from schemas.faults import Refused
from tests.scheduler.harness import Shell, at, definition, text_of

NOW = at("2024-01-01T00:00:00")


def asked(body: dict[str, Any], from_: str, to: str, limit: int = 100, **more: Any) -> dict[str, Any]:
    return preview(body, from_=at(from_), to=at(to), limit=limit, now=NOW, **more)


def nominals(answer: dict[str, Any]) -> list[str]:
    return [occurrence["nominal_time"] for occurrence in answer["occurrences"]]


def test_a_preview_names_the_occurrences_of_a_half_open_range():
    answer = asked(definition("0 * * * *"), "2024-01-01T01:00:00", "2024-01-01T04:00:00")
    assert answer.pop("definition")["trigger"]["cron"] == "0 * * * *"
    assert answer == {
        "rule": "cron 0 * * * * UTC",
        "tz_version": tz_version(),
        "skipped": [],
        "words": "Every hour, UTC",
        "warnings": [],
        "occurrences": [
            {"nominal_time": f"2024-01-01T0{hour}:00:00Z", "local_time": f"2024-01-01T0{hour}:00:00+00:00"}
            for hour in (1, 2, 3)
        ],
        "dst": [],
    }


def test_a_preview_is_what_the_schedule_then_does():
    body = definition("*/20 */2 * * *", trigger={"timezone": "Asia/Kathmandu"}, overlap={"policy": "allow_all"})
    shell = Shell("2024-01-01T00:00:00")
    shell.put(body=body)
    shell.until("2024-01-02T00:00:00")
    runs = [text_of(run.nominal_time) for run in shell.all(RunCreated)]
    assert nominals(asked(body, "2024-01-01T00:00:01", "2024-01-02T00:00:01")) == runs


def test_a_preview_has_a_limit():
    answer = asked(definition("* * * * * *"), "2024-01-01T00:00:00", "2034-01-01T00:00:00", limit=2)
    assert nominals(answer) == ["2024-01-01T00:00:00Z", "2024-01-01T00:00:01Z"]


def test_a_gap_is_told_with_what_becomes_of_the_missing_time():
    body = definition("30 2 * * *", trigger={"timezone": "America/New_York"})
    answer = asked(body, "2024-03-10T06:00:00", "2024-03-11T12:00:00")
    assert answer["occurrences"] == [
        {
            "nominal_time": "2024-03-10T07:00:00Z",
            "local_time": "2024-03-10T03:00:00-04:00",
            "note": "moved here from 02:30, which the clock skips that day",
        },
        {"nominal_time": "2024-03-11T06:30:00Z", "local_time": "2024-03-11T02:30:00-04:00"},
    ]
    assert answer["dst"] == [
        {
            "at": "2024-03-10T07:00:00Z",
            "kind": "gap",
            "from_local": "2024-03-10T02:00:00",
            "to_local": "2024-03-10T03:00:00",
            "effect": "02:30 moved to 2024-03-10T07:00:00Z",
            "touches": True,
        }
    ]


@pytest.mark.parametrize(
    ("policy", "notes", "effect"),
    [
        ("first", ["the clock shows 01:30 twice; this is the first"], "01:30 once, the first time"),
        ("second", ["the clock shows 01:30 twice; this is the second"], "01:30 once, the second time"),
        (
            "both",
            ["the clock shows 01:30 twice; this is the first", "the clock shows 01:30 twice; this is the second"],
            "01:30 twice",
        ),
    ],
)
def test_a_fold_is_told_with_which_pass_counts(policy, notes, effect):
    body = definition("30 1 * * *", trigger={"timezone": "Europe/London", "fold_policy": policy})
    answer = asked(body, "2024-10-27T00:00:00", "2024-10-27T12:00:00")
    assert [occurrence["note"] for occurrence in answer["occurrences"]] == notes
    assert [(change["kind"], change["effect"]) for change in answer["dst"]] == [("fold", effect)]


@pytest.mark.parametrize(
    ("cron", "trigger", "day", "effect"),
    [
        ("30 2 * * *", {"gap_policy": "skip"}, "2024-03-31", "nothing is due in the gap"),
        ("30 1 * * *", {"gap_policy": "skip"}, "2024-03-31", "01:30 left out"),
        ("30 * * * *", {}, "2024-03-31", "follows the real clock: nothing is made up"),
        ("30 * * * *", {}, "2024-10-27", "follows the real clock: both passes count"),
        ("30 5 * * *", {}, "2024-10-27", "nothing is due in the fold"),
    ],
)
def test_a_clock_change_that_does_nothing_says_so(cron, trigger, day, effect):
    body = definition(cron, trigger=trigger | {"timezone": "Europe/London"})
    answer = asked(body, f"{day}T00:00:00", f"{day}T12:00:00")
    assert [change["effect"] for change in answer["dst"]] == [effect]


def test_a_preview_refuses_what_an_apply_would_refuse_and_an_unknown_field_too():
    with pytest.raises(Refused) as refusal:
        asked(definition("61 * * * *", colour="blue"), "2024-01-01T00:00:00", "2024-01-02T00:00:00")
    assert {fault.pointer for fault in refusal.value.faults} == {"/colour", "/trigger/cron"}


@pytest.mark.parametrize(("from_", "to", "limit"), [("2024-01-02", "2024-01-01", 5), ("2024-01-01", "2024-01-02", 0)])
def test_a_question_without_an_answer_is_refused(from_, to, limit):
    with pytest.raises(Refused):
        asked(definition(), f"{from_}T00:00:00", f"{to}T00:00:00", limit=limit)


def test_a_hashed_field_falls_where_it_will_for_that_schedule():
    body = definition("H H * * *", overlap={"policy": "allow_all"})
    shell = Shell("2024-01-01T00:00:00")
    shell.put("report", body=body)
    shell.until("2024-01-02T00:00:00")
    answer = asked(body, "2024-01-01T00:00:01", "2024-01-02T00:00:01", tenant="acme", name="report")
    assert nominals(answer) == [text_of(run.nominal_time) for run in shell.all(RunCreated, "report")]


def test_instants_in_the_past_are_a_fault_unless_they_were_accepted_before():
    body = {"trigger": {"at": ["2023-06-01T00:00:00Z"]}, "job": {"target": {"type": "task", "name": "t"}}}
    with pytest.raises(Refused, match="is past and older than the grace"):
        asked(body, "2023-05-01T00:00:00", "2023-07-01T00:00:00")
    assert nominals(asked(body, "2023-05-01T00:00:00", "2023-07-01T00:00:00", accepted=True)) == [
        "2023-06-01T00:00:00Z"
    ]


def test_a_check_answers_the_warnings_of_an_apply():
    assert check(definition(), now=NOW) == ()
    (warning,) = check(definition(grace="PT0S"), now=NOW)
    assert warning.startswith("/grace: ")
    with pytest.raises(Refused):
        check(definition(colour="blue"), now=NOW)
    assert len(check(definition(colour="blue"), now=NOW, strict=False)) == 1


# --- what has no run ------------------------------------------------------------------------------------------------


def test_a_preview_lists_what_rules_take_out_with_the_rule():
    body = definition("0 * * * *", trigger={"exclude": {"cron": ["* 1-2 * * *"], "dates": ["2024-01-02"]}})
    assert asked(body, "2024-01-01T00:00:00", "2024-01-02T12:00:00")["skipped"] == [
        {
            "at": "2024-01-01T01:00:00Z",
            "range": {"from": "2024-01-01T01:00:00Z", "to": "2024-01-01T02:00:01Z", "count": 2},
            "reason": "excluded",
            "detail": "by cron * 1-2 * * *",
        },
        {
            "at": "2024-01-02T00:00:00Z",
            "range": {"from": "2024-01-02T00:00:00Z", "to": "2024-01-02T11:00:01Z", "count": 12},
            "reason": "excluded",
            "detail": "by dates, cron * 1-2 * * *",
        },
    ]


def test_one_that_is_taken_out_alone_is_named():
    body = definition("0 3 * * *", trigger={"timezone": "Asia/Tokyo", "exclude": {"dates": ["2024-01-02"]}})
    answer = asked(body, "2024-01-01T00:00:00", "2024-01-04T00:00:00")
    assert nominals(answer) == ["2024-01-02T18:00:00Z", "2024-01-03T18:00:00Z"]
    assert answer["skipped"] == [
        {
            "at": "2024-01-01T18:00:00Z",
            "nominal_time": "2024-01-01T18:00:00Z",
            "local_time": "2024-01-02T03:00:00+09:00",
            "reason": "excluded",
            "detail": "by dates",
        }
    ]


def test_readings_that_policies_drop_are_listed():
    body = definition("30 2 * * *", trigger={"timezone": "America/New_York", "gap_policy": "skip"})
    answer = asked(body, "2024-03-10T00:00:00", "2024-03-11T00:00:00")
    assert answer["skipped"] == [{"at": "2024-03-10T07:00:00Z", "reason": "gap", "local_time": "2024-03-10T02:30:00"}]


def test_what_a_preview_leaves_out_is_what_the_schedule_then_skips():
    exclude = {"cron": ["15-40 * * * *"], "dates": ["2024-01-02"]}
    body = definition("*/10 * * * *", trigger={"exclude": exclude}, overlap={"policy": "allow_all"})
    shell = Shell("2024-01-01T00:00:00")
    shell.put(body=body)
    shell.until("2024-01-03T00:00:00")
    told = asked(body, "2024-01-01T00:00:01", "2024-01-03T00:00:00")["skipped"]
    done = [skip.range for skip in shell.all(OccurrenceSkipped) if skip.range is not None]
    assert [each["range"] for each in told] == [
        {"from": text_of(span.from_), "to": text_of(span.to), "count": span.count} for span in done
    ]
    assert sum(each["range"]["count"] for each in told) == 24 * 3 + 144


def test_a_preview_names_no_more_than_the_schedule_may_have():
    body = definition("0 * * * *", trigger={"max_runs": 3})
    assert len(asked(body, "2024-01-01T00:00:00", "2024-01-02T00:00:00")["occurrences"]) == 3
    assert nominals(asked(body, "2024-01-01T02:30:00", "2024-01-02T00:00:00")) == ["2024-01-01T03:00:00Z"]
    assert nominals(asked(body, "2024-01-01T05:00:00", "2024-01-02T00:00:00")) == []


def test_a_clock_change_touches_only_what_is_named_in_it():
    hit, missed = (definition(cron, trigger={"timezone": "Europe/London"}) for cron in ("30 1 * * *", "0 6 * * *"))
    for body, touches in ((hit, [True, True]), (missed, [False, False])):
        answer = asked(body, "2024-01-01T00:00:00", "2025-01-01T00:00:00", limit=1)
        assert [change["touches"] for change in answer["dst"]] == touches
