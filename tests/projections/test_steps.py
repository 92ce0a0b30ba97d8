"""Rows that are written and read in one step are those that are written and read a row a step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import select
from sqlalchemy.dialects.postgresql.psycopg import PGDialect_psycopg

from projections.store import by_row, by_text, tables
from projections.store.database import open_database

if TYPE_CHECKING:
    from pathlib import Path

    from sqlalchemy import Connection, Table

STRANGE = 'a "b" \\ /\n\t\x01\x7f é 😀 \u2028 \ufeff'
LARGE = 2**63 - 1


@pytest.fixture
def connection(tmp_path: Path):
    engine = open_database(f"sqlite:///{tmp_path}/m.sqlite")
    with engine.begin() as connection:
        yield connection
    engine.dispose()


def attempt(handout: int, **fields: Any) -> dict[str, Any]:
    row = dict.fromkeys((column.name for column in tables.ATTEMPTS.c), None)
    return {**row, "tenant": STRANGE, "run_id": "r", "handout": handout, **fields}


ROWS = [
    attempt(1, worker=STRANGE, attempt=LARGE, counted=True, error='{"message":"\\"no\\" \\u0000"}'),
    attempt(2, worker="", attempt=-LARGE, counted=False, error="null"),
    attempt(3, appended_at=0),
]


def written(connection: Connection, table: Table = tables.ATTEMPTS) -> list[dict[str, Any]]:
    found = connection.exec_driver_sql(f"SELECT * FROM {table.name} ORDER BY handout").mappings()
    return [dict(row) for row in found]


def test_values_of_every_kind_come_back_as_they_were_given(connection):
    by_text.upsert(tables.ATTEMPTS, connection.dialect, once=False).run(connection, ROWS)
    assert written(connection) == ROWS
    keys = [(STRANGE, "r", 3), (STRANGE, "r", 1), ("nobody", "r", 1), (STRANGE, "r", 2)]
    for lookup in (by_text.lookup(tables.ATTEMPTS, connection.dialect), by_row.RowLookup(table=tables.ATTEMPTS)):
        assert sorted(lookup.run(connection, keys), key=lambda row: row["handout"]) == ROWS


def test_both_ways_write_the_same(connection):
    by_text.upsert(tables.ATTEMPTS, connection.dialect, once=False).run(connection, ROWS)
    first = written(connection)
    connection.exec_driver_sql("DELETE FROM attempts")
    by_row.upsert(tables.ATTEMPTS, connection.dialect, once=False).run(connection, ROWS)
    assert written(connection) == first


def test_a_text_with_a_nul_in_it_is_kept_whole(connection):
    rows = [attempt(1, worker="before\0after")]
    by_text.upsert(tables.ATTEMPTS, connection.dialect, once=False).run(connection, rows)
    assert written(connection) == rows


def test_a_new_row_takes_the_place_of_the_old_unless_the_first_one_stands(connection):
    upsert = by_text.upsert(tables.ATTEMPTS, connection.dialect, once=False)
    upsert.run(connection, [attempt(1, worker="old")])
    upsert.run(connection, [attempt(1, worker="new")])
    by_text.upsert(tables.ATTEMPTS, connection.dialect, once=True).run(connection, [attempt(1, worker="late")])
    assert [row["worker"] for row in written(connection)] == ["new"]


def test_more_keys_than_one_question_holds_are_asked_for_in_pieces(connection):
    rows = [attempt(number) for number in range(700)]
    by_text.upsert(tables.ATTEMPTS, connection.dialect, once=False).run(connection, rows)
    keys = [(STRANGE, "r", number) for number in range(700)]
    for lookup in (by_text.lookup(tables.ATTEMPTS, connection.dialect), by_row.RowLookup(table=tables.ATTEMPTS)):
        assert sorted(row["handout"] for row in lookup.run(connection, keys)) == list(range(700))


def test_readers_see_json_and_truth_as_such(connection):
    by_text.upsert(tables.ATTEMPTS, connection.dialect, once=False).run(connection, ROWS[:1])
    row = connection.execute(select(tables.ATTEMPTS)).mappings().one()
    assert (row["error"], row["counted"]) == ({"message": '"no" \0'}, True)


def test_only_positions_that_stand_where_they_are_said_to_are_moved(connection):
    by_text.upsert(tables.POSITIONS, connection.dialect, once=False).run(
        connection, [{"topic": "t", "partition": partition, "next_offset": 5} for partition in range(3)]
    )
    text, row = by_text.moves(tables.POSITIONS, connection.dialect), by_row.RowMoves(positions=tables.POSITIONS)
    assert text.run(connection, [("t", 0, 5, 6), ("t", 1, 4, 9), ("u", 0, 5, 9)]) == 1
    assert row.run(connection, [("t", 2, 5, 7), ("t", 1, 4, 9), ("u", 0, 5, 9)]) == 1
    assert connection.execute(select(tables.POSITIONS).order_by("partition")).all() == [
        ("t", 0, 6), ("t", 1, 5), ("t", 2, 7),
    ]  # fmt: skip


def test_postgresql_is_asked_for_a_row_a_step_and_its_names_are_bound():
    dialect: Any = PGDialect_psycopg()  # type: ignore[no-untyped-call]  # SQLAlchemy does not type it
    upsert = by_row.upsert(tables.POSITIONS, dialect, once=False)
    assert upsert.sql == (
        "INSERT INTO positions (topic, partition, next_offset) "
        "VALUES (%(topic)s::VARCHAR, %(partition)s::INTEGER, %(next_offset)s::BIGINT) "
        "ON CONFLICT (topic, partition) DO UPDATE SET next_offset = excluded.next_offset"
    )
    assert (upsert.columns, upsert.positional) == (("topic", "partition", "next_offset"), False)
