"""What each error of Kafka's client means: a table over every code there is."""

import pytest
from confluent_kafka import KafkaError, KafkaException

from runtime.log import Fenced, LogError, OffsetOutOfRange, UnknownTopic
from runtime.logs.kafka.errors import MovedOn, Passing, Remedy, error_of, remedy, translated, translating

CODES = {
    name: code
    for name in dir(KafkaError)
    if not name.startswith("__") and isinstance(code := getattr(KafkaError, name), int)
}

# Everything else is a LogError and no more.
MEANINGS: dict[type[LogError], set[str]] = {
    Fenced: {"_FENCED", "FENCED_INSTANCE_ID", "INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED"},
    MovedOn: {
        "_ASSIGNMENT_LOST", "FENCED_MEMBER_EPOCH", "ILLEGAL_GENERATION", "REBALANCE_IN_PROGRESS",
        "STALE_MEMBER_EPOCH", "UNKNOWN_MEMBER_ID",
    },
    OffsetOutOfRange: {"_AUTO_OFFSET_RESET", "_LOG_TRUNCATION", "OFFSET_OUT_OF_RANGE"},
    Passing: {
        "_NOENT", "COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "FENCED_LEADER_EPOCH",
        "LEADER_NOT_AVAILABLE", "NOT_CONTROLLER", "NOT_COORDINATOR", "NOT_LEADER_FOR_PARTITION", "OFFSET_NOT_AVAILABLE",
        "REPLICA_NOT_AVAILABLE", "UNKNOWN_LEADER_EPOCH", "UNKNOWN_TOPIC_OR_PART", "UNSTABLE_OFFSET_COMMIT",
    },
}  # fmt: skip


def error(code: int, *, fatal: bool = False, again: bool = False, abort: bool = False) -> KafkaError:
    return KafkaError(code, "told", fatal, again, abort)


@pytest.mark.parametrize("name", CODES)
def test_every_error_has_its_meaning(name):
    expected = next((kind for kind, names in MEANINGS.items() if name in names), LogError)
    assert type(translated(error(CODES[name]), "doing")) is expected


@pytest.mark.parametrize("name", CODES)
def test_no_error_means_that_a_topic_does_not_exist_for_a_broker_that_starts_says_so_of_all(name):
    assert not isinstance(translated(error(CODES[name]), "doing"), UnknownTopic)


@pytest.mark.parametrize("name", CODES)
def test_fatal_comes_before_abort_before_again_and_what_says_nothing_is_fatal(name):
    code = CODES[name]
    assert remedy(error(code, fatal=True, again=True, abort=True)) is Remedy.CLOSE
    assert remedy(error(code)) is Remedy.CLOSE
    if name != "INVALID_PRODUCER_ID_MAPPING":
        assert remedy(error(code, again=True, abort=True)) is Remedy.ABORT
        assert remedy(error(code, again=True)) is Remedy.AGAIN


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("abort", [False, True])
def test_a_forgotten_producer_id_is_fatal_whatever_the_client_says_of_it(again, abort):
    code = KafkaError.INVALID_PRODUCER_ID_MAPPING
    assert remedy(error(code, again=again, abort=abort)) is Remedy.CLOSE


def test_a_translated_error_says_what_was_tried_and_what_the_client_said():
    told = str(translated(error(KafkaError.NOT_ENOUGH_REPLICAS), "append"))
    assert told == "append: NOT_ENOUGH_REPLICAS: told"


def test_an_exception_becomes_the_port_s_with_its_cause():
    cause = KafkaException(error(KafkaError.PRODUCER_FENCED))
    with pytest.raises(Fenced, match="commit") as raised, translating("commit"):
        raise cause
    assert raised.value.__cause__ is cause


def test_an_exception_that_was_hidden_by_a_callback_is_found():
    hidden = SystemError("returned a result with an exception set")
    hidden.__cause__ = KafkaException(error(KafkaError._FENCED))
    with pytest.raises(Fenced), translating("flush"):
        raise hidden
    assert error_of(error(KafkaError._FENCED)).code() == KafkaError._FENCED


def test_an_exception_that_was_hidden_by_two_callbacks_is_found():
    hidden, again = SystemError("returned a result with an exception set"), SystemError("and once more")
    hidden.__cause__, again.__cause__ = KafkaException(error(KafkaError._FENCED)), hidden
    with pytest.raises(Fenced), translating("flush"):
        raise again


def test_a_system_error_of_somebody_else_is_not_swallowed():
    with pytest.raises(SystemError, match="another"), translating("flush"):
        raise SystemError("another")
