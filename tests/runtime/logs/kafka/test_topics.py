"""How topics are made, and how what the brokers say of them is read back."""

import sys
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from datetime import timedelta
from types import SimpleNamespace
from typing import cast

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient

from runtime.log import LogError, UnknownTopic
from runtime.logs.kafka.errors import Passing
from runtime.logs.kafka.settings import KafkaSettings
from runtime.logs.kafka.topics import FRESH_SECONDS, Topics, described, patiently, topic_config
from schemas.topics import OPERATIONS, WORKERS, Cleanup, Family, Retention, TopicSpec, changelog_topic, topic_table
from tests.runtime.logs.words import EVENTS, STATE

SETTINGS = KafkaSettings(bootstrap="127.0.0.1:9092")


def test_a_topic_that_is_trimmed_keeps_its_retention_and_closes_segments_often_enough_for_it():
    assert topic_config(replace(EVENTS, retention=timedelta(days=3)), SETTINGS) == {
        "cleanup.policy": "delete",
        "message.timestamp.type": "LogAppendTime",
        "max.message.bytes": "2097152",
        "min.insync.replicas": "2",
        "unclean.leader.election.enable": "false",
        "retention.ms": "259200000",
        "retention.bytes": "-1",
        "segment.ms": "32400000",
    }


@pytest.mark.parametrize(
    ("retention", "segment_ms"),
    [(timedelta(hours=1), "600000"), (timedelta(days=1), "10800000"), (timedelta(days=30), "86400000")],
)
def test_a_segment_is_an_eighth_of_the_retention_between_ten_minutes_and_a_day(retention, segment_ms):
    assert topic_config(replace(EVENTS, retention=retention), SETTINGS)["segment.ms"] == segment_ms


def test_a_changelog_keeps_superseded_records_for_an_hour_and_tombstones_for_a_day():
    config = topic_config(replace(STATE, internal=True), SETTINGS)
    assert config["cleanup.policy"] == "compact"
    assert config["min.compaction.lag.ms"] == "3600000"
    assert config["delete.retention.ms"] == "86400000"
    assert "retention.ms" not in config


def test_a_compacted_topic_keeps_what_is_superseded_for_as_long_as_it_says():
    assert topic_config(replace(STATE, retention=timedelta(days=3)), SETTINGS)["min.compaction.lag.ms"] == "259200000"


def test_other_compacted_topics_may_be_compacted_at_once():
    assert topic_config(STATE, SETTINGS)["min.compaction.lag.ms"] == "0"


def test_copies_are_as_set():
    config = topic_config(EVENTS, replace(SETTINGS, replication_factor=5, min_insync_replicas=3))
    assert config["min.insync.replicas"] == "3"


def test_what_owners_read_of_themselves_and_of_operators_is_compacted_an_hour_late():
    lagging = {
        spec.name
        for spec in topic_table(Retention())
        if topic_config(spec, SETTINGS).get("min.compaction.lag.ms") == "3600000"
    }
    assert lagging == {changelog_topic("scheduler"), changelog_topic("dispatcher"), OPERATIONS, WORKERS}


@pytest.mark.parametrize("spec", topic_table(Retention()), ids=lambda spec: spec.name)
def test_a_topic_is_read_back_as_it_was_made(spec):
    config = {"retention.ms": "604800000"} | topic_config(spec, SETTINGS)
    assert described(spec.name, config, spec) == spec


class Forgetful:
    """Brokers that answer what they are told to, the last answer again and again: a partition count, or None."""

    def __init__(self, *answers: int | None) -> None:
        self.answers = list(answers)

    def describe_topics(self, topics: TopicCollection, *, request_timeout: float) -> dict[str, Future[object]]:
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        future: Future[object] = Future()
        if answer is None:
            future.set_exception(KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)))
        else:
            future.set_result(SimpleNamespace(partitions=range(answer), topic_id="an id"))
        return {"events": future}


def test_a_topic_that_was_there_is_not_unknown_when_a_broker_has_not_heard_of_it_yet():
    topics = Topics(cast("AdminClient", Forgetful(3, None)), SETTINGS)
    assert topics.topic("events") == (3, "an id")
    age(topics)
    with pytest.raises(LogError, match="was there and is not") as raised:
        topics.topic("events")
    assert not isinstance(raised.value, UnknownTopic)


def test_a_topic_is_unknown_only_when_it_was_asked_for_several_times():
    assert Topics(cast("AdminClient", Forgetful(None, None, 3)), SETTINGS).topic("events").partitions == 3
    with pytest.raises(UnknownTopic, match="events"):
        Topics(cast("AdminClient", Forgetful(None)), SETTINGS).topic("events")


