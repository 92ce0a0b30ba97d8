"""A log whose brokers cannot be reached says why."""

import socket

import pytest

from runtime.clock import SystemClock
from runtime.log import LogError
from runtime.logs.kafka.log import KafkaLog
from runtime.logs.kafka.settings import KafkaSettings, SettingsRefused

pytestmark = pytest.mark.slow


def test_nobody_listens_there(monkeypatch):
    monkeypatch.setattr("runtime.logs.kafka.log.ANSWER_SECONDS", 1.0)  # to refuse takes a moment
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        bootstrap = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(LogError, match=rf"no broker can be reached at {bootstrap}: .*Connection refused"):
            KafkaLog(KafkaSettings(bootstrap=bootstrap), SystemClock())


def test_a_property_that_the_client_does_not_know_is_named():
    settings = KafkaSettings(bootstrap="127.0.0.1:1", properties={"sasl.nonsense": "x"})
    with pytest.raises(LogError, match=r"sasl\.nonsense"):
        KafkaLog(settings, SystemClock())


def test_settings_are_checked_before_anybody_is_asked():
    with pytest.raises(SettingsRefused, match=r"transactional\.id"):
        KafkaLog(KafkaSettings(bootstrap="127.0.0.1:1", properties={"transactional.id": "x"}), SystemClock())
