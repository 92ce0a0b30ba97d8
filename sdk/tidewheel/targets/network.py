"""Connections to endpoints: a name is resolved once, every answer is checked, and what was checked is connected to.

A name that has one answer we may not send to gets nothing at all: which answer is taken would be chance.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from ipaddress import ip_address

import httpcore

from tidewheel.targets import addresses
from tidewheel.targets.addresses import Network

CONNECT_SECONDS = 5.0  # to each address of a name; all of it within the request's own time

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]


class AddressRefused(Exception):
    """Nothing is sent there."""


async def resolve(host: str, port: int) -> Sequence[str]:
    """The addresses of a name, as this machine's resolver answers."""
    answers = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in answers]


class Guarded(httpcore.AsyncNetworkBackend):
    """The way to endpoints. TLS is spoken with the name, as certificates are; only the connection goes by address."""

    def __init__(self, allowed: Sequence[Network], resolve: Resolve = resolve) -> None:
        self._allowed = allowed
        self._resolve = resolve
        self._plain = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ARG002 -- the port's; the whole request has one time
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        failure: Exception = httpcore.ConnectError(f"{host} has no address")
        for address in await self._checked(host, port):
            try:
                return await self._plain.connect_tcp(address, port, CONNECT_SECONDS, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
        raise failure

    async def _checked(self, host: str, port: int) -> Sequence[str]:
        try:
            found = addresses.literal(host)
        except ValueError as error:
            raise AddressRefused(str(error)) from error
        if found is not None and not any(found in network for network in self._allowed):
            raise AddressRefused(f"{host} is an address: only those that the worker's file allows may stand for a name")
        try:
            answers = [host.strip("[]")] if found is not None else await self._resolve(host, port)
        except OSError as error:
            raise httpcore.ConnectError(f"{host} cannot be resolved: {error.strerror or error}") from error
        for answer in answers:
            word = addresses.refusal(ip_address(answer), self._allowed)
            if word is not None:
                raise AddressRefused(f"{host} leads to an address that is {word}")
        return answers
