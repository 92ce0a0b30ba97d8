"""What docs/configuration.md says of each setting is what the code does, and the sample file can be used."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Any, get_args

import annotated_types
import pytest
from pydantic.fields import FieldInfo

from node.settings import ClusterSettings, NodeSettings, Role, Settings, read_as
from schemas import durations

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs/configuration.md"
SAMPLE = ROOT / "deploy/tidewheel.toml"
CHAPTERS = {
    "Any process of the server": NodeSettings,
    "`tidewheel dev`": Settings,
    "`tidewheel serve`": ClusterSettings,
}


def rows(chapter: str) -> dict[str, tuple[str, str, str]]:
    """Setting → default, unit, meaning, as a chapter's table has them."""
    text = DOCUMENT.read_text(encoding="utf-8").partition(f"\n## {chapter}\n")[2].partition("\n## ")[0]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:3] == "| `"]
    return {name.strip("`"): (default, unit, meaning) for name, default, unit, meaning in cells}


def fields_of(kind: type[NodeSettings]) -> dict[str, FieldInfo]:
    """The settings that a class adds or gives another default."""
    return {name: kind.model_fields[name] for name in vars(kind)["__annotations__"] if name in kind.model_fields}


CASES = [
    pytest.param(chapter, name, field, id=f"{kind.__name__}.{name}")
    for chapter, kind in CHAPTERS.items()
    for name, field in fields_of(kind).items()
]


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_setting_has_a_line_and_every_line_a_setting(chapter):
    assert set(rows(chapter)) == set(fields_of(CHAPTERS[chapter]))


@pytest.mark.parametrize(("chapter", "name", "field"), CASES)
def test_a_line_tells_the_default(chapter, name, field):
    assert rows(chapter)[name][0] == shown(field.default if field.default_factory is None else {})


@pytest.mark.parametrize(("chapter", "name", "field"), CASES)
def test_a_line_tells_the_unit_the_bounds_and_the_choices(chapter, name, field):
    unit = rows(chapter)[name][1]
    assert unit
    if isinstance(field.default, timedelta):
        assert unit.startswith("duration")
    if isinstance(field.default, int) and not isinstance(field.default, bool):
        assert unit.endswith("{}\N{EN DASH}{}".format(*bounds(field)))
    choices = get_args(Role) if name == "roles" else get_args(field.annotation)
    assert [choice for choice in choices if isinstance(choice, str) and f"`{choice}`" not in unit] == []


def shown(value: Any) -> str:
    match value:
        case timedelta():
            return f"`{durations.render(value)}`"
        case bool():
            return f"`{str(value).lower()}`"
        case tuple():
            return f"`{','.join(value)}`"
        case "" | {}:
            return "none"
        case _:
            return f"`{value}`"


def bounds(field: FieldInfo) -> tuple[Any, Any]:
    lowest = [rule.ge for rule in field.metadata if isinstance(rule, annotated_types.Ge)]
    highest = [rule.le for rule in field.metadata if isinstance(rule, annotated_types.Le)]
    return lowest[0], highest[0]


# --- the sample ---


def test_the_sample_file_is_read_as_settings_of_serve(monkeypatch):
    monkeypatch.setenv("TIDEWHEEL_KAFKA", '{"sasl.password": "secret"}')
    settings = read_as(ClusterSettings, SAMPLE, {})
    assert settings.roles == ("scheduler", "dispatcher", "projector", "api")
    assert (settings.data, settings.log_format) == (Path("/var/lib/tidewheel"), "json")
    assert settings.bootstrap.split(",")[0] == "kafka-1.internal:9093"
    assert settings.log.properties == {
        "security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512", "sasl.username": "tidewheel",
        "sasl.password": "secret",
    }  # fmt: skip


def test_what_is_commented_out_in_the_sample_is_the_default(tmp_path):
    text = SAMPLE.read_text(encoding="utf-8")
    begun = tmp_path / "tidewheel.toml"
    begun.write_text(re.sub(r"^# (\w+ = )", r"\1", text, flags=re.MULTILINE), encoding="utf-8")
    assert begun.read_text(encoding="utf-8") != text
    assert read_as(ClusterSettings, begun, {}).model_dump() == read_as(ClusterSettings, SAMPLE, {}).model_dump()


def test_the_sample_names_every_setting():
    named = set(re.findall(r"^(?:# )?(\w+) = ", SAMPLE.read_text(encoding="utf-8"), flags=re.MULTILINE))
    assert set(ClusterSettings.model_fields) - named - {"kafka"} == set()
