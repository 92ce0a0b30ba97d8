"""Durations are read as people write them and written in one form."""

import contextlib
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas import durations


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("PT30S", 30),
        ("PT1H30M", 5400),
        ("P1DT12H", 129_600),
        ("P2W", 1_209_600),
        ("PT0.25S", 0.25),
        ("PT0S", 0),
        ("30s", 30),
        ("15m", 900),
        ("24h", 86_400),
        ("7d", 604_800),
        ("2w", 1_209_600),
    ],
)
def test_iso_and_short_forms_are_read(text, seconds):
    assert durations.parse(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "text", ["", "P", "PT", "30", "s", "1.5h", "-30s", "-PT30S", "PT30", "T30S", "PT1S ", "٣s", "P1H"]
)
def test_what_is_not_a_duration_says_how_to_write_one(text):
    with pytest.raises(ValueError, match="write PT30S, PT15M, P7D, or 30s"):
        durations.parse(text)


@pytest.mark.parametrize("text", ["P1M", "P1Y", "P1Y2M3DT4H"])
def test_years_and_months_have_no_fixed_length(text):
    with pytest.raises(ValueError, match="count in days"):
        durations.parse(text)


@pytest.mark.parametrize("text", ["P3661D", "999999999w", "PT999999999H"])
def test_beyond_ten_years_is_refused_so_that_instants_stay_on_the_calendar(text):
    with pytest.raises(ValueError, match="at most P3660D"):
        durations.parse(text)


@given(st.timedeltas(min_value=timedelta(0), max_value=durations.LONGEST))
def test_what_is_written_reads_back(duration):
    assert durations.parse(durations.render(duration)) == duration


@given(st.text(max_size=30))
def test_any_other_text_is_a_value_error(text):
    with contextlib.suppress(ValueError):
        durations.parse(text)
