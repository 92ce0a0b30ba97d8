"""Figures for Prometheus from a process that has no API: a port on which nothing but them is answered."""

from __future__ import annotations

import socket
from socketserver import ThreadingMixIn
from typing import TYPE_CHECKING, Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import make_wsgi_app

from runtime.lifecycle import Threaded, ThreadService

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from runtime.lifecycle import Running

LOOK_SECONDS = 0.5  # between looks whether to stop
SILENT_SECONDS = 10.0  # a client that says nothing for so long is let go: it has a thread


class MetricsServer(Threaded):
    """Answers every path with the figures. Takes the port at once: a taken one is found before anything starts."""

    def __init__(self, registry: CollectorRegistry, *, host: str, port: int) -> None:
        kind = _ServerOf6 if ":" in host else _Server
        self._server = kind((host, port), _Handler)
        self._server.set_app(make_wsgi_app(registry))
        self.port = int(self._server.server_address[1])
        self._begun = False
        self._thread = ThreadService("metrics", self._run, interrupt=self._interrupt)

    def _interrupt(self) -> None:
        if not self._begun:
            self._server.server_close()

    def _run(self, running: Running) -> None:
        self._begun = True
        running.ready()
        try:
            self._server.timeout = LOOK_SECONDS
            while not running.stopping.is_set():
                self._server.handle_request()
        finally:
            self._server.server_close()


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A scraper that hangs up is no news."""


class _ServerOf6(_Server):
    address_family = socket.AF_INET6


class _Handler(WSGIRequestHandler):
    timeout = SILENT_SECONDS

    def log_message(self, *_: object) -> None:
        """Nobody reads a line a scrape."""
