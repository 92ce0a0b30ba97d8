"""Runs that run again and runs that are cancelled: named ones, or a choice of them."""

import pytest

from tests.sdk.fake_server import Response

LETTERS = "/v1/tenants/acme/dead-letters"


def test_a_run_is_run_again_and_the_new_one_is_named(tidewheel_, routes, requests):
    routes["POST", "/v1/tenants/acme/runs/a.1:rerun"] = Response({"run_id": "a.r-1"}, 201)
    code, out, _ = tidewheel_("runs", "rerun", "acme/a.1", "--definition", "current", "--note", "fixed")
    assert (code, out) == (0, "acme/a.1 runs again as a.r-1\n")
    assert requests[-1].json == {"definition": "current", "note": "fixed"}


def test_dead_letters_are_listed_with_why_and_what_they_were_redriven_as(tidewheel_, routes):
    letter = {
        "tenant": "acme", "run_id": "a.1", "finished_at": "2026-03-01T00:00:09Z", "attempt_count": 3,
        "reason": "quarantined", "error": {"type": "ValueError", "message": "no rows"}, "redriven_as": "a.r-1",
    }  # fmt: skip
    routes["GET", f"{LETTERS}?schedule=a"] = Response({"dead_letters": [letter]})
    _, out, _ = tidewheel_("dead-letters", "list", "--tenant", "acme", "--schedule", "a")
    assert out.splitlines()[1].split() == [
        "acme", "a.1", "2026-03-01", "00:00:09Z", "3", "quarantined", "ValueError:", "no", "rows", "a.r-1",
    ]  # fmt: skip


def test_named_dead_letters_are_redriven_each_for_itself(tidewheel_, routes):
    routes["POST", f"{LETTERS}/a.1:redrive"] = Response({"run_id": "a.r-1"}, 201)
    refusal = {"code": "already_redriven", "title": "Conflict", "detail": "it was redriven as a.r-2"}
    routes["POST", f"{LETTERS}/a.2:redrive"] = Response(refusal, 409)
    code, out, _ = tidewheel_("dead-letters", "redrive", "--tenant", "acme", "a.1", "a.2")
    assert code == 1
    assert "acme/a.1 redriven as a.r-1" in out
    assert "it was redriven as a.r-2" in out


def test_all_of_a_choice_are_redriven_request_by_request(tidewheel_, routes, requests):
    routes["POST", f"{LETTERS}:redrive"] = [
        Response({"redriven": [{"of": "a.1", "run_id": "a.r-1"}], "refused": [], "cursor": "next"}),
        Response({"redriven": [], "refused": [{"of": "a.2", "detail": "its job is not registered"}]}),
    ]
    code, out, _ = tidewheel_(
        "dead-letters", "redrive", "--tenant", "acme", "--all", "--schedule", "a", "--label", "team=ops",
        "--from", "2026-03-01",
    )  # fmt: skip
    assert code == 1
    assert out.splitlines() == [
        "acme/a.1 redriven as a.r-1", "refused acme/a.2: its job is not registered", "1 redriven, 1 not",
    ]  # fmt: skip
    chosen = {"schedule": "a", "labels": {"team": "ops"}, "from": "2026-03-01T00:00:00Z"}
    assert [each.json for each in requests] == [{"selector": chosen}, {"selector": chosen, "cursor": "next"}]


@pytest.mark.parametrize("words", ["", "a.1 --all", "a.1 --schedule a", "--schedule a", "--all --label team"])
def test_a_redrive_names_runs_or_says_all(tidewheel_, words):
    assert tidewheel_("dead-letters", "redrive", *words.split())[0] == 2


OPEN = "/v1/tenants/acme/runs"


def test_open_runs_of_a_choice_are_cancelled_request_by_request_and_counted(tidewheel_, routes, requests):
    routes["POST", f"{OPEN}:cancel"] = [
        Response({
            "runs": [{"tenant": "acme", "run_id": "a.2", "state": "cancelled_before_dispatch"}],
            "counts": {"cancelled_before_dispatch": 1}, "cursor": "next",
        }),
        Response({
            "runs": [{"tenant": "acme", "run_id": "a.1", "state": "cancel_requested"}],
            "counts": {"cancel_requested": 1},
        }),
    ]  # fmt: skip
    code, out, _ = tidewheel_(
        "runs", "cancel", "--tenant", "acme", "--all", "--queue", "mail", "--state", "queued", "--label", "team=ops",
        "--from", "2026-03-01", "--note", "wrong data",
    )  # fmt: skip
    assert (code, out.splitlines()) == (
        0,
        [
            "acme/a.2: cancelled before dispatch", "acme/a.1: cancel requested",
            "1 cancel requested, 1 cancelled before dispatch",
        ],
    )  # fmt: skip
    chosen = {"queue": "mail", "state": "queued", "labels": {"team": "ops"}, "from": "2026-03-01T00:00:00Z"}
    asked = {"selector": chosen, "note": "wrong data"}
    assert [each.json for each in requests] == [asked, {**asked, "cursor": "next"}]


def test_what_was_refused_of_a_cancelled_choice_is_said(tidewheel_, routes):
    refused = {"tenant": "acme", "run_id": "a.1", "reason": "too_many_delayed", "detail": "send it again"}
    routes["POST", "/v1/runs:cancel"] = Response({"runs": [refused], "counts": {"refused": 1}})
    code, out, _ = tidewheel_("runs", "cancel", "--all", "--all-tenants", "--queue", "mail")
    assert (code, out.splitlines()) == (1, ["refused acme/a.1: send it again", "1 refused"])


def test_a_choice_without_open_runs_says_so(tidewheel_, routes):
    routes["POST", f"{OPEN}:cancel"] = Response({"runs": [], "counts": {}})
    assert tidewheel_("runs", "cancel", "--tenant", "acme", "--all") == (0, "no open run\n", "")


@pytest.mark.parametrize(
    "words",
    [
        "", "a.1 --all", "a.1 --queue q", "--queue q", "--all-tenants", "--all --label team",
        "--all --all-tenants --tenant acme",
    ],
)  # fmt: skip
def test_a_cancel_names_runs_or_says_all(tidewheel_, words):
    assert tidewheel_("runs", "cancel", *words.split())[0] == 2


@pytest.mark.parametrize("words", [("runs", "cancel"), ("dead-letters", "redrive")])
def test_an_empty_name_chooses_nothing_and_never_all(tidewheel_, requests, words):
    """As a script has it whose variable is not set."""
    code, _, said = tidewheel_(*words, "--all", "--schedule", "")
    assert (code, said.splitlines()[-1]) == (2, "Error: --schedule is empty: name one, or leave it out")
    assert requests == []
