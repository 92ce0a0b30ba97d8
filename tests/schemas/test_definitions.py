"""A definition is read with its defaults, or refused with every fault: which field, what is wrong, what to write."""

import contextlib
from datetime import date
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from schemas import definitions
from schemas.faults import Refused

JOB: dict[str, Any] = {"target": {"type": "task", "name": "reports.nightly"}}
TRIGGER: dict[str, Any] = {"cron": "0 2 * * *"}
MINIMAL: dict[str, Any] = {"trigger": TRIGGER, "job": JOB}


def faults(data: Any, *, strict: bool = True) -> dict[tuple[str, str], tuple[str, str]]:
    with pytest.raises(Refused) as refused:
        definitions.read_schedule(data, strict=strict)
    return {(fault.pointer, fault.code): (fault.message, fault.remedy) for fault in refused.value.faults}


def trigger(**fields: Any) -> dict[str, Any]:
    return {"trigger": fields, "job": JOB}


def job(**fields: Any) -> dict[str, Any]:
    return {"trigger": TRIGGER, "job": JOB | fields}


def test_the_normal_form_says_every_default():
    schedule, warnings = definitions.read_schedule(MINIMAL, strict=True)
    assert warnings == ()
    assert definitions.normal_form(schedule) == {
        "labels": {},
        "note": "",
        "trigger": {
            "cron": "0 2 * * *",
            "day_rule": "vixie",
            "timezone": "UTC",
            "gap_policy": "shift",
            "fold_policy": "first",
        },
        "grace": "PT1M",
        "catch_up": {"policy": "latest", "window": "P1D", "limit": 100},
        "overlap": {"policy": "skip", "limit": 1},
        "on_update": "keep",
        "job": {
            "queue": "default",
            "target": {"type": "task", "name": "reports.nightly"},
            "payload": {},
            "priority": "normal",
            "timeout": "PT1H",
            "deadline": "P7D",
            "lease": "PT30S",
            "retry": {
                "max_attempts": 3,
                "initial": "PT1S",
                "factor": 2.0,
                "max": "PT5M",
                "jitter": "full",
                "never_on": [],
            },
        },
    }


@pytest.mark.parametrize(
    "definition",
    [
        MINIMAL,
        {"trigger": TRIGGER, "job": "send-report", "labels": {"a": "b"}, "overlap": {"policy": "Allow"}},
        trigger(every="90s", anchor="2026-03-08T02:00:00-05:00"),
        trigger(at=["2026-03-08T07:00:00Z", "2027-01-01T00:00:00+14:00"]),
        job(payload={"nothing": None, "deep": [[[1.5]]]}, retry={"factor": 3, "max": "1d"}),
    ],
)
def test_the_normal_form_is_the_normal_form_of_itself(definition):
    schedule, _ = definitions.read_schedule(definition, strict=True)
    normal = definitions.normal_form(schedule)
    again, _ = definitions.read_schedule(normal, strict=True)
    assert again == schedule
    assert definitions.normal_form(again) == normal


def test_a_null_in_a_payload_is_kept():
    schedule, _ = definitions.read_schedule(job(payload={"nothing": None}), strict=True)
    assert definitions.normal_form(schedule)["job"]["payload"] == {"nothing": None}


def test_overlap_policies_go_by_their_kubernetes_names_too():
    schedule, _ = definitions.read_schedule(MINIMAL | {"overlap": {"policy": "Forbid"}}, strict=True)
    assert schedule.overlap.policy == "skip"


def test_the_door_refuses_an_unknown_field_with_the_nearest_known_one():
    assert faults(MINIMAL | {"catchup": {}}) == {
        ("/catchup", "unknown_field"): ("unknown field 'catchup'", "did you mean 'catch_up'?")
    }
    assert faults(trigger(cron="0 2 * * *", timezonee="UTC")) == {
        ("/trigger/timezonee", "unknown_field"): ("unknown field 'timezonee'", "did you mean 'timezone'?")
    }
    assert faults(job(retry={"zzz": 1}))["/job/retry/zzz", "unknown_field"] == (
        "unknown field 'zzz'",
        "known here: budget, factor, initial, jitter, max, max_attempts, never_on",
    )
    assert ("/a~1b", "unknown_field") in faults(MINIMAL | {"a/b": 1})


