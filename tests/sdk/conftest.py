"""A queue's owner behind a real socket, and workers that talk to it."""

from contextlib import AsyncExitStack

import pytest

from tests.sdk.fake_server import Queue, Server
from tidewheel import Worker


@pytest.fixture
def anyio_backend():
    return "asyncio"


@pytest.fixture(autouse=True)
def no_environment(monkeypatch):
    """What the person who runs the tests has set for their own server means nothing here."""
    for name in ("TIDEWHEEL_URL", "TIDEWHEEL_TENANT", "TIDEWHEEL_TOKEN"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
async def queue():
    return Queue()


@pytest.fixture
async def server(queue):
    async with Server(queue.handle) as server:
        yield server


@pytest.fixture
async def start(server):
    """Start a worker with the given tasks; it drains when the test is over."""
    async with AsyncExitStack() as running:

        async def start(*, grace_seconds=0.0, slots=10, **tasks):
            worker = Worker(url=server.url, name="w1", slots=slots, grace_seconds=grace_seconds)
            for name, function in tasks.items():
                worker.task(name)(function)
            await worker.start()
            running.push_async_callback(_stop, worker)
            return worker

        yield start


async def _stop(worker):
    if worker.running:
        await worker.stop()
