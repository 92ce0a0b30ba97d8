"""Calendars, queues and tenants are accepted like jobs, stand in the catalog, and are adopted by every partition."""

import pytest

from scheduler.state import PartitionState
from schemas import topics
from schemas.facts import CatalogAdopted, CatalogEntry
from tests.scheduler.harness import Shell

CALENDAR = {"tenant": "acme", "name": "uk-holidays"}
QUEUE = {"tenant": "_", "name": "reports"}
TENANT = {"tenant": "acme", "name": "_"}


@pytest.mark.parametrize(
    ("kind", "thing", "key", "row"),
    [
        ("Calendar", CALENDAR, "calendar/acme/uk-holidays", b"x/calendar/acme/uk-holidays"),
        ("Queue", QUEUE, "queue/_/reports", b"x/queue/_/reports"),
        ("Tenant", TENANT, "tenant/acme/_", b"x/tenant/acme/_"),
    ],
)
def test_a_definition_goes_to_the_catalog_and_comes_back_as_an_event_of_the_partition(kind, thing, key, row):
    shell = Shell()
    shell.send(f"{kind}Put", definition={"note": "first"}, **thing)
    assert shell.answer().status == 201
    (entry,) = shell.to(topics.CATALOG)
    assert isinstance(entry, CatalogEntry)
    assert (entry.subject, entry.version) == (key, 1)
    shell.catalog()
    (adopted,) = shell.all(CatalogAdopted)
    assert adopted.entries == (entry,)
    assert isinstance(shell.shared, PartitionState)
    assert b'"version":1' in (shell.shared.rows.get(row) or b"")


@pytest.mark.parametrize("thing", [("Calendar", CALENDAR), ("Queue", QUEUE), ("Tenant", TENANT)])
def test_a_definition_has_versions_and_the_same_again_is_none(thing):
    kind, name = thing
    shell = Shell()
    shell.send(f"{kind}Put", definition={"note": "first"}, **name)
    shell.send(f"{kind}Put", definition={"note": "first"}, **name)
    assert (shell.answer().status, shell.answer().body["version"], shell.answer().body["changed"]) == (200, 1, False)
    shell.send(f"{kind}Put", definition={"note": "second"}, expected_version=1, **name)
    assert (shell.answer().status, shell.answer().body["version"], shell.answer().body["changed"]) == (200, 2, True)
    shell.send(f"{kind}Put", definition={"note": "third"}, expected_version=1, **name)
    assert shell.answer().status == 412


def test_a_deleted_definition_is_adopted_as_gone_and_a_new_one_counts_on():
    shell = Shell()
    shell.send("QueuePut", definition={}, **QUEUE)
    shell.send("QueueDelete", **QUEUE)
    assert (shell.answer().status, shell.answer().body["state"], shell.answer().body["version"]) == (200, "deleted", 2)
    shell.catalog()
    assert isinstance(shell.shared, PartitionState)
    assert shell.shared.rows.get(b"x/queue/_/reports") is None
    shell.send("QueuePut", definition={}, **QUEUE)
    assert (shell.answer().status, shell.answer().body["version"]) == (201, 3)


@pytest.mark.parametrize(
    ("kind", "thing", "said"),
    [
        ("Calendar", CALENDAR, "there is no calendar acme/uk-holidays"),
        ("Queue", QUEUE, "there is no queue reports"),
        ("Tenant", TENANT, "there is no tenant acme"),
    ],
)
def test_what_is_not_there_cannot_be_deleted(kind, thing, said):
    shell = Shell()
    shell.send(f"{kind}Delete", **thing)
    assert (shell.answer().status, shell.answer().faults[0].message) == (404, said)


def test_a_definition_is_refused_with_every_fault():
    shell = Shell()
    shell.send("CalendarPut", definition={"dates": ["2026-02-30", "2026-13-01"]}, **CALENDAR)
    assert shell.answer().status == 422
    assert [fault.pointer for fault in shell.answer().faults] == [
        "/data/definition/dates/0",
        "/data/definition/dates/1",
    ]
    assert shell.to(topics.CATALOG) == []


def test_adopted_definitions_survive_a_restart():
    shell = Shell()
    shell.send("TenantPut", definition={"note": "the customer"}, **TENANT)
    shell.catalog()
    shell.reload()
    assert isinstance(shell.shared, PartitionState)
    assert b"the customer" in (shell.shared.rows.get(b"x/tenant/acme/_") or b"")


def test_answers_are_remembered_for_a_week_and_then_forgotten():
    shell = Shell("2026-03-01T00:00:00")
    shell.send("CalendarPut", definition={}, id="c", **CALENDAR)
    shell.send("CalendarPut", definition={"note": "another"}, id="c", **CALENDAR)
    assert (shell.answer().status, len(shell.to(topics.CATALOG))) == (201, 1)
    shell.until("2026-03-10T00:00:00")
    assert shell.state(b"c/acme/uk-holidays").memory.count == 0


def test_a_version_says_who_made_it_and_why_and_so_does_a_deletion():
    shell = Shell()
    shell.send("QueuePut", definition={"rate": "5/s"}, by="ann", note="the database is slow", **QUEUE)
    shell.send("QueueDelete", by="bob", note="it is not used", **QUEUE)
    entries = [entry for entry in shell.to(topics.CATALOG) if isinstance(entry, CatalogEntry)]
    told = [(entry.version, entry.by, entry.note) for entry in entries]
    assert told == [(1, "ann", "the database is slow"), (2, "bob", "it is not used")]


def test_the_same_definition_again_is_no_change_whatever_is_said_with_it():
    shell = Shell()
    shell.send("QueuePut", definition={"rate": "5/s"}, by="ann", **QUEUE)
    shell.send("QueuePut", definition={"rate": "5/s"}, by="bob", note="again", **QUEUE)
    (entry,) = shell.to(topics.CATALOG)
    assert isinstance(entry, CatalogEntry)
    assert entry.by == "ann"