def test_a_typo_that_leaves_a_field_out_is_named_beside_what_is_missing():
    assert list(faults({"trigger": TRIGGER, "jbo": JOB})) == [("/jbo", "unknown_field"), ("/job", "missing")]


def test_the_topic_keeps_an_unknown_field_and_warns():
    schedule, warnings = definitions.read_schedule(MINIMAL | {"colour": "blue"}, strict=False)
    assert len(warnings) == 1
    assert warnings[0].startswith("/colour: unknown field 'colour'")
    assert definitions.normal_form(schedule)["colour"] == "blue"


def test_one_mistake_is_one_fault():
    assert list(faults({"trigger": TRIGGER, "job": 5})) == [("/job", "type")]
    assert list(faults({"trigger": TRIGGER, "job": "a b"})) == [("/job", "name")]
    assert list(faults(job(timeout="forever"))) == [("/job/timeout", "duration")]
    assert list(faults(trigger(cron=5))) == [("/trigger/cron", "type")]
    assert list(faults(trigger(at=["soon"]))) == [("/trigger/at/0", "instant")]


def test_all_mistakes_are_told_at_once():
    definition = {
        "trigger": {"cron": "* " * 200, "gap_policy": "jump"},
        "grace": 60,
        "catch_up": {"limit": 0},
        "labels": {"team": 5},
        "job": {"queue": "a b", "target": {"type": "task"}},
    }
    assert set(faults(definition)) == {
        ("/trigger/cron", "too_long"),
        ("/trigger/gap_policy", "unknown_value"),
        ("/grace", "duration"),
        ("/catch_up/limit", "range"),
        ("/labels/team", "type"),
        ("/job/queue", "name"),
        ("/job/target/name", "missing"),
    }


def test_an_unknown_word_is_refused_with_the_nearest_known_one():
    assert faults(MINIMAL | {"catch_up": {"policy": "Latest"}})["/catch_up/policy", "unknown_value"] == (
        "'Latest' is not one of all, latest, skip",
        "did you mean 'latest'?",
    )
    assert faults(job(target={"type": "tsak", "name": "x"}))["/job/target/type", "unknown_value"] == (
        "'tsak' is not one of command, http, task",
        "did you mean 'task'?",
    )


def test_a_target_says_what_it_is():
    assert faults(job(target={"name": "x"}))["/job/target/type", "missing"] == ("is required", "write type: task")
    assert list(faults(job(target="x"))) == [("/job/target", "type")]


def test_a_trigger_is_of_one_kind():
    assert faults(trigger())["/trigger", "one_kind"][0] == "give exactly one of cron, every, at, rrule (given: none)"
    assert "(given: cron, every)" in faults(trigger(cron="* * * * *", every="1h"))["/trigger", "one_kind"][0]
    assert (
        faults(trigger(cron="* * * * *", anchor="2026-03-08T07:00:00Z"))["/trigger", "one_kind"][0]
        == "anchor goes with every and rrule"
    )


def test_several_expressions_are_one_trigger_and_their_number_is_bounded():
    assert definitions.read_schedule(trigger(cron=["0 2 * * *", "0 3 * * *"]), strict=True)
    assert list(faults(trigger(cron=[]))) == [("/trigger/cron", "empty")]
    assert list(faults(trigger(cron=["* * * * *"] * 33))) == [("/trigger/cron", "too_long")]
    assert list(faults(trigger(cron=["* * * * *", ""]))) == [("/trigger/cron/1", "empty")]


