"""Zones: which readings exist, which exist twice, and by which database."""

from datetime import UTC, datetime, timedelta
from importlib import resources
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler.occurrences import ZoneError, tz_version, zone
from scheduler.occurrences.tzif import read_footer
from scheduler.occurrences.zones import LAST_INSTANT, zone_names
from tests.scheduler.occurrences.instants import at, written

CHANGES = {
    "Europe/London": ("2024-03-31T01:00Z", 0, 3_600),
    "America/New_York": ("2024-11-03T06:00Z", -14_400, -18_000),
    "Australia/Lord_Howe": ("2024-10-05T15:30Z", 37_800, 39_600),
    "Pacific/Chatham": ("2025-04-05T14:00Z", 49_500, 45_900),
    "Antarctica/Troll": ("2024-03-31T01:00Z", 0, 7_200),
    "Africa/Casablanca": ("2025-02-23T02:00Z", 3_600, 0),
    "Pacific/Apia": ("2011-12-30T10:00Z", -36_000, 50_400),
    "Asia/Kathmandu": ("1985-12-31T18:30Z", 19_800, 20_700),
    "Africa/Monrovia": ("1972-01-07T00:44:30Z", -2_670, 0),
    "Europe/Dublin": ("2050-10-30T01:00Z", 3_600, 0),
    "Asia/Gaza": ("2100-03-27T00:00Z", 7_200, 10_800),
}
NAMES = sorted(zone_names())


@pytest.mark.parametrize(("name", "change"), CHANGES.items())
def test_the_offset_changes_at_the_second(name, change):
    moment, before, after = change
    assert zone(name).offset(at(moment) - 1) == before
    assert zone(name).offset(at(moment)) == after


def test_a_reading_in_a_gap_is_never_shown():
    new_york = zone("America/New_York")
    assert written(new_york.instants(at("2024-03-10T01:59:59"))) == ["2024-03-10T06:59:59Z"]
    assert written(new_york.instants(at("2024-03-10T02:00"))) == []
    assert written(new_york.instants(at("2024-03-10T02:59:59"))) == []
    assert written(new_york.instants(at("2024-03-10T03:00"))) == ["2024-03-10T07:00Z"]


def test_a_reading_in_a_fold_is_shown_twice():
    chatham = zone("Pacific/Chatham")
    assert written(chatham.instants(at("2025-04-06T02:44:59"))) == ["2025-04-05T12:59:59Z"]
    assert written(chatham.instants(at("2025-04-06T02:45"))) == ["2025-04-05T13:00Z", "2025-04-05T14:00Z"]
    assert written(chatham.instants(at("2025-04-06T03:44:59"))) == ["2025-04-05T13:59:59Z", "2025-04-05T14:59:59Z"]
    assert written(chatham.instants(at("2025-04-06T03:45"))) == ["2025-04-05T15:00Z"]


def test_two_changes_that_cancel_out_are_no_change():
    """Scoresbysund changed its base offset and its summer time at the same moment on 2024-03-31."""
    segments = list(zone("America/Scoresbysund").segments(at("2024-03-01T00:00Z"), at("2024-04-30T00:00Z")))
    assert [segment.offset for segment in segments] == [-3_600]


@given(name=st.sampled_from(NAMES), instant=st.integers(at("1900-01-01T00:00Z"), at("2500-01-01T00:00Z")))
def test_every_zone_agrees_with_the_standard_library_at_any_instant(name, instant):
    told = datetime.fromtimestamp(instant, UTC).astimezone(pinned(name)).utcoffset()
    assert told == timedelta(seconds=zone(name).offset(instant))


@pytest.mark.parametrize("name", NAMES[::7])
def test_a_zone_agrees_with_the_standard_library_on_both_sides_of_every_change(name):
    other = pinned(name)
    for segment in zone(name).segments(at("1900-01-01T00:00Z"), at("2101-01-01T00:00Z")):
        for instant in (max(segment.start, at("1900-01-01T00:00Z")), min(segment.end, at("2101-01-01T00:00Z")) - 1):
            told = datetime.fromtimestamp(instant, UTC).astimezone(other).utcoffset()
            assert told == timedelta(seconds=segment.offset), (name, instant)