def test_what_is_known_is_asked_for_again_after_a_while():
    topics = Topics(cast("AdminClient", Forgetful(3, 4)), SETTINGS)
    assert [topics.topic("events").partitions for _ in range(2)] == [3, 3]
    age(topics)
    assert topics.topic("events").partitions == 4


class Silent:
    """Brokers that answer until they are silenced; how often they were asked."""

    def __init__(self) -> None:
        self.silent, self.asked = False, 0

    def describe_topics(self, topics: TopicCollection, *, request_timeout: float) -> dict[str, Future[object]]:
        self.asked += 1
        future: Future[object] = Future()
        if self.silent:
            future.set_exception(TimeoutError())
        else:
            future.set_result(SimpleNamespace(partitions=range(3), topic_id="an id"))
        return dict.fromkeys(("events", "states", "runs"), future)


def test_brokers_that_do_not_answer_are_not_asked_about_each_topic_in_turn():
    """Each question waits for ten seconds: a partition that is opened while a broker is away asks about a dozen."""
    brokers = Silent()
    topics = Topics(cast("AdminClient", brokers), SETTINGS)
    names = ("events", "states", "runs")
    assert [topics.topic(name).partitions for name in names] == [3, 3, 3]
    age(topics)
    brokers.silent, brokers.asked = True, 0
    assert [topics.topic(name).partitions for name in names] == [3, 3, 3]
    assert brokers.asked == 1


class Prompt:
    """Brokers that have answered at once; what each question was about."""

    def __init__(self, partitions: int) -> None:
        self.partitions = partitions
        self.asked: list[list[str]] = []

    def describe_topics(self, topics: TopicCollection, *, request_timeout: float) -> dict[str, Future[object]]:
        names = list(topics.topic_names)
        self.asked.append(names)
        futures: dict[str, Future[object]] = {name: Future() for name in names}
        for future in futures.values():
            future.set_result(SimpleNamespace(partitions=range(self.partitions), topic_id="an id"))
        return futures


def test_what_gets_old_is_asked_for_in_one_question_before_anybody_has_to_wait_for_it():
    brokers = Prompt(3)
    topics = Topics(cast("AdminClient", brokers), replace(SETTINGS, namespace="here."))
    assert [topics.topic(name).partitions for name in ("events", "runs")] == [3, 3]
    topics.renew()
    assert brokers.asked == [["here.events"], ["here.runs"]]
    age(topics)
    brokers.partitions = 4
    topics.renew()  # asks
    topics.renew()  # takes the answers
    assert [topics.topic(name).partitions for name in ("events", "runs")] == [4, 4]
    assert brokers.asked[2:] == [["here.events", "here.runs"]]


def test_nobody_waits_for_an_answer_that_does_not_come_while_nothing_is_needed():
    brokers = Silent()
    topics = Topics(cast("AdminClient", brokers), SETTINGS)
    assert topics.topic("events").partitions == 3
    age(topics)
    brokers.silent = True
    topics.renew()
    topics.renew()
    assert topics.topic("events").partitions == 3
    assert brokers.asked == 4  # Whoever needed it has asked for himself.


def test_topics_may_become_known_while_it_is_looked_which_ones_are_old():
    """Each partition asks in a thread of its own, and so does whoever tends the client."""
    topics = Topics(cast("AdminClient", Prompt(3)), SETTINGS)
    switched = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(1) as threads:
            known = threads.submit(lambda: [topics.topic(f"t{number}").partitions for number in range(3000)])
            while not known.done():
                topics.renew()
    finally:
        sys.setswitchinterval(switched)
    assert known.result() == [3] * 3000


def age(topics: Topics) -> None:
    """Let what is known become old."""
    for name, (asked, known) in topics._known.copy().items():
        topics._known[name] = (asked - FRESH_SECONDS, known)


def test_a_topic_of_others_is_described_by_what_the_brokers_say():
    config = {"cleanup.policy": "delete", "retention.ms": "60000", "message.timestamp.type": "CreateTime"}
    assert described("theirs", config, None) == TopicSpec(
        name="theirs", key="", family=Family.ONE, cleanup=Cleanup.DELETE, retention=timedelta(minutes=1),
        log_append_time=False,
    )  # fmt: skip


def test_who_is_refused_for_a_moving_leader_learns_the_new_one_before_asking_again():
    """Kafka's client would go on asking in the name of the leader epoch that it remembers."""
    leaders = iter([7, 8])
    known = [6]

    def ask() -> int:
        if known[-1] < 8:
            raise Passing(f"FENCED_LEADER_EPOCH {known[-1]}")
        return 42

    assert patiently(ask, between=lambda: known.append(next(leaders))) == 42
    assert known == [6, 7, 8]
