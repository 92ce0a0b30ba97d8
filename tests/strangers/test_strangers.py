"""Publishing and consuming with plain Kafka clients: nothing in here but a server and a worker is Tidewheel's.

Schedule changes come on the topic of the contract and on topics of others, each bound to one tenant.
"""

from __future__ import annotations

import json
import re
import uuid
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.strangers.clients import JAVA, LIBRDKAFKA, Follower, Place, Publisher, command
from tests.strangers.house import House, delete_records, opened
from tests.support.kafka import delete_topics

if TYPE_CHECKING:
    from collections.abc import Iterator

GUIDE = Path(__file__).parents[2] / "docs/guides/publishing.md"
NEVER = {"cron": "0 0 29 2 1"}  # nobody waits for it here


@pytest.fixture(scope="module")
def house(broker: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    prefix = f"test-{uuid.uuid4().hex[:12]}."
    with opened(tmp_path_factory.mktemp("strangers"), broker, prefix) as house:
        yield house
    delete_topics(broker, prefix)


def follower(house: House, topic: str) -> Follower:
    return Follower(house.bootstrap, house.ours(topic), group=f"{house.prefix}{uuid.uuid4().hex}")


@pytest.fixture(scope="module")
def outcomes(house: House) -> Iterator[Follower]:
    outcomes = follower(house, "run-outcomes")
    yield outcomes
    outcomes.close()


@pytest.fixture(scope="module")
def events(house: House) -> Iterator[Follower]:
    events = follower(house, "run-events")
    yield events
    events.close()


@pytest.fixture(scope="module")
def rejections(house: House) -> Iterator[Follower]:
    rejections = follower(house, "rejections")
    yield rejections
    rejections.close()


def definition(trigger: dict[str, Any], word: str = "hello") -> dict[str, Any]:
    return {
        "trigger": trigger,
        "job": {"target": {"type": "task", "name": "strangers.echo"}, "payload": {"word": word}},
    }


def put(
    name: str, trigger: dict[str, Any] = NEVER, word: str = "hello", *, tenant: str = "acme", **data: Any
) -> dict[str, Any]:
    return command("schedule.put", {"tenant": tenant, "name": name, "definition": definition(trigger, word), **data})


def trigger(name: str) -> dict[str, Any]:
    return command("schedule.trigger", {"tenant": "acme", "name": name})


def rejection(rejections: Follower, place: Place) -> dict[str, Any]:
    """The rejection of the record that stands there."""
    position = dict(zip(("topic", "partition", "offset"), place, strict=True))
    data: dict[str, Any] = rejections.until(lambda data: data["position"] == position)["data"]
    return data


# --- what is published runs, and its outcome is heard of ---


@pytest.mark.parametrize("topic", ["schedule-changes", "orders"])
def test_whatever_the_client_does_a_schedule_runs_once_and_its_outcome_is_heard_of(
    house: House, outcomes: Follower, topic: str
) -> None:
    """Java's partitioner and librdkafka's, structured and binary, with keys and without."""
    name = house.orders if topic == "orders" else house.ours(topic)
    at = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=3)
    due = at.strftime("%Y-%m-%dT%H:%M:%SZ")
    schedules = []
    for settings, binary, keys in product((JAVA, LIBRDKAFKA), (False, True), (False, True)):
        schedules.append(f"{topic}-{len(settings)}-{binary}-{keys}".lower())
        client = Publisher(house.bootstrap, name, settings=settings, binary=binary, keys=keys)
        client.publish(put(schedules[-1], {"at": [due]}))
    for schedule in schedules:
        event = outcomes.until(lambda data, schedule=schedule: data["schedule"] == schedule)  # type: ignore[misc]
        data = event["data"]
        assert (event["type"], event["subject"]) == ("tidewheel.run.finished.v1", f"acme/{schedule}")
        assert (data["outcome"], data["nominal_time"], data["cause"], data["attempts"]) == (
            "succeeded", due, "schedule", 1,
        )  # fmt: skip
        assert data["result"] == {"schedule": schedule, "word": "hello"}
    assert [len(outcomes.all(schedule=schedule)) for schedule in schedules] == [1] * 8


