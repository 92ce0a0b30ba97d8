"""The read model: questions, pages, tenants, retention, and a writer that is overtaken."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy.exc import IntegrityError

from projections import batch
from projections.store import history, paging
from projections.store.database import open_database
from projections.store.reader import ALL, Reader, RunFilter, Scope, Span
from projections.store.writer import Overtaken, Writer
from runtime.record import Outgoing, TopicPartition
from schemas import topics
from schemas.facts import Fact, OccurrenceSkipped, Outcome, SkipReason
from schemas.faults import Refused
from tests.projections import histories
from tests.projections.histories import at, created, current, finished, record, tombstone
from tests.projections.memory import as_read

ACME, OTHER = Scope(tenant="acme"), Scope(tenant="other")
PLACE = TopicPartition(topics.RUN_EVENTS, 0)


class Model:
    """A database, its one writer and a reader."""

    def __init__(self, url: str) -> None:
        self.database = open_database(url)
        self.writer = Writer(self.database)
        self.writer.belong_to({}, anew=False)
        self.reader = Reader(self.database)
        self.read = 0

    def take(self, *facts: Fact | Outgoing) -> None:
        records = as_read(facts, offset=self.read)
        old = {PLACE: self.read} if self.read else {}
        self.read += len(records)
        changes = batch.fold(batch.read_all(records), self.writer.load)
        self.writer.apply(changes, old, {PLACE: self.read})


@pytest.fixture
def model(database):
    model = Model(database)
    yield model
    model.database.dispose()


def names(model: Model, **wanted: Any) -> list[str]:
    return [row["name"] for row in model.reader.schedules(ACME, **wanted).rows]


def ids(page: paging.Page) -> list[str]:
    return [row["run_id"] for row in page.rows]


def test_runs_come_newest_first_in_pages_that_neither_repeat_nor_miss_one(model):
    model.take(*(created("report", 60 * minute) for minute in range(7)))
    first = model.reader.runs(ACME, RunFilter(), limit=3)
    second = model.reader.runs(ACME, RunFilter(), cursor=first.cursor, limit=3)
    third = model.reader.runs(ACME, RunFilter(), cursor=second.cursor, limit=3)
    minutes = [run_id[-5:-3] for page in (first, second, third) for run_id in ids(page)]
    assert minutes == ["06", "05", "04", "03", "02", "01", "00"]
    assert third.cursor is None


def test_a_run_that_comes_between_two_pages_moves_nothing(model):
    model.take(created("report", 0), created("report", 60))
    page = model.reader.runs(ACME, RunFilter(), limit=1)
    model.take(created("report", 120))
    assert ids(model.reader.runs(ACME, RunFilter(), cursor=page.cursor)) == ["report.20260301T000000Z"]


def test_runs_of_one_instant_are_told_apart_across_pages(model):
    model.take(*(created(name, 60, tenant=tenant) for name in ("a", "b") for tenant in ("acme", "other")))
    seen, cursor = [], None
    for _ in range(4):
        page = model.reader.runs(ALL, RunFilter(), cursor=cursor, limit=1)
        seen += [(row["tenant"], row["schedule"]) for row in page.rows]
        cursor = page.cursor
    assert seen == [("other", "b"), ("acme", "b"), ("other", "a"), ("acme", "a")]
    assert cursor is None


def test_runs_are_found_by_schedule_state_label_and_time(model):
    model.take(*histories.succeeded("report", 0), created("report", 60, labels={"team": "ops"}), created("load", 120))
    reader = model.reader
    assert ids(reader.runs(ACME, RunFilter(schedule="load"))) == ["load.20260301T000200Z"]
    assert ids(reader.runs(ACME, RunFilter(states=("succeeded",)))) == ["report.20260301T000000Z"]
    assert ids(reader.runs(ACME, RunFilter(labels={"team": "ops"}))) == ["report.20260301T000100Z"]
    assert ids(reader.runs(ACME, RunFilter(from_=at(60), to=at(120)))) == ["report.20260301T000100Z"]


def test_a_cursor_of_somebody_else_is_refused(model):
    """Also one whose values no database could compare with what stands in the columns."""
    values: tuple[list[Any], ...]
    values = ([1], [[1], 2, 3], ["1", "a", "b"], [1, 2, 3], [True, "a", "b"], [2**63, "a", "b"], [1, "a\0", "b"])
    for cursor in ("x", "!!", "é", *map(paging.write, values)):
        with pytest.raises(Refused) as refusal:
            model.reader.runs(ACME, RunFilter(), cursor=cursor)
        assert refusal.value.faults[0].pointer == "/cursor"


def test_no_question_within_a_tenant_shows_anything_of_another(model):
    model.take(
        current("report"), histories.version("report", 1), *histories.succeeded("report", 0),
        current("later", after=[{"schedule": "report", "mode": "run", "condition": "failed"}]),
        OccurrenceSkipped(
            tenant="acme", schedule="report", version=1, reason=SkipReason.OVERLAP, decided_at=at(61), rule="r",
            tz_version="t", nominal_time=at(60),
        ),
    )  # fmt: skip
    reader, run_id = model.reader, "report.20260301T000000Z"
    everything = Span(from_=at(-10), to=at(1000), limit=100)
    asked: list[Callable[[Scope], Any]] = [
        lambda scope: reader.schedule(scope, "report"),
        lambda scope: reader.schedules(scope).rows,
        lambda scope: reader.versions(scope, "report"),
        lambda scope: reader.created(scope, "report", everything),
        lambda scope: reader.undone(scope, "report", everything),
        lambda scope: reader.runs(scope, RunFilter()).rows,
        lambda scope: reader.run(scope, run_id),
        lambda scope: reader.attempts(scope, run_id),
        lambda scope: history.story(reader, scope, "report", run_id).rows,
        lambda scope: history.attempts(reader, scope, run_id).rows,
        lambda scope: reader.counts(scope, at(-10)),
        lambda scope: reader.schedules(scope, after="report").rows,
    ]
    assert all(question(ACME) for question in asked)
    assert not any(question(OTHER) for question in asked)


def test_a_schedule_is_shown_with_what_it_did_last(model):
    model.take(current("report"), *histories.succeeded("report", 0), created("report", 60))
    row = model.reader.schedule(ACME, "report")
    assert (row["last_run_id"], row["last_outcome"]) == ("report.20260301T000100Z", "succeeded")
    assert row["last_nominal_time"] == at(60)
    assert row["definition"] == histories.DEFINITION


def test_those_that_depend_on_a_schedule_are_found_by_its_whole_name(model):
    def after(name: str) -> list[dict[str, str]]:
        return [{"schedule": name, "mode": "interval", "condition": "succeeded"}]

    model.take(
        current("b", after=after("load_1")), current("a", after=after("load_1")), current("c", after=after("loadx1")),
        current("d", after=after("load_11")), current("e"), current("f", state="deleted", after=after("load_1")),
        current("g", tenant="other", after=after("load_1")),
    )  # fmt: skip
    assert [row["name"] for row in model.reader.schedules(ACME, after="load_1").rows] == ["a", "b"]


def test_deleted_schedules_are_listed_only_when_asked_for(model):
    model.take(current("gone"), current("here"), tombstone(topics.SCHEDULES, "acme/gone", sequence=99))
    assert names(model) == ["here"]
    assert names(model, state="deleted") == ["gone"]


def test_schedules_are_found_by_label_and_state(model):
    model.take(current("a"), current("b", labels={"team": "ops"}), current("c", state="paused"))
    assert names(model, labels={"team": "ops"}) == ["b"]
    assert names(model, state="paused") == ["c"]


def test_occurrences_of_a_range_are_found_by_their_nominal_time(model):
    model.take(created("report", 0), created("report", 60), created("report", 120), created("report.x", 60))
    span = Span(from_=at(0), to=at(120), limit=10)
    runs = model.reader.created(ACME, "report", span)
    assert [row["run_id"] for row in runs] == ["report.20260301T000000Z", "report.20260301T000100Z"]
    newest = model.reader.created(ACME, "report", replace(span, limit=1, newest=True))
    assert [row["run_id"] for row in newest] == ["report.20260301T000100Z"]


def test_counts_say_how_many_are_open_and_how_recent_ones_ended(model):
    failed = created("report", 60)
    model.take(*histories.succeeded("report", 0), failed, finished(failed, 70, Outcome.FAILED), created("report", 120))
    assert model.reader.counts(ACME, at(30)) == {"failed": 1, "queued": 1}


def test_what_is_older_than_its_topic_is_deleted_in_bounded_steps(model):
    for second in range(5):  # the events of each run stand in four seconds of the log
        model.take(*histories.succeeded("report", second, handout=second))
    steps = []
    while gone := model.writer.trim(history_before=at(12), commands_before=at(12), workers_before=at(12), rows_max=2):
        steps.append(gone)
    assert steps == [12, 6]  # a run, its attempt and its four events are six rows
    assert ids(model.reader.runs(ACME, RunFilter())) == ["report.20260301T000004Z", "report.20260301T000003Z"]
    assert model.reader.attempts(ACME, "report.20260301T000000Z") == []
    assert history.story(model.reader, ACME, "report", "report.20260301T000000Z").rows == []


def test_a_run_that_is_still_heard_of_is_kept_however_old_it_is(model):
    run = created("report", 0)
    model.take(run, *(created("load", 60 * minute) for minute in range(20)), finished(run, 30))
    model.writer.trim(history_before=at(15), commands_before=at(15), workers_before=at(15), rows_max=100)
    row = model.reader.run(ACME, run.run_id)
    assert row is not None
    assert row["state"] == "succeeded"


def test_a_writer_whose_positions_were_moved_by_another_writes_nothing(model):
    model.take(created("report", 0))
    other = Writer(model.database)
    other.apply({}, {PLACE: 1}, {PLACE: 5})
    with pytest.raises(Overtaken):
        model.take(created("report", 60))
    assert ids(model.reader.runs(ACME, RunFilter())) == ["report.20260301T000000Z"]


def test_a_batch_that_fails_half_way_writes_nothing_not_even_the_first(model):
    records = as_read([*histories.succeeded("report", 0)])
    changes = batch.fold(batch.read_all(records), model.writer.load)
    broken = {
        "runs": changes["runs"],
        "attempts": {key: {**row, "tenant": None} for key, row in changes["attempts"].items()},
    }
    with pytest.raises(IntegrityError):
        model.writer.apply(broken, {}, {PLACE: 4})
    assert model.reader.runs(ALL, RunFilter()).rows == []
    assert model.writer.positions() == {}


def test_another_cluster_or_another_topic_of_the_same_name_starts_with_empty_rows(model):
    source = {"cluster": "one", "tidewheel.run-events": "t1"}
    model.writer.belong_to(source, anew=False)
    model.take(created("report", 0))
    model.writer.belong_to(source, anew=False)
    assert len(model.reader.runs(ALL, RunFilter()).rows) == 1
    model.writer.belong_to({**source, "cluster": "two"}, anew=False)
    assert model.reader.runs(ALL, RunFilter()).rows == []
    assert model.writer.positions() == {}


def test_a_large_limit_is_cut_to_what_a_page_may_hold():
    assert (paging.bounded(None), paging.bounded(0), paging.bounded(10**9)) == (100, 1, 500)


def test_a_record_that_is_no_event_costs_itself_and_not_the_batch(model):
    out = record(created("report", 0))
    broken = type(out)(out.topic, out.partition, out.key, b"{not json", out.headers)
    strange = type(out)(
        out.topic, out.partition, out.key, b'{"type":"tidewheel.run.created.v1","id":"x","data":{}}', ()
    )
    nameless = type(out)(
        out.topic,
        out.partition,
        out.key,
        (out.value or b"").replace(b'"tenant":"acme"', b'"tenant":["acme"]'),
        out.headers,
    )
    model.take(broken, strange, nameless, out)
    assert ids(model.reader.runs(ACME, RunFilter())) == ["report.20260301T000000Z"]
    assert model.reader.run(ACME, "report.20260301T000000Z")["created_at"] == at(0)
