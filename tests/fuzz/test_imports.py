"""Files of other schedulers: whatever they hold, what comes out is taken by the server, and the rest is said."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.budget import examples, no_hang
from tests.fuzz.mutation import HOSTILE, mutated
from tests.sdk import importing
from tidewheel import definitions
from tidewheel.cli import main
from tidewheel.importers import eventbridge, kubernetes, quartz
from tidewheel.importers.report import Imported
from tidewheel.importers.writing import File, Settings

Convert = Callable[[Iterable[File], Settings], Imported]
PIECES = tuple(
    text.encode("utf-8", "surrogatepass")
    for text in (
        "0 0 ? * 7#2", "cron(", "rate(1 ", "at(9999-12-31T23:59:59)", "@every 9h", "TZ=UTC ", "1-5/7", "*/90", "L-3W",
        " 2026", "null", "true", "-1", "999999999999999999", "1e999", "{{ tenant }}", "{{", "}}", "${X}", "!Ref ",
        "!Sub ", "<<: ", "*a", "&a ", "[", "]", "{", "}", ": ", "- ", "---\n", "\n", "\t", '"', "'", "\x85", "\u2028",
        "<job>", "</job>", "<trigger>", "</cron>", "<!DOCTYPE a>", "<!ENTITY a 'b'>", "&a;", "&#x110000;", "<![CDATA[",
        "]]>", "<?xml version='1.0' encoding='utf-16'?>", *HOSTILE[:20],
    )
)  # fmt: skip
CASES: list[tuple[str, Convert, str]] = [
    ("kubernetes-cronjob", kubernetes.convert, "cronjobs.yaml"),
    ("eventbridge", eventbridge.convert, "stack.yaml"),
    ("eventbridge", eventbridge.convert, "get-schedule.json"),
    ("quartz", quartz.convert, "quartz_data.xml"),
]


def judged(convert: Convert, data: bytes) -> None:
    with no_hang():
        imported = convert([File(path="-", data=data)], importing.settings())
        read = definitions.read(definitions.write(imported.documents), "f.yaml") if imported.documents else []
    written: list[dict[str, Any]] = [{"kind": each.kind, "name": each.name, **(each.body or {})} for each in read]
    assert written == list(imported.documents)
    assert [each.faults for each in read] == [()] * len(read)
    assert len({each.name for each in read}) == len(read)
    for document in imported.documents:
        importing.accepted(document)
    assert imported.remarks
    assert all(remark.text and str(remark).isprintable() for remark in imported.remarks)


@pytest.mark.parametrize(("_command", "convert", "name"), CASES)
def test_what_nearly_is_a_file_is_definitions_that_the_server_takes_and_remarks(_command, convert, name):
    @given(mutated(st.just(importing.fixture(name).data), st.sampled_from(PIECES)))
    @examples(15)
    def holds(data: bytes) -> None:
        judged(convert, data)

    holds()


@given(st.lists(st.sampled_from(PIECES) | st.binary(max_size=4), max_size=30).map(b"".join))
@examples(25)
def test_what_is_no_file_at_all_is_said(data):
    for convert in (kubernetes.convert, eventbridge.convert, quartz.convert):
        judged(convert, data)


@pytest.mark.parametrize("command", ["kubernetes-cronjob", "eventbridge", "quartz"])
@pytest.mark.parametrize(
    "data", [b"", b"\xff\xfe", b"\0", b"[" * 5_000, b"{" * 5_000, b"<a>" * 5_000, b"- " * 5_000, b"9" * 5_000]
)
def test_what_can_be_nothing_is_no_crash_on_the_command_line(command, data):
    result = CliRunner().invoke(main, ["import", command, "-"], input=data)
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert result.exit_code in {0, 1}
    assert result.stdout == ""
    assert "0 schedules, " in result.stderr


@pytest.mark.parametrize(
    "expression", ["9" * 60_000, "1," * 30_000, "*/" * 30_000, "(" * 60_000, "cron(" + " " * 60_000 + ")"]
)
def test_an_expression_of_any_length_is_read_once(expression):
    manifest = f'kind: CronJob\nmetadata: {{name: x}}\nspec: {{schedule: "{expression}"}}\n'
    printed = f'{{"Name": "x", "FlexibleTimeWindow": {{}}, "ScheduleExpression": "cron({expression})"}}'
    with no_hang(2):
        assert kubernetes.convert([File(path="-", data=manifest.encode())], importing.settings()).documents == ()
        assert eventbridge.convert([File(path="-", data=printed.encode())], importing.settings()).documents == ()


def test_aliases_that_make_much_of_little_are_refused():
    bomb = b"a: &a [x,x,x,x,x,x,x,x,x]\n" + b"".join(
        f"{to}: &{to} [{','.join([f'*{of}'] * 9)}]\n".encode() for of, to in zip("abcdefgh", "bcdefghi", strict=True)
    )
    for convert in (kubernetes.convert, eventbridge.convert):
        with no_hang(5):
            assert convert([File(path="-", data=bomb)], importing.settings()).remarks[0].broken
