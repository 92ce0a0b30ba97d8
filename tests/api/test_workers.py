"""Workers over HTTP: reports go to the dispatcher, and what it hands out comes back, also when an answer got lost."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any

import orjson
import pytest

from api.mailbox import RESEND_SECONDS
from api.relay import SILENCE_SECONDS
from runtime.record import Outgoing
from schemas import codec, identity, topics
from schemas.facts import ErrorInfo
from schemas.internal import FinishedLease, HandOut, LeaseNotice
from tests.api.house import NODE
from tests.projections import histories

pytestmark = pytest.mark.anyio

REPORT = "/v1/queues/default/workers:report"
INBOX = identity.partition_of(NODE, topics.INBOXES)
SECONDS = timedelta(seconds=1)


def body(**fields: Any) -> dict[str, Any]:
    return {"worker": "w-1", "incarnation": "inc-1", "read_up_to": -1, "slots": 1, "tasks": ["mail"], **fields}


def lease(offset: int) -> str:
    return f"default.0.{offset}.key{offset}"


def hand_out(offset: int, incarnation: str = "inc-1") -> Outgoing:
    fact = HandOut(
        incarnation=incarnation, inbox=INBOX, shard=0, offset=offset, lease=lease(offset), lease_key=f"key{offset}",
        lease_duration=30 * SECONDS, timeout=60 * SECONDS, start_by=10 * SECONDS, attempt=1, may_have_run=False,
        handed_out_at=histories.START, run=histories.created("report", 60 * offset),
    )  # fmt: skip
    return inboxed(fact)


def notice(**fields: Any) -> Outgoing:
    return inboxed(LeaseNotice(queue="default", incarnation="inc-1", inbox=INBOX, **fields))


def inboxed(fact: Any) -> Outgoing:
    _, value = codec.encode(fact, source="tidewheel/dispatcher/0", time=histories.START)
    return Outgoing(topics.dispatch_topic("default"), INBOX, fact.incarnation.encode(), value)


def inboxed_as_other(handout: Outgoing) -> Outgoing:
    """The same words under a type that a newer version may have."""
    return handout._replace(value=(handout.value or b"").replace(HandOut.TYPE.encode(), b"tidewheel.run.offered.v1"))


async def reported(house: Any, count: int) -> Any:
    """The newest of so many reports, once they are there."""
    return (await asyncio.to_thread(house.wait_for_reports, count))[-1]


async def test_what_a_worker_says_of_itself_for_people_goes_along_with_the_way_it_came(house):
    response = await house.http.post(REPORT, json=body(slots_total=4, stuck=1, client="mine/2.0"))
    assert response.status_code == 200
    report = await reported(house, 1)
    assert (report.slots_total, report.stuck, report.client, report.transport) == (4, 1, "mine/2.0", "http")


async def test_a_report_stands_on_attempts_with_the_nodes_inbox(house):
    response = await house.http.post(
        REPORT,
        json=body(
            number=5, read_up_to=8, held=[lease(7)], started=[lease(7)], slots=3, claim_id="c-1",
            finished=[
                {"lease": lease(6), "outcome": "succeeded", "result": {"rows": 3}},
                {"lease": lease(5), "outcome": "failed", "error": {"type": "ValueError", "message": "no"}},
            ],
        ),
    )  # fmt: skip
    assert response.json() == {"leases": [], "cancelled": [], "lost": [], "unknown": []}
    (fact,) = house.reports()
    assert (fact.queue, fact.shard, fact.worker, fact.incarnation) == ("default", 0, "w-1", "inc-1")
    assert (fact.inbox, fact.read_up_to, fact.slots, fact.tasks, fact.claim_id) == (INBOX, 8, 3, ("mail",), "c-1")
    assert (fact.held, fact.started) == ((lease(7),), (lease(7),))
    assert fact.finished == (
        FinishedLease(lease=lease(6), outcome="succeeded", result={"rows": 3}),
        FinishedLease(lease=lease(5), outcome="failed", error=ErrorInfo(type="ValueError", message="no")),
    )


async def test_a_waiting_report_is_answered_by_the_hand_out_as_the_owner_wrote_it(house):
    waiting = asyncio.create_task(house.http.post(REPORT, json=body(wait=20)))
    await reported(house, 1)
    house.log.append([hand_out(4)])
    answer = (await waiting).json()
    (given,) = answer["leases"]
    assert (given["offset"], given["lease"], given["lease_duration"]) == (4, lease(4), "PT30S")
    assert 0 <= answer["waited"] <= 20
    assert given["run"]["job"]["target"] == {"type": "task", "name": "reports.nightly"}


async def test_a_hand_out_whose_fields_stand_in_another_order_is_given_as_well(house):
    """What is needed of a hand-out is usually read from the front of it, without its run."""
    usual = hand_out(4)
    event = orjson.loads(usual.value or b"")
    event["data"] = dict(reversed(event["data"].items()))
    waiting = asyncio.create_task(house.http.post(REPORT, json=body(wait=20)))
    await reported(house, 1)
    house.log.append([usual._replace(value=orjson.dumps(event))])
    assert (await waiting).json()["leases"] == [event["data"]]


async def test_a_record_that_is_nothing_to_a_worker_is_passed_over(house):
    waiting = asyncio.create_task(house.http.post(REPORT, json=body(wait=20)))
    await reported(house, 1)
    house.log.append([inboxed_as_other(hand_out(3)), hand_out(4)])
    assert [given["offset"] for given in (await waiting).json()["leases"]] == [4]


async def test_hand_outs_of_others_are_not_given(house):
    waiting = asyncio.create_task(house.http.post(REPORT, json=body(wait=20)))
    await reported(house, 1)
    house.log.append([hand_out(3, "inc-2"), hand_out(4)])
    assert [given["offset"] for given in (await waiting).json()["leases"]] == [4]


async def test_what_came_between_two_reports_is_given_to_the_next_in_order(house):
    await house.http.post(REPORT, json=body())
    house.log.append([hand_out(2), hand_out(1)])
    response = await house.http.post(REPORT, json=body(wait=20, slots=2))
    offsets = {given["offset"] for given in response.json()["leases"]}
    while len(offsets) < 2:
        response = await house.http.post(REPORT, json=body(wait=20, slots=2))
        offsets |= {given["offset"] for given in response.json()["leases"]}
    assert offsets == {1, 2}


async def test_a_repeated_claim_is_given_the_same_leases_and_is_not_reported_twice(house):
    waiting = asyncio.create_task(house.http.post(REPORT, json=body(wait=20, claim_id="c-1")))
    await reported(house, 1)
    house.log.append([hand_out(4)])
    first = (await waiting).json()
    again = (await house.http.post(REPORT, json=body(wait=20, claim_id="c-1"))).json()
    assert again["leases"] == first["leases"]
    assert len(house.reports()) == 1


async def test_a_hand_out_that_was_given_and_is_still_unread_is_given_again_after_a_while(house):
    waiting = asyncio.create_task(house.http.post(REPORT, json=body(wait=20)))
    await reported(house, 1)
    house.log.append([hand_out(4)])
    assert len((await waiting).json()["leases"]) == 1
    loop = asyncio.get_running_loop()
    began = loop.time()
    response = await house.http.post(REPORT, json=body(wait=20))
    assert [given["offset"] for given in response.json()["leases"]] == [4]
    assert response.json()["waited"] <= 0, "it came before this report"
    assert loop.time() - began >= RESEND_SECONDS / 2


async def test_what_the_worker_says_it_has_read_is_not_given_again(house):
    waiting = asyncio.create_task(house.http.post(REPORT, json=body(wait=20)))
    await reported(house, 1)
    house.log.append([hand_out(4)])
    await waiting
    response = await house.http.post(REPORT, json=body(read_up_to=4, held=[lease(4)], claim_id="c-9", slots=0))
    assert response.json()["leases"] == []


async def test_cancelled_and_ended_leases_are_told_once(house):
    waiting = asyncio.create_task(house.http.post(REPORT, json=body(wait=20, slots=0)))
    await reported(house, 1)
    house.log.append([notice(cancelled=(lease(1),), ended=(lease(2),))])
    answer = (await waiting).json()
    assert (answer["cancelled"], answer["lost"]) == ([lease(1)], [lease(2)])
    assert (await house.http.post(REPORT, json=body(slots=0))).json()["lost"] == []


async def test_an_ended_incarnation_is_told_by_whom(house):
    waiting = asyncio.create_task(house.http.post(REPORT, json=body(wait=20)))
    await reported(house, 1)
    house.log.append([notice(incarnation_ended=True, ended_by="inc-9")])
    answer = (await waiting).json()
    assert (answer["incarnation_ended"], answer["ended_by"]) == (True, "inc-9")


async def test_a_lease_that_is_none_of_this_queue_is_unknown_and_goes_no_further(house):
    foreign = "other.0.1.key"
    response = await house.http.post(REPORT, json=body(held=[foreign, lease(1)], started=["nonsense"]))
    assert response.json()["unknown"] == ["nonsense", foreign]
    assert house.reports()[0].held == (lease(1),)


async def test_a_newer_wait_takes_over_from_an_older_one(house):
    older = asyncio.create_task(house.http.post(REPORT, json=body(number=1, wait=20)))
    await reported(house, 1)
    newer = asyncio.create_task(house.http.post(REPORT, json=body(number=2, wait=20)))
    assert (await older).json()["leases"] == []
    await reported(house, 2)
    house.log.append([hand_out(4)])
    assert len((await newer).json()["leases"]) == 1


async def test_a_worker_that_does_not_come_back_is_reported_to_have_no_slots(house):
    await house.http.post(REPORT, json=body(number=1, slots=3, held=[lease(1)], started=[lease(1)], wait=0.01))
    closing = await reported(house, 2)
    assert (closing.slots, closing.held, closing.started) == (0, (lease(1),), ())
    assert closing.number > house.reports()[0].number


async def test_the_nodes_own_report_lies_between_the_workers(house):
    await house.http.post(REPORT, json=body(number=1, slots=3, wait=0.01))
    await reported(house, 2)
    await house.http.post(REPORT, json=body(number=2, slots=3))
    numbers = [fact.number for fact in house.reports()]
    assert numbers == sorted(set(numbers))


async def test_a_worker_that_comes_back_in_time_keeps_its_slots(house):
    loop = asyncio.get_running_loop()
    until = loop.time() + SILENCE_SECONDS * 1.5
    while loop.time() < until:
        await house.http.post(REPORT, json=body(wait=0.1))
    assert {fact.slots for fact in house.reports()} == {1}


async def test_reports_without_numbers_are_numbered_by_the_node(house):
    for _ in range(3):
        await house.http.post(REPORT, json=body())
    numbers = [fact.number for fact in house.reports()]
    assert numbers == sorted(set(numbers))


async def test_a_queue_comes_into_being_with_its_first_report(house):
    assert topics.dispatch_topic("mail") not in house.log.topics()
    assert (await house.http.post("/v1/queues/mail/workers:report", json=body())).status_code == 200
    assert topics.dispatch_topic("mail") in house.log.topics()


async def test_a_restarted_node_finds_what_its_workers_have_not_read(house):
    house.ensure_queue("default")
    house.log.append([hand_out(1), hand_out(2)])  # before this node has ever heard of the queue
    response = await house.http.post(REPORT, json=body(read_up_to=1, wait=20))
    assert [given["offset"] for given in response.json()["leases"]] == [2]


@pytest.mark.parametrize(
    ("fields", "pointer", "code"),
    [
        ({"slots": -1}, "/slots", "range"),
        ({"incarnation": "a b"}, "/incarnation", None),
        ({"wait": 31}, "/wait", "range"),
        ({"heled": []}, "/heled", "unknown_field"),
        ({"finished": [{"lease": "l", "outcome": "done"}]}, "/finished/0/outcome", "unknown_value"),
        ({"finished": [{"lease": "l", "outcome": "failed", "eror": {}}]}, "/finished/0/eror", "unknown_field"),
        ({"finished": [{"lease": "l", "outcome": "failed", "result": "x" * 17_000}]}, "/finished/0/result", None),
    ],
)  # fmt: skip
async def test_a_report_that_does_not_fit_is_refused_with_the_field(house, fields, pointer, code):
    response = await house.http.post(REPORT, json=body(**fields))
    assert response.status_code == 422
    (fault,) = response.json()["faults"]
    assert fault["pointer"] == pointer
    assert code in (None, fault["code"])
    assert house.reports() == []


async def test_long_error_texts_are_cut_for_a_failure_must_not_be_lost_over_its_words(house):
    error = {"type": "E" * 1000, "message": "m" * 10_000}
    finished = [{"lease": lease(1), "outcome": "failed", "error": error}]
    assert (await house.http.post(REPORT, json=body(finished=finished))).status_code == 200
    told = house.reports()[0].finished[0].error
    assert (len(told.type), len(told.message)) == (256, 4096)


# --- the simple form ----------------------------------------------------------------------------------------------

CLAIM = "/v1/queues/default/leases:claim"


async def claimed(house: Any, *offsets: int, **fields: Any) -> Any:
    """A claim, and what the dispatcher hands out for it."""
    count = len(house.reports())
    asked = {"worker": "perl-1", "slots": len(offsets), "tasks": ["mail"], "wait": 20, **fields}
    waiting = asyncio.create_task(house.http.post(CLAIM, json=asked))
    incarnation = (await reported(house, count + 1)).incarnation
    house.log.append([hand_out(offset, incarnation) for offset in offsets])
    return (await waiting).json()


async def test_a_claim_gets_leases_and_says_at_once_that_they_started(house):
    answer = await claimed(house, 4)
    (given,) = answer["leases"]
    assert (given["lease"], given["attempt"], given["run"]["run_id"]) == (lease(4), 1, "report.20260301T000400Z")
    first, second, *_ = house.reports()
    assert (first.slots, first.held, first.read_up_to) == (1, (), -1)
    assert (second.slots, second.held, second.started, second.read_up_to) == (0, (lease(4),), (lease(4),), 4)


async def test_a_repeated_claim_id_gets_the_same_leases(house):
    answer = await claimed(house, 4, claim_id="c-1")
    count = len(house.reports())
    again = await house.http.post(CLAIM, json={"worker": "perl-1", "tasks": ["mail"], "claim_id": "c-1"})
    assert again.json() == answer
    assert len(house.reports()) == count


async def test_a_heartbeat_keeps_leases_and_tells_which_should_stop(house):
    await claimed(house, 4, 5)
    incarnation = house.reports()[0].incarnation
    told = inboxed(
        LeaseNotice(queue="default", incarnation=incarnation, inbox=INBOX, cancelled=(lease(4),), ended=(lease(5),))
    )
    house.log.append([told])
    beat = {"worker": "perl-1", "leases": [lease(4), lease(5), "nonsense"]}
    answer: dict[str, Any] = {"cancelled": [], "lost": []}
    async with asyncio.timeout(20):
        while not (answer["cancelled"] and answer["lost"]):
            answer = (await house.http.post("/v1/leases:heartbeat", json=beat)).json()
    assert answer == {"cancelled": [lease(4)], "lost": [lease(5)], "unknown": ["nonsense"]}


async def test_a_completed_lease_is_reported_and_no_longer_held(house):
    await claimed(house, 4, 5)
    done = {"outcome": "succeeded", "result": {"rows": 3}}
    response = await house.http.post(f"/v1/leases/{lease(4)}:complete", json=done)
    assert response.json() == {"lease": lease(4), "outcome": "succeeded"}
    last = house.reports()[-1]
    assert last.finished == (FinishedLease(lease=lease(4), outcome="succeeded", result={"rows": 3}),)
    assert last.held == (lease(5),)


async def test_a_completion_may_be_repeated_when_its_answer_got_lost(house):
    await claimed(house, 4)
    done = {"outcome": "succeeded"}
    first = await house.http.post(f"/v1/leases/{lease(4)}:complete", json=done)
    again = await house.http.post(f"/v1/leases/{lease(4)}:complete", json=done)
    assert (again.status_code, again.json()) == (200, first.json())
    assert sum(len(fact.finished) for fact in house.reports()) == 1
    beat = await house.http.post("/v1/leases:heartbeat", json={"worker": "perl-1", "leases": [lease(4)]})
    assert beat.json()["unknown"] == [lease(4)]


async def test_who_quotes_a_lease_whole_can_complete_it_at_any_node(house):
    """An endpoint that a worker has called is no worker, and this node never heard of the lease."""
    done = {"outcome": "failed", "error": {"type": "NoStock", "message": "none left"}, "retry_after": "PT30S"}
    response = await house.http.post(f"/v1/leases/{lease(8)}:complete", json=done)
    assert (response.status_code, response.json()) == (200, {"lease": lease(8), "outcome": "failed"})
    report = house.reports()[-1]
    assert (report.number, report.slots, report.tasks, report.held, report.started) == (-1, 0, (), (), ())
    assert report.finished == (
        FinishedLease(
            lease=lease(8), outcome="failed", error=ErrorInfo(type="NoStock", message="none left"),
            retry_after=30 * SECONDS,
        ),
    )  # fmt: skip


@pytest.mark.parametrize("text", ["x", "default.0.8", "default.1000.8.key", "a b.0.8.key"])
async def test_what_is_no_lease_cannot_be_completed(house, text):
    response = await house.http.post(f"/v1/leases/{text}:complete", json={"outcome": "succeeded"})
    assert (response.status_code, response.json()["code"]) == (404, "unknown_lease")
    assert house.reports() == []


async def test_a_lease_that_this_node_did_not_give_can_be_completed_with_its_workers_name(house):
    done = {"outcome": "succeeded"}
    response = await house.http.post(f"/v1/leases/{lease(8)}:complete", json={**done, "worker": "perl-1"})
    assert response.status_code == 200
    assert house.reports()[-1].finished[0].lease == lease(8)


async def test_a_claim_that_finds_nothing_closes_its_slots(house):
    empty = {"worker": "perl-1", "tasks": ["mail"], "wait": 0.01}
    assert (await house.http.post(CLAIM, json=empty)).json() == {"leases": []}
    assert [fact.slots for fact in house.reports()] == [1, 0]


async def test_a_claim_that_waits_long_says_again_that_its_worker_lives(house):
    """Its owner would take a worker that is silent for three periods to be gone, and hand it nothing."""
    house.services.leases.repeat_seconds = 0.05
    waiting = asyncio.create_task(
        house.http.post(CLAIM, json={"worker": "perl-1", "tasks": ["mail"], "slots": 1, "wait": 20})
    )
    reports = await asyncio.to_thread(house.wait_for_reports, 4)
    waiting.cancel()
    assert {(fact.worker, fact.slots) for fact in reports[:4]} == {("perl-1", 1)}


async def test_two_claims_of_one_worker_take_turns(house):
    asked = {"worker": "perl-1", "slots": 1, "tasks": ["mail"], "wait": 20}
    claims = [asyncio.create_task(house.http.post(CLAIM, json=asked)) for _ in range(2)]
    incarnation = (await reported(house, 1)).incarnation
    house.log.append([hand_out(1, incarnation)])
    await reported(house, 3)
    house.log.append([hand_out(2, incarnation)])
    given = [found["offset"] for claim in claims for found in (await claim).json()["leases"]]
    assert sorted(given) == [1, 2]
