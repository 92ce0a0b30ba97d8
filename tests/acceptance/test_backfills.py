"""A backfill through the whole line: a real server on the embedded log, killed on the way, asked as people ask."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.server import Server
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow

DEFINITION = {
    "trigger": {"cron": "* * * * * *"},
    "overlap": {"policy": "allow_all"},
    "job": {"target": {"type": "task", "name": "kill.count"}, "lease": "5s"},  # what a kill interrupts is missed soon
}
PATH = "/v1/tenants/acme/schedules/second"
WITHIN_SECONDS = 60


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path)
    server.start()
    yield server
    server.close()


def answer(server: Server, *arguments: str) -> Any:
    """What a command says in JSON."""
    done = server.run(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def over(server: Server, backfill: str) -> Any:
    """A backfill when it is over."""

    def body() -> Any:
        return server.http.get(f"{PATH}/backfills/{backfill}").json()

    is_over = {"completed", "cancelled"}.__contains__
    eventually(lambda: is_over(body()["state"]), within=WITHIN_SECONDS, what=lambda: f"it is over: {body()}")
    return body()


def test_what_a_pause_skipped_is_run_after_all_and_the_audit_counts_it_as_backfilled(server):
    assert server.http.put(PATH, json=DEFINITION).status_code == 201
    assert server.http.post(f"{PATH}:pause", json={}).is_success
    eventually(lambda: skipped(server) >= 8, within=WITHIN_SECONDS, what="eight occurrences are skipped")
    resumed = server.http.post(f"{PATH}:resume", json={"backfill": True, "note": "the pause was a mistake"}).json()
    backfill = resumed["backfill"]["backfill"]
    count = resumed["backfill"]["occurrences"]
    eventually(lambda: bool(runs(server, backfill)), within=WITHIN_SECONDS, what="its first run is there")
    server.kill()
    server.start()
    body = over(server, backfill)
    assert (body["state"], body["decided"], body["done"], body["note"]) == (
        "completed", count, 1.0, "the pause was a mistake",
    )  # fmt: skip
    assert (body["counts"]["created"], body["counts"]["ended"]) == (count, {"succeeded": count})
    made = runs(server, backfill)
    assert len({run["run_id"] for run in made}) == len(made) == count
    explained = answer(server, "schedules", "explain", "acme/second", "--from", "-1h", "--to", "+0s")
    named = [each for each in explained["occurrences"] if each.get("backfill") == backfill]
    assert {(each["decision"], each["reason"]) for each in named} == {("created", "backfill")}
    assert len(named) == count

    again = answer(
        server, "backfills", "start", "acme/second", "--from", resumed["backfill"]["from"], "--to",
        resumed["backfill"]["to"], "--dry-run",
    )  # fmt: skip
    assert (again["runs"], again["left_out"]) == (0, {"succeeded": count})
    done = server.run(
        "backfills", "start", "acme/second", "--from", resumed["backfill"]["from"], "--to",
        resumed["backfill"]["to"], "--reprocess", "completed", "--max-active", "8", "--rate", "100/s", "--watch",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert f"{count} succeeded" in done.stdout
    listed = answer(server, "backfills", "list", "acme/second")["backfills"]
    assert [each["counts"]["reprocessed"] for each in listed] == [count, 0]

    assert server.http.post(f"{PATH}:pause", json={}).is_success
    assert server.stop() == 0
    audit = answer(server, "audit", "--data", str(server.data))
    assert (audit["backfilled"], audit["skipped"].get("paused", 0) >= count) == (count, True)
    assert (audit["missing"], audit["duplicated"], audit["double_outcomes"]) == (0, 0, 0)
    assert audit["due"] == audit["created"] + sum(audit["skipped"].values()) + sum(audit["pending"].values())


def test_one_that_is_cancelled_leaves_no_run_behind(server):
    slow = {
        **DEFINITION,
        "trigger": {"cron": "0 * * * *"},
        "job": {"target": {"type": "task", "name": "nobody.has.it"}},
    }
    assert server.http.put(PATH, json=slow).status_code == 201
    started = answer(server, "backfills", "start", "acme/second", "--from", "-3d", "--max-active", "5")
    backfill = started["backfill"]
    eventually(lambda: len(runs(server, backfill)) == 5, within=WITHIN_SECONDS, what="five runs wait")
    cancelled = answer(server, "backfills", "cancel", "acme/second", backfill)
    assert (cancelled["state"], cancelled["open_runs"]) == ("cancelling", 5)
    body = over(server, backfill)
    assert (body["state"], body["counts"]["ended"]) == ("cancelled", {"cancelled": 5})
    refused = server.run("backfills", "pause", "acme/second", backfill)
    assert (refused.returncode, f"backfill {backfill} is over" in refused.stderr) == (1, True)


def skipped(server: Server) -> int:
    """How many occurrences the pause has skipped."""
    answered = server.http.get(f"{PATH}/occurrences").json()  # a 404 until the rows have it
    told = answered.get("occurrences", [])
    return sum(each.get("range", {}).get("count", 1) for each in told if each["decision"] == "skipped")


def runs(server: Server, backfill: str) -> list[Any]:
    """The runs of a backfill."""
    found = server.http.get("/v1/tenants/acme/runs", params={"schedule": "second", "limit": 500}).json()["runs"]
    return [run for run in found if run.get("backfill") == backfill]
