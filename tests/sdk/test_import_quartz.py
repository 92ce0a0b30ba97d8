"""Quartz's job files, and what becomes of them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sdk import importing
from tidewheel.importers import quartz
from tidewheel.importers.report import Imported
from tidewheel.importers.writing import File

JOB = "<job><name>j</name><job-class>com.example.J</job-class>{data}</job>"
FILE = '<job-scheduling-data xmlns="{ns}"><schedule>{job}<trigger>{trigger}</trigger></schedule></job-scheduling-data>'
NAMESPACE = "http://www.quartz-scheduler.org/xml/JobSchedulingData"


def convert(xml: str | bytes, **said: Any) -> Imported:
    data = xml.encode() if isinstance(xml, str) else xml
    return quartz.convert([File(path="f.xml", data=data)], importing.settings(**said))


def triggered(kind: str, fields: str, *, data: str = "", **said: Any) -> Imported:
    trigger = f"<{kind}><name>t</name><job-name>j</job-name>{fields}</{kind}>"
    return convert(FILE.format(ns=NAMESPACE, job=JOB.format(data=data), trigger=trigger), task="t", **said)


def of(kind: str, fields: str, **said: Any) -> dict[str, Any]:
    [document] = triggered(kind, fields, **said).documents
    importing.accepted(document)
    return document


def cron(expression: str, fields: str = "", **said: Any) -> dict[str, Any]:
    return of("cron", f"{fields}<cron-expression>{expression}</cron-expression><time-zone>UTC</time-zone>", **said)


def left_out(imported: Imported) -> list[str]:
    return [("broken: " if each.broken else "") + str(each) for each in imported.remarks if each.left_out]


def test_a_whole_file_becomes_definitions_and_remarks():
    imported = quartz.convert([importing.fixture("quartz_data.xml")], importing.settings())
    assert list(imported.documents) == importing.expected("quartz_data.expected.yaml")
    assert importing.remarks(imported) == importing.said("quartz_data.remarks.txt")
    for document in imported.documents:
        importing.accepted(document)


# --- cron ---


def test_a_cron_trigger_keeps_its_seconds_and_counts_weekdays_from_0():
    assert cron("15 0/5 8-18 ? * 2-6 1970-2099")["trigger"] == {"cron": "15 0/5 8-18 * * 1-5", "timezone": "UTC"}


def test_a_year_is_a_beginning_and_an_end():
    assert cron("0 0 12 14 7 ? 2028")["trigger"] == {
        "cron": "0 0 12 14 7 *",
        "timezone": "UTC",
        "start_at": "2028-01-01T00:00:00Z",
        "end_at": "2029-01-01T00:00:00Z",
    }


def test_a_zone_that_is_not_said_was_that_of_quartzs_machine():
    imported = triggered("cron", "<cron-expression>0 0 12 * * ?</cron-expression>", timezone="Europe/Rome")
    assert imported.documents[0]["trigger"]["timezone"] == "Europe/Rome"
    assert (
        "f.xml:1: t: time-zone: is not said, so Quartz took its machine's; here it is Europe/Rome (--timezone)"
        in importing.remarks(imported)
    )


@pytest.mark.parametrize(
    ("expression", "remark"),
    [
        ("0 0 12 * * *", "broken: {}: exactly one of day of month and day of week must be ?"),
        ("0 0 12 1 1 ? 2030/2", "{}: it runs in the years 2030/2 only, and beginning and end cannot say that"),
        ("0 0 12 ? * 9", "broken: {}: '9' is no day of week"),
    ],
)
def test_an_expression_that_is_refused_is_said_with_its_reason(expression, remark):
    fields = f"<cron-expression>{expression}</cron-expression><time-zone>UTC</time-zone>"
    place = f"f.xml:1: t: cron-expression: left out: {expression!r}"
    assert left_out(triggered("cron", fields)) == [remark.format(place)]


@pytest.mark.parametrize(
    ("word", "policy"),
    [
        ("", {"policy": "latest", "window": "P3660D"}),
        ("MISFIRE_INSTRUCTION_SMART_POLICY", {"policy": "latest", "window": "P3660D"}),
        ("MISFIRE_INSTRUCTION_FIRE_ONCE_NOW", {"policy": "latest", "window": "P3660D"}),
        ("MISFIRE_INSTRUCTION_DO_NOTHING", {"policy": "skip"}),
        ("MISFIRE_INSTRUCTION_IGNORE_MISFIRE_POLICY", {"policy": "all", "window": "P3660D"}),
    ],
)
def test_a_misfire_is_caught_up_as_its_instruction_says(word, policy):
    field = f"<misfire-instruction>{word}</misfire-instruction>" if word else ""
    assert cron("0 0 12 * * ?", field)["catch_up"] == policy


# --- intervals ---


def simple(fields: str) -> Imported:
    return triggered("simple", fields)


def test_a_simple_trigger_without_end_is_an_interval_and_goes_on_with_the_next():
    document = of("simple", "<repeat-count>-1</repeat-count><repeat-interval>90000</repeat-interval>")
    assert (document["trigger"], document["catch_up"]) == ({"every": "PT1M30S"}, {"policy": "skip"})


def test_an_interval_counts_from_its_start():
    fields = "<start-time>2026-05-01T08:00:00+02:00</start-time><repeat-count>-1</repeat-count>"
    document = of("simple", f"{fields}<repeat-interval>3600000</repeat-interval>")
    assert document["trigger"] == {"every": "PT1H", "anchor": "2026-05-01T06:00:00Z"}


def test_so_many_runs_are_an_end_where_it_is_known_when_they_began_and_else_a_number():
    fields = "<repeat-count>3</repeat-count><repeat-interval>60000</repeat-interval>"
    assert of("simple", fields)["trigger"] == {"every": "PT1M", "max_runs": 4}
    assert of("simple", f"<start-time>2026-07-01T00:00:00Z</start-time>{fields}")["trigger"] == {
        "every": "PT1M",
        "anchor": "2026-07-01T00:00:00Z",
        "end_at": "2026-07-01T00:03:01Z",
    }


def test_what_fires_once_is_an_instant_or_over():
    assert of("simple", "<start-time>2026-07-01T00:00:00Z</start-time>")["trigger"] == {"at": ["2026-07-01T00:00:00Z"]}
    assert left_out(simple("<start-time>2026-05-01T00:00:00Z</start-time>")) == [
        "f.xml:1: t: start-time: left out: ran once, at 2026-05-01T00:00:00Z"
    ]
    told = "runs once, when Quartz reads the file: put its job as a kind: Job and start it by hand"
    assert left_out(simple("")) == [f"f.xml:1: t: repeat-count: left out: {told}"]


def test_the_days_of_a_calendar_are_said_for_every_kind_of_trigger():
    calendar = "<calendar-name>holidays</calendar-name>"
    for fields in (
        "<start-time>2026-07-01T00:00:00Z</start-time>",
        "<repeat-count>-1</repeat-count><repeat-interval>1000</repeat-interval>",
    ):
        imported = simple(calendar + fields)
        importing.accepted(imported.documents[0])
        assert [remark.field for remark in imported.remarks].count("calendar-name") == 1


def test_what_has_run_for_the_last_time_is_left_out():
    fields = "<start-time>2026-05-01T00:00:00Z</start-time><repeat-count>3</repeat-count>"
    assert left_out(simple(f"{fields}<repeat-interval>1000</repeat-interval>")) == [
        "f.xml:1: t: repeat-count: left out: ran for the last time before 2026-05-01T00:00:04Z"
    ]


@pytest.mark.parametrize("millis", ["0", "999", "1500", "9" * 15])
def test_an_interval_that_is_no_whole_seconds_is_left_out(millis):
    fields = f"<repeat-count>-1</repeat-count><repeat-interval>{millis}</repeat-interval>"
    assert [remark.startswith("f.xml:1: t: repeat-interval: left out: ") for remark in left_out(simple(fields))] == [
        True
    ]


def test_calendar_intervals_are_intervals_where_their_unit_has_a_length():
    fields = "<repeat-interval>2</repeat-interval><repeat-interval-unit>{}</repeat-interval-unit>"
    assert of("calendar-interval", fields.format("WEEK"))["trigger"] == {"every": "P14D"}
    told = "2 MONTH have no fixed length: write a cron expression with the day and month that you mean"
    assert left_out(triggered("calendar-interval", fields.format("MONTH"))) == [
        f"f.xml:1: t: repeat-interval-unit: left out: {told}"
    ]


# --- jobs ---


def test_a_triggers_data_stands_over_its_jobs():
    pair = "<job-data-map><entry><key>{}</key><value>{}</value></entry></job-data-map>"
    both = pair.format("a", "job").replace(
        "</job-data-map>", "<entry><key>b</key><value>job</value></entry></job-data-map>"
    )
    document = cron("0 0 12 * * ?", pair.format("a", "trigger"), data=both)
    assert document["job"]["payload"] == {"a": "trigger", "b": "job"}


def test_a_job_of_dotnet_is_named_by_its_type():
    job = "<job><name>j</name><job-type>Acme.Jobs.Report, Acme.Jobs</job-type></job>"
    trigger = "<cron><name>t</name><job-name>j</job-name><cron-expression>0 0 12 * * ?</cron-expression></cron>"
    [document] = convert(
        FILE.format(ns="http://quartznet.sourceforge.net/JobSchedulingData", job=job, trigger=trigger)
    ).documents
    assert document["job"]["target"]["name"] == "Acme.Jobs.Report"


def test_a_trigger_whose_job_is_elsewhere_is_left_out():
    fields = "<job-group>g</job-group><cron-expression>0 0 12 * * ?</cron-expression>"
    assert left_out(triggered("cron", fields))[0] == (
        "f.xml:1: t: job-name: left out: no job of this file has the name 'g.j': import both together"
    )


# --- XML ---


@pytest.mark.parametrize(
    "xml",
    [
        '<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><job-scheduling-data>&b;</job-scheduling-data>',
        '<!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/passwd">]><job-scheduling-data>&f;</job-scheduling-data>',
        '<!DOCTYPE job-scheduling-data SYSTEM "http://127.0.0.1:1/x.dtd"><job-scheduling-data/>',
        "<!DOCTYPE job-scheduling-data><job-scheduling-data/>",
    ],
)
def test_a_document_type_is_refused_before_anything_is_made_of_it(xml):
    assert left_out(convert(xml)) == [
        "broken: f.xml: left out: has a document type, which may make much of little or read other files: remove it"
    ]


@pytest.mark.parametrize(
    ("xml", "said"),
    [
        ("", "line 1 cannot be read as XML: no element found"),
        ("<a><b></a>", "line 1 cannot be read as XML: mismatched tag"),
        ("<job-scheduling-data>&x;</job-scheduling-data>", "line 1 cannot be read as XML: undefined entity"),
        ("<a/>", "is no job file (its root is 'a', not 'job-scheduling-data')"),
        ("<quartz/>", "is a file of Quartz 1: write it in the form of Quartz 2"),
        ("<a>" * 40, "has more than 500000 elements, or more than 32 in each other"),
        ('<?xml version="1.0" encoding="klingon"?><a/>', "cannot be read as XML"),
    ],
)
def test_what_is_no_job_file_is_broken(xml, said):
    [remark] = left_out(convert(xml))
    assert remark.startswith("broken: f.xml: left out: ")
    assert said in remark
