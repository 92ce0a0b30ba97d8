"""Kubernetes CronJobs, and what becomes of them."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from scheduler import plan
from scheduler.occurrences import between
from schemas.definitions import Trigger
from tests.sdk import importing
from tidewheel.importers import kubernetes
from tidewheel.importers.report import Imported
from tidewheel.importers.writing import File

MANIFEST = """\
apiVersion: batch/v1
kind: CronJob
metadata: {{name: {name}}}
spec:
  {spec}
  jobTemplate: {{spec: {{template: {{spec: {{containers: [{{name: c, image: i}}]}}}}}}}}
"""


def convert(*texts: str, **said: Any) -> Imported:
    files = [File(path=f"{number}.yaml", data=text.encode()) for number, text in enumerate(texts, 1)]
    return kubernetes.convert(files, importing.settings(**said))


def of(spec: str, **said: Any) -> tuple[dict[str, Any], list[str]]:
    """The one definition of a CronJob with this spec, and the remarks but those on its task."""
    imported = convert(MANIFEST.format(name="x", spec=spec), **said)
    [document] = imported.documents
    importing.accepted(document)
    return document, [text for text in importing.remarks(imported) if "write a task" not in text]


def refused(spec: str) -> str:
    imported = convert(MANIFEST.format(name="x", spec=spec))
    assert imported.documents == ()
    remark = imported.remarks[-1]
    return f"{'broken: ' if remark.broken else ''}{remark}"


def test_a_file_of_a_repository_becomes_definitions_and_remarks():
    imported = kubernetes.convert([importing.fixture("cronjobs.yaml")], importing.settings())
    assert list(imported.documents) == importing.expected("cronjobs.expected.yaml")
    assert importing.remarks(imported) == importing.said("cronjobs.remarks.txt")
    for document in imported.documents:
        importing.accepted(document)


# --- when ---


def test_a_time_that_a_clock_leaves_out_has_no_run_and_one_that_comes_twice_has_two():
    document, _ = of('schedule: "30 2 * * *"\n  timeZone: Europe/London')
    assert document["trigger"] == {
        "cron": "30 2 * * *",
        "timezone": "Europe/London",
        "gap_policy": "skip",
        "fold_policy": "both",
    }


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        ("30 1 * * *", ["2026-03-28 01:30", "2026-03-30 00:30", "2026-10-25 00:30", "2026-10-25 01:30"]),
        ("15 */6 * * *", ["2026-03-29 05:15", "2026-10-24 23:15", "2026-10-25 06:15"]),
        ("0 * * * 0", ["2026-03-29 00:00", "2026-03-29 01:00", "2026-10-25 00:00", "2026-10-25 01:00"]),
    ],
)
def test_a_change_of_clocks_is_met_as_kubernetes_meets_it(schedule, expected):
    """Every minute whose reading fits has its run, and there is no other: London skips 01:00-02:00, and repeats it."""
    document, _ = of(f'schedule: "{schedule}"\n  timeZone: Europe/London')
    compiled = plan.trigger_of(Trigger.model_validate(document["trigger"]), "")
    walked = [
        at
        for day in ("2026-03-28", "2026-03-29", "2026-03-30", "2026-10-24", "2026-10-25")
        for at in between(compiled, instant(f"{day} 00:00") - 1, instant(f"{day} 23:59"))
    ]
    assert [text for text in expected if instant(text) in walked] == expected
    clock = ZoneInfo("Europe/London")
    minutes = [
        at
        for day in ("2026-03-28", "2026-03-29", "2026-03-30", "2026-10-24", "2026-10-25")
        for at in range(instant(f"{day} 00:00"), instant(f"{day} 23:59") + 1, 60)
        if fits(schedule, datetime.fromtimestamp(at, clock))
    ]
    assert walked == minutes


def instant(text: str) -> int:
    return int(datetime.fromisoformat(f"{text}+00:00").timestamp())


def fits(schedule: str, reading: datetime) -> bool:
    minute, hour, _, _, weekday = schedule.split()
    hours = {"*": range(24), "*/6": (0, 6, 12, 18)}.get(hour) or (int(hour),)
    return (
        reading.minute == int(minute)
        and reading.hour in hours
        and (weekday == "*" or reading.isoweekday() % 7 == int(weekday))
    )


def test_without_a_zone_it_is_the_controllers_which_is_to_be_told():
    document, _ = of('schedule: "@daily"', timezone="Asia/Tokyo")
    assert (document["trigger"]["cron"], document["trigger"]["timezone"]) == ("@daily", "Asia/Tokyo")


@pytest.mark.parametrize("prefix", ["TZ", "CRON_TZ"])
def test_a_zone_in_front_is_taken_at_its_word(prefix):
    document, remarks = of(f'schedule: "{prefix}=Europe/Paris 0 4 * * *"')
    assert (document["trigger"]["cron"], document["trigger"]["timezone"]) == ("0 4 * * *", "Europe/Paris")
    told = "a zone in front of the schedule never was official in Kubernetes; it is taken at its word"
    assert remarks == [f"1.yaml:1: x: spec.schedule: {told}"]


@pytest.mark.parametrize("schedule", ["TZ=Europe/Paris", "TZ=0", "CRON_TZ=UTC "])
def test_a_zone_with_nothing_behind_is_no_schedule(schedule):
    assert refused(f'schedule: "{schedule}"').startswith("broken: 1.yaml:1: x: spec.schedule: left out: ")


def test_an_interval_counts_from_when_it_is_applied():
    document, remarks = of('schedule: "@every 1h30m"')
    assert document["trigger"] == {"every": "PT1H30M"}
    assert len(remarks) == 1


def test_a_day_field_with_a_step_restricts_as_it_does_in_kubernetes():
    document, _ = of('schedule: "0 0 */2 * 1"')
    assert document["trigger"]["day_rule"] == "literal"


@pytest.mark.parametrize(
    ("spec", "remark"),
    [
        ('schedule: "0 0 * * 7"', "broken: 1.yaml:1: x: spec.schedule: left out: '0 0 * * 7': '7' is no day of week"),
        ("schedule: 5", "broken: 1.yaml:1: x: spec.schedule: left out: has no schedule"),
        (
            'schedule: "@daily"\n  timeZone: Mars/Olympus',
            "broken: 1.yaml:1: x: spec.timeZone: left out: 'Mars/Olympus' is no zone of IANA's database",
        ),
        (
            'schedule: "TZ=UTC @daily"\n  timeZone: Europe/Paris',
            "broken: 1.yaml:1: x: spec.timeZone: left out: names two zones, and Kubernetes refuses that",
        ),
        (
            'schedule: "@daily"\n  concurrencyPolicy: Never',
            "broken: 1.yaml:1: x: spec.concurrencyPolicy: left out: 'Never' is none",
        ),
        (
            'schedule: "@daily"\n  suspend: perhaps',
            "broken: 1.yaml:1: x: spec.suspend: left out: 'perhaps' is neither true nor false",
        ),
    ],
)
def test_what_kubernetes_would_not_take_is_left_out_with_its_reason(spec, remark):
    assert refused(spec) == remark


# --- policies ---


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("", {"catch_up": {"policy": "latest", "window": "P3660D"}}),
        ("startingDeadlineSeconds: 7200", {"catch_up": {"policy": "latest", "window": "PT2H"}}),
        ("startingDeadlineSeconds: 60", {"grace": "PT1M", "catch_up": {"policy": "skip"}}),
        ("startingDeadlineSeconds: 0", {"grace": "PT1S", "catch_up": {"policy": "skip"}}),
    ],
)
def test_of_what_was_missed_the_latest_runs_if_the_starting_deadline_allows_it(spec, expected):
    document, _ = of(f'schedule: "@daily"\n  {spec}')
    assert {key: document[key] for key in ("grace", "catch_up") if key in document} == expected


@pytest.mark.parametrize(
    ("theirs", "ours"), [("Allow", "allow_all"), ("Forbid", "skip"), ("Replace", "terminate_other")]
)
def test_concurrency_is_overlap(theirs, ours):
    document, _ = of(f'schedule: "@daily"\n  concurrencyPolicy: {theirs}\n  startingDeadlineSeconds: 30')
    assert document["overlap"] == {"policy": ours}


def test_forbid_starts_what_it_held_back_in_kubernetes_and_that_is_said():
    _, remarks = of('schedule: "@daily"\n  concurrencyPolicy: Forbid')
    assert ["write buffer_one for that" in remark for remark in remarks] == [True]


@pytest.mark.parametrize(
    ("word", "paused"), [("true", True), ("yes", True), ("false", False), ("off", False), ("~", False)]
)
def test_what_is_suspended_says_how_to_pause_it(word, paused):
    document, remarks = of(f'schedule: "@daily"\n  suspend: {word}', tenant="acme")
    assert (document["labels"].get("imported-state") == "paused") is paused
    assert any("tidewheel schedules pause acme/x" in remark for remark in remarks) is paused


# --- files ---


def test_a_list_of_one_kind_need_not_repeat_it():
    text = "kind: CronJobList\napiVersion: batch/v1\nitems:\n- metadata: {name: x}\n  spec:\n    schedule: '@daily'\n"
    text += "    jobTemplate: {spec: {template: {spec: {containers: [{image: i}]}}}}\n"
    assert [document["name"] for document in convert(text).documents] == ["x"]


def test_what_is_merged_in_is_taken_in():
    text = "kind: CronJob\napiVersion: batch/v1\nmetadata: {name: x}\nspec:\n  schedule: '@daily'\n"
    text += "  jobTemplate: {spec: {template: {spec: {containers: [{<<: &c {image: a, args: [b]}, image: c}]}}}}\n"
    [document] = convert(text).documents
    assert document["job"]["payload"] == {"image": "c", "command": [], "args": ["b"], "env": {}}


def test_twins_are_told_apart_by_their_namespace():
    texts = [
        MANIFEST.format(name=f"x, namespace: {namespace}", spec="schedule: '@daily'") for namespace in ("a", "b", "b")
    ]
    documents = convert(*texts).documents
    assert [document["name"] for document in documents] == ["x", "b-x", "b-x-2"]
    assert [document["job"]["target"]["name"] for document in documents] == ["x", "b-x", "b-x-2"]


def test_one_task_for_all_can_be_told():
    imported = convert(MANIFEST.format(name="x", spec="schedule: '@daily'"), task="k8s.run", queue="ops")
    [document] = imported.documents
    assert (document["job"]["target"], document["job"]["queue"]) == ({"type": "task", "name": "k8s.run"}, "ops")
    assert imported.remarks == ()


def test_labels_that_do_not_fit_are_said():
    labels = ", ".join(f"l{number}: v" for number in range(33)) + f", {'k' * 129}: v"
    text = MANIFEST.format(name=f"x, labels: {{{labels}}}", spec="schedule: '@daily'")
    imported = convert(text, task="t")
    assert len(imported.documents[0]["labels"]) == 32
    assert len(imported.remarks) == 3


def test_what_would_be_filled_in_here_is_left_out():
    text = MANIFEST.format(name="x", spec="schedule: '@daily'").replace("image: i", 'image: i, args: ["{{.Names}}"]')
    imported = convert(text)
    assert imported.documents == ()
    assert "'{{.Names}}', which would be filled in here" in imported.remarks[0].text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{{- if .Values.on }}\nkind: CronJob\n", "is a template yet: render it (helm template)"),
        ("kind: CronJob\n\tname: x\n", "what stands behind it was not looked at"),
    ],
)
def test_a_file_that_is_no_yaml_is_broken(text, said):
    [remark] = convert(text).remarks
    assert remark.broken
    assert said in remark.text


def test_a_file_without_a_cron_job_says_so():
    assert importing.remarks(convert("")) == ["1.yaml: holds no CronJob"]
    assert importing.remarks(convert("kind: Pod\n---\nkind: Pod\n---\n- 1\n")) == [
        "1.yaml: holds other things too, which are no CronJobs: Pod (2), no kind (1)"
    ]
