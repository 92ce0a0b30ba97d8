"""Triggers: any text is an expression or refused with the field and the remedy, and what is due next is soon known."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler import checks, occurrences
from schemas.faults import Refused
from tests.fuzz.budget import examples, no_hang
from tests.fuzz.mutation import HOSTILE, json_values, mutated, with_wrong_values

FIELDS = {"second", "minute", "hour", "day_of_month", "month", "day_of_week", "expression"}
VALID = (
    "0 2 * * *", "*/5 9-17 * * MON-FRI", "0 0 29 2 *", "0 0 L * *", "0 0 LW * ?", "0 0 15W * *", "0 0 * * 5#3",
    "0 0 * * 5L", "H H(0-7) * * *", "0 0 12 ? * MON", "0 22-2 L-3 NOV-FEB ?", "@daily",
    "*/7 0,12 1-7/2 */3 SUN", "59 59 23 31 12 *",
)  # fmt: skip
PIECES = (
    "*", "/", "-", ",", "?", "L", "W", "#", "H", "H(", ")", " ", "\t", "0", "00007", "9" * 30, "MON", "jan", "@", "%",
    *HOSTILE[:15],
)  # fmt: skip
NOW = 1_772_953_200  # 2026-03-08T07:00:00Z
INSTANTS = (-(2**62), -62_135_596_800, 0, NOW, 4_102_444_800, 253_402_127_999, 253_402_300_799, 2**62)
ZONES = ("UTC", "Europe/London", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "Africa/Casablanca")
LONG = 256  # characters of an expression

expressions = (
    mutated(st.sampled_from(VALID), st.sampled_from(PIECES))
    | st.lists(st.sampled_from(PIECES), max_size=60).map("".join)
    | st.text("0123456789*/-,?LW#H() MONTUEJAN@", max_size=LONG)
)


@given(
    expressions, st.sampled_from([None, "unix", "quartz"]), st.sampled_from(["vixie", "literal"]),
    st.sampled_from([None, "a/b"]), st.sampled_from(ZONES), st.sampled_from(["shift", "skip"]),
    st.sampled_from(["first", "second", "both"]),
)  # fmt: skip
@examples(150)
def test_any_text_is_an_expression_or_refused_by_field_with_a_remedy(
    text, dialect, day_rule, hash_key, zone, gap, fold
):
    with no_hang(5):
        try:
            expression = occurrences.parse(text, dialect=dialect, day_rule=day_rule, hash_key=hash_key)
        except occurrences.CronError as error:
            refusal = (error.field in FIELDS, bool(error.problem), bool(error.remedy))
            assert refusal == (True, True, True)
            return
        again = occurrences.parse(str(expression), dialect=dialect, day_rule=day_rule, hash_key=hash_key)
        assert again == expression
        trigger = occurrences.CronTrigger(expression, occurrences.zone(zone), gap, fold)
        assert occurrences.describe(trigger)
        for after in INSTANTS:
            due = trigger.next_after(after)
            assert due is None or due > after
        assert occurrences.count_between(trigger, NOW, NOW + 86_400 * 366, 10) <= 10


@pytest.mark.parametrize("text", ["0 0 30 2 *", "0 0 31 2,4,6,9,11 *", "0 0 31W 2 *", "0 0 * 2 MON#5,5#5 ? *"])
def test_a_day_that_never_comes_is_refused(text):
    with no_hang(2), pytest.raises(occurrences.CronError):
        occurrences.parse(text)


@pytest.mark.parametrize(
    ("text", "after", "due"),
    [
        ("0 0 29 2 *", datetime(2096, 3, 1, tzinfo=UTC), datetime(2104, 2, 29, tzinfo=UTC)),  # 2100 has none
        ("0 0 29 2 */7", datetime(2026, 3, 1, tzinfo=UTC), datetime(2032, 2, 29, tzinfo=UTC)),  # a Sunday
        ("0 0 1 1 *", datetime(9998, 12, 31, tzinfo=UTC), datetime(9999, 1, 1, tzinfo=UTC)),
        (
            "0 0 31 12 *",
            datetime(9999, 1, 1, tzinfo=UTC),
            None,
        ),  # the last two days of the calendar have no room for zones
    ],
)
def test_the_rarest_days_are_found_at_once(text, after, due):
    trigger = occurrences.CronTrigger(occurrences.parse(text), occurrences.zone("UTC"))
    with no_hang(2):
        found = trigger.next_after(int(after.timestamp()))
    assert found == (None if due is None else int(due.timestamp()))


SCHEDULES: tuple[dict[str, Any], ...] = tuple(
    {"trigger": trigger, "job": {"target": {"type": "task", "name": "t"}, "payload": {"a": "{{ tenant }}"}}}
    for trigger in (
        {"cron": "0 2 * * *", "timezone": "Europe/London"},
        {"every": "PT15M", "anchor": "2026-03-08T00:00:00Z"},
        {"at": ["2026-03-08T08:00:00Z"]},
    )
)
TEXTS = (
    "P",
    "PT",
    "P1Y",
    "1h",
    "PT0.5S",
    "P99999999D",
    "2026-02-30T00:00:00Z",
    "9999-12-31T23:59:59-14:00",
    "{{",
    "{{ x }}",
)


@given(
    st.sampled_from(SCHEDULES).flatmap(lambda each: with_wrong_values(each, json_values(texts=st.sampled_from(TEXTS)))),
    st.booleans(),
)
@examples(100)
def test_any_definition_is_compiled_or_refused_with_pointers(definition, strict):
    now = datetime(2026, 3, 8, 7, tzinfo=UTC)
    with no_hang():
        try:
            checked = checks.schedule(definition, hash_key="a/b", now=now, strict=strict, pointer="/data/definition")
        except Refused as refused:
            for fault in refused.faults:
                assert fault.pointer.startswith("/data/definition")
                assert fault.message
            return
        after = int((now - timedelta(days=1)).timestamp())
        assert occurrences.count_between(checked.plan.trigger, after, after + 86_400, 5) <= 5
