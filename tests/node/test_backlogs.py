"""What is left to be caught up is counted at a price that does not grow with what a partition has stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from node.backlogs import LOOKED_AT_MAX, WALKED_MAX, Backlogs
from scheduler.keys import parts
from scheduler.state import ScheduleState, Waiting
from tests.scheduler.harness import Shell, definition


class Stored:
    """Schedules of a partition, and how many of them were looked at."""

    def __init__(self, **backlogs: int) -> None:
        self.counts = backlogs
        self.looked_at = 0

    def __call__(self, keys: Iterable[bytes] | None = None) -> Iterator[Any]:
        names = self.counts if keys is None else [parts(key)[2] for key in keys]
        for name in names:
            self.looked_at += 1
            first = Waiting(nominal=0, version=1) if self.counts[name] else None
            yield ScheduleState(tenant="acme", name=name, backlog=first, backlog_count=self.counts[name])


def test_a_large_partition_is_walked_once_in_parts_and_says_nothing_before_it_knows_all():
    stored = Stored(**{f"s-{number:04}": number % 2 for number in range(2 * WALKED_MAX + 10)})
    backlogs = Backlogs()
    assert [backlogs.look(stored), backlogs.look(stored)] == [None, None]
    assert stored.looked_at == 2 * WALKED_MAX
    assert backlogs.look(stored) == {"paced": WALKED_MAX + 5, "frozen": 0}
    stored.looked_at = 0
    assert backlogs.look(stored) == {"paced": WALKED_MAX + 5, "frozen": 0}
    assert stored.looked_at == 0


def test_only_what_was_heard_of_is_looked_at_again_and_so_much_at_once():
    """The facts of an outage of two schedules, told as if they were of a great many."""
    shell = Shell("2024-01-01T09:59:30")
    shell.put("s", definition("* * * * *", catch_up={"policy": "all"}, overlap={"policy": "allow_all"}))
    shell.sleep_until("2024-01-01T10:05:30")
    shell.settle()
    deferred = [fact for fact in shell.facts if fact.TYPE == "tidewheel.occurrence.deferred.v1"]
    stored, backlogs = Stored(s=3, other=0), Backlogs()
    backlogs.look(stored)
    stored.counts["s"], stored.looked_at = 2, 0
    for fact in (*deferred, *deferred):
        backlogs.hear(fact)
    assert backlogs.look(stored) == {"paced": 2, "frozen": 0}
    assert stored.looked_at == 1
    assert LOOKED_AT_MAX == 1_000
