"""What processes of the next version write (F7): more fields, wherever an object is ours and nowhere else."""

from __future__ import annotations

from simulation.cluster import newer

MORE = b'"of_the_next_version":{"of":["the next version",2],"since":null}'


def test_a_row_has_a_field_more_in_each_of_its_lines() -> None:
    assert newer.row(b'{"a":1}\n{}') == b"{" + MORE + b',"a":1}\n{' + MORE + b"}"


def test_a_row_that_is_no_object_stays_as_it_is() -> None:
    assert [newer.row(value) for value in (b"", b"17", b"\0\1{")] == [b"", b"17", b"\0\1{"]


def test_a_footer_has_a_field_more_and_so_have_its_positions_but_not_what_names_fill() -> None:
    footer = b'{"epoch":1,"positions":[{"offset":3,"strands":{"1":4}}]}'
    assert newer.frame(footer) == (
        b"{" + MORE + b',"epoch":1,"positions":[{' + MORE + b',"offset":3,"strands":{"1":4}}]}'
    )
