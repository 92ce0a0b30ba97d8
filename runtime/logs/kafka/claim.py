"""Our right to one partition, from the moment the group gives it to us until it takes it back; from any thread.

A commit quotes our membership as it was captured while the group spoke to us, never as it happens to be just now:
between a loss and our hearing of it the client knows no membership, and a broker takes a commit that quotes none for
one of a group without members. So a capture counts only with a generation in it, and a right that has ended does not
come back: the same partition given again is another right.
"""

from __future__ import annotations

import sys
from threading import Condition

from runtime.log import Fenced, LogError

# The client hands its membership out as bytes: these, then the generation in the machine's own order, then the rest.
MAGIC = b"CGMDv2:"
GENERATION = slice(len(MAGIC), len(MAGIC) + 4)


def generation(membership: bytes) -> int:
    """Of which generation of the group a captured membership is; below 0: of none."""
    if not membership.startswith(MAGIC):
        raise LogError(f"Kafka's client writes memberships in a form unknown to this version: {membership[:8]!r}")
    return int.from_bytes(membership[GENERATION], sys.byteorder, signed=True)


def identity(membership: bytes) -> bytes:
    """As whom the group knows us: another one after each time that it has known nothing of us but our name."""
    return membership[GENERATION.stop :]


class Claim:
    """A partition that is ours, and the membership to quote for it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._changed = Condition()
        self._membership = b""
        self._ended = ""

    def capture(self, membership: bytes) -> None:
        """What to quote from now on."""
        with self._changed:
            if generation(membership) >= 0:
                self._membership = membership
                self._changed.notify_all()

    def end(self, reason: str) -> None:
        """It is ours no more."""
        with self._changed:
            self._ended = self._ended or reason
            self._changed.notify_all()

    def check(self) -> None:
        """`Fenced` when it has ended."""
        if self._ended:
            raise Fenced(f"{self._name} is not ours any more: {self._ended}")

    def membership(self) -> bytes:
        """What to quote; `Fenced` when it has ended."""
        with self._changed:
            self.check()
            assert self._membership, "a claim begins with a capture"
            return self._membership

    def settle(self, refused: bytes, seconds: float) -> None:
        """After a broker refused what we quoted: return once another membership is there to be quoted.

        `Fenced` when it has ended, or when we hear nothing for so long that the group must have given it to others.
        """
        with self._changed:
            heard = self._changed.wait_for(lambda: self._ended or self._membership != refused, seconds)
            self.check()
            if not heard:
                raise Fenced(f"{self._name}: the group has moved on without us")
