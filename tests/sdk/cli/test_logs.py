"""What the attempts of a run wrote: shown, followed, narrowed."""

import json

from tests.sdk.cli.answers import LINES, LOGS, page_of


def test_a_runs_log_is_shown_attempt_by_attempt(tidewheel_, routes):
    routes["GET", LOGS] = page_of(LINES[:2], "a", more=True)
    routes["GET", f"{LOGS}?cursor=a"] = page_of(LINES[2:], "b")
    assert tidewheel_("runs", "logs", "acme/nightly.m-1") == (
        0,
        (
            "attempt 1\n"
            "2026-03-08 02:00:01Z  log    INFO     counting\n"
            "2026-03-08 02:00:02Z  stdout  (3 lines are missing before this one) 42 (and 7 characters)\n"
            "attempt 2\n"
            "2026-03-08 02:01:00Z  stderr  again\n"
        ),
        "",
    )


def test_who_follows_a_log_stays_until_the_run_is_over(tidewheel_, routes):
    routes["GET", LOGS] = page_of(LINES[:1], "a")
    routes["GET", f"{LOGS}?cursor=a&wait=8.0"] = [page_of([], "a"), page_of(LINES[2:], "b", complete=True)]
    code, out, _ = tidewheel_("runs", "logs", "acme/nightly.m-1", "--follow", "--json")
    assert (code, [json.loads(line)["text"] for line in out.splitlines()]) == (0, ["counting", "again"])


def test_a_log_is_narrowed(tidewheel_, routes):
    query = "newest=true&stream=stdout&limit=5&attempt=2&since=2026-03-08T02%3A00%3A00Z"
    routes["GET", f"{LOGS}?{query}"] = page_of(LINES[2:], "b", complete=True)
    words = "--attempt 2 --stream stdout --since 2026-03-08T02:00:00Z --last 5"
    code, out, err = tidewheel_("runs", "logs", "acme/nightly.m-1", *words.split())
    assert (code, err, out.endswith("again\n")) == (0, "", True)
