"""A dead letter through the whole line: a real server on the embedded log, killed on the way, asked as people ask."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.server import Server
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow

ACME = "/v1/tenants/acme"
WITHIN_SECONDS = 60
RETRY = {"initial": "PT0.1S", "factor": 1, "jitter": "none"}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path, tasks="tests.acceptance.mended:worker")
    server.start()
    yield server
    server.close()


def answer(server: Server, *arguments: str) -> Any:
    """What a command says in JSON."""
    done = server.run(*arguments, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def reaches(server: Server, run_id: str, state: str) -> Any:
    """The run, once it is in a state."""
    found: dict[str, Any] = {}

    def reached() -> bool:
        found.update(server.http.get(f"{ACME}/runs/{run_id}").json())
        return found.get("state") == state

    eventually(reached, within=WITHIN_SECONDS, what=lambda: f"{run_id} is {state}: {found}")
    return found


def given_up(server: Server, mended: Path, count: int, attempts: int) -> list[str]:
    """A schedule of a yearly report that fails, and so many runs of it by hand, each given up."""
    target, payload = {"type": "task", "name": "mended.report"}, {"mended": str(mended), "day": "{{ nominal_date }}"}
    job = {"target": target, "payload": payload, "retry": {**RETRY, "max_attempts": attempts}}
    put = server.http.put(f"{ACME}/schedules/report", json={"trigger": {"cron": "0 0 1 1 *"}, "job": job})
    assert put.status_code == 201, put.text
    made = [server.http.post(f"{ACME}/schedules/report:trigger", json={}).json()["run_id"] for _ in range(count)]
    for run_id in made:
        reaches(server, run_id, "dead_lettered")
    return made


def test_b_o21_a_run_that_always_fails_is_given_up_after_five_attempts_and_redriven_when_it_is_mended(server, tmp_path):
    mended = tmp_path / "mended"
    (first,) = given_up(server, mended, 1, attempts=5)
    letter = reaches(server, first, "dead_lettered")
    assert [attempt["attempt"] for attempt in letter["attempts"]] == [1, 2, 3, 4, 5]
    assert letter["error"] == {"type": "ValueError", "message": "the report has no rows"}
    (listed,) = answer(server, "dead-letters", "list", "--tenant", "acme")["dead_letters"]
    assert (listed["run_id"], listed["attempt_count"], "redriven_as" in listed) == (first, 5, False)

    # Redriven before it is mended, it is given up as well; the first one stays as it ended.
    done = server.run("dead-letters", "redrive", f"acme/{first}")
    assert done.returncode == 0, done.stdout + done.stderr
    second = done.stdout.split()[-1]
    assert reaches(server, second, "dead_lettered")["of"] == first
    refused = server.run("dead-letters", "redrive", f"acme/{first}")
    assert (refused.returncode, f"was redriven as {second}" in refused.stdout) == (1, True)

    mended.touch()
    server.kill()
    server.start()
    third = server.run("dead-letters", "redrive", f"acme/{second}").stdout.split()[-1]
    result = reaches(server, third, "succeeded")
    assert (result["of"], result["cause"], result["result"]["run"]) == (second, "rerun", third)
    assert result["job"] == letter["job"], "with the payload of the first one"
    fourth = server.run("runs", "rerun", f"acme/{first}").stdout.split()[-1]
    assert reaches(server, fourth, "succeeded")["of"] == first
    states = [(each["run_id"], each["state"]) for each in reaches(server, first, "dead_lettered")["reruns"]]
    assert states == [(second, "dead_lettered"), (fourth, "succeeded")]

    assert server.stop() == 0
    audit = answer(server, "audit", "--data", str(server.data))
    assert (audit["missing"], audit["duplicated"], audit["double_outcomes"], audit["open_runs"]) == (0, 0, 0, 0)
    assert (audit["due"], audit["created"], audit["backfilled"]) == (0, 0, 0)


def test_a_choice_of_dead_letters_is_redriven_once(server, tmp_path):
    mended = tmp_path / "mended"
    made = given_up(server, mended, 3, attempts=2)  # six retries are within the budget
    mended.touch()
    done = server.run("dead-letters", "redrive", "--tenant", "acme", "--all", "--schedule", "report")
    assert done.stdout.splitlines()[-1] == "3 redriven, 0 not", done.stdout + done.stderr
    letters = answer(server, "dead-letters", "list", "--tenant", "acme")["dead_letters"]
    assert {letter["run_id"] for letter in letters} == set(made)
    for letter in letters:
        assert reaches(server, letter["redriven_as"], "succeeded")["of"] == letter["run_id"]
    again = server.run("dead-letters", "redrive", "--tenant", "acme", "--all")
    assert (again.returncode, again.stdout.splitlines()[-1]) == (1, "0 redriven, 3 not")
