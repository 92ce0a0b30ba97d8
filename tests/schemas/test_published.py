"""What is published is fresh, is proper JSON Schema and AsyncAPI, and agrees with what is really written and read."""

import json
from collections.abc import Iterator
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # it ships no types
import pytest
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

from schemas import asyncapi, codec, commands, definitions, generate, sample, topics
from schemas.facts import FACTS

WANTED = generate.documents()
SCHEMAS = [name for name in WANTED if name not in ("asyncapi.json", "openapi.json")]
GOLDEN = sorted((generate.HERE / "golden").glob("*/*.json"))

# References are relative paths below published/, as people who copy the folder need them.
BASE = "https://schemas.example/"
REGISTRY: Any = Registry().with_resources(
    (f"{BASE}{name}", Resource.from_contents({**json.loads(WANTED[name]), "$id": f"{BASE}{name}"}, DRAFT202012))
    for name in SCHEMAS
)


def validator(name: str) -> Any:
    schema = {**json.loads(WANTED[name]), "$id": f"{BASE}{name}"}
    return jsonschema.Draft202012Validator(schema, registry=REGISTRY, format_checker=jsonschema.FormatChecker())


def test_what_is_committed_is_what_would_be_generated():
    """Else: make generate."""
    assert generate.stale_files(generate.PUBLISHED, WANTED) == []


def test_stale_files_are_those_that_are_missing_different_or_left_over(tmp_path):
    (tmp_path / "same.json").write_text("1")
    (tmp_path / "different.json").write_text("1")
    (tmp_path / "left-over.json").write_text("1")
    wanted = {"same.json": "1", "different.json": "2", "folder/missing.json": "3"}
    assert generate.stale_files(tmp_path, wanted) == ["different.json", "folder/missing.json", "left-over.json"]
    generate.write(tmp_path, wanted)
    assert generate.stale_files(tmp_path, wanted) == []


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_is_proper_json_schema(name):
    jsonschema.Draft202012Validator.check_schema(json.loads(WANTED[name]))


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_golden_record_is_valid_by_its_schema(path):
    event = json.loads(path.read_text(encoding="utf-8"))
    validator("cloudevent.json").validate(event)
    validator(asyncapi.schema_path(event["type"])).validate(event["data"])


def test_a_normal_form_is_valid_and_a_wrong_definition_is_not():
    schedule, _ = definitions.read_schedule(
        {"trigger": {"every": "15m"}, "job": {"target": {"type": "task", "name": "x"}}}, strict=True
    )
    validator("definitions/schedule.json").validate(definitions.normal_form(schedule))
    for wrong in ({}, {"job": 5}, {"job": "x", "catch_up": {"policy": "never"}}, {"job": {"target": {"type": "x"}}}):
        assert not validator("definitions/schedule.json").is_valid(wrong)


def test_a_document_of_a_definition_file_says_kind_tenant_and_name():
    document = {
        "kind": "Schedule",
        "tenant": "acme",
        "name": "nightly",
        "trigger": {"cron": "0 2 * * *"},
        "job": "send",
    }
    validator("definitions/file.json").validate(document)
    assert not validator("definitions/file.json").is_valid(document | {"kind": "Schedul"})
    assert not validator("definitions/file.json").is_valid(document | {"name": "a b"})


def test_internal_types_are_marked():
    assert json.loads(WANTED["facts/tidewheel.run.handed_out.v1.json"])["x-internal"] is True
    assert "x-internal" not in json.loads(WANTED["facts/tidewheel.run.created.v1.json"])


# --- AsyncAPI -----------------------------------------------------------------------------------------------------

DOCUMENT = json.loads(WANTED["asyncapi.json"])


def test_every_topic_of_the_table_is_a_channel_with_key_and_retention():
    table = {spec.name: spec for spec in topics.topic_table(topics.Retention())}
    channels = {channel["address"]: channel for channel in DOCUMENT["channels"].values()}
    assert set(channels) == set(table) | {"tidewheel.dispatch.{queue}"}
    assert channels["tidewheel.run-events"]["x-key"] == "tenant/name"
    assert channels["tidewheel.run-events"]["x-retention"] == "P30D"
    assert channels["tidewheel.versions"]["bindings"]["kafka"]["topicConfiguration"] == {"cleanup.policy": ["compact"]}


def test_every_published_type_stands_on_a_topic():
    on_topics = {type_ for spec in topics.topic_table(topics.Retention()) for type_ in asyncapi.messages_of(spec.name)}
    assert set(commands.COMMANDS) <= on_topics
    facts = {fact.TYPE for fact in codec.TYPES.values() if fact in FACTS}
    assert facts - on_topics == set()


def test_every_reference_of_the_asyncapi_document_arrives():
    for reference in references(DOCUMENT):
        if reference.startswith("#/"):
            node = DOCUMENT
            for part in reference[2:].split("/"):
                node = node[part]
        else:
            assert reference in WANTED


def references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        yield from ([node["$ref"]] if "$ref" in node else [])
        for value in node.values():
            yield from references(value)
    elif isinstance(node, list):
        for item in node:
            yield from references(item)


def test_the_command_says_what_is_stale(capsys):
    assert generate.main(["--check"]) == 0
    assert capsys.readouterr().err == ""
    assert generate.main(["--chekc"]) == 2


def test_a_sample_of_a_type_is_printed_ready_to_be_kept(capsys):
    assert sample.main(["tidewheel.tz.adopted.v1"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["type"], printed["subject"]) == ("tidewheel.tz.adopted.v1", "_/scheduler-12")
    assert sample.main(["tidewheel.nothing.v1"]) == 2
