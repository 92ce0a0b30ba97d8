"""Membership where one process owns a log: all partitions are its own from the first poll on."""

from __future__ import annotations

from threading import Event
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runtime.log import Log, Owner


class OnlyMember:
    """`Member` of a group of one."""

    def __init__(self, log: Log, topic: str, owner: Owner) -> None:
        self._log, self._owner = log, owner
        self._partitions = range(log.partitions(topic))
        self._closed = Event()
        self.joined = False

    def poll(self, timeout: float) -> None:
        """See `Member.poll`."""
        if not self.joined:
            self.joined = True
            self._owner.assigned(self._partitions, self._log)
            return
        self._closed.wait(timeout)

    def close(self) -> None:
        """See `Member.close`."""
        if self.joined and not self._closed.is_set():
            self._owner.revoked(self._partitions)
        self._closed.set()
