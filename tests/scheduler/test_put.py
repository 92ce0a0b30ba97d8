"""A schedule is put: what is accepted, what is answered, and what is refused with which field and remedy."""

from typing import Any

import pytest

from schemas.facts import CommandRejected, RunCreated, ScheduleAccepted, ScheduleDeleted
from tests.scheduler.harness import Shell, at, definition


def refusals(shell: Shell) -> list[tuple[str, str]]:
    """Pointer and code of every fault of the last refusal."""
    return [(fault.pointer, fault.code) for fault in shell.all(CommandRejected, "s")[-1].faults]


def test_an_accepted_schedule_is_answered_with_a_sentence_and_its_next_three_occurrences():
    shell = Shell("2024-03-01T12:00:00")
    shell.put(body=definition("0 2 * * *", trigger={"timezone": "Europe/London"}))
    answer = shell.answer()
    assert (answer.command_id, answer.reply_to, answer.status, answer.faults) == ("c1", 3, 201, ())
    assert answer.body == {
        "tenant": "acme",
        "name": "s",
        "version": 1,
        "state": "active",
        "changed": True,
        "effective_at": "2024-03-01T12:00:00Z",
        "words": "At 02:00 every day, Europe/London",
        "next": ["2024-03-02T02:00:00Z", "2024-03-03T02:00:00Z", "2024-03-04T02:00:00Z"],
        "warnings": [],
    }


def test_a_command_that_wants_no_answer_gets_none():
    shell = Shell()
    facts = shell.put(reply_to=None)
    named = [type(fact).__name__ for fact in facts]
    assert named == ["TzAdopted", "TzRulesNoted", "ScheduleAccepted", "CommandRemembered"]


