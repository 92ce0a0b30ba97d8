"""The application behind a real socket."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn

from tests.api.house import SECONDS, House


@contextmanager
def serving(folder: Path, *, log: Any = None) -> Iterator[tuple[House, str]]:
    """A house with a server of its own thread and loop; ends with the block. A `log` that is given stays open."""
    ready, stop = threading.Event(), asyncio.Event()
    found: list[tuple[House, str, asyncio.AbstractEventLoop]] = []

    async def serve() -> None:
        async with House(folder, log=log, closes_log=log is None) as house:
            listening = socket.create_server(("127.0.0.1", 0))  # who connects before the server serves waits for it
            server = uvicorn.Server(uvicorn.Config(house.app, log_level="error", timeout_graceful_shutdown=1))
            task = asyncio.create_task(server.serve(sockets=[listening]))
            url = f"http://127.0.0.1:{listening.getsockname()[1]}"
            found.append((house, url, asyncio.get_running_loop()))
            ready.set()
            await stop.wait()
            server.should_exit = True
            await task

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert ready.wait(SECONDS), "the server did not start"
    house, url, loop = found[0]
    try:
        yield house, url
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(SECONDS)
