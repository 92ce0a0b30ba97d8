"""EventBridge: schedules, rules and templates, and what becomes of them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.sdk import importing
from tidewheel.importers import eventbridge
from tidewheel.importers.eventbridge import task_of
from tidewheel.importers.report import Imported
from tidewheel.importers.writing import File

LAMBDA = "arn:aws:lambda:eu-west-1:111122223333:function:work"


def convert(text: str, **said: Any) -> Imported:
    return eventbridge.convert([File(path="f", data=text.encode())], importing.settings(**said))


def printed(expression: str, **fields: Any) -> Imported:
    """What becomes of a schedule as `aws scheduler get-schedule` prints it."""
    schedule = {
        "Name": "x", "ScheduleExpression": expression, "FlexibleTimeWindow": {"Mode": "OFF"}, "Target": {"Arn": LAMBDA},
    }  # fmt: skip
    return convert(json.dumps(schedule | fields), task="t")


def of(expression: str, **fields: Any) -> dict[str, Any]:
    [document] = printed(expression, **fields).documents
    importing.accepted(document)
    return document


@pytest.mark.parametrize("stem", ["stack.yaml", "get-schedule.json"])
def test_a_whole_file_becomes_definitions_and_remarks(stem):
    imported = eventbridge.convert([importing.fixture(stem)], importing.settings())
    name = stem.rpartition(".")[0]
    assert list(imported.documents) == importing.expected(f"{name}.expected.yaml")
    assert importing.remarks(imported) == importing.said(f"{name}.remarks.txt")
    for document in imported.documents:
        importing.accepted(document)


# --- when ---


@pytest.mark.parametrize(
    ("expression", "trigger"),
    [
        ("cron(0 10 * * ? *)", {"cron": "0 10 * * *", "timezone": "UTC", "gap_policy": "skip"}),
        ("cron(15 12 ? * 2-6 *)", {"cron": "15 12 * * 1-5", "timezone": "UTC", "gap_policy": "skip"}),
        ("cron(0 18 ? * 6L *)", {"cron": "0 18 * * 5L", "timezone": "UTC", "gap_policy": "skip"}),
        ("rate(1 hour)", {"every": "PT1H"}),
        ("rate(7 days)", {"every": "P7D"}),
        ("at(2026-11-20T13:00:00)", {"at": ["2026-11-20T13:00:00Z"]}),
    ],
)
def test_the_three_kinds_of_expression(expression, trigger):
    assert of(expression)["trigger"] == trigger


def test_a_zone_is_that_of_a_cron_expression_and_of_an_instant():
    assert of("cron(0 2 * * ? *)", ScheduleExpressionTimezone="Europe/Paris")["trigger"]["timezone"] == "Europe/Paris"
    assert of("at(2026-11-20T13:00:00)", ScheduleExpressionTimezone="America/New_York")["trigger"] == {
        "at": ["2026-11-20T18:00:00Z"]
    }


def test_a_flexible_window_is_a_jitter_of_any_kind():
    window = {"Mode": "FLEXIBLE", "MaximumWindowInMinutes": 90}
    for expression in ("cron(0 2 * * ? *)", "rate(1 day)", "at(2026-11-20T13:00:00)"):
        assert of(expression, FlexibleTimeWindow=window)["trigger"]["jitter"] == "PT1H30M"


def test_a_rate_counts_from_its_start_also_when_that_is_past():
    assert of("rate(90 minutes)", StartDate="2026-01-01T00:30:00+01:00")["trigger"] == {
        "every": "PT1H30M",
        "anchor": "2025-12-31T23:30:00Z",
    }
    assert of("rate(1 day)", StartDate=1_893_456_000)["trigger"] == {"every": "P1D", "anchor": "2030-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("fields", "remark"),
    [
        (
            {"ScheduleExpression": "at(2026-05-31T23:59:59)"},
            "f: x: ScheduleExpression: left out: 'at(2026-05-31T23:59:59)' is past",
        ),
        ({"EndDate": "2026-01-01T00:00:00Z"}, "f: x: EndDate: left out: ended at 2026-01-01T00:00:00Z"),
        (
            {"ScheduleExpression": "cron(0 0 1 1 ? 2020-2025)"},
            "f: x: ScheduleExpression: left out: runs until the year 2025 only, which is past",
        ),
        (
            {"ScheduleExpressionTimezone": "Mars/Olympus"},
            "f: x: ScheduleExpressionTimezone: left out: 'Mars/Olympus' is no zone of IANA's database",
        ),
    ],
)
def test_what_does_not_run_any_more_or_has_no_words_here_is_left_out(fields, remark):
    imported = printed("cron(0 10 * * ? *)", **fields)
    assert (imported.documents, importing.remarks(imported)) == ((), [remark])
    assert not imported.remarks[0].broken


@pytest.mark.parametrize(
    "expression", ["cron(0 10 * * *)", "cron(0 10 * * * *)", "rate(0 minutes)", "rate(5 weeks)", "every day", ""]
)
def test_what_is_no_expression_is_broken(expression):
    imported = printed(expression)
    assert imported.documents == ()
    assert imported.remarks[0].broken


def test_a_beginning_and_an_end_stay_and_years_are_ones():
    dates = {"StartDate": "2026-07-01T00:00:00Z", "EndDate": "2029-07-01T00:00:00Z"}
    trigger = of("cron(0 0 1 1 ? 2027-2030)", ScheduleExpressionTimezone="Europe/Paris", **dates)["trigger"]
    assert (trigger["start_at"], trigger["end_at"]) == ("2026-12-31T23:00:00Z", "2029-07-01T00:00:00Z")
    trigger = of("cron(0 0 1 * ? 2026)", **dates)["trigger"]
    assert (trigger["start_at"], trigger["end_at"]) == ("2026-07-01T00:00:00Z", "2027-01-01T00:00:00Z")


# --- what ---


def test_input_is_what_json_it_holds_or_its_text():
    target = {"Arn": LAMBDA, "Input": '{"a": [1, null]}'}
    assert of("rate(1 hour)", Target=target)["job"]["payload"] == {"arn": LAMBDA, "input": {"a": [1, None]}}
    target = {"Arn": LAMBDA, "Input": "NaN"}
    assert of("rate(1 hour)", Target=target)["job"]["payload"] == {"arn": LAMBDA, "input": "NaN"}


def test_what_both_know_of_a_run_is_filled_in_here_too():
    target = {"Arn": LAMBDA, "Input": '"<aws.scheduler.scheduled-time> <aws.scheduler.execution-id>"'}
    payload = of("rate(1 hour)", Target=target)["job"]["payload"]
    assert payload["input"] == "{{ nominal_time }} {{ run_id }}"


def test_what_would_be_filled_in_and_was_not_meant_so_is_left_out():
    imported = printed("rate(1 hour)", Target={"Arn": LAMBDA, "Input": '"{{ tenant }}"'})
    assert imported.documents == ()
    assert "'{{ tenant }}', which would be filled in here" in imported.remarks[-1].text


def test_retries_and_age_are_attempts_and_a_deadline():
    policy = {"MaximumRetryAttempts": 185, "MaximumEventAgeInSeconds": 86_400}
    job = of("rate(1 hour)", Target={"Arn": LAMBDA, "RetryPolicy": policy})["job"]
    assert (job["deadline"], job["retry"]) == ("P1D", {"max_attempts": 186})


@pytest.mark.parametrize(
    ("target", "task"),
    [
        ({"Arn": "arn:aws:lambda:eu-west-1:111122223333:function:work:live"}, "work"),
        ({"Arn": "arn:aws:states:eu-west-1:111122223333:stateMachine:order"}, "order"),
        ({"Arn": "arn:aws:sqs:eu-west-1:111122223333:queue.fifo"}, "queue.fifo"),
        ({"Arn": "arn:aws:events:eu-west-1:111122223333:event-bus/main"}, "main"),
        ({"Arn": "arn:aws:scheduler:::aws-sdk:sqs:sendMessage"}, "sqs.sendMessage"),
        (
            {"Arn": "arn:aws:ecs:eu-west-1:111122223333:cluster/c", "EcsParameters": {"TaskDefinitionArn": "a/poll:7"}},
            "poll",
        ),
        ({"Arn": "${Report.Arn}"}, "Report"),
        ({"Arn": "?"}, "?"),
        ({}, ""),
    ],
)
def test_a_task_is_named_after_what_is_called(target, task):
    assert task_of(target) == task


# --- files ---


def test_several_printed_one_behind_the_other_are_several():
    one = json.dumps({"Name": "x", "ScheduleExpression": "rate(1 hour)", "FlexibleTimeWindow": {"Mode": "OFF"}})
    assert [each["name"] for each in convert(f"{one}\n{one}{one}\n").documents] == ["x", "default-x", "default-x-2"]


def test_rules_are_printed_without_their_targets():
    rules = {
        "Rules": [
            {"Name": "r", "Arn": "arn:aws:events:e:1:rule/r", "ScheduleExpression": "rate(1 day)", "State": "DISABLED"}
        ]
    }
    imported = convert(json.dumps(rules))
    assert [each["name"] for each in imported.documents] == ["r"]
    assert any("aws events list-targets-by-rule --rule r" in remark for remark in importing.remarks(imported))


def test_a_rule_has_its_own_name_and_its_targets_have_theirs_behind_it():
    rule = "{{Type: AWS::Events::Rule, Properties: {{Name: r, ScheduleExpression: rate(1 day), Targets: [{}]}}}}"
    two = rule.format("{Id: a, Arn: x}, {Arn: y}")
    imported = convert(f"Resources:\n  One: {rule.format('{Id: a, Arn: x}')}\n  Two: {two}\n", task="t")
    assert [each["name"] for each in imported.documents] == ["r", "r-a", "r-2"]


def test_what_is_made_when_it_is_deployed_is_left_out():
    text = """
