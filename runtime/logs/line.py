"""A line between two processes of ours: whole messages over a socket.

Both ends are this program, one started by the other: what comes over a line is trusted as much as the memory it was
written from. When one of them is gone, however it ended, the other end says so.

A call of the system gives the interpreter away, and in a busy process it takes milliseconds to get it back: so a
message is read with one call, or with two when it is large.
"""

from __future__ import annotations

import pickle
import socket
import struct
from threading import Lock
from typing import Any

_SIZE = struct.Struct(">Q")
CHUNK = 64 * 1024  # most messages are smaller


class Line:
    """One end. `send` from any thread, `receive` from one."""

    def __init__(self, end: socket.socket) -> None:
        self._end = end
        self._lock = Lock()
        self._rest = b""  # read already, of the next message

    @classmethod
    def of(cls, descriptor: int) -> Line:
        """The end that a process was given by the one that started it."""
        return cls(socket.socket(fileno=descriptor))

    def send(self, message: Any) -> None:
        """OSError when the other end is gone."""
        data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
        with self._lock:
            sent = self._end.sendmsg((_SIZE.pack(len(data)), data)) - _SIZE.size
            if sent < len(data):
                self._end.sendall(memoryview(data)[sent:])

    def receive(self) -> Any:
        """The next message; EOFError or OSError when the other end is gone."""
        data = self._rest
        while len(data) < _SIZE.size:
            data += self._read(CHUNK, 0)
        end = _SIZE.size + _SIZE.unpack_from(data)[0]
        while len(data) < end:
            data += self._read(end - len(data), socket.MSG_WAITALL)
        self._rest = data[end:]
        return pickle.loads(memoryview(data)[_SIZE.size : end])  # noqa: S301 -- the first lines say why

    def _read(self, size: int, flags: int) -> bytes:
        data = self._end.recv(size, flags)
        if not data:
            raise EOFError
        return data

    def end(self) -> None:
        """Nothing more is said; whoever waits here or at the other end is told. Idempotent."""
        try:
            self._end.shutdown(socket.SHUT_RDWR)
        except OSError:
            return  # the other end is gone, or this one was closed

    def close(self) -> None:
        """Release it; idempotent."""
        self._end.close()


def pair() -> tuple[Line, socket.socket]:
    """Our end, and the one to be given away."""
    ours, theirs = socket.socketpair()
    return Line(ours), theirs
