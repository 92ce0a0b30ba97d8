"""A calendar of a country's public holidays is written for people to look at, and can be applied as it is."""

from datetime import date

import pytest
from click.testing import CliRunner

from schemas import definitions, references
from tidewheel import publicdays
from tidewheel.cli import main
from tidewheel.definitions import read


def run(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(main, ["calendars", "holidays", *arguments], env={"TIDEWHEEL_TENANT": None})
    return result.exit_code, result.stdout, result.stderr


def test_the_days_are_written_with_their_names_and_read_as_a_definition():
    code, out, _ = run("GB", "--subdivision", "SCT", "--years", "2026", "--tenant", "acme", "--name", "scots")
    assert code == 0
    assert "- 2026-01-02  # New Year Holiday\n" in out or "- 2026-01-02  # 2nd January\n" in out
    assert "- 2026-12-25  # Christmas Day\n" in out
    (document,) = read(out, "-")
    assert (document.kind, document.tenant, document.name, document.faults) == ("Calendar", "acme", "scots", ())
    calendar, warnings = definitions.read_as(references.Calendar, document.body, strict=True)
    assert warnings == ()
    # Boxing Day is a Saturday: the Monday behind it stands for it.
    assert {date(2026, 11, 30), date(2026, 12, 25), date(2026, 12, 28)} <= set(calendar.dates)
    assert {day.year for day in calendar.dates} == {2026}


def test_several_years_are_those_between_two_and_the_name_follows_from_the_country():
    code, out, _ = run("US", "--years", "2026-2028")
    assert code == 0
    (document,) = read(out, "-")
    assert (document.tenant, document.name) == (None, "us-holidays")
    assert {day[:4] for day in (document.body or {})["dates"]} == {"2026", "2027", "2028"}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("XX", "--years", "2026"), "Country XX not available: countries and their parts are named by ISO 3166"),
        (("GB", "--subdivision", "ZZ", "--years", "2026"), "does not have subdivision ZZ"),
        (("GB", "--years", "2026-2025"), "write 2026, or 2026-2028"),
        (("GB", "--years", "1900-1950"), "write 2026, or 2026-2028"),
        (("GB", "--years", "26"), "write 2026, or 2026-2028"),
    ],
)
def test_what_is_not_known_is_wrong_usage(arguments, said):
    code, _, err = run(*arguments)
    assert code == 2
    assert said in " ".join(err.split())


def test_who_has_not_the_library_is_told_how_to_get_it(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "holidays", None)
    with pytest.raises(publicdays.Unknown, match=r"pip install 'tidewheel\[holidays\]'"):
        publicdays.holidays("GB", None, [2026])
