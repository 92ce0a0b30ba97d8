"""Crontabs: of any text, entries become definitions that are read as they were written, and the rest is said."""

from __future__ import annotations

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from tests.fuzz.budget import examples, no_hang
from tests.fuzz.mutation import HOSTILE, mutated
from tidewheel import definitions
from tidewheel.cli import main
from tidewheel.importers import crontab

VALID = """\
# m h dom mon dow user command
SHELL=/bin/sh
MAILTO = "root"
CRON_TZ='Europe/London'
17 *	* * *	root	cd / && run-parts --report /etc/cron.hourly
*/5,7-9/2 0 1 jan mon-fri www-data [ -x /usr/bin/php ] && /usr/bin/php -f cron.php%line one%line two\\%
@daily root test -x /etc/init.d/x || exit 0; nice -n 5 backup
"""
PIECES = (
    "* ", "*/", "0-7", "1,", "mon", "@reboot ", "@every 5m ", "%", "\\%", "\\", "=", " = ", '"', "'", "#", "\t", " ",
    "\n", "\r\n", "\x0b", "\x85", "root ", "TZ=", "RANDOM_DELAY=5", "[ ", "&& ", "\ufffd", *HOSTILE[:20],
)  # fmt: skip
UNICODE = st.characters(exclude_categories=["Cs"])
texts = st.lists(st.sampled_from(PIECES) | st.text(UNICODE, max_size=5), max_size=40).map("".join)
near_texts = mutated(st.just(VALID), st.sampled_from(PIECES))


@given((texts | near_texts).map(lambda text: text.encode("utf-8", "replace").decode()))
@examples(60)
def test_any_crontab_is_definitions_and_remarks(text):
    for user_column in (None, True, False):
        with no_hang():
            source = crontab.Source(path="-", text=text, user_column=user_column)
            imported = crontab.convert([source], crontab.Settings())
            read = definitions.read(definitions.write(imported.documents), "f.yaml") if imported.documents else []
        assert [{"kind": each.kind, "name": each.name, **(each.body or {})} for each in read] == list(
            imported.documents
        )
        assert [each.faults for each in read] == [()] * len(read)
        for remark in imported.remarks:
            assert 1 <= remark.line <= text.count("\n") + 1
            assert remark.text


@pytest.mark.parametrize(
    ("line", "remark"),
    [
        (f"{'9' * 5_000} * * * * x\n", "-:1: left out: '999"),  # was a ValueError: Python reads no such number
        ("*/000 * * * * x\n", "-:1: left out: '*/000' is no minute"),
        ("\u0663 * * * * x\n", "-:1: left out: '\u0663' is no minute"),
    ],
)
def test_a_number_that_is_none_is_said(line, remark):
    imported = crontab.convert([crontab.Source(path="-", text=line)], crontab.Settings())
    assert imported.documents == ()
    assert str(imported.remarks[0]).startswith(remark)


def test_a_step_of_any_length_is_left_to_those_who_apply_it():
    """Cron takes it too: it means once."""
    imported = crontab.convert([crontab.Source(path="-", text=f"*/{'9' * 5_000} * * * * x\n")], crontab.Settings())
    assert (len(imported.documents), imported.remarks) == (1, ())


@pytest.mark.parametrize("value", ["x" + " " * 60_000 + "y", "x" + " " * 60_000 + "'", "x " * 30_000 + "y"])
def test_the_blanks_of_a_setting_are_looked_at_once(value):
    """A line of 60,000 blanks took minutes."""
    with no_hang(2):
        assert crontab.environment(f"A={value}") == ("A", value)
        assert crontab.environment(f"A={value}  \t") == ("A", value)


@pytest.mark.parametrize("raw", [b"\xff\xfe", b"* * * * * echo \xff\n", b"\0\n", b"A=\xff\n* * * * * x\n"])
def test_bytes_that_are_no_text_are_no_crash_on_standard_input_either(tmp_path, raw):
    (tmp_path / "crontab").write_bytes(raw)
    for file in ("-", str(tmp_path / "crontab")):
        result = CliRunner().invoke(main, ["import", "crontab", file], input=raw)
        assert result.exception is None or isinstance(result.exception, SystemExit)
        assert result.exit_code in {0, 1}


def test_what_cannot_be_read_or_written_is_wrong_usage(tmp_path):
    for arguments in ([str(tmp_path / "none")], ["-", "-o", str(tmp_path / "none" / "x.yaml")]):
        result = CliRunner().invoke(main, ["import", "crontab", *arguments], input="* * * * * x\n")
        assert (result.exit_code, "No such file or directory" in result.output) == (2, True)