def test_a_day_is_a_date_as_json_or_as_yaml_writes_it():
    read, _ = definitions.read_schedule(
        trigger(cron="* * * * *", exclude={"dates": ["2026-12-31", date(2027, 1, 1)], "cron": ["* 1 * * *"]}),
        strict=True,
    )
    assert definitions.normal_form(read)["trigger"]["exclude"] == {
        "dates": ["2026-12-31", "2027-01-01"],
        "cron": ["* 1 * * *"],
    }
    assert faults(trigger(cron="* * * * *", exclude={"date": ["2026-12-31"]}))["/trigger/exclude/date", "unknown_field"]


def test_a_duration_has_a_unit_and_is_neither_zero_nor_beyond_the_calendar():
    assert faults(job(timeout=30))["/job/timeout", "duration"] == (
        "30 has no unit",
        "write 30s for seconds, 30m for minutes",
    )
    assert ("/job/timeout", "range") in faults(job(timeout="PT0S"))
    assert ("/job/deadline", "duration") in faults(job(deadline="P4000D"))
    assert faults(trigger(every="PT0.5S"))["/trigger/every", "range"][0] == "must be at least one second"
    assert faults(trigger(every="PT1.5S"))["/trigger/every", "range"][0] == "must be whole seconds: occurrences are"


@pytest.mark.parametrize(
    "instant", ["2026-03-08T07:00:00", "2026-03-08", "8 March", "9999-12-31T23:59:59-01:00", 5, None]
)
def test_an_instant_has_an_offset_and_is_on_the_calendar(instant):
    assert list(faults(trigger(at=[instant]))) == [("/trigger/at/0", "instant")]


def test_an_occurrence_is_a_whole_second():
    assert faults(trigger(at=["2026-03-08T07:00:00.5Z"]))["/trigger/at/0", "instant"][0] == "must be a whole second"


def test_numbers_and_truths_are_not_guessed_from_other_things():
    assert set(faults(job(retry={"max_attempts": "3", "factor": True}))) == {
        ("/job/retry/max_attempts", "type"),
        ("/job/retry/factor", "type"),
    }


def test_a_buffer_has_a_default_where_it_means_something_and_other_definitions_stay_as_they_were():
    def overlap(**given: Any) -> Any:
        body = {"trigger": {"cron": "0 2 * * *"}, "overlap": given, "job": JOB}
        return definitions.normal_form(definitions.read_schedule(body, strict=True)[0])["overlap"]

    assert overlap(policy="buffer_all") == {"policy": "buffer_all", "limit": 1, "buffer": 10}
    assert overlap(policy="buffer_all", buffer=1000) == {"policy": "buffer_all", "limit": 1, "buffer": 1000}
    assert overlap(policy="Replace") == {"policy": "terminate_other", "limit": 1}
    assert overlap(policy="skip", buffer=10) == {"policy": "skip", "limit": 1, "buffer": 10}


def test_a_log_is_kept_for_up_to_thirty_days_and_as_long_as_the_server_does_where_nothing_is_said():
    def job(**given: Any) -> Any:
        body = {"trigger": {"every": "PT15M"}, "job": JOB | given}
        return definitions.normal_form(definitions.read_schedule(body, strict=True)[0])

    assert job(log_retention="7d")["job"]["log_retention"] == "P7D"
    assert "log_retention" not in job()["job"]
    definition = {"trigger": {"every": "PT15M"}, "job": JOB | {"log_retention": "P31D"}}
    assert faults(definition)["/job/log_retention", "range"][1] == "write P30D or less"


def test_calendars_are_named_and_a_definition_without_them_stays_as_it_was_accepted():
    def exclude(**given: Any) -> Any:
        return definitions.normal_form(definitions.read_schedule(trigger(cron="@daily", exclude=given), strict=True)[0])

    assert exclude(calendars=["uk", "us"])["trigger"]["exclude"] == {"calendars": ["uk", "us"], "cron": [], "dates": []}
    assert exclude(dates=["2026-12-25"])["trigger"]["exclude"] == {"cron": [], "dates": ["2026-12-25"]}
    many = {"calendars": [f"c{number}" for number in range(33)]}
    assert list(faults(trigger(cron="@daily", exclude=many))) == [("/trigger/exclude/calendars", "too_long")]


