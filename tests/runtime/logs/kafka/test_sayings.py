"""A client that says the same thing over and over is heard once."""

import logging

from runtime.logs.kafka.sayings import Sayings

LOGGER = logging.getLogger("tests.sayings")
REFUSED = "Connect to 10.0.0.1:9092 failed: Connection refused"


def test_the_same_is_said_once_whoever_says_it_and_something_else_at_once(caplog):
    sayings = Sayings(LOGGER)
    with caplog.at_level(logging.INFO, LOGGER.name):
        for client in ("consumer-1", "consumer-2", "consumer-1"):
            sayings.log(logging.ERROR, "%s [%s] %s", "FAIL", client, REFUSED)
        sayings.log(logging.CRITICAL, "%s [%s] %s", "FATAL", "producer-1", "fenced")
    assert [record.getMessage() for record in caplog.records] == [
        f"consumer-1 FAIL: {REFUSED}",
        "producer-1 FATAL: fenced",
    ]


def test_after_a_while_it_is_said_again_with_how_many_were_swallowed(caplog):
    sayings = Sayings(LOGGER)
    with caplog.at_level(logging.INFO, LOGGER.name):
        for _ in range(3):
            sayings.log(logging.ERROR, "%s [%s] %s", "FAIL", "consumer-1", REFUSED)
        sayings._said = {key: (said - 10.0, swallowed) for key, (said, swallowed) in sayings._said.items()}
        sayings.log(logging.ERROR, "%s [%s] %s", "FAIL", "consumer-2", REFUSED)
    assert caplog.records[-1].getMessage() == f"consumer-2 FAIL: {REFUSED} (2 like it before)"