def test_changes_under_one_key_take_effect_in_their_order(house: House, events: Follower) -> None:
    publisher = Publisher(house.bootstrap, house.orders, settings=LIBRDKAFKA)
    for word in "abcdefghij":
        publisher.publish(put("in-order", word=word))
    events.until(lambda data: data.get("schedule") == "in-order" and data.get("version") == 10)
    accepted = [data for data in events.all(schedule="in-order") if "definition" in data]
    assert [(data["version"], data["definition"]["job"]["payload"]["word"]) for data in accepted] == [
        (1, "a"), (2, "b"), (3, "c"), (4, "d"), (5, "e"), (6, "f"), (7, "g"), (8, "h"), (9, "i"), (10, "j"),
    ]  # fmt: skip


def test_a_command_that_is_published_twice_has_one_effect(
    house: House, outcomes: Follower, events: Follower, rejections: Follower
) -> None:
    """The same id from the same source; that of another id, behind them, shows that all have been looked at."""
    publisher = Publisher(house.bootstrap, house.orders)
    once, twice = put("twice"), trigger("twice")
    for event in (once, once, twice, twice, put("twice", word="last"), once, twice, trigger("twice")):
        publisher.publish(event)
    outcomes.until(lambda data: data["schedule"] == "twice" and data["result"]["word"] == "last")
    outcomes.until(lambda data: data["schedule"] == "twice" and data["result"]["word"] == "hello")
    assert [(data["outcome"], data["cause"]) for data in outcomes.all(schedule="twice")] == [
        ("succeeded", "manual")
    ] * 2
    events.until(lambda data: data.get("schedule") == "twice" and data.get("version") == 2)
    assert [data["version"] for data in events.all(schedule="twice") if "definition" in data] == [1, 2]
    assert rejections.all(name="twice") == []


def test_a_consumer_group_goes_on_where_it_stopped(house: House) -> None:
    publisher = Publisher(house.bootstrap, house.orders)
    publisher.publish(put("group"))
    group, topic = f"{house.prefix}downstream", house.ours("run-outcomes")
    first = Follower(house.bootstrap, topic, group=group)
    publisher.publish(trigger("group"))
    before = first.until(lambda data: data["schedule"] == "group")
    first.close()
    publisher.publish(trigger("group"))
    second = Follower(house.bootstrap, topic, group=group)
    after = second.until(lambda data: data["schedule"] == "group")
    second.close()
    assert before["id"] != after["id"]
    assert [event["id"] for event in second.events].count(before["id"]) == 0


def test_what_the_guide_shows_is_what_happens(house: House, events: Follower) -> None:
    """Its command, its producer and its consumer, as printed but for the names of brokers and topics."""
    command_shown, *_ = shown("json")
    producer, consumer = shown("python")
    exec(on(house, producer), {"event": json.loads(command_shown)})
    events.until(lambda data: data.get("schedule") == "export-4711" and data.get("version") == 1)
    publisher = Publisher(house.bootstrap, house.ours("schedule-changes"))
    publisher.publish(put("export-4711", source_version=4))
    publisher.publish(trigger("export-4711"))

    def handle(_id: str, data: dict[str, Any]) -> None:
        if data["schedule"] == "export-4711":
            raise Handled(data["outcome"])

    with pytest.raises(Handled, match=r"^succeeded$"):
        exec(on(house, consumer), {"handle": handle})


class Handled(Exception):
    """The guide's consumer goes on for ever; this one has seen what it waited for."""