def test_every_lane_is_a_priority():
    for priority in ("critical", "normal", "bulk"):
        assert definitions.read_job(JOB | {"priority": priority}, strict=True)[0].priority == priority
    assert list(faults(job(priority="urgent"))) == [("/job/priority", "unknown_value")]


def test_limits_and_budgets_say_what_they_want():
    assert list(faults(job(concurrency={"key": "", "limit": 0}))) == [
        ("/job/concurrency/key", "empty"),
        ("/job/concurrency/limit", "range"),
    ]
    assert list(faults(job(concurrency={"key": "db", "limit": 1, "wait": 1}))) == [
        ("/job/concurrency/wait", "unknown_field")
    ]
    assert list(faults(job(retry={"budget": "20"}))) == [("/job/retry/budget", "percent")]


def test_a_target_may_be_a_command_of_the_workers_list():
    body = {"target": {"type": "command", "name": "nightly-dump"}}
    assert definitions.normal_form(definitions.read_job(body, strict=True)[0])["target"] == {
        "type": "command",
        "name": "nightly-dump",
    }
    refused = faults(job(target={"type": "command", "name": "rm -rf /"}))
    assert list(refused) == [("/job/target/name", "name")]
    assert list(faults(job(target={"type": "command"}))) == [("/job/target/name", "missing")]
    assert list(faults(job(target={"type": "command", "name": "x", "argv": ["/bin/sh"]}))) == [
        ("/job/target/argv", "unknown_field")
    ]


def test_a_target_may_be_an_http_endpoint():
    body = {"target": {"type": "http", "url": "https://hooks.example.org/x?y=1", "secret": "billing"}}
    assert definitions.normal_form(definitions.read_job(body, strict=True)[0])["target"] == {
        "type": "http",
        "url": "https://hooks.example.org/x?y=1",
        "method": "POST",
        "headers": {},
        "secret": "billing",
    }


@pytest.mark.parametrize(
    ("target", "fault"),
    [
        ({"url": "hooks.example.org"}, ("/job/target/url", "url")),
        ({"url": "ftp://x/"}, ("/job/target/url", "url")),
        ({"url": "https://user:word@x/"}, ("/job/target/url", "url")),
        ({"url": "https://x/ y"}, ("/job/target/url", "url")),
        ({"url": "https://x\\@y/"}, ("/job/target/url", "url")),
        ({"url": "https://x/#y"}, ("/job/target/url", "url")),
        ({"url": "https://x:0/"}, ("/job/target/url", "url")),
        ({"url": "https://x:99999/"}, ("/job/target/url", "url")),
        ({"url": "https://[::1/"}, ("/job/target/url", "url")),
        ({"url": "https://x/" + "y" * 2048}, ("/job/target/url", "too_long")),
        ({}, ("/job/target/url", "missing")),
        ({"url": "https://x/", "method": "TRACE"}, ("/job/target/method", "unknown_value")),
        ({"url": "https://x/", "secret": "whsec_/+x"}, ("/job/target/secret", "name")),
        ({"url": "https://x/", "headers": {"a b": "c"}}, ("/job/target/headers", "header")),
        ({"url": "https://x/", "headers": {"a": "b\r\nc: d"}}, ("/job/target/headers", "header")),
        ({"url": "https://x/", "headers": {"A": "b", "a": "c"}}, ("/job/target/headers", "header")),
        ({"url": "https://x/", "headers": {"Host": "y"}}, ("/job/target/headers", "header")),
        ({"url": "https://x/", "headers": {"webhook-id": "y"}}, ("/job/target/headers", "header")),
        ({"url": "https://x/", "headers": {"Authorization": "Bearer y"}}, ("/job/target/headers", "header")),
        ({"url": "https://x/", "headers": {f"x-{n}": "" for n in range(33)}}, ("/job/target/headers", "too_long")),
    ],
)
def test_what_no_http_endpoint_can_be_is_refused_with_its_field(target, fault):
    assert list(faults(job(target={"type": "http", **target}))) == [fault]


