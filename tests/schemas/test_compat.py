"""A change of a published schema that breaks who was built against the last release is refused, and says so."""

from typing import Any

import pytest

from schemas import compat
from schemas.compat import differences

BEFORE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "run_id": {"type": "string"},
        "outcome": {"type": "string", "enum": ["succeeded", "failed"]},
        "error": {"$ref": "#/$defs/Error"},
        "note": {"type": "string", "maxLength": 100},
        "limit": {"type": "integer", "minimum": 1, "maximum": 10},
        "later": {"x-not-yet": True},
    },
    "required": ["run_id", "outcome"],
    "$defs": {
        "Error": {
            "type": "object",
            "properties": {"type": {"type": "string"}, "cause": {"$ref": "#/$defs/Error"}},
            "required": ["type"],
        }
    },
}


def changed(path: str, value: Any) -> Any:
    """BEFORE with another value at a path; None removes it."""
    document = copied(BEFORE)
    *parents, last = path.split(".")
    node = document
    for part in parents:
        node = node[part]
    if value is None:
        del node[last]
    else:
        node[last] = value
    return document


def copied(node: Any) -> Any:
    return {key: copied(value) for key, value in node.items()} if isinstance(node, dict) else node


def of_fact(after: Any) -> list[str]:
    return list(differences({"facts/x.json": BEFORE}, {"facts/x.json": after}))


def of_command(after: Any) -> list[str]:
    return list(differences({"commands/x.json": BEFORE}, {"commands/x.json": after}))


def test_no_change_breaks_nobody():
    assert of_fact(BEFORE) == of_command(BEFORE) == []


def test_a_new_field_that_may_be_absent_breaks_nobody():
    after = changed("properties.duration", {"type": "string"})
    assert of_fact(after) == of_command(after) == []


def test_a_new_type_breaks_nobody_and_one_that_is_gone_does():
    assert list(differences({}, {"facts/x.json": BEFORE})) == []
    assert list(differences({"facts/x.json": BEFORE}, {})) == [
        "facts/x.json: is gone; a type that was published stays readable for ever"
    ]


def test_a_field_is_never_removed_or_renamed():
    after = changed("properties.note", None)
    assert of_command(after) == [
        "commands/x.json: /note: is gone; fields are never removed or renamed, only left at their default"
    ]
    assert len(of_fact(after)) == 1


def test_a_new_field_is_never_required():
    after = changed("required", ["run_id", "outcome", "limit"])
    assert of_fact(after) == [
        "facts/x.json: /limit: is required now, and old records do not have it; give it a default"
    ]
    assert len(of_command(after)) == 1


def test_a_fact_never_stops_writing_a_field_that_readers_need():
    after = changed("required", ["run_id"])
    assert of_fact(after) == ["facts/x.json: /outcome: may be absent now, and older readers need it; always write it"]
    assert of_command(after) == []


def test_a_word_is_never_taken_back_and_a_fact_gets_no_new_one():
    fewer = changed("properties.outcome.enum", ["succeeded"])
    assert of_fact(fewer) == ["facts/x.json: /outcome: no longer takes 'failed'; keep reading it"]
    assert of_command(fewer) == ["commands/x.json: /outcome: no longer takes 'failed'; keep reading it"]
    more = changed("properties.outcome.enum", ["succeeded", "failed", "expired"])
    assert of_fact(more) == [
        "facts/x.json: /outcome: may now be 'expired', which older readers refuse; make it a new version"
    ]
    assert of_command(more) == []


def test_a_type_is_never_narrowed_and_that_of_a_fact_never_changed():
    widened = changed("properties.limit", {"type": "number", "minimum": 1, "maximum": 10})
    assert of_fact(widened) == ["facts/x.json: /limit: was integer, is number; make it a new field, or a new version"]
    assert of_command(widened) == []
    assert len(of_command(changed("properties.limit", {"type": "string"}))) == 1
    assert len(of_command(changed("properties.run_id", {"type": "string", "enum": ["a"]}))) == 1


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("properties.note.maxLength", 50, "/note: maxLength was 100, is 50"),
        ("properties.limit.minimum", 2, "/limit: minimum was 1, is 2"),
        ("properties.run_id", {"type": "string", "maxLength": 5}, "/run_id: maxLength was none, is 5"),
        ("properties.run_id", {"type": "string", "pattern": "^a"}, "/run_id: pattern was none, is ^a"),
    ],
)
def test_a_bound_is_never_tightened(path, value, said):
    assert of_command(changed(path, value)) == [f"commands/x.json: {said}"]


def test_a_bound_may_be_loosened():
    assert of_command(changed("properties.note.maxLength", 200)) == []


def test_what_stands_inside_is_compared_too_even_when_it_contains_itself():
    after = changed("$defs.Error.properties.type", {"type": "integer"})
    assert of_fact(after) == [
        "facts/x.json: /error/type: was string, is integer; make it a new field, or a new version"
    ]


def test_what_was_refused_until_now_may_become_anything():
    assert of_command(changed("properties.later", {"type": "array", "maxItems": 3})) == []


def test_a_union_loses_no_branch():
    before = {"oneOf": [{"type": "string"}, {"type": "object"}]}
    after = {"oneOf": [{"type": "string"}]}
    assert list(differences({"definitions/x.json": before}, {"definitions/x.json": after})) == [
        "definitions/x.json: /: took 2 forms, takes 1"
    ]


def test_the_command_compares_with_a_revision_of_this_repository(capsys):
    assert compat.main(["--against", "HEAD"]) in (0, 1)
    assert "Compared with HEAD: " in capsys.readouterr().out


def test_schemas_of_a_revision_are_found_by_the_names_they_have_now():
    assert "facts/tidewheel.run.created.v1.json" in compat.published_at("HEAD")
    assert compat.published_now().keys() >= {"definitions/schedule.json", "commands/tidewheel.schedule.put.v1.json"}


def test_wrong_usage_is_said(capsys):
    assert compat.main(["--since", "yesterday"]) == 2
    assert capsys.readouterr().err.startswith("usage: ")
