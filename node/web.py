"""The HTTP server as a service: uvicorn in a thread of its own."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import uvicorn

from runtime.lifecycle import Threaded, ThreadService

if TYPE_CHECKING:
    from fastapi import FastAPI

    from runtime.lifecycle import Running

DRAIN_SECONDS = 3  # long polls of workers end with the server; they come back by themselves


class WebServer(Threaded):
    """Serves one application. The port is taken at once, so that a taken one is found before anything starts.

    Signals stay with the process: uvicorn only takes them in a main thread.
    """

    def __init__(self, *, host: str, port: int) -> None:
        self._socket = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
        self._host, self._port = host, self._socket.getsockname()[1]
        self._server: uvicorn.Server | None = None
        self._thread = ThreadService("http", self._run, interrupt=self._interrupt)

    @property
    def url(self) -> str:
        """Where it answers."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"http://{host}:{self._port}"

    def serve(self, app: FastAPI) -> None:
        """Name the application; before `start`."""
        config = uvicorn.Config(
            app, log_level="warning", access_log=False, lifespan="on", timeout_graceful_shutdown=DRAIN_SECONDS,
            timeout_keep_alive=75, server_header=False,
        )  # fmt: skip
        self._server = uvicorn.Server(config)

    def _run(self, running: Running) -> None:
        server = self._server
        assert server is not None, "`serve` an application first"
        running.ready()  # the socket listens already: what comes now waits for the loop
        server.run(sockets=[self._socket])

    def _interrupt(self) -> None:
        if self._server is not None:
            self._server.should_exit = True
        if self._thread.failure is None and self._server is not None and not self._server.started:
            self._socket.close()
