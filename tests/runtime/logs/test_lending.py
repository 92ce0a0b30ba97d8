"""What is particular to a log that is lent: its two ends, and what either does when the other is gone."""

from __future__ import annotations

from dataclasses import replace
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

import pytest

from runtime.log import Fenced, LogError
from runtime.logs.embedded import EmbeddedLog
from runtime.logs.lending import HolderFailed, Lender
from runtime.logs.lent import LentLog
from runtime.logs.line import CHUNK, Line, pair
from runtime.record import Outgoing, TopicPartition
from tests.runtime.logs.words import DEADLINE, E0, E1, PLENTY, SPECS, HandClock, read, texts, to, write

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


class Loan:
    """A log, and itself lent to this very process."""

    def __init__(self, held: EmbeddedLog, *, questions: int = 3) -> None:
        self.held, self.heard = held, list[Any]()
        self.some_word = Event()
        self.ours, theirs = zip(*(pair() for _ in range(1 + questions)), strict=True)
        self.theirs = [*map(Line, theirs)]
        self.lending = Thread(target=Lender(held, self._hear).serve, args=(self.ours,), daemon=True)
        self.lending.start()
        self.log = LentLog(self.theirs)

    def _hear(self, word: Any) -> None:
        self.heard.append(word)
        self.some_word.set()

    def ended(self) -> bool:
        self.lending.join(DEADLINE)
        return not self.lending.is_alive()

    def end(self) -> None:
        """As when the process of the borrower is gone."""
        for line in self.theirs:
            line.end()
            line.close()
        assert self.ended()


@pytest.fixture
def loan(tmp_path: Path) -> Iterator[Loan]:
    held = EmbeddedLog(tmp_path / "log", HandClock())
    held.create(SPECS)
    loan = Loan(held)
    yield loan
    loan.end()
    held.close()


def test_it_is_the_log_that_lends_under_its_own_name(loan):
    assert (loan.log.cluster_id, loan.log.compaction_lag) == (loan.held.cluster_id, loan.held.compaction_lag)
    assert loan.log.topic_id("events") == loan.held.topic_id("events")


def test_each_sees_at_once_what_the_other_wrote(loan):
    write(loan.log.open_producer("writer", group="group"), *to(E0, "theirs"))
    assert read(loan.held, E0) == ["theirs"]
    loan.held.append(to(E0, "ours"))
    assert read(loan.log, E0) == ["theirs", "ours"]


def test_nothing_of_an_open_transaction_is_with_the_holder(loan):
    producer = loan.log.open_producer("writer", group="group")
    producer.begin()
    producer.send(to(E0, "open"))
    producer.flush()
    assert read(loan.held, E0) == []
    loan.end()
    assert read(loan.held, E0) == []


def test_whoever_takes_over_at_the_holder_s_fences_the_borrower_who_hears_it_by_its_commit(loan):
    old = loan.log.open_producer("writer", group="group")
    new = loan.held.open_producer("writer", group="group")
    old.begin()
    old.send(to(E0, "late"))
    with pytest.raises(Fenced, match="writer"):
        old.commit({E1: 5})
    with pytest.raises(Fenced, match="writer"):
        old.begin()
    write(new, *to(E0, "new"))
    assert read(loan.held, E0) == ["new"]
    assert loan.held.committed("group", [E1]) == {}


def test_a_borrower_that_takes_over_fences_whoever_was_before_it(loan):
    old = loan.held.open_producer("writer", group="group")
    new = loan.log.open_producer("writer", group="group")
    with pytest.raises(Fenced, match="writer"):
        write(old, *to(E0, "late"))
    write(new, *to(E0, "new"))
    assert read(loan.held, E0) == ["new"]


def test_what_is_larger_than_a_read_of_the_line_comes_whole_in_both_directions(loan):
    large = ["x" * (CHUNK - 100), "y" * (8 * CHUNK), "z"]
    write(loan.log.open_producer("writer", group="group"), *to(E0, *large))
    assert read(loan.held, E0) == large
    assert read(loan.log, E0) == large


def test_a_topic_of_later_is_found_when_it_is_asked_for(loan):
    spec = next(iter(SPECS))
    with pytest.raises(LogError, match="later"):
        loan.log.partitions("later")
    loan.held.create({replace(spec, name="later"): 2})
    assert loan.log.partitions("later") == 2
    write(loan.log.open_producer("writer", group="group"), Outgoing("later", 1, b"k", b"v"))
    assert read(loan.held, TopicPartition("later", 1)) == ["v"]


def test_a_waiting_reader_hears_at_once_of_what_is_new(loan):
    reader, found = loan.log.open_reader({E0: 0}), list[str]()
    waiting = Thread(
        target=lambda: found.extend(texts(reader.poll(records_max=9, bytes_max=PLENTY, timeout=2 * DEADLINE)))
    )
    waiting.start()
    loan.held.append(to(E0, "new"))
    waiting.join(DEADLINE)
    assert found == ["new"]


def test_words_are_heard_in_their_order_beside_the_questions(loan):
    for word in ("one", "two", "three"):
        loan.some_word.clear()
        loan.log.tell(word)
        assert loan.log.end_offset(E0) == 0
        assert loan.some_word.wait(DEADLINE)
    assert loan.heard == ["one", "two", "three"]


def test_a_mistake_of_the_holder_s_is_raised_where_it_was_asked_and_costs_no_more(loan):
    with pytest.raises(HolderFailed, match="TypeError"):
        loan.log.ask("begin_offset")
    assert loan.log.end_offset(E0) == 0


def test_a_borrower_that_is_gone_leaves_no_reader_waiting_at_the_holder_s(loan):
    reader = loan.log.open_reader({E0: 0})
    waiting = Thread(target=lambda: _poll_in_vain(reader), daemon=True)
    waiting.start()
    loan.end()
    waiting.join(DEADLINE)
    assert not waiting.is_alive()


def test_a_borrower_whose_holder_is_gone_is_told_so_whatever_it_does(loan):
    reader = loan.log.open_reader({E0: 0})
    for line in loan.ours:
        line.end()
    assert loan.ended()
    attempts: list[Callable[[], object]] = [
        lambda: reader.poll(records_max=1, bytes_max=1, timeout=DEADLINE),
        lambda: loan.log.end_offset(E0),
        lambda: loan.log.append(to(E0, "lost")),
        lambda: loan.log.tell("lost"),
    ]
    for attempt in attempts:
        with pytest.raises(LogError, match="the process that holds the log is gone"):
            attempt()


def test_as_many_ask_at_a_time_as_there_are_lines_and_the_next_waits_for_one(tmp_path):
    held = EmbeddedLog(tmp_path / "log", HandClock())
    held.create(SPECS)
    loan = Loan(held, questions=1)
    reader = loan.log.open_reader({E0: 0})
    asked = Thread(target=lambda: _poll_in_vain(reader), daemon=True)
    asked.start()
    answered: list[int] = []
    other = Thread(target=lambda: answered.append(loan.log.end_offset(E1)), daemon=True)
    other.start()
    held.append(to(E0, "which ends the waiting"))
    asked.join(DEADLINE)
    other.join(DEADLINE)
    assert answered == [0]
    loan.end()
    held.close()


def _poll_in_vain(reader: Any) -> None:
    try:
        reader.poll(records_max=1, bytes_max=PLENTY, timeout=2 * DEADLINE)
    except LogError:
        return
