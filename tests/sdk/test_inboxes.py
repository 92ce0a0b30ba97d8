"""A worker whose post comes by itself, as on Kafka: what it does about its inbox, without any broker."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.sdk.fake_server import DEADLINE_SECONDS, run
from tidewheel.session import Session
from tidewheel.tasks import register
from tidewheel.transport import InboxLost, Post
from tidewheel.wire import Answer, HandOut

pytestmark = pytest.mark.anyio


class Line:
    """A transport and its inbox. `steps` is what was asked of it, in order."""

    place = "the line"

    def __init__(self) -> None:
        self.inbox = self
        self.is_current = True
        self.steps: list[tuple[str, Any]] = []
        self.post: asyncio.Queue[Post | InboxLost] = asyncio.Queue()
        self._changed = asyncio.Condition()
        self.asked = asyncio.Event()  # The task was asked to stop;
        self.hold = asyncio.Event()  # it does when this is set.
        self.hold.set()

    async def open(self, incarnation):
        if ("open", incarnation) not in self.steps:
            await self._note("open", incarnation)

    async def report(self, report):
        await self._note("report", json.loads(report.body))
        return Answer()

    async def log(self, chunks):
        return {}

    async def receive(self):
        found = await self.post.get()
        if isinstance(found, InboxLost):
            raise found
        return found

    async def close(self):
        pass

    async def _note(self, what: str, about: Any) -> None:
        async with self._changed:
            self.steps.append((what, about))
            self._changed.notify_all()

    @property
    def reports(self) -> list[dict[str, Any]]:
        return [said for what, said in self.steps if what == "report"]

    async def until(self, condition: Callable[[], Any]) -> Any:
        async with asyncio.timeout(DEADLINE_SECONDS), self._changed:
            return await self._changed.wait_for(condition)

    def give(self, answer: Answer, *, since: float = float("inf"), incarnation: str = "") -> None:
        to = incarnation or self.reports[-1]["incarnation"]
        self.post.put_nowait(Post(incarnation=to, answer=answer, current_at=since))


@pytest.fixture
async def line():
    line = Line()

    async def it():
        try:
            await asyncio.Event().wait()
        finally:
            line.asked.set()
            await line.hold.wait()

    session = Session(line, {"it": register("it", it)}, name="w1", slots=3)
    session.start()
    await line.until(lambda: line.reports)
    yield line
    await session.drain(0.0)
    await session.wait()


def hand_out(incarnation: str, offset: int) -> Answer:
    about = run("it")
    about.pop("handout")
    handout: Any = {
        "incarnation": incarnation,
        "offset": offset,
        "lease": f"default.0.{offset}.key",
        "lease_duration": "PT30S",
        "start_by": "PT10S",
        "timeout": "PT1H",
        "attempt": 1,
        "run": about,
    }
    return Answer(leases=(HandOut.read(handout),))


async def test_an_inbox_is_open_before_its_incarnation_is_heard_of(line):
    [(first, incarnation), (second, report)] = line.steps
    assert (first, second, report["incarnation"], report["slots"]) == ("open", "report", incarnation, 3)


async def test_what_was_read_is_said_at_once(line):
    line.give(hand_out(line.reports[0]["incarnation"], 7))
    report = await line.until(lambda: line.reports[-1]["started"] and line.reports[-1])
    assert (report["read_up_to"], report["held"], report["slots"]) == (7, ["default.0.7.key"], 2)


async def test_what_may_have_been_written_longer_ago_than_it_may_start_is_read_and_not_held(line):
    line.give(hand_out(line.reports[0]["incarnation"], 7), since=0.0)
    report = await line.until(lambda: line.reports[-1]["read_up_to"] == 7 and line.reports[-1])
    assert (report["held"], report["started"], report["slots"]) == ([], [], 3)


async def test_who_does_not_know_the_end_of_the_inbox_asks_for_nothing(line):
    line.is_current = False
    line.give(hand_out(line.reports[0]["incarnation"], 7))
    report = await line.until(lambda: line.reports[-1]["started"] and line.reports[-1])
    assert report["slots"] == 0


async def test_a_cancel_is_not_answered_as_it_is_repeated_in_answer_to_each_report(line):
    """Else a task that does not stop would have worker and owner talk without a pause."""
    line.give(hand_out(line.reports[0]["incarnation"], 7))
    await line.until(lambda: line.reports[-1]["started"])
    line.hold.clear()
    line.give(Answer(cancelled=("default.0.7.key",)))
    await asyncio.wait_for(line.asked.wait(), DEADLINE_SECONDS)
    before = len(line.reports)
    line.give(Answer(cancelled=("default.0.7.key",)))
    for _ in range(100):
        await asyncio.sleep(0)
    assert (len(line.reports), line.post.empty()) == (before, True)
    line.hold.set()
    report = await line.until(lambda: line.reports[-1]["finished"] and line.reports[-1])
    assert report["finished"] == [{"lease": "default.0.7.key", "outcome": "cancelled"}]


async def test_a_lease_that_ended_is_let_go_of_at_once(line):
    line.give(hand_out(line.reports[0]["incarnation"], 7))
    await line.until(lambda: line.reports[-1]["started"])
    line.give(Answer(lost=("default.0.7.key",)))
    report = await line.until(lambda: not line.reports[-1]["held"] and line.reports[-1])
    assert (report["read_up_to"], report["finished"]) == (7, [])


async def test_an_inbox_that_was_lost_ends_its_incarnation_which_takes_leave_before_the_next_one_begins(line):
    old = line.reports[0]["incarnation"]
    line.give(hand_out(old, 7))
    await line.until(lambda: line.reports[-1]["started"])
    line.post.put_nowait(InboxLost("cut"))
    fresh = await line.until(lambda: line.reports[-1]["incarnation"] != old and line.reports[-1])
    assert (fresh["held"], fresh["read_up_to"]) == ([], -1)
    (_, leave), opened, introduction = line.steps[-3:]
    assert (leave["incarnation"], leave["held"], leave["slots"]) == (old, [], 0)
    assert (opened, introduction) == (("open", fresh["incarnation"]), ("report", fresh))


async def test_post_for_an_incarnation_that_is_over_ends_nobody_else(line):
    line.give(Answer(incarnation_ended=True, ended_by="other"), incarnation="former")
    line.give(hand_out(line.reports[0]["incarnation"], 7))
    report = await line.until(lambda: line.reports[-1]["held"] and line.reports[-1])
    assert report["incarnation"] == line.reports[0]["incarnation"]
