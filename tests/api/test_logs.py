"""What runs write: taken from who has the lease, shown while they run, page by page, to their tenant alone."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import orjson
import pytest

from schemas import identity, topics
from schemas.facts import Outcome
from tests.api.house import House
from tests.projections import histories
from tests.projections.histories import at, created, finished, started
from tests.projections.test_logs import logged

pytestmark = pytest.mark.anyio

RUN = created("report", 0)
LEASE = "default.0.7.secret"
JSON = {"Content-Type": "application/json"}
WRITE, READ = "/v1/leases:log", f"/v1/tenants/acme/runs/{RUN.run_id}/logs"


def begun(lease: str = LEASE, **fields: Any) -> Any:
    check = identity.log_check(identity.log_proof(lease))
    return replace(started(RUN, 1, **{"handout": 7, **fields}), log_check=check)


def lines(*texts: str, first: int = 0) -> list[dict[str, Any]]:
    return [
        {"line": first + number, "at": "2026-03-01T00:00:02Z", "stream": "stdout", "text": text}
        for number, text in enumerate(texts)
    ]


def wrote(*texts: str, lease: str = LEASE, run_id: str = RUN.run_id, **fields: Any) -> dict[str, Any]:
    return {"attempts": [{"lease": lease, "run_id": run_id, "lines": lines(*texts, **fields)}]}


async def shown(house: Any, path: str = READ, **query: Any) -> list[str]:
    house.read_logs()
    return [line["text"] for line in (await house.http.get(path, params=query)).json()["lines"]]


# --- written ---


async def test_what_a_worker_writes_is_shown_with_its_run(house):
    house.happened(RUN, begun())
    answer = await house.http.post(WRITE, json=wrote("one", "two"))
    assert (answer.status_code, answer.json()) == (200, {"refused": []})
    house.read_logs()
    body = (await house.http.get(READ)).json()
    assert body["lines"] == [
        {
            "attempt": 1, "handout": 7, "line": number, "at": "2026-03-01T00:00:02Z", "stream": "stdout",
            "text": text,
        }
        for number, text in enumerate(("one", "two"))
    ]  # fmt: skip
    assert (body["more"], body["complete"]) == (False, False)


async def test_the_record_carries_no_lease(house):
    house.happened(RUN, begun())
    await house.http.post(WRITE, json=wrote("one"))
    (record,) = histories.everything(house.log, [topics.LOGS])
    assert b"secret" not in (record.value or b"")
    assert record.key == RUN.run_id.encode()


async def test_lines_that_are_sent_again_are_shown_once(house):
    house.happened(RUN, begun())
    for _ in range(2):
        await house.http.post(WRITE, json=wrote("one"))
    assert await shown(house) == ["one"]


async def test_a_made_up_lease_of_an_attempt_is_refused(house):
    house.happened(RUN, begun())
    answer = await house.http.post(WRITE, json=wrote("forged", lease="default.0.7.guessed"))
    assert answer.json() == {"refused": [{"lease": "default.0.7.guessed", "reason": "other_lease"}]}
    assert await shown(house) == []


async def test_a_lease_writes_only_for_its_own_run(house):
    house.happened(RUN, begun(), created("load", 0))
    answer = await house.http.post(WRITE, json=wrote("forged", run_id="load.20260301T000000Z"))
    assert answer.json()["refused"][0]["reason"] == "other_run"


async def test_what_is_no_lease_is_refused(house):
    answer = await house.http.post(WRITE, json=wrote("x", lease="nothing"))
    assert answer.json()["refused"][0]["reason"] == "unknown_lease"


async def test_lines_of_a_run_nobody_knows_are_taken_and_shown_by_none(house):
    house.happened(RUN, begun())
    answer = await house.http.post(WRITE, json=wrote("early", lease="default.0.8.other"))
    assert answer.json() == {"refused": []}
    assert await shown(house) == []


async def test_one_refused_attempt_does_not_cost_the_others(house):
    house.happened(RUN, begun())
    both = {"attempts": wrote("forged", lease="default.0.7.guessed")["attempts"] + wrote("mine")["attempts"]}
    answer = await house.http.post(WRITE, json=both)
    assert [each["lease"] for each in answer.json()["refused"]] == ["default.0.7.guessed"]
    assert await shown(house) == ["mine"]


@pytest.mark.parametrize(
    ("line", "pointer"),
    [
        ({"line": 11_000}, "/attempts/0/lines/0/line"),
        ({"text": "x" * 4_097}, "/attempts/0/lines/0/text"),
        ({"at": "2026-03-01T00:00:00"}, "/attempts/0/lines/0/at"),
        ({"stream": "<b>"}, "/attempts/0/lines/0/stream"),
        ({"txt": "x"}, "/attempts/0/lines/0/txt"),
    ],
)
async def test_lines_that_cannot_be_are_refused_by_their_field(house, line, pointer):
    body = wrote("x")
    body["attempts"][0]["lines"][0] |= line
    answer = await house.http.post(WRITE, json=body)
    assert answer.status_code == 422
    assert [fault["pointer"] for fault in answer.json()["faults"]] == [pointer]


async def test_an_unknown_field_of_a_line_names_the_nearest(house):
    body = wrote("x")
    body["attempts"][0]["lines"][0]["txt"] = "x"
    (fault,) = (await house.http.post(WRITE, json=body)).json()["faults"]
    assert "text" in fault["remedy"] + fault["message"]


# --- with a completion ---


async def test_what_comes_with_a_completion_is_shown_with_its_attempt(house):
    house.happened(RUN, begun())
    done = {"worker": "w-1", "outcome": "succeeded", "logs": "first\nsecond\x1b[31m red"}
    answer = await house.http.post(f"/v1/leases/{LEASE}:complete", json=done)
    assert answer.json() == {"lease": LEASE, "outcome": "succeeded"}
    assert await shown(house) == ["first", "second red"]


async def test_a_completion_counts_although_its_log_cannot_be_kept(house):
    done = {"worker": "w-1", "outcome": "succeeded", "logs": "nobody knows this attempt"}
    answer = await house.http.post(f"/v1/leases/{LEASE}:complete", json=done)
    assert answer.json() == {"lease": LEASE, "outcome": "succeeded", "logs_refused": "unknown_attempt"}
    assert [each.lease for report in house.reports() for each in report.finished] == [LEASE]


async def test_of_a_long_log_that_comes_with_a_completion_the_end_is_kept(house):
    house.happened(RUN, begun())
    text = "\n".join(str(number) for number in range(1_200))
    await house.http.post(f"/v1/leases/{LEASE}:complete", json={"outcome": "succeeded", "logs": text})
    house.read_logs()
    kept = (await house.http.get(READ, params={"limit": 2_000})).json()["lines"]
    assert (len(kept), kept[0]["text"], kept[0]["dropped"], kept[-1]["text"]) == (999, "201", 201, "1199")


# --- read ---


async def test_another_tenants_run_is_not_found(house):
    house.happened(RUN, begun())
    assert (await house.http.get(f"/v1/tenants/other/runs/{RUN.run_id}/logs")).status_code == 404


async def test_lines_are_narrowed_by_attempt_stream_and_instant(house):
    house.happened(RUN, begun(), begun("default.0.9.k", handout=9, attempt=2))
    house.wrote(
        logged("a", stream="log"), logged("b", line=1, second=40), logged("c", lease="default.0.9.k", second=60)
    )
    assert await shown(house, attempt=1) == ["a", "b"]
    assert await shown(house, stream="log,stderr") == ["a"]
    assert await shown(house, since="2026-03-01T00:00:40Z") == ["b", "c"]
    assert await shown(house, newest=True, limit=1) == ["c"]


@pytest.mark.parametrize(
    ("query", "status"),
    [({"wait": 31}, 400), ({"attempt": 0}, 400), ({"tail": 3}, 400), ({"since": "noon"}, 422), ({"cursor": "x"}, 422)],
)
async def test_a_question_that_cannot_be_is_refused(house, query, status):
    house.happened(RUN, begun())
    answer = await house.http.get(READ, params=query)
    assert answer.status_code == status, answer.text


async def test_who_follows_hears_each_line_while_the_run_runs_and_then_that_it_is_over(house):
    house.happened(RUN, begun())
    cursor, heard = None, list[str]()
    for text in ("one", "two"):
        waiting = asyncio.create_task(
            house.http.get(READ, params={"wait": 20} | ({"cursor": cursor} if cursor else {}))
        )
        await house.http.post(WRITE, json=wrote(text, first=len(heard)))
        body = (await waiting).json()
        heard += [line["text"] for line in body["lines"]]
        cursor = body["cursor"]
        assert body["complete"] is False
    waiting = asyncio.create_task(house.http.get(READ, params={"wait": 20, "cursor": cursor}))
    house.happened(finished(RUN, 90, Outcome.SUCCEEDED))
    body = (await waiting).json()
    assert (heard, body["lines"], body["complete"]) == (["one", "two"], [], True)


async def test_a_run_that_is_over_is_not_waited_for(house):
    house.happened(RUN, begun(), finished(RUN, 90, Outcome.FAILED))
    house.wrote(logged("last"))
    body = (await house.http.get(READ, params={"wait": 20})).json()
    assert ([line["text"] for line in body["lines"]], body["complete"]) == (["last"], True)


async def test_a_log_is_shown_as_long_as_its_job_says(tmp_path):
    clock = [at(0)]
    async with House(tmp_path, now=lambda: clock[0]) as house:
        house.happened(RUN, begun())
        house.wrote(logged("short", retention=timedelta(hours=1)), logged("long", line=1))
        appended_at = histories.everything(house.log, [topics.LOGS])[0].appended_at
        clock[0] = appended_at + timedelta(minutes=59)
        assert await shown(house) == ["short", "long"]
        clock[0] = appended_at + timedelta(minutes=61)
        assert await shown(house) == ["long"]
        clock[0] = appended_at + timedelta(days=7, minutes=1)
        assert await shown(house) == []


async def test_the_answer_is_json_whatever_was_written(house):
    house.happened(RUN, begun())
    await house.http.post(WRITE, content=orjson.dumps(wrote("</script>\x00\x1b[0m\u202e")), headers=JSON)
    assert await shown(house) == ["</script>\\x00\\u202e"]
