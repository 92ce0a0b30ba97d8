"""A law of the bookkeeping: no report gives a lease up by accident, in whatever order answers arrive or get lost."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sdk.test_holdings import hand_out, said
from tidewheel import wire
from tidewheel.holdings import Holdings, Report
from tidewheel.wire import HandOut


@dataclass
class Line:
    """A worker with its two calls, and a server that hands out in order: in whichever answer it writes next."""

    holdings: Holdings = field(default_factory=lambda: Holdings(worker="w", tasks=(), now=0.0, incarnation="me"))
    sent: dict[str, Report] = field(default_factory=dict)
    answers: dict[str, list[HandOut]] = field(default_factory=dict)
    offset: int = -1
    alive: set[str] = field(default_factory=set)  # handed out, not lost on the way, not told as finished

    def possible(self) -> list[Callable[[], None]]:
        """What can happen next. As in the session, a long poll begins when no prompt report is under way."""
        actions: list[Callable[[], None]] = []
        if "news" not in self.sent:
            actions.append(lambda: self.send("news", self.holdings.news(slots=9, draining=False, now=0.0)))
        if not self.sent:
            actions.append(
                lambda: self.send("claim", self.holdings.claim(slots=9, wait_seconds=20, claim_id="", now=0.0))
            )
        for call in self.sent:
            if call in self.answers:
                actions += [partial(self.deliver, call)] * 2
            else:
                actions += [partial(self.answer, call, count) for count in (0, 1, 2)]
            actions.append(partial(self.fail, call))
        working = [lease for lease in self.holdings.held if lease not in self.holdings.finished]
        return [*actions, *(partial(self.finish, lease) for lease in working[:2])]

    def send(self, call: str, report: Report) -> None:
        self.sent[call] = report
        told = said(report)
        listed = {*told["held"], *(entry["lease"] for entry in told["finished"])}
        given_up = {lease for lease in self.alive - listed if offset_of(lease) <= told["read_up_to"]}
        assert given_up == set()

    def answer(self, call: str, count: int) -> None:
        self.answers[call] = [hand_out(self.offset + 1 + nth) for nth in range(count)]
        self.offset += count
        self.alive |= {each.lease for each in self.answers[call]}

    def deliver(self, call: str) -> None:
        report = self.sent.pop(call)
        self.holdings.acknowledge(report)
        self.alive -= set(report.finished)
        self.holdings.take(report.number, self.answers.pop(call), 0.0)
        self.holdings.end(report)

    def fail(self, call: str) -> None:
        self.alive -= {each.lease for each in self.answers.pop(call, [])}
        self.holdings.end(self.sent.pop(call))

    def finish(self, lease: str) -> None:
        self.holdings.finish(lease, wire.succeeded(lease, None))


def offset_of(lease: str) -> int:
    return int(lease.split(".")[2])


@settings(max_examples=300)
@given(st.lists(st.integers(0, 59), min_size=5, max_size=40))
def test_what_was_read_past_is_held_or_told_as_finished(choices):
    line = Line()
    for choice in choices:
        possible = line.possible()
        possible[choice % len(possible)]()
    for call in list(line.sent):
        line.answers.setdefault(call, [])
        line.deliver(call)
    assert line.holdings.read_up_to >= max(map(offset_of, line.alive), default=-1)
