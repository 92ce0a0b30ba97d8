"""Definition files: whatever stands in one, each of its documents is data that JSON has, or refused with a remedy."""

from __future__ import annotations

import json
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.budget import examples, no_hang
from tests.fuzz.mutation import HOSTILE, json_values, mutated
from tidewheel import definitions
from tidewheel.cli import main

VALID = """\
kind: Job
tenant: acme
name: send-report
queue: default
target: {type: task, name: reports.nightly}
payload: &p {day: "{{ nominal_date }}", rows: [1, 2.5, -7, ~, true]}
---
# why
kind: Schedule
name: nightly
labels: {team: 'finance', on: NO}
note: |
  two
  lines
trigger:
  cron: "0 2 * * *"
  timezone: Europe/London
job: send-report
extra: [*p, *p]
"""
PIECES = (
    "- ", ": ", "? ", "[", "]", "{", "}", ",", "&a ", "*a", "*p", "!!int ", "!!map ", "!!set ", "!!binary ", "!foo ",
    "!!python/object:os.system ", "!<tag:x> ", "<<: *a", "|", ">-", "---", "...", "%YAML 1.2", "%TAG ! x", "#", "\t",
    "\n", "  ", "'", '"', '"\\ud83d\\ude00"', '"\\ud800"', '"\\U00110000"', "1e999", "0x1F", ".inf", "@", "`", "\x85",
    "\u2028", *HOSTILE[:20],
)  # fmt: skip
LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{into}: &{into} [{', '.join([f'*{of}'] * 9)}]\n" for of, into in zip("abcdefgh", "bcdefghi", strict=True)
)

texts = st.lists(st.sampled_from(PIECES) | st.text(max_size=5), max_size=40).map("".join)
near_texts = mutated(st.just(VALID), st.sampled_from(PIECES))


def check(text: str) -> list[definitions.Document]:
    with no_hang():
        documents = definitions.read(text, "f.yaml")
    for document in documents:
        assert 1 <= document.line <= len(text.splitlines()) + 1
        if not document.faults:
            assert document.kind in {"Job", "Schedule"}
            json.dumps(document.body, allow_nan=False).encode()
        for fault in document.faults:
            assert fault.message
            assert fault.remedy
            assert len(str(fault)) < 1_000
    return documents


@given(texts | near_texts)
@examples(200)
def test_any_text_is_documents_or_refused_with_line_and_remedy(text):
    check(text)


@given(json_values(texts=st.text(max_size=8).filter(lambda text: text.isprintable() or text.isascii())))
@examples(100)
def test_what_json_says_is_read_as_json_whatever_wrote_it(value):
    """Escaped or not, with tabs or without."""
    document = {"kind": "Job", "name": "a", "x": value}
    for text in (
        json.dumps(document), json.dumps(document, ensure_ascii=False), json.dumps(document, indent="\t"),
    ):  # fmt: skip
        [read] = check(text)
        assert (read.faults, read.body) == ((), {"x": value})


@given(json_values(leaves=6))
@examples(100)
def test_what_we_write_is_read_as_it_was_meant(value):
    [read] = check(definitions.write([{"kind": "Job", "name": "a", "x": value}]))
    assert (read.faults, read.body) == ((), {"x": value})


