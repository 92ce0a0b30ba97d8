"""A queue's owner behind a real socket, and workers that talk to it.

What holds for workers holds for both ways to the owner: a test that uses `queue` runs over HTTP and on Kafka, unless
it says `over_http`.
"""

from contextlib import AsyncExitStack
from functools import partial

import pytest

from tests.sdk.fake_owner import KafkaQueue, workers_topics
from tests.sdk.fake_server import Queue, Server
from tidewheel import Worker


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture(autouse=True)
def no_environment(monkeypatch):
    """What the person who runs the tests has set for their own server means nothing here."""
    for name in (
        "URL",
        "TENANT",
        "TOKEN",
        "BOOTSTRAP",
        "NAMESPACE",
        "KAFKA",
        "PLAINTEXT",
        "LOGS",
        "LOG_SECRETS",
        "LOG_PATTERNS",
    ):
        monkeypatch.delenv(f"TIDEWHEEL_{name}", raising=False)


@pytest.fixture(scope="session")
def kafka(broker):
    """Topics for workers of the queues `default` and `other`. Incarnations are random, so tests share them."""
    with workers_topics(broker, "default", "other") as kafka:
        yield kafka


@pytest.fixture(params=["http", pytest.param("kafka", marks=pytest.mark.slow)])
def brokers(request):
    """Those that the queue is on; None where it is behind HTTP."""
    return request.getfixturevalue("kafka") if request.param == "kafka" else None


@pytest.fixture
async def queue(brokers):
    if brokers is not None:
        async with KafkaQueue(brokers) as on_kafka:
            yield on_kafka
        return
    queue = Queue()
    async with Server(queue.handle) as server:
        queue.options = {"url": server.url}
        queue.environment = {"TIDEWHEEL_URL": server.url}
        yield queue


@pytest.fixture
async def start_on():
    """Start a worker on a queue with the given tasks; it drains when the test is over."""
    async with AsyncExitStack() as running:

        async def start_on(queue, *, grace_seconds=0.0, slots=10, **tasks):
            worker = Worker(**queue.options, name="w1", slots=slots, grace_seconds=grace_seconds)
            for name, function in tasks.items():
                worker.task(name)(function)
            await worker.start()
            running.push_async_callback(_stop, worker)
            return worker

        yield start_on


@pytest.fixture
def start(queue, start_on):
    """Start a worker on `queue`."""
    return partial(start_on, queue)


async def _stop(worker):
    if worker.running:
        await worker.stop()
