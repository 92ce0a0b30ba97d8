"""What of speaking to Kafka is decided without it: places, records, how old post is, and who is let in."""

import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas import identity
from tidewheel import Kafka
from tidewheel.brokers import consumer_config, producer_config
from tidewheel.holdings import Holdings
from tidewheel.transports import records
from tidewheel.transports.reading import Reading
from tidewheel.wire import Answer

# --- places ---


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("21", -973932308),
        ("foobar", -790332482),
        ("a-little-bit-long-string", -985981536),
        ("a-little-bit-longer-string", -1486304829),
        ("abc", 479470107),
    ],
)
def test_a_key_has_the_hash_that_javas_producer_gives_it(text, expected):
    assert records.murmur2(text.encode()) == expected & 0xFFFFFFFF


@given(st.text(max_size=64), st.integers(1, 64))
def test_workers_and_owners_agree_on_places_although_they_share_no_code(key, partitions):
    assert records.partition_of(key, partitions) == identity.partition_of(key, partitions)


def test_a_place_follows_from_names():
    assert (records.inbox_of("649c108ab3ad5bfe"), records.shard_of("default", 4)) == (5, 3)
    assert records.dispatch("default") == "tidewheel.dispatch.default"


# --- records ---


def test_a_report_is_an_event_that_names_queue_shard_and_inbox():
    holdings = Holdings(worker="w1", tasks=("it",), now=0.0, incarnation="649c108ab3ad5bfe")
    report = holdings.news(slots=5, draining=False, now=0.0)
    at = datetime(2026, 3, 8, 2, tzinfo=UTC)
    assert json.loads(records.report(report, "default", at)) == {
        "specversion": "1.0",
        "type": "tidewheel.worker.report.v1",
        "source": "tidewheel/worker",
        "subject": "649c108ab3ad5bfe",
        "id": "649c108ab3ad5bfe.1",
        "time": "2026-03-08T02:00:00.000Z",
        "datacontenttype": "application/json",
        "data": {
            "queue": "default",
            "shard": 0,
            "inbox": 5,
            "transport": "kafka",
            "worker": "w1",
            "incarnation": "649c108ab3ad5bfe",
            "number": 1,
            "read_up_to": -1,
            "slots": 5,
            "tasks": ["it"],
            "draining": False,
            "held": [],
            "started": [],
            "finished": [],
        },
    }


def test_a_notice_tells_which_leases_ended_and_which_should_stop():
    data = {"ended": ["a"], "cancelled": ["b"], "incarnation_ended": True, "ended_by": "other"}
    expected = Answer(lost=("a",), cancelled=("b",), incarnation_ended=True, ended_by="other")
    assert records.post(json.dumps({"type": "tidewheel.lease.notice.v1", "data": data}).encode()) == expected


def test_a_record_of_a_type_that_is_not_known_says_nothing():
    assert records.post(b'{"type": "tidewheel.lease.praised.v1", "data": {}}') is None


# --- an inbox without answers to reports ---


def test_an_incarnation_whose_post_comes_by_itself_has_to_introduce_itself():
    holdings = Holdings(worker="w1", tasks=(), now=0.0, answered=False)
    assert holdings.has_news
    holdings.acknowledge(holdings.news(slots=1, draining=False, now=0.0))
    assert not holdings.has_news


def test_an_incarnation_that_was_retired_does_not_introduce_itself_any_more():
    holdings = Holdings(worker="w1", tasks=(), now=0.0, answered=False)
    holdings.retire(1.0)
    holdings.took_leave = True
    assert not holdings.has_news


# --- how old post may be ---


def test_an_inbox_is_known_to_be_read_to_the_end_since_its_end_was_asked_for():
    reading = Reading("me", position=7, current_at=100.0)
    reading.ends_at(9, asked_at=103.0)
    assert reading.current_at == 100.0
    reading.passed(8)
    assert reading.current_at == 100.0
    reading.passed(9)
    assert reading.current_at == 103.0


def test_an_end_that_was_reached_before_it_was_told_counts_at_once():
    reading = Reading("me", position=7, current_at=100.0)
    reading.ends_at(7, asked_at=103.0)
    assert reading.current_at == 103.0


def test_an_end_is_asked_for_again_some_time_after_the_last_was_reached():
    reading = Reading("me", position=7, current_at=100.0)
    assert [reading.is_due(now) for now in (102.4, 102.5)] == [False, True]
    reading.ends_at(9, asked_at=102.5)
    assert not reading.is_due(200.0)
    reading.passed(9)
    assert [reading.is_due(now) for now in (104.9, 105.0)] == [False, True]


def test_who_has_not_known_the_end_for_ten_seconds_is_not_current():
    reading = Reading("me", position=7, current_at=100.0)
    assert [reading.is_current(now) for now in (109.9, 110.0)] == [True, False]