def test_no_reading_is_shown_three_times_in_any_zone():
    """The walk and its policies rest on this: what two neighbouring changes do to the clock never overlaps."""
    for name in NAMES:
        for segment in zone(name).near.segments[1:-1]:
            moved = abs(segment.offset - segment.before) + abs(segment.then - segment.offset)
            assert segment.end - segment.start > moved, (name, segment)


def test_the_far_future_follows_the_rule_of_today():
    assert zone("Europe/Berlin").offset(at("9998-07-01T00:00Z")) == 7_200
    assert zone("Europe/Berlin").offset(at("9998-12-01T00:00Z")) == 3_600
    assert zone("Asia/Tokyo").offset(LAST_INSTANT) == 32_400


def test_the_version_is_the_database_s_own():
    assert tz_version() >= "2026f"
    assert zone("Europe/London").version == tz_version()


def test_a_zone_is_a_value():
    assert zone("UTC") == zone("UTC")
    assert len({zone("UTC"), zone("UTC"), zone("Etc/UTC")}) == 2


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("europe/london", "Did you mean Europe/London?"),
        ("Europe/Lodnon", "Did you mean Europe/London?"),
        ("America/NewYork", "Did you mean America/New_York?"),
        ("Mars/Olympus", "Use an IANA name, such as Europe/London or UTC."),
        ("", "Name one, such as Europe/London, or leave it out for UTC."),
        ("../../etc/passwd", "Use an IANA name, such as Europe/London or UTC."),
        ("/etc/localtime", "Use an IANA name, such as Europe/London or UTC."),
        ("x" * 100_000, "Use an IANA name, such as Europe/London or UTC."),
        ("\x00", "Use an IANA name, such as Europe/London or UTC."),
    ],
)
def test_an_unknown_zone_is_refused_with_the_nearest_known_one(name, remedy):
    with pytest.raises(ZoneError) as refused:
        zone(name)
    assert refused.value.field == "timezone"
    assert refused.value.remedy == remedy
    assert len(str(refused.value)) < 200


def test_the_placeholder_for_a_machine_without_a_zone_is_no_zone():
    with pytest.raises(ZoneError):
        zone("Factory")


@pytest.mark.parametrize(
    ("text", "year", "expected"),
    [
        ("CET-1CEST,M3.5.0,M10.5.0/3", 2025, [("2025-03-30T01:00Z", 7_200), ("2025-10-26T01:00Z", 3_600)]),
        ("<-02>2<-01>,M3.5.0/-1,M10.5.0/0", 2025, [("2025-03-30T01:00Z", -3_600), ("2025-10-26T01:00Z", -7_200)]),
        ("EET-2EEST,M3.4.4/50,M10.4.4/50", 2100, [("2100-03-27T00:00Z", 10_800), ("2100-10-29T23:00Z", 7_200)]),
        ("AEST-10AEDT,M10.1.0,M4.1.0/3", 2025, [("2025-04-05T16:00Z", 36_000), ("2025-10-04T16:00Z", 39_600)]),
        ("XXX0YYY,J60/0,J61/0", 2024, [("2024-03-01T00:00Z", 3_600), ("2024-03-01T23:00Z", 0)]),
        ("XXX0YYY,59/0,60/0", 2024, [("2024-02-29T00:00Z", 3_600), ("2024-02-29T23:00Z", 0)]),
        ("XXX3:30YYY-1:15,M3.2.0,M11.1.0", 2025, [("2025-03-09T05:30Z", 4_500), ("2025-11-02T00:45Z", -12_600)]),
        ("<+0545>-5:45", 2025, []),
    ],
)
def test_a_footer_s_rule_makes_its_changes_every_year(text, year, expected):
    changes = read_footer(text).changes(year)
    assert [(written([change.at])[0], change.offset) for change in changes] == expected


def pinned(name: str) -> ZoneInfo:
    """The standard library's reading of the very same file; its own search would prefer the machine's database."""
    with resources.files("tzdata").joinpath("zoneinfo", *name.split("/")).open("rb") as file:
        return ZoneInfo.from_file(file, name)