Resources:
  Fn::ForEach::Each: [Name, [a, b], {}]
  S:
    Type: AWS::Scheduler::Schedule
    Properties: {ScheduleExpression: rate(1 day), StartDate: !Ref Begin, FlexibleTimeWindow: {Mode: "OFF"}}
"""
    imported = convert(text, task="t")
    assert imported.documents == ()
    assert [str(remark) for remark in imported.remarks if remark.left_out] == [
        f"f: Fn::ForEach::Each: left out: is no resource yet: {eventbridge.PROCESSED}",
        "f: S: StartDate: left out: is not known before it is deployed: ${Begin}",
    ]


def test_terraform_is_not_read():
    [remark] = convert('resource "aws_scheduler_schedule" "x" {\n  name = "x"\n}\n').remarks
    assert (remark.broken, remark.text) == (
        True,
        "is Terraform, which is not read: import what `aws scheduler get-schedule` prints",
    )


def test_functions_of_templates_are_worked_out_as_far_as_the_file_knows():
    text = """
Parameters: {Rate: {Type: String, Default: rate(5 minutes)}, Stage: {Type: String, Default: prod}}
Resources:
  S:
    Type: AWS::Scheduler::Schedule
    Properties:
      Name: !Join ["-", [a, !Ref Stage]]
      Description: !If [IsProd, a, b]
      KmsKeyArn: !Ref AWS::NoValue
      ScheduleExpression: {"Ref": Rate}
      FlexibleTimeWindow: {Mode: "OFF"}
      Target:
        Arn: !GetAtt F.Arn
        RoleArn: r
        Input: !Sub ['{"to": "${To}", "at": "${Stage}", "x": "${!y}"}', {To: !Ref Other}]
"""
    imported = convert(text, task="t")
    [document] = imported.documents
    importing.accepted(document)
    assert document["name"] == "a-prod"
    assert document["trigger"] == {"every": "PT5M"}
    assert document["note"] == "f: S: rate(5 minutes)\n${Fn::If}"
    assert document["job"]["payload"] == {
        "arn": "${F.Arn}",
        "input": {"to": "${Other}", "at": "prod", "x": "${y}"},
    }
    assert [remark.split(": ")[2] for remark in importing.remarks(imported)][:4] == [
        "Name", "Description", "KmsKeyArn", "ScheduleExpression",
    ]  # fmt: skip
