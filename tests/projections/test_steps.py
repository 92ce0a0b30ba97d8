"""A list of rows is written, and a list of keys asked for, in one step; what comes back is what was given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import select

from projections.store import tables
from projections.store.database import Database, open_database
from projections.store.dialect import names

if TYPE_CHECKING:
    from sqlalchemy import Connection

STRANGE = 'a "b" \\ /\n\t\x01\x7f é 😀 \u2028 \ufeff'
LARGE = 2**63 - 1


@pytest.fixture(params=[False, True], ids=["beside busy threads", "alone"])
def opened(request, database):
    opened = open_database(database, alone=request.param)
    opened.belong_to({}, anew=False)
    yield opened
    opened.dispose()


@pytest.fixture
def connection(opened):
    with opened.change() as connection:
        yield connection


def attempt(handout: int, **fields: Any) -> dict[str, Any]:
    row = dict.fromkeys(names(tables.ATTEMPTS), None)
    return {**row, "tenant": STRANGE, "run_id": "r", "handout": handout, **fields}


ROWS = [
    attempt(1, worker=STRANGE, attempt=LARGE, counted=True, error='{"message":"\\"no\\" \\u0000"}'),
    attempt(2, worker="", attempt=-LARGE, counted=False, error="null"),
    attempt(3, appended_at=0),
]


def write(opened: Database, connection: Connection, rows: list[dict[str, Any]], *, once: bool = False) -> None:
    opened.dialect.upsert(tables.ATTEMPTS, once=once).run(connection, rows)


def read(opened: Database, connection: Connection, keys: list[Any]) -> list[dict[str, Any]]:
    found = opened.dialect.lookup(tables.ATTEMPTS).run(connection, keys)
    return sorted((dict(row) for row in found), key=lambda row: row["handout"])


def test_values_of_every_kind_come_back_as_they_were_given(opened, connection):
    write(opened, connection, ROWS)
    keys = [(STRANGE, "r", 3), (STRANGE, "r", 1), ("nobody", "r", 1), (STRANGE, "r", 2)]
    assert read(opened, connection, keys) == ROWS


def test_a_text_with_a_nul_in_it_costs_that_character_at_most(opened, connection):
    write(opened, connection, [attempt(1, worker="before\0after"), attempt(2, worker="w")])
    found = connection.execute(select(tables.ATTEMPTS.c.worker).order_by(tables.ATTEMPTS.c.handout)).scalars().all()
    assert found in (["before\0after", "w"], ["before\ufffdafter", "w"])


def test_a_new_row_takes_the_place_of_the_old_unless_the_first_one_stands(opened, connection):
    write(opened, connection, [attempt(1, worker="old")])
    write(opened, connection, [attempt(1, worker="new")])
    write(opened, connection, [attempt(1, worker="late")], once=True)
    assert [row["worker"] for row in read(opened, connection, [(STRANGE, "r", 1)])] == ["new"]


def test_a_row_is_what_it_says_whatever_stood_there_and_whatever_others_say(opened, connection):
    """Most of a run's columns are empty at any time, and each has its own."""
    empty = dict.fromkeys(names(tables.RUNS), None)
    waiting = {
        **empty,
        "tenant": "t",
        "run_id": "a",
        "schedule": "s",
        "state": "queued",
        "waiting": "full",
        "due_at": 1,
    }
    failed = {**empty, "tenant": "t", "run_id": "b", "schedule": "s", "state": "failed", "error": '"e"', "due_at": 0}
    at_work = {**waiting, "state": "running", "waiting": None, "worker": "w"}
    backwards = dict(reversed(failed.items()))
    for rows in ([waiting, failed], [backwards, at_work]):
        opened.dialect.upsert(tables.RUNS, once=False).run(connection, rows)
        found = opened.dialect.lookup(tables.RUNS).run(connection, [("t", "a"), ("t", "b")])
        assert {row["run_id"]: dict(row) for row in found} == {row["run_id"]: row for row in rows}


def test_a_row_of_an_older_transaction_never_takes_the_place_of_a_newer_one(opened, connection):
    entry = {"kind": "job", "tenant": "acme", "name": "report", "definition": None, "changed_at": 0}
    upsert = opened.dialect.upsert(tables.CATALOG, once=False)
    for version, sequence in ((1, 5), (2, 7), (1, 5)):
        upsert.run(connection, [{**entry, "version": version, "sequence": sequence}])
    assert connection.execute(select(tables.CATALOG.c.version)).scalars().all() == [2]


def test_thousands_of_rows_are_one_step_too(opened, connection):
    write(opened, connection, [attempt(number) for number in range(3_000)])
    found = read(opened, connection, [(STRANGE, "r", number) for number in range(0, 6_000, 2)])
    assert [row["handout"] for row in found] == list(range(0, 3_000, 2))


def test_readers_see_json_and_truth_as_such(opened, connection):
    write(opened, connection, [attempt(1, counted=True, error='{"message":"\\"no\\""}')])
    row = connection.execute(select(tables.ATTEMPTS)).mappings().one()
    assert (row["error"], row["counted"]) == ({"message": '"no"'}, True)


def test_names_are_ordered_by_their_bytes_whatever_the_language_of_the_database(opened, connection):
    for run_id in ("b.2", "a-b", "B", "ab", "b-1"):
        write(opened, connection, [{**attempt(1), "run_id": run_id}])
    found = connection.execute(select(tables.ATTEMPTS.c.run_id).order_by(tables.ATTEMPTS.c.run_id)).scalars().all()
    assert found == ["B", "a-b", "ab", "b-1", "b.2"]
