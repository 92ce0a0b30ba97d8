"""A log is lent to another process: the holder's end, which does for the borrower what that asks of the log.

    borrower (`runtime.logs.lent`)       holder
    a question, on any free line   ─▶    the log answers, or what it has against it
    poll                           ─▶    a reader waits: who borrowed hears at once of what is new
    a whole transaction            ─▶    committed as its writer's, who is fenced as any other
    a word, on the first line      ─▶    (heard, not answered)

What a borrower has sent and not committed has never been here. When the borrower is gone, its readers are closed; what
had come whole is committed, as when a process ends behind its commit.
"""

from __future__ import annotations

from contextlib import suppress
from itertools import count
from threading import Thread
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from runtime.log import Log, LogError, Reader
from runtime.logs.producing import Commit, Ledger, Writer
from runtime.record import Outgoing, TopicPartition

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime, timedelta

    from runtime.logs.line import Line

Place = tuple[str, int]  # as plain tuples: names cost ten times as much to send


class Lendable(Log, Ledger, Protocol):
    """A log that can be lent: it takes a transaction whole, and never loses a topic."""


class Described(NamedTuple):
    """What a borrower has to know of a log."""

    cluster_id: str
    compaction_lag: timedelta
    topics: Mapping[str, tuple[int, str]]  # how many partitions, and the id


class HolderFailed(Exception):
    """The holder of the log met what it did not expect, in answering a question of ours."""


class Lender:
    """`serve` until the borrower is gone. `heard` is told of each of its words that is not for the log."""

    def __init__(self, log: Lendable, heard: Callable[[Any], None]) -> None:
        self._log, self._heard = log, heard
        self._readers: dict[int, tuple[Reader, list[TopicPartition]]] = {}
        self._numbers = count()
        self._answers: Mapping[str, Callable[..., Any]] = {
            "describe": self._describe, "topic": self._topic, "topics": log.topics, "create": log.create,
            "begin_offset": self._begin_offset, "end_offsets": self._end_offsets, "committed": self._committed,
            "append": self._append, "open_producer": self._open_producer, "commit": self._commit,
            "open_reader": self._open_reader, "poll": self._poll, "assign": self._assign, "unassign": self._unassign,
            "wake": self._wake, "close_reader": self._close_reader, "close": self._close, "maintain": log.maintain,
        }  # fmt: skip

    def serve(self, lines: Sequence[Line], *, name: str = "borrower") -> None:
        """Answer on all lines, each in a thread of its own; the first is listened to in the caller's."""
        words, *questions = lines
        threads = [
            Thread(target=self._answer_all, args=(line,), name=f"{name}'s log {number}", daemon=True)
            for number, line in enumerate(questions, 1)
        ]
        for thread in threads:
            thread.start()
        try:
            while True:
                self._heard(words.receive())
        except (EOFError, OSError):
            pass  # the borrower is gone
        finally:
            self._end(lines, threads)

    def _end(self, lines: Sequence[Line], threads: Sequence[Thread]) -> None:
        for line in lines:
            line.end()
        self._close()
        for thread in threads:
            thread.join()
        self._close()  # what was opened meanwhile
        for line in lines:
            line.close()

    def _answer_all(self, line: Line) -> None:
        with suppress(EOFError, OSError):
            while True:
                line.send(self._answer(*line.receive()))

    def _answer(self, word: str, *said: Any) -> tuple[Any, Exception | None]:
        """What was asked for, or what the log has against it."""
        try:
            return self._answers[word](*said), None
        except LogError as error:
            return None, error
        except Exception as error:  # noqa: BLE001 -- the border: it is for whoever asked to end of it
            return None, HolderFailed(f"{type(error).__name__}: {error}")

    # --- what there is --------------------------------------------------------------------------------------------

    def _describe(self) -> Described:
        log = self._log
        return Described(log.cluster_id, log.compaction_lag, {name: self._topic(name) for name in log.topics()})

    def _topic(self, name: str) -> tuple[int, str]:
        return self._log.partitions(name), self._log.topic_id(name)

    def _begin_offset(self, place: Place) -> int:
        return self._log.begin_offset(TopicPartition(*place))

    def _end_offsets(self, places: list[Place]) -> list[int]:
        named = [*map(TopicPartition._make, places)]
        ends = self._log.end_offsets(named)
        return [ends[place] for place in named]

    def _committed(self, group: str, places: list[Place]) -> dict[Place, int]:
        known = self._log.committed(group, map(TopicPartition._make, places))
        return {(topic, number): offset for (topic, number), offset in known.items()}

    # --- writing --------------------------------------------------------------------------------------------------

    def _append(self, records: list[tuple[Any, ...]]) -> tuple[Sequence[int], datetime]:
        receipt = self._log.append(map(Outgoing._make, records))
        return receipt.offsets, receipt.appended_at

    def _open_producer(self, transactional_id: str, group: str) -> int:
        return self._log.open_producer(transactional_id, group=group).epoch

    def _commit(
        self, writer: tuple[str, int, str], records: list[tuple[Any, ...]], positions: dict[Place, int]
    ) -> tuple[Sequence[int], datetime]:
        named = {TopicPartition(*place): position for place, position in positions.items()}
        receipt: Commit = self._log.commit(Writer(*writer), [*map(Outgoing._make, records)], named)
        return receipt.offsets, receipt.appended_at

    # --- reading --------------------------------------------------------------------------------------------------

    def _open_reader(self, positions: dict[Place, int]) -> int:
        named = {TopicPartition(*place): position for place, position in positions.items()}
        number = next(self._numbers)
        self._readers[number] = self._log.open_reader(named), [*named]
        return number

    def _poll(
        self, number: int, records_max: int, bytes_max: int, timeout: float
    ) -> tuple[list[tuple[Any, ...]], list[int]]:
        reader, places = self._reader(number)
        records = reader.poll(records_max=records_max, bytes_max=bytes_max, timeout=timeout)
        return [*map(tuple, records)], [*map(reader.position, places)]

    def _assign(self, number: int, positions: dict[Place, int]) -> None:
        reader, places = self._reader(number)
        named = {TopicPartition(*place): position for place, position in positions.items()}
        reader.assign(named)
        self._readers[number] = reader, [*dict.fromkeys((*places, *named))]

    def _unassign(self, number: int, gone: list[Place]) -> None:
        reader, places = self._reader(number)
        reader.unassign(map(TopicPartition._make, gone))
        self._readers[number] = reader, [place for place in places if place not in gone]

    def _wake(self, number: int) -> None:
        self._reader(number)[0].wake()

    def _close_reader(self, number: int) -> None:
        known = self._readers.pop(number, None)
        if known is not None:
            known[0].close()

    def _reader(self, number: int) -> tuple[Reader, list[TopicPartition]]:
        try:
            return self._readers[number]
        except KeyError:
            raise LogError("the reader is closed") from None

    def _close(self) -> None:
        for number in list(self._readers):
            self._close_reader(number)
