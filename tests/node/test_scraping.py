"""A process without an API can be scraped, and what it says of a partition ends with its ownership."""

from __future__ import annotations

import socket
import urllib.request

import pytest

from node.cluster import metrics_servers, producer_replaced
from node.scraping import MetricsServer
from node.settings import ClusterSettings
from runtime.telemetry import Metric, Telemetry
from tests.node.test_roles import Told

SOON = 20.0


def scraped(port: int) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=SOON) as answer:
        text: str = answer.read().decode()
        return text


def test_a_port_of_its_own_answers_with_the_figures():
    telemetry = Telemetry()
    telemetry.set(Metric.CLOCK_IS_HELD, {"role": "scheduler", "partition": "3"}, 1)
    server = MetricsServer(telemetry.registry, host="127.0.0.1", port=0)
    server.start()
    try:
        assert server.ready(SOON)
        assert 'tidewheel_clock_held{partition="3",role="scheduler"} 1.0' in scraped(server.port)
    finally:
        assert server.stop(SOON)


def test_a_client_that_says_nothing_keeps_nobody_from_being_answered():
    server = MetricsServer(Telemetry().registry, host="127.0.0.1", port=0)
    server.start()
    try:
        with socket.create_connection(("127.0.0.1", server.port)):
            assert "tidewheel_" in scraped(server.port)
    finally:
        assert server.stop(SOON)


def test_a_port_that_is_taken_is_found_before_anything_starts():
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(OSError, match="in use"):
        MetricsServer(Telemetry().registry, host="127.0.0.1", port=taken.getsockname()[1])


def test_without_a_port_there_is_no_server():
    assert metrics_servers(ClusterSettings(), Telemetry(), 0) == ()


def test_each_process_of_a_machine_takes_the_next_port():
    with socket.create_server(("127.0.0.1", 0)) as probe:
        free = probe.getsockname()[1]
    (server,) = metrics_servers(ClusterSettings(metrics_port=free - 2), Telemetry(), 2)
    assert server.port == free
    assert server.stop(SOON)


def test_a_producer_that_left_doubt_is_counted_and_told():
    told = Told()
    telemetry = Telemetry(logger=told)
    producer_replaced(telemetry, "dispatcher.7", "it took 1.4 s")
    labels = {"role": "dispatcher", "partition": "7"}
    assert telemetry.registry.get_sample_value("tidewheel_producers_replaced_total", labels) == 1
    assert told.lines == [("producer_replaced", {**labels, "reason": "it took 1.4 s"})]


def test_of_a_partition_that_is_given_up_no_gauge_says_anything_more():
    telemetry = Telemetry()
    for partition in ("3", "4"):
        telemetry.set(Metric.CLOCK_IS_HELD, {"role": "scheduler", "partition": partition}, 1)
        telemetry.set(Metric.DECIDED_UNTIL, {"role": "scheduler", "partition": partition}, 5)
    telemetry.forget_partition("scheduler", "3")
    value = telemetry.registry.get_sample_value
    assert value("tidewheel_clock_held", {"role": "scheduler", "partition": "3"}) is None
    assert value("tidewheel_decided_until_timestamp_seconds", {"role": "scheduler", "partition": "3"}) is None
    assert value("tidewheel_clock_held", {"role": "scheduler", "partition": "4"}) == 1
