"""What the fuzz of records found, and stays mended: each value with the fault that it has now.

A reader's other exception stops the partition that reads the record, and with it all schedules there.
"""

from __future__ import annotations

from typing import Any

import pytest

from scheduler import templates
from schemas import definitions
from schemas.faults import Refused
from tests.fuzz.budget import no_hang


def faults(data: Any, read: Any = definitions.read_job, *, strict: bool = False) -> list[tuple[str, str]]:
    with pytest.raises(Refused) as refused:
        read(data, strict=strict, pointer="/data/definition")
    return [(fault.pointer.removeprefix("/data/definition"), fault.code) for fault in refused.value.faults]


@pytest.mark.parametrize("kind", [{}, [], ["task"], {"type": "task"}, 1, None, True])
def test_a_target_whose_type_is_no_text_is_refused(kind):
    """A list or an object was a TypeError: it has no hash."""
    target = {"type": kind, "name": "reports.nightly"}
    for strict in (True, False):
        [(pointer, _)] = faults({"target": target}, strict=strict)
        assert pointer == "/target/type"
        [(pointer, _)] = faults(
            {"job": {"target": target}, "trigger": {"every": "PT1M"}}, definitions.read_schedule, strict=strict
        )
        assert pointer == "/job/target/type"


JOB = {"target": {"type": "task", "name": "t"}}


@pytest.mark.parametrize("text", ["{{" * 32_000, "{{ " * 21_000, "{" * 64_000, "{{" + " " * 64_000])
def test_a_payload_of_opening_braces_is_looked_at_once(text):
    """It took the owner of its partition two minutes, and again for every run."""
    with no_hang(2):
        assert list(templates.faults({"a": text}, "")) == []
        assert templates.compiled({"a": text}) is None


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("{{ tenant }}", "acme"),
        ("a{{tenant}}b{{ schedule }}", "aacmebnightly"),
        ("{{ tenant }}}", "acme}"),
        ("}} {{tenant}} {{", "}} acme {{"),
        ("{{\ntenant\n}}", "acme"),
        ("{ {tenant} }", "{ {tenant} }"),
    ],
)
def test_places_for_values_are_where_they_were(text, filled):
    assert list(templates.faults({"a": text}, "")) == []
    render = templates.compiled({"a": [{"b": text}]})
    values = {"tenant": "acme", "schedule": "nightly"}
    assert ({"a": [{"b": text}]} if render is None else render(values)) == {"a": [{"b": filled}]}


@pytest.mark.parametrize("text", ["{{ {{ tenant }}", "{{{tenant}}", "{{}}", "{{ tenant {{ }}"])
def test_a_place_that_names_nothing_is_refused(text):
    assert [fault.code for fault in templates.faults({"a": text}, "")] == ["unknown_template"]


def test_a_list_that_is_too_long_is_one_fault():
    """Each of its entries was one: a command of 240 kB kept its owner busy for three seconds."""
    with no_hang(2):
        assert faults({**JOB, "retry": {"never_on": [1] * 100_000}}) == [("/retry/never_on", "too_long")]
        schedule = {"job": JOB, "trigger": {"at": ["x"] * 60_000}}
        assert faults(schedule, definitions.read_schedule) == [("/trigger/at", "too_long")]


def test_of_very_many_unknown_fields_the_first_thousand_are_told():
    with no_hang(2):
        _, warnings = definitions.read_job({**JOB, **{f"f{n}": 1 for n in range(20_000)}}, strict=False)
    assert len(warnings) == 1_000
