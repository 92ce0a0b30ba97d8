"""What attempts wrote: plain text in the order of the log, and only what was written with the attempt's lease."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import orjson
import pytest

from projections import batch, logs
from projections.projector import RUN_LOGS, Kept, Limits, Projector
from projections.store import paging
from projections.store.database import Database, open_database
from projections.store.reader import LogFilter, LogPage, Reader, Scope
from projections.store.writer import Writer
from runtime.clock import SystemClock
from runtime.logs.simulated import SimulatedLog
from runtime.record import Outgoing, TopicPartition
from schemas import codec, identity, topics
from schemas.faults import Refused
from schemas.internal import LogLine, RunLogged
from tests.projections import histories
from tests.projections.histories import at, created, started
from tests.projections.memory import as_read
from tests.projections.test_convergence import contents

SECONDS = 20.0  # a deadline, not a measure
ACME, OTHER = Scope(tenant="acme"), Scope(tenant="other")
EVENTS, LOGS = TopicPartition(topics.RUN_EVENTS, 0), TopicPartition(topics.LOGS, 0)
RUN = created("report", 0)
LEASE, SECOND_LEASE = "default.0.7.secret", "default.0.9.another"


def begun(lease: str = LEASE, *, handout: int = 7, attempt: int = 1) -> Any:
    check = identity.log_check(identity.log_proof(lease))
    return replace(started(RUN, 1, handout=handout, attempt=attempt), log_check=check)


def logged(*texts: str, line: int = 0, lease: str = LEASE, second: float = 2.0, **fields: Any) -> Outgoing:
    stream = fields.pop("stream", "stdout")
    lines = tuple(
        LogLine(line=line + number, at=at(second), stream=stream, text=text) for number, text in enumerate(texts)
    )
    fact = RunLogged(run_id=RUN.run_id, proof=identity.log_proof(lease), lines=lines, **fields)
    return written(fact)


def written(fact: RunLogged, **data: Any) -> Outgoing:
    _, value = codec.encode(fact, source="tidewheel/worker", time=histories.START)
    event = orjson.loads(value)
    event["data"] |= data
    return Outgoing(topics.LOGS, 0, fact.run_id.encode(), orjson.dumps(event))


class Model:
    """A database into which the two projectors write."""

    def __init__(self, url: str) -> None:
        self.database = open_database(url)
        self.writer = Writer(self.database)
        self.writer.belong_to({}, anew=False)
        self.reader = Reader(self.database)
        self.read = {EVENTS: 0, LOGS: 0}

    def take(self, *facts: Any) -> None:
        self._take(EVENTS, facts, batch.PROJECTIONS)

    def log(self, *records: Outgoing) -> None:
        self._take(LOGS, records, batch.LOG_PROJECTIONS)

    def _take(self, place: TopicPartition, facts: Any, projections: Any) -> None:
        records = as_read(facts, offset=self.read[place])
        old = {place: self.read[place]} if self.read[place] else {}
        self.read[place] += len(records)
        changes = batch.fold(batch.read_all(records), self.writer.load, projections)
        self.writer.apply(changes, old, {place: self.read[place]})

    def page(
        self, scope: Scope = ACME, *, cursor: str | None = None, limit: int | None = None, **wanted: Any
    ) -> LogPage:
        found = LogFilter(**{"now": at(100), "kept_since": at(0), **wanted})
        return self.reader.log(scope, RUN.run_id, found, cursor=cursor, limit=limit)

    def texts(self, scope: Scope = ACME, **wanted: Any) -> list[str]:
        return [line["text"] for line in self.page(scope, **wanted).lines]


@pytest.fixture
def model(database):
    model = Model(database)
    model.take(RUN, begun())
    yield model
    model.database.dispose()


# --- what is text ---


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;another title\x07done", "done"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("50%\r100%", "50%\\x0d100%"),
        ("\x1b[2J\x1b[Hgone", "gone"),
        ("a\x00b\x08c\x7f", "a\\x00b\\x08c\\x7f"),
        ("\x9b31mred", "red"),
        ("user\u202egpj.exe", "user\\u202egpj.exe"),
        ("one\ntwo\u2028three", "one\\x0atwo\\u2028three"),
        ("a\tb  ü 日本 🎉", "a\tb  ü 日本 🎉"),
        ("half \ud800 a character", "half \\ud800 a character"),
    ],
)
def test_nothing_stands_in_a_line_that_does_more_than_stand_there(written, plain):
    assert logs.plain(written) == plain


# --- what a run shows ---


def test_a_run_shows_what_its_attempt_wrote(model):
    model.log(logged("one", "two"), logged("three", line=2, second=5))
    assert [(line["line"], line["text"], line["at"], line["attempt"]) for line in model.page().lines] == [
        (0, "one", at(2), 1),
        (1, "two", at(2), 1),
        (2, "three", at(5), 1),
    ]


def test_a_record_that_comes_twice_is_shown_once(model):
    model.log(logged("one"), logged("two", line=1), logged("one"), logged("one", "two", "three", line=0))
    assert model.texts() == ["one", "two"]


def test_records_that_overlap_show_each_line_once(model):
    model.log(logged("one", "two"), logged("two", "three", line=1))
    assert model.texts() == ["one", "two", "three"]


def test_what_was_written_without_the_lease_is_shown_by_no_run(model):
    model.log(
        logged("forged", lease="default.0.7.guessed"), logged("mine"), logged("forged", lease=SECOND_LEASE, line=1)
    )
    assert model.texts() == ["mine"]


def test_a_forged_record_that_comes_first_takes_nobodys_place(model):
    public = identity.log_check(identity.log_proof(LEASE))  # what everybody can read
    forged = RunLogged(run_id=RUN.run_id, proof=public, lines=(LogLine(line=0, at=at(1), stream="log", text="no"),))
    model.log(written(forged), logged("mine"))
    assert model.texts() == ["mine"]


def test_another_tenant_is_shown_nothing(model):
    model.log(logged("mine"))
    assert model.texts(OTHER) == []


def test_lines_that_come_before_it_is_known_that_the_attempt_began_are_shown_once_it_is(database):
    model = Model(database)
    model.log(logged("early"))
    assert model.texts() == []
    model.take(RUN, begun())
    assert model.texts() == ["early"]
    model.database.dispose()


def test_lines_are_found_by_attempt_stream_and_instant(model):
    model.take(begun(SECOND_LEASE, handout=9, attempt=2))
    model.log(logged("a", stream="log"), logged("b", line=1, second=4), logged("c", lease=SECOND_LEASE, second=6))
    assert model.texts(attempt=1) == ["a", "b"]
    assert model.texts(attempt=2) == ["c"]
    assert model.texts(streams=("log",)) == ["a"]
    assert model.texts(since=at(4)) == ["b", "c"]


def test_pages_neither_repeat_nor_miss_a_line_and_the_last_cursor_is_where_to_follow(model):
    model.log(logged("0", "1", "2"), logged("3", "4", line=3))
    seen, cursor, more = [], None, True
    while more:
        page = model.page(cursor=cursor, limit=2)
        seen.append([line["text"] for line in page.lines])
        cursor, more = page.cursor, page.more
    assert seen == [["0", "1"], ["2", "3"], ["4"]]
    assert model.page(cursor=cursor).lines == []
    model.log(logged("5", line=5))
    assert [line["text"] for line in model.page(cursor=cursor).lines] == ["5"]


def test_a_page_of_many_small_records_goes_on_behind_them(model):
    model.log(*(logged(str(number), line=number) for number in range(100)))
    first = model.page(limit=1000)
    second = model.page(limit=1000, cursor=first.cursor)
    assert (len(first.lines), first.more, len(second.lines), second.more) == (64, True, 36, False)


def test_a_cursor_of_something_else_is_refused(model):
    for cursor in ("x", paging.write([1]), paging.write(["a", "b"])):
        with pytest.raises(Refused):
            model.page(cursor=cursor)


# --- bounds ---


def test_long_lines_are_cut_and_say_by_how_much(model):
    model.log(logged("x" * 5_000))
    (line,) = model.page().lines
    assert (len(line["text"]), line["cut"]) == (4_096, 904)


@pytest.mark.parametrize(
    "data",
    [
        {"lines": []},
        {"lines": "text"},
        {"lines": [{"line": 12_000, "at": "2026-03-01T00:00:00Z", "stream": "log", "text": "beyond what is kept"}]},
        {"lines": [{"line": -1, "at": "2026-03-01T00:00:00Z", "stream": "log", "text": "x"}]},
        {"lines": [{"line": True, "at": "2026-03-01T00:00:00Z", "stream": "log", "text": "x"}]},
        {"lines": [{"line": 0, "at": "yesterday", "stream": "log", "text": "x"}]},
        {"lines": [{"line": 0, "at": "2026-03-01T00:00:00", "stream": "log", "text": "x"}]},
        {"lines": [{"line": 0, "at": "2026-03-01T00:00:00Z", "stream": "log", "text": 7}]},
        {"proof": None},
        {"retention": "for ever"},
    ],
    ids=str,
)
def test_a_record_that_is_not_built_as_it_should_be_costs_itself(model, data):
    fact = RunLogged(run_id=RUN.run_id, proof="p", lines=(LogLine(line=0, at=at(1), stream="log", text="x"),))
    model.log(written(fact, **data), logged("good"))
    assert model.texts() == ["good"]


def test_events_that_stand_among_logs_become_no_rows_of_runs(model):
    """Workers may write that topic, and nothing else that rows follow from."""
    foreign = histories.record(created("foreign", 0))
    model.log(foreign._replace(topic=topics.LOGS), logged("good"))
    assert model.reader.run(ACME, "foreign.20260301T000000Z") is None


# --- retention ---


def test_a_log_is_not_shown_longer_than_its_job_wants_it_kept(model):
    model.log(logged("short", retention=timedelta(seconds=30)), logged("long", line=1, retention=timedelta(days=90)))
    assert model.texts(now=at(29)) == ["short", "long"]
    assert model.texts(now=at(31)) == ["long"]
    assert model.texts(now=at(31), kept_since=at(2)) == []
    assert model.texts(now=at(30 * 86_400 + 2), kept_since=at(0)) == []  # no job is given more than 30 days


def test_what_is_over_is_deleted_in_bounded_steps(model):
    model.log(
        logged("a", retention=timedelta(seconds=5)),  # appended at second 0, the others each a second later
        logged("b", line=1, retention=timedelta(seconds=5)),
        logged("c", line=2),
        logged("d", line=3),
    )
    assert model.writer.trim_logs(before=at(0), now=at(4), rows_max=10) == 0
    assert model.writer.trim_logs(before=at(0), now=at(6), rows_max=1) == 1
    assert model.writer.trim_logs(before=at(0), now=at(6), rows_max=1) == 1
    assert model.writer.trim_logs(before=at(3), now=at(6), rows_max=10) == 1
    assert model.texts() == ["d"]


# --- the projector ---


def test_a_rebuild_of_the_logs_gives_the_live_rows(new_database):
    log = SimulatedLog(7, SystemClock())
    histories.create_topics(log)
    live, rebuilt = (open_database(new_database()) for _ in range(2))
    forged = logged("forged", lease="guessed")
    steps = [[logged("one")], [forged, logged("two", line=1)], [logged("one"), logged("three", line=2)]]
    with following(log, live) as projector:
        for step in steps:
            log.append(step)
            follow(log, projector)
    with following(log, rebuilt) as projector:
        follow(log, projector)
    rows = [contents(database)["logs"] for database in (live, rebuilt)]
    assert rows[0] == rows[1]
    assert len(rows[0]) == 4
    live.dispose()
    rebuilt.dispose()
    log.close()


def follow(log: SimulatedLog, projector: Projector) -> None:
    ends = {place: log.end_offset(place) for place in projector.inputs()}
    assert projector.wait_until(ends, SECONDS), projector.problem


@contextmanager
def following(log: SimulatedLog, database: Database) -> Iterator[Projector]:
    projector = Projector(
        log=log, model=Writer(database), now=SystemClock().now, kept=Kept(), limits=Limits(), subject=RUN_LOGS
    )
    projector.start()
    yield projector
    assert projector.stop(SECONDS)