def test_a_definition_is_kept_with_every_default_said():
    shell = Shell()
    shell.put(body={"trigger": {"cron": "@daily"}, "job": {"target": {"type": "task", "name": "t"}}})
    assert shell.all(ScheduleAccepted)[0].definition == {
        "labels": {},
        "note": "",
        "trigger": {
            "cron": "@daily",
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
            "target": {"type": "task", "name": "t"},
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


def test_another_definition_is_another_version():
    shell = Shell()
    shell.put()
    shell.put(body=definition("*/2 * * * *"))
    assert (shell.answer().status, shell.answer().body["version"], shell.answer().body["changed"]) == (200, 2, True)


def test_the_same_definition_is_accepted_and_stays_the_version_it_is():
    shell = Shell()
    shell.put()
    shell.until("2024-01-01T00:00:30")
    shell.put(body=definition("* * * * *", overlap={"policy": "Forbid"}))  # another way to say the default
    assert (shell.answer().status, shell.answer().body["version"], shell.answer().body["changed"]) == (200, 1, False)
    assert len(shell.all(ScheduleAccepted)) == 1


def test_an_unknown_field_on_the_topic_is_kept_and_warned_about():
    shell = Shell()
    shell.put(body=definition(colour="blue"))
    (accepted,) = shell.all(ScheduleAccepted)
    assert accepted.definition["colour"] == "blue"
    (warning,) = accepted.warnings
    assert warning.startswith("/data/definition/colour: unknown field 'colour'")
    assert shell.answer().body["warnings"] == list(accepted.warnings)


def test_a_schedule_of_an_unknown_job_is_accepted_with_a_warning():
    shell = Shell()
    shell.put(body={"trigger": {"cron": "* * * * *"}, "job": "send-report"})
    assert shell.answer().status == 201
    assert shell.answer().body["warnings"] == [
        "/job: there is no job 'send-report' yet; until there is, occurrences are skipped"
    ]


# --- refusals -----------------------------------------------------------------------------------------------------

WHERE = "/data/definition"


@pytest.mark.parametrize(
    ("trigger", "pointer", "code"),
    [
        ({"cron": "61 * * * *"}, "/trigger/cron", "cron"),
        ({"cron": "0 0 30 2 *"}, "/trigger/cron", "cron"),
        ({"cron": "0 0 12 ? * 2"}, "/trigger/cron", "cron"),
        ({"cron": "* * * * *", "timezone": "Europe/Londn"}, "/trigger/timezone", "timezone"),
        ({"every": "PT0.5S"}, "/trigger/every", "range"),
        ({"every": "PT1.5S"}, "/trigger/every", "range"),
        ({"every": "P9000000D"}, "/trigger/every", "duration"),
        ({"at": ["9999-06-01T00:00:00Z"]}, "/trigger/at/0", "never_fires"),
        ({"at": ["2023-12-31T23:58:59Z"]}, "/trigger/at/0", "in_the_past"),
        ({"at": ["2024-01-02T00:00:00Z", "2020-01-01T00:00:00Z"]}, "/trigger/at/1", "in_the_past"),
        ({"cron": "* * * * *", "anchor": "2024-01-01T00:00:00Z"}, "/trigger", "one_kind"),
        (
            {"cron": "* * * * *", "start_at": "2024-02-01T00:00:00Z", "end_at": "2024-02-01T00:00:00Z"},
            "/trigger/end_at",
            "range",
        ),
        (
            {"cron": "0 9 * * *", "start_at": "2024-02-01T10:00:00Z", "end_at": "2024-02-02T09:00:00Z"},
            "/trigger/end_at",
            "never_fires",
        ),
        ({"at": ["2024-01-02T00:00:00Z"], "start_at": "2024-01-03T00:00:00Z"}, "/trigger/start_at", "never_fires"),
        ({"cron": "* * * * *", "max_runs": 0}, "/trigger/max_runs", "range"),
        ({"cron": "* * * * *", "start_at": "2024-02-01"}, "/trigger/start_at", "instant"),
        ({"cron": ["* * * * *", "61 * * * *"]}, "/trigger/cron/1", "cron"),
        ({"rrule": "FREQ=FORTNIGHTLY"}, "/trigger/rrule", "rrule"),
        ({"rrule": "FREQ=DAILY;COUNT=3"}, "/trigger/rrule", "rrule"),
        ({"rrule": "FREQ=SECONDLY;BYMONTH=2;BYMONTHDAY=31"}, "/trigger/rrule", "rrule"),
        ({"rrule": "FREQ=DAILY;UNTIL=20200101T000000Z"}, "/trigger/rrule", "never_fires"),
        ({"cron": "* * * * *", "every": "PT1M"}, "/trigger", "one_kind"),
    ],
)
def test_a_trigger_that_cannot_be_meant_is_refused_with_its_field(trigger, pointer, code):
    shell = Shell("2024-01-01T00:00:00")
    shell.put(body={"trigger": trigger, "job": {"target": {"type": "task", "name": "t"}}})
    assert refusals(shell) == [(WHERE + pointer, code)]
    assert (shell.answer().status, shell.answer().body["reason"]) == (422, "invalid")
    assert all(fault.message for fault in shell.answer().faults)


def test_a_wrong_zone_names_the_nearest_one():
    shell = Shell()
    shell.put(body=definition(trigger={"timezone": "Europe/Londn"}))
    assert shell.answer().faults[0].remedy == "Did you mean Europe/London?"


@pytest.mark.parametrize(
    ("more", "pointer", "code"),
    [
        ({"grace": "-PT1M"}, "/grace", "duration"),
        ({"catch_up": {"limit": 0}}, "/catch_up/limit", "range"),
        ({"overlap": {"policy": "buffer_all", "buffer": 1001}}, "/overlap/buffer", "range"),
        ({"after": [{"schedule": "x", "mode": "interval", "span": "P60D"}]}, "/after/0/span", "range"),
        ({"after": [{"schedule": "x", "mode": "run", "span": "P1D"}]}, "/after/0", "one_kind"),
        ({"after": [{"schedule": "x"}]}, "/after/0/mode", "missing"),
        ({"after": [{"schedule": "x", "mode": "run"}] * 2}, "/after/1/schedule", "twice"),
        ({"note": "x" * 5000}, "/note", "too_long"),
    ],
)
def test_a_policy_that_cannot_be_kept_is_refused_with_its_field(more, pointer, code):
    shell = Shell()
    shell.put(body=definition(**more))
    assert refusals(shell) == [(WHERE + pointer, code)]


def test_every_fault_of_a_definition_is_named_at_once():
    shell = Shell()
    body: dict[str, Any] = definition("61 * * * *", trigger={"timezone": "Mars"}, grace="soon")
    body["job"]["payload"] = {"day": "{{ nominal_dat }}"}
    shell.put(body=body)
    assert refusals(shell) == [
        (f"{WHERE}/grace", "duration"),
        (f"{WHERE}/trigger/timezone", "timezone"),
        (f"{WHERE}/trigger/cron", "cron"),
    ]


def test_a_refusal_does_not_repeat_more_than_was_sent():
    shell = Shell()
    shell.put(body=definition(labels={f"label-{n}" * 50: n for n in range(500)}))
    faults = shell.answer().faults
    assert len(faults) <= 51
    assert max(len(fault.pointer) for fault in faults) <= 501


def test_a_template_that_names_nothing_known_is_refused_with_the_nearest_name():
    shell = Shell()
    body: dict[str, Any] = definition()
    body["job"]["payload"] = {"days": [{"day": "on {{ nominal_dat }}"}]}
    shell.put(body=body)
    assert refusals(shell) == [(f"{WHERE}/job/payload/days/0/day", "unknown_template")]
    assert shell.answer().faults[0].remedy == "did you mean {{ nominal_date }}?"


def test_what_was_refused_changes_nothing():
    shell = Shell()
    shell.put()
    shell.put(body=definition("61 * * * *"))
    shell.until("2024-01-01T00:01:00")
    assert shell.created() == ["00:01"]
    assert shell.schedule().version == 1


# --- versions -----------------------------------------------------------------------------------------------------


def test_an_expected_version_that_is_not_in_force_is_refused():
    shell = Shell()
    shell.put()
    shell.put(body=definition("*/2 * * * *"))
    shell.put(body=definition("*/3 * * * *"), expected_version=1)
    assert (shell.answer().status, shell.answer().body["reason"]) == (412, "version_mismatch")
    assert shell.answer().body["version"] == 2
    shell.put(body=definition("*/3 * * * *"), expected_version=2)
    assert (shell.answer().status, shell.answer().body["version"]) == (200, 3)


def test_expecting_no_version_creates_and_never_replaces():
    shell = Shell()
    shell.put(expected_version=0)
    assert shell.answer().status == 201
    shell.put(body=definition("*/2 * * * *"), expected_version=0)
    assert shell.answer().status == 412


def test_versions_of_the_source_may_only_grow():
    shell = Shell()
    shell.put(source_version=7)
    for older in (6, 7):
        shell.put(body=definition("*/2 * * * *"), source_version=older)
        assert (shell.answer().status, shell.answer().body["reason"]) == (409, "stale")
    shell.put(body=definition("*/2 * * * *"), source_version=8)
    assert shell.answer().status == 200


def test_a_newer_word_of_the_source_that_says_the_same_still_counts():
    shell = Shell()
    shell.put(source_version=7)
    shell.put(source_version=9)
    assert shell.answer().body["changed"] is False
    shell.put(body=definition("*/2 * * * *"), source_version=8)
    assert shell.answer().status == 409


def test_a_deletion_that_comes_before_the_put_it_follows_keeps_the_schedule_away():
    shell = Shell()
    shell.send("ScheduleDelete", source_version=7)
    assert shell.answer().status == 404
    shell.put(source_version=6)
    assert (shell.answer().status, shell.answer().body["reason"]) == (409, "stale")


def test_a_schedule_that_is_put_again_after_its_deletion_continues_its_versions():
    shell = Shell()
    shell.put(source_version=3)
    shell.send("ScheduleDelete", source_version=4)
    shell.until("2024-02-15T00:00:00")  # everything that can be forgotten is
    shell.reload()
    shell.put(source_version=4)
    assert shell.answer().status == 409
    shell.put(source_version=5)
    assert (shell.answer().status, shell.answer().body["version"]) == (201, 2)


# --- intervals and single instants --------------------------------------------------------------------------------


def interval(every: str, **more: Any) -> dict[str, Any]:
    return {
        "trigger": {"every": every, **more},
        "overlap": {"policy": "allow_all"},
        "job": {"target": {"type": "task", "name": "t"}},
    }


def test_an_interval_is_counted_from_its_first_acceptance_whatever_is_changed_later():
    shell = Shell("2024-01-01T10:07:30.250")
    shell.put(body=interval("PT15M"))
    assert shell.all(ScheduleAccepted)[0].definition["trigger"]["anchor"] == "2024-01-01T10:07:30Z"
    shell.until("2024-01-01T10:25:00")
    shell.put(body=interval("PT15M"))
    assert shell.answer().body["changed"] is False
    shell.put(body=interval("PT10M"))
    shell.until("2024-01-01T10:50:00")
    assert [run.nominal_time for run in shell.all(RunCreated)] == [
        at("2024-01-01T10:22:30"),
        at("2024-01-01T10:27:30"),
        at("2024-01-01T10:37:30"),
        at("2024-01-01T10:47:30"),
    ]


def test_an_interval_that_is_put_again_after_its_deletion_is_counted_anew():
    shell = Shell("2024-01-01T10:00:00")
    shell.put(body=interval("PT1H"))
    shell.send("ScheduleDelete")
    shell.until("2024-01-01T10:20:00")
    shell.put(body=interval("PT1H"))
    shell.until("2024-01-01T12:00:00")
    assert shell.created() == ["11:20"]


def single(*instants: str, **more: Any) -> dict[str, Any]:
    return {"trigger": {"at": list(instants)}, "job": {"target": {"type": "task", "name": "t"}}, **more}


def test_a_single_instant_within_its_grace_still_runs():
    shell = Shell("2024-01-01T10:00:30")
    shell.put(body=single("2024-01-01T10:00:00Z", "2024-01-01T11:00:00Z", overlap={"policy": "allow_all"}))
    shell.until("2024-01-01T12:00:00")
    assert shell.created() == ["10:00@10:00:30", "11:00"]


def test_a_single_instant_is_never_run_twice_by_putting_it_again():
    shell = Shell("2024-01-01T09:59:30")
    shell.put(body=single("2024-01-01T10:00:00Z"))
    shell.until("2024-01-01T10:00:20")
    shell.put(body=single("2024-01-01T10:00:00Z", "2024-01-01T10:00:05Z", note="another"))
    assert shell.answer().body["warnings"] == [
        "/trigger/at: 2024-01-01T10:00:00Z was before this change and will not run"
    ]
    shell.until("2024-01-01T10:01:00")
    assert shell.created() == ["10:00"]


def test_after_its_last_instant_a_schedule_rests():
    shell = Shell("2024-01-01T09:59:30")
    shell.put(body=single("2024-01-01T10:00:00Z"))
    shell.until("2024-01-01T10:00:20")
    shell.finish(shell.last_run())
    shell.until("2024-03-01T00:00:00")
    assert shell.next_wakeup() is None


def test_who_puts_and_deletes_a_schedule_and_why_is_said_in_the_story_and_not_in_the_definition():
    shell = Shell()
    shell.put(body=definition(note="the books"), by="ann", note="quarter's end")
    accepted = shell.all(ScheduleAccepted, "s")[-1]
    assert (accepted.by, accepted.note, accepted.definition["note"]) == ("ann", "quarter's end", "the books")
    shell.send("ScheduleDelete", by="bob", note="moved to another system")
    deleted = shell.all(ScheduleDeleted, "s")[-1]
    assert (deleted.by, deleted.note) == ("bob", "moved to another system")