def test_a_method_without_a_body_takes_no_payload():
    get = job(target={"type": "http", "url": "https://x/", "method": "GET"}, payload={"a": 1})
    assert faults(get)["/job/payload", "payload"] == (
        "GET has no body that would carry it",
        "use POST, or leave it out",
    )


def nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth - 1):
        value = {"a": value}
    return value


def test_a_payload_is_nested_sixteen_deep_at_most():
    assert definitions.read_schedule(job(payload=nested(16)), strict=True)
    assert list(faults(job(payload=nested(17)))) == [("/job/payload", "too_deep")]
    assert list(faults(job(payload=nested(500)))) == [("", "too_deep")]


def test_a_payload_has_at_most_64_kibibytes():
    assert definitions.read_schedule(job(payload={"x": "y" * (65_536 - 8)}), strict=True)
    assert list(faults(job(payload={"x": "y" * (65_536 - 7)}))) == [("/job/payload", "too_large")]


def test_a_definition_as_a_whole_is_bounded_even_in_fields_nobody_reads():
    assert list(faults(MINIMAL | {"extra": "x" * 300_000}, strict=False)) == [("", "too_large")]


def test_labels_are_few():
    assert definitions.read_schedule(MINIMAL | {"labels": {str(n): "x" for n in range(32)}}, strict=True)
    assert list(faults(MINIMAL | {"labels": {str(n): "x" for n in range(33)}})) == [("/labels", "too_long")]


def test_what_json_cannot_hold_is_named():
    payload = {
        "n": float("nan"),
        "i": [float("inf")],
        "big": 2**64,
        "when": date(2026, 3, 8),
        "half": "\ud800",
    }
    assert set(faults(job(payload=payload))) >= {
        ("/job/payload/n", "not_json"),
        ("/job/payload/i/0", "not_json"),
        ("/job/payload/big", "not_json"),
        ("/job/payload/half", "not_json"),
    }
    assert list(faults(job(payload={"when": date(2026, 3, 8)}))) == [("/job/payload/when", "not_json")]
    assert list(faults(job(payload={"a": {5: "five"}}))) == [("/job/payload/a", "not_json")]


@pytest.mark.parametrize("data", [None, [], "x", 5, True])
def test_a_definition_is_an_object(data):
    assert list(faults(data)) == [("", "type")]


def test_a_job_is_read_by_itself_too():
    read, _ = definitions.read_job(JOB | {"timeout": "30m"}, strict=True)
    assert definitions.normal_form(read)["timeout"] == "PT30M"
    with pytest.raises(Refused):
        definitions.read_job({"queue": "default"}, strict=True)


KEYS = ["trigger", "job", "labels", "note", "after", "grace", "catch_up", "overlap", "cron", "every", "at", "target"]
KEYS += ["type", "name", "payload", "timeout", "retry", "policy", "limit", "window", "from", "anchor", "timezone"]
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=10)
    | st.sampled_from(["PT30S", "0 2 * * *", "2026-03-08T07:00:00Z", "task", "http", "latest", "skip"])
)
ANYTHING = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6),
    max_leaves=15,
)


@settings(max_examples=80)
@given(st.dictionaries(st.sampled_from(KEYS[:8]), ANYTHING), st.booleans())
def test_whatever_is_sent_is_read_or_refused(data, strict):
    with contextlib.suppress(Refused):
        schedule, _ = definitions.read_schedule(data, strict=strict)
        definitions.normal_form(schedule)
    with contextlib.suppress(Refused):
        definitions.read_schedule(MINIMAL | data, strict=strict)
