"""A law of the bookkeeping: no report gives a lease up by accident, in whatever order answers arrive or get lost."""

from dataclasses import dataclass, field
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.sdk.test_holdings import hand_out, said
from tidewheel import wire
from tidewheel.holdings import Holdings, Report

CALLS = ("claim", "news")
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["send", "answer", "deliver", "fail", "finish"]), st.sampled_from(CALLS), st.integers(0, 3)
    ),
    max_size=40,
)


@dataclass
class Line:
    """A worker with its two calls, and a server that hands out in order: to whichever call it answers next."""

    holdings: Holdings = field(default_factory=lambda: Holdings(worker="w", tasks=(), now=0.0, incarnation="me"))
    sent: dict[str, Report] = field(default_factory=dict)
    answers: dict[str, list[Any]] = field(default_factory=dict)
    offset: int = -1
    alive: set[str] = field(default_factory=set)  # handed out, not lost on the way, not told as finished

    def send(self, call: str, _: int) -> None:
        if call in self.sent:
            return
        if call == "news":
            report = self.holdings.news(slots=9, draining=False, now=0.0)
        elif "news" in self.sent:
            return  # as the session does: a long poll begins when no prompt report is under way
        else:
            report = self.holdings.claim(slots=9, wait_seconds=20, claim_id="c", now=0.0)
        self.sent[call] = report
        self.check(said(report))

    def answer(self, call: str, count: int) -> None:
        if call not in self.sent or call in self.answers:
            return
        self.answers[call] = [hand_out(self.offset + 1 + nth) for nth in range(count)]
        self.offset += count
        self.alive |= {each.lease for each in self.answers[call]}

    def deliver(self, call: str, _: int) -> None:
        if call not in self.answers:
            return
        report = self.sent.pop(call)
        self.holdings.acknowledge(report)
        self.alive -= set(report.finished)
        self.holdings.take(report.number, self.answers.pop(call), 0.0)
        self.holdings.end(report)

    def fail(self, call: str, _: int) -> None:
        if call not in self.sent:
            return
        self.alive -= {each.lease for each in self.answers.pop(call, [])}
        self.holdings.end(self.sent.pop(call))

    def finish(self, _: str, nth: int) -> None:
        held = [lease for lease in self.holdings.held if lease not in self.holdings.finished]
        for lease in held[nth : nth + 1]:
            self.holdings.finish(lease, wire.succeeded(lease, None))

    def check(self, report: dict[str, Any]) -> None:
        listed = {*report["held"], *(entry["lease"] for entry in report["finished"])}
        given_up = {lease for lease in self.alive - listed if int(lease.split(".")[2]) <= report["read_up_to"]}
        assert given_up == set()


@given(STEPS)
def test_what_was_read_past_is_held_or_told_as_finished(steps):
    line = Line()
    for step, call, number in steps:
        getattr(line, step)(call, number)
    for call in CALLS:
        line.answer(call, 0)
        line.deliver(call, 0)
    line.send("news", 0)
    if line.alive:
        assert line.holdings.read_up_to >= max(int(lease.split(".")[2]) for lease in line.alive)