def shown(language: str) -> list[str]:
    """The guide's examples in a language."""
    return re.findall(rf"^```{language}\n(.*?)^```", GUIDE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def on(house: House, example: str) -> str:
    ours = example.replace("kafka-1:9092", house.bootstrap).replace('"tidewheel.', f'"{house.prefix}tidewheel.')
    return ours.replace(f'"{house.prefix}tidewheel.run.finished.v1"', '"tidewheel.run.finished.v1"')


# --- what cannot be taken is rejected, where everyone can read it ---

BROKEN: dict[str, tuple[dict[str, Any], str, str, str]] = {
    "unknown type": (command("schedule.pvt", {"tenant": "acme", "name": "r"}), "unknown_type", "/type", "unknown_type"),
    "a rerun of nothing": (command("run.rerun", {"tenant": "acme", "name": "r"}), "invalid", "/data/run_id", "missing"),
    "a cron that cannot be": (put("r", {"cron": "61 * * * *"}), "invalid", "/data/definition/trigger/cron", "cron"),
    "a subject about something else": (
        put("r") | {"subject": "acme/other"}, "wrong_subject", "/subject", "wrong_subject"
    ),
    "more than a definition may have": (
        put("r", NEVER, note_of_the_newest_version="n" * 262_144), "invalid", "/data", "too_large"
    ),
}  # fmt: skip


@pytest.mark.parametrize("topic", ["schedule-changes", "orders"])
@pytest.mark.parametrize(("event", "reason", "pointer", "code"), BROKEN.values(), ids=BROKEN)
def test_a_command_that_cannot_be_taken_is_rejected_with_reason_and_position(
    house: House, rejections: Follower, topic: str, event: dict[str, Any], reason: str, pointer: str, code: str
) -> None:
    name = house.orders if topic == "orders" else house.ours(topic)
    event = event | {"id": uuid.uuid4().hex}
    place = Publisher(house.bootstrap, name, settings=LIBRDKAFKA, keys=False).publish(event)
    position = place if topic == "orders" else ("tidewheel.schedule-changes", *place[1:])
    found = rejection(rejections, position)
    assert (found["reason"], found["tenant"], found["name"], found["command_id"], found["source"]) == (
        reason, "acme", "r", event["id"], "/orders",
    )  # fmt: skip
    assert (found["faults"][0]["pointer"], found["faults"][0]["code"]) == (pointer, code)


@pytest.mark.parametrize(("topic", "tenant"), [("schedule-changes", "_"), ("orders", "acme"), ("billing", "beta")])
def test_what_is_no_event_at_all_is_rejected_with_its_head(
    house: House, rejections: Follower, topic: str, tenant: str
) -> None:
    """On a bound topic it is filed under the tenant that the topic speaks for."""
    names = {"schedule-changes": house.ours(topic), "orders": house.orders, "billing": house.billing}
    place = Publisher(house.bootstrap, names[topic]).send(b"hello", "a key")
    found = rejection(rejections, ("tidewheel.schedule-changes", *place[1:]) if tenant == "_" else place)
    assert (found["reason"], found["tenant"], found["name"]) == ("not_json", tenant, "_")
    assert found["raw"] == "aGVsbG8="


@pytest.mark.parametrize("binary", [False, True])
def test_data_that_is_no_json_is_not_read_as_json(house: House, rejections: Follower, binary: bool) -> None:
    publisher = Publisher(house.bootstrap, house.orders, binary=binary)
    found = rejection(rejections, publisher.publish(put("r") | {"datacontenttype": "application/avro"}))
    assert (found["reason"], found["tenant"], found["name"]) == ("not_an_event", "acme", "_")


def test_a_record_of_more_than_a_mebibyte_is_rejected_and_those_behind_it_go_on(
    house: House, rejections: Follower
) -> None:
    publisher = Publisher(house.bootstrap, house.orders)
    place = publisher.send(b"x" * 1_048_577, "acme/r")
    behind = publisher.send(b"[]", "acme/r")
    found = rejection(rejections, place)
    assert (found["reason"], found["faults"][0]["code"]) == ("invalid", "too_large")
    assert found["faults"][0]["message"] == "has 1048577 bytes, more than the 1048576 of a record"
    assert found["raw"] == "eHh4" * 341 + "eA=="
    assert behind[1:] == (place[1], place[2] + 1)
    assert rejection(rejections, behind)["reason"] == "not_an_event"


def test_a_topic_speaks_for_its_tenant_and_no_other(house: House, rejections: Follower, events: Follower) -> None:
    foreign = Publisher(house.bootstrap, house.orders).publish(put("theirs", tenant="beta"))
    found = rejection(rejections, foreign)
    assert (found["reason"], found["tenant"], found["name"]) == ("foreign_tenant", "acme", "theirs")
    assert found["faults"][0]["message"] == "this topic speaks for acme, not for beta"
    Publisher(house.bootstrap, house.billing).publish(put("theirs", tenant="beta"))
    events.until(lambda data: data.get("schedule") == "theirs" and data.get("version") == 1)
    assert [data["tenant"] for data in events.all(schedule="theirs") if "definition" in data] == ["beta"]


def test_nobody_can_claim_to_have_stood_elsewhere(house: House, rejections: Follower) -> None:
    headers = {"tw-origin": "elsewhere-0-1", "tw-origin-at": "2020-01-01T00:00:00Z", "tw-reply-to": "0"}
    place = Publisher(house.bootstrap, house.orders).send(b"?", headers=headers)
    assert rejection(rejections, place)["reason"] == "not_json"


@pytest.mark.parametrize("topic", ["schedule-changes", "orders"])
def test_an_older_word_of_the_source_is_rejected_as_stale(house: House, rejections: Follower, topic: str) -> None:
    name = house.orders if topic == "orders" else house.ours(topic)
    publisher = Publisher(house.bootstrap, name)
    publisher.publish(put(f"stale-{topic}", source_version=7))
    place = publisher.publish(put(f"stale-{topic}", source_version=6))
    found = rejection(rejections, place if topic == "orders" else ("tidewheel.schedule-changes", *place[1:]))
    assert (found["reason"], found["name"]) == ("stale", f"stale-{topic}")
    assert found["faults"][0]["message"] == "version 7 of the source was read before"


# --- and whatever happens meanwhile ---


def test_a_server_that_is_killed_sends_each_record_on_once(house: House) -> None:
    """Killed while it reads, and started again: all have gone on, none of them twice."""
    changes = follower(house, "schedule-changes")
    publisher = Publisher(house.bootstrap, house.orders, settings=LIBRDKAFKA, keys=False)
    places = [publisher.publish(put(f"killed-{number}")) for number in range(20)]
    changes.until(lambda data: data["name"].startswith("killed-"))
    places += [publisher.publish(put(f"killed-{number}")) for number in range(20, 40)]
    house.server.kill()
    places += [publisher.publish(put(f"killed-{number}")) for number in range(40, 60)]
    house.server.start()
    names = {f"killed-{number}" for number in range(60)}
    changes.until(lambda _data: names <= {event["data"]["name"] for event in changes.events})
    last = [publisher.publish(put("after-the-kill")) for _ in range(20)]
    changes.until(
        lambda _data: len([event for event in changes.events if event["data"]["name"] == "after-the-kill"]) == 20
    )
    changes.close()
    expected = sorted(f"{topic}-{partition}-{offset}" for topic, partition, offset in places + last)
    assert sorted(origin for origin in changes.origins if origin in expected) == expected


def test_records_that_their_topic_deleted_unread_are_rejected_by_range_and_the_rest_goes_on(
    house: House, rejections: Follower, events: Follower
) -> None:
    publisher = Publisher(house.bootstrap, house.billing, keys=True)
    topic, partition, first = publisher.publish(put("lost", tenant="beta", word="read"))
    events.until(lambda data: data.get("schedule") == "lost" and data.get("version") == 1)
    house.server.kill()
    for word in ("deleted", "deleted too", "kept"):
        publisher.publish(put("lost", tenant="beta", word=word))
    delete_records(house, topic, partition, before=first + 3)
    house.server.start()
    found = rejection(rejections, (topic, partition, first + 1))
    assert (found["reason"], found["tenant"], found["name"]) == ("records_lost", "beta", "_")
    where = f"{topic}-{partition}"
    assert found["faults"][0]["message"] == (
        f"records {first + 1} to {first + 2} of {where} were deleted before they were read"
    )
    events.until(lambda data: data.get("schedule") == "lost" and data.get("version") == 2)
    accepted = [data for data in events.all(schedule="lost") if "definition" in data]
    assert [data["definition"]["job"]["payload"]["word"] for data in accepted] == ["read", "kept"]