# Found by the properties above, and by thinking of YAML's darker corners.
@pytest.mark.parametrize(
    ("text", "line", "fault"),
    [
        ("kind: Job\nname: a\0\n", 2, "the character U+0000 must not stand in a text"),
        ("kind: \x1b[2J\n", 1, "the character U+001B must not stand in a text"),
        ("kind: Job\nname: a\nx: " + "[" * 65, 3, "is nested deeper than 64 (flatten it)"),
        ("[" * 5_000, 1, "is nested deeper than 64 (flatten it)"),
        ("? " * 5_000, 1, "is nested deeper than 64 (flatten it)"),
        ('{"a":' * 5_000 + "1" + "}" * 5_000, 1, "is nested deeper than 64 (flatten it)"),
        (LAUGHS, 6, "has more than 1048576 characters, its aliases written out (make it smaller)"),
        (LAUGHS + "kind: *i\nname: *i\n", 6, "has more than 1048576 characters, its aliases written out"),
        ("&a {kind: Job, name: a, x: *a}", 1, "contains itself (write it out as deep as it is needed)"),
        ("kind: Job\nx: &a [1, *a]", 2, "contains itself (write it out as deep as it is needed)"),
        ("kind: Job\nname: a\nx: " + "9" * 5_000, 3, "is not an integer of at most 64 bits (put it in quotes)"),
        ("x: 18446744073709551616", 1, "'18446744073709551616' is not an integer of at most 64 bits"),
        ("kind: Job\nname: a\nx: 1e999", 3, "'1e999' is not a number that JSON has (put it in quotes)"),
        ("x: !!int one", 1, "'one' is not an integer of at most 64 bits"),
        ("x: !!int 1_0", 1, "'1_0' is not an integer of at most 64 bits"),
        ("x: !!int \u0661", 1, "'\u0661' is not an integer of at most 64 bits"),
        ("x: !!float nan", 1, "'nan' is not a number that JSON has"),
        ("x: !!bool maybe", 1, "'maybe' is not true or false"),
        ("x: !!map [a]", 1, "must be a mapping"),
        ("x: !!seq {a: b}", 1, "must be a list"),
        ("x: !!timestamp 2001-99-99", 1, "the tag 'tag:yaml.org,2002:timestamp' has no counterpart in JSON"),
        ("x: !!set {a, b}", 1, "the tag 'tag:yaml.org,2002:set' has no counterpart in JSON"),
        ("x: !!binary aGVsbG8=", 1, "the tag 'tag:yaml.org,2002:binary' has no counterpart in JSON"),
        ('kind: Job\nname: "\\ud800"\n', 2, "has half a character (a lone surrogate)"),
        ('kind: Job\nname: "\\U00110000"\n', 2, "an escape names no character"),
        ("kind: Job\nname: a\n---\nx: [\n", 5, "while parsing a flow node"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_says_where_and_what_to_do(text, line, fault):
    document = check(text)[-1]
    assert fault in str(document.faults[0])
    assert document.line == line


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("kind: Job\nname: ..\n", "/name: cannot be '..' (use 1-128 of A-Z a-z 0-9 . _ - and begin with a letter"),
        ("kind: Job\nname: ''\n", "/name: cannot be ''"),
        ("kind: Job\nname: a\ntenant: [a]\n", "/tenant: must be text, not ['a'] (put it in quotes)"),
        ("kind: Job\nname: {a: b}\n", "/name: must be text, not {'a': 'b'} (put it in quotes)"),
        (f"kind: {'k' * 500}\nname: a\n", "/kind: unknown kind 'kkk"),
    ],
)  # fmt: skip
def test_a_name_that_nothing_can_have_is_refused_before_anything_is_sent(text, fault):
    [document] = check(text)
    assert str(document.faults[0]).startswith(fault)


def test_a_file_of_more_than_a_server_could_want_is_not_read():
    [document] = check("a" * (16 * 1024 * 1024 + 1))
    assert str(document.faults[0]) == "/: is larger than 16777216 bytes (split the file)"


def test_a_name_of_a_place_that_is_two_halves_of_a_character_is_one():
    [document] = check('kind: Job\nname: a\nnote: "\\ud83d\\ude00"\n')
    assert document.body == {"note": "😀"}


# --- the command ------------------------------------------------------------------------------------------------------


def run(*arguments: str, stdin: Any = None) -> tuple[int, str]:
    with no_hang():
        result = CliRunner().invoke(main, arguments, input=stdin)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.output


@given(texts | near_texts)
@examples(25)
def test_no_file_makes_a_command_crash(tmp_path, text):
    """Nobody listens at this address: what could be sent is told so, and nothing else comes of it."""
    (tmp_path / "f.yaml").write_bytes(text.encode("utf-8", "surrogatepass"))
    address = ("--url", "http://127.0.0.1:1")
    for command in ("apply", "preview"):
        if any(not document.faults for document in definitions.read(text, "f")):
            continue
        code, output = run(command, "-f", str(tmp_path / "f.yaml"), *address)
        assert code in {1, 2}
        assert output


@pytest.mark.parametrize("text", [b"kind: Job\xff\n", b"\xed\xa0\x80", b"\x80"])
def test_what_is_not_utf_8_is_wrong_usage_also_on_standard_input(tmp_path, text):
    (tmp_path / "f.yaml").write_bytes(text)
    code, output = run("apply", "-f", str(tmp_path / "f.yaml"))
    assert (code, "f.yaml cannot be read: 'utf-8' codec can't decode" in output) == (2, True)
    code, output = run("apply", "-f", "-", stdin=text)
    assert (code, "- cannot be read: 'utf-8' codec can't decode" in output) == (2, True)
    assert output.rstrip().endswith("save it as UTF-8")


def test_a_refused_document_is_told_with_its_file_and_line(tmp_path):
    (tmp_path / "f.yaml").write_text("kind: Job\nname: a\ntenant: [a]\n---\nkind: Job\nname: 7\n", encoding="utf-8")
    code, output = run("apply", "-f", str(tmp_path / "f.yaml"))
    assert code == 1
    assert output.splitlines() == [
        f"refused Job default/a  {tmp_path}/f.yaml:1 (line 1)",
        "  /tenant: must be text, not ['a'] (put it in quotes)",
        f"refused Job default/7  {tmp_path}/f.yaml:2 (line 5)",
        "  /name: must be text, not 7 (put it in quotes)",
        "2 refused",
    ]
