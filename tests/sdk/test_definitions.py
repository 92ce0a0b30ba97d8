"""Definition files: documents, the plain YAML they are written in, and what is said of those that can't be sent."""

from typing import Any

import pytest
import yaml

from tidewheel.definitions import find, in_order, read, write


def bodies(text: str) -> list[Any]:
    return [document.body for document in read(text, "f.yaml")]


def faults(text: str) -> list[str]:
    return [str(fault) for document in read(text, "f.yaml") for fault in document.faults]


def test_a_file_holds_several_documents_and_each_knows_its_place():
    text = "kind: Job\nname: a\nqueue: q\n---\n---\nkind: Schedule\ntenant: acme\nname: b\njob: a\n"
    found = read(text, "f.yaml")
    assert [(each.kind, each.tenant, each.name, each.body) for each in found] == [
        ("Job", None, "a", {"queue": "q"}),
        ("Schedule", "acme", "b", {"job": "a"}),
    ]
    assert [each.place for each in found] == ["f.yaml:1 (line 1)", "f.yaml:3 (line 6)"]


def test_json_is_read_as_well():
    assert bodies('{"kind": "Job", "name": "a", "x": [1, 2.5, "c", null, true]}') == [{"x": [1, 2.5, "c", None, True]}]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("NO", "NO"),
        ("on", "on"),
        ("2026-12-31", "2026-12-31"),
        ("2026-03-08T05:15:53Z", "2026-03-08T05:15:53Z"),
        ("12:30", "12:30"),
        ("0755", 755),
        ("1_000", "1_000"),
        ("true", True),
        ("1e3", 1000.0),
        ("-7", -7),
        ("~", None),
        ("'7'", "7"),
        ("0x1F", "0x1F"),
        ("PT15M", "PT15M"),
    ],
)
def test_words_dates_and_times_are_text_and_only_plain_numbers_are_numbers(written, meant):
    [body] = bodies(f"kind: Job\nname: a\nx: {written}\n")
    assert body == {"x": meant}


@pytest.mark.parametrize(
    "text",
    ["08", "010", "1e3", "NO", "12:30", "2026-12-31", "null", "~", "a: b", "- x", "", "é\n", "a\x85b", "a \u2028 b\n"],
)
def test_what_is_written_is_read_as_it_was_meant_by_us_and_by_others(text):
    document = {"kind": "Job", "name": "a", "x": {"y": text}}
    written = write([document])
    assert bodies(written) == [{"x": {"y": text}}]
    assert yaml.safe_load(written) == document


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("- a\n", "/: is not a mapping with kind and name"),
        ("name: a\n", "/kind: unknown kind None (write one of Tenant, Queue, Calendar, Job, Schedule)"),
        ("kind: schedul\nname: a\n", "/kind: unknown kind 'schedul' (did you mean Schedule?)"),
        ("kind: Queue\nname: a\ntenant: acme\n", "/tenant: a Queue belongs to no tenant (leave it out)"),
        ("kind: Tenant\nname: a\ntenant: acme\n", "/tenant: a Tenant is named by its name (leave it out)"),
        ("kind: Job\n", "/name: is required"),
        ("kind: Job\nname: 7\n", "/name: must be text, not 7 (put it in quotes)"),
        ("kind: Job\nname: a\ntenant: 7\n", "/tenant: must be text, not 7 (put it in quotes)"),
        ("kind: Job\nname: a\nname: b\n", "/: cannot be read as YAML: the key 'name' stands there twice"),
        (
            "kind: [Job\n",
            "/: cannot be read as YAML: while parsing a flow sequence expected ',' or ']', but got '<stream end>'",
        ),
        ("kind: !!python/object:os.system x\n", "/: cannot be read as YAML"),
    ],
)
def test_what_cannot_be_sent_says_why(text, fault):
    [found] = faults(text)
    assert found.startswith(fault)


def test_documents_before_a_broken_one_stand():
    found = read("kind: Job\nname: a\n---\nx: [\n", "f.yaml")
    assert [(each.name, bool(each.faults)) for each in found] == [("a", False), ("", True)]


def test_jobs_come_before_the_schedules_that_may_name_them():
    text = "kind: Schedule\nname: a\n---\nkind: Job\nname: b\n---\nkind: Schedule\nname: c\n"
    assert [each.name for each in in_order(read(text, "f.yaml"))] == ["b", "a", "c"]


def test_what_others_may_name_comes_first():
    kinds = ("Schedule", "Job", "Calendar", "Queue", "Tenant")
    text = "---\n".join(f"kind: {kind}\nname: a\n" for kind in kinds)
    assert [each.kind for each in in_order(read(text, "f.yaml"))] == ["Tenant", "Queue", "Calendar", "Job", "Schedule"]


def test_a_folder_is_its_definition_files_in_order_of_name(tmp_path):
    for name in ("b.yml", "a/c.yaml", "a/d.json", "e.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert [path.relative_to(tmp_path).as_posix() for path in find(tmp_path)] == ["a/c.yaml", "a/d.json", "b.yml"]