@given(st.lists(st.sampled_from(["write", "read", "ask", "tell"]), max_size=40))
def test_what_is_read_was_never_written_before_the_inbox_was_known_to_be_read_to_the_end(steps):
    """A log and its reader by turns; the clock ticks with each step, and answers take their time."""
    written: list[int] = []  # the instant of each record
    reading = Reading("me", position=0, current_at=0.0)
    asked: tuple[int, int] | None = None
    for now, step in enumerate(steps, start=1):
        match step:
            case "write":
                written.append(now)
            case "read" if reading.position < len(written):
                assert written[reading.position] > reading.current_at
                reading.passed(reading.position + 1)
            case "ask" if asked is None and reading.is_due(reading.current_at + 10):
                asked = (len(written), now)
            case "tell" if asked is not None:
                reading.ends_at(asked[0], asked_at=float(asked[1]))
                asked = None
            case _:
                pass


# --- who is let in, and how ---


def test_where_nothing_is_said_the_environment_names_the_brokers():
    environment = {
        "TIDEWHEEL_BOOTSTRAP": "a:1,b:2",
        "TIDEWHEEL_NAMESPACE": "prod.",
        "TIDEWHEEL_KAFKA": '{"security.protocol": "SASL_SSL", "sasl.password": "secret"}',
    }
    properties = {"security.protocol": "SASL_SSL", "sasl.password": "secret"}
    expected = Kafka(bootstrap="a:1,b:2", namespace="prod.", properties=properties)
    assert Kafka.of_environment(environment) == expected
    assert Kafka.of_environment({}) is None


def test_brokers_that_are_named_are_reached_as_the_environment_says():
    environment = {"TIDEWHEEL_BOOTSTRAP": "a:1", "TIDEWHEEL_NAMESPACE": "prod.", "TIDEWHEEL_PLAINTEXT": "true"}
    assert Kafka.of_environment(environment, "b:2", "test.") == Kafka(
        bootstrap="b:2", namespace="test.", plaintext=True
    )


@pytest.mark.parametrize("bootstrap", ["127.0.0.1:9092", "localhost:9092", "[::1]:9092", "127.0.0.1:1, localhost:2"])
def test_this_machine_may_be_spoken_to_without_encryption(bootstrap):
    assert Kafka(bootstrap=bootstrap).bootstrap == bootstrap


@pytest.mark.parametrize("bootstrap", ["kafka:9092", "10.0.0.1:9092", "127.0.0.1:9092,kafka:9092"])
def test_another_machine_may_be_spoken_to_without_encryption_only_where_that_is_said(bootstrap):
    with pytest.raises(ValueError, match=r"is not encrypted; set the property security\.protocol to SSL or SASL_SSL"):
        Kafka(bootstrap=bootstrap)
    assert Kafka(bootstrap=bootstrap, plaintext=True).plaintext


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("enable.idempotence", "only security.protocol, sasl., ssl., client., socket., broker.address. can be set"),
        ("transactional.id", "only security.protocol"),
        ("bootstrap.servers", "only security.protocol"),
        ("ssl.endpoint.identification.algorithm", "it lets anyone pose as a broker"),
    ],
)
def test_what_correctness_or_safety_rests_on_cannot_be_set(name, reason):
    with pytest.raises(ValueError, match=f"kafka property {name}: {reason}"):
        Kafka(bootstrap="127.0.0.1:1", properties={name: "x"})


@pytest.mark.parametrize("text", ["{", "[]", '{"a": 1}'])
def test_properties_that_are_no_object_of_texts_are_refused_without_being_quoted(text):
    environment = {"TIDEWHEEL_BOOTSTRAP": "127.0.0.1:1", "TIDEWHEEL_KAFKA": text}
    with pytest.raises(ValueError, match="TIDEWHEEL_KAFKA: a JSON object of texts"):
        Kafka.of_environment(environment)


def test_passwords_are_not_shown():
    assert "secret" not in repr(Kafka(bootstrap="127.0.0.1:1", properties={"sasl.password": "secret"}))


def test_a_worker_writes_each_report_once_and_never_in_a_transaction():
    config = producer_config(Kafka(bootstrap="127.0.0.1:1"))
    assert (config["enable.idempotence"], config["acks"], "transactional.id" in config) == (True, "all", False)


def test_a_worker_reads_what_was_committed_and_takes_part_in_no_group():
    config = consumer_config(Kafka(bootstrap="127.0.0.1:1"))
    assert (config["isolation.level"], config["auto.offset.reset"], config["enable.auto.commit"]) == (
        "read_committed",
        "error",
        False,
    )
    assert config["allow.auto.create.topics"] is False
