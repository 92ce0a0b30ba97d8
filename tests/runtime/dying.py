"""A store whose process dies in the middle of a restore."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.stores.memory import MemoryStore

if TYPE_CHECKING:
    from collections.abc import Mapping


class Died(BaseException):
    """The process is gone."""


class DyingStore(MemoryStore):
    """The process dies before its n-th change."""

    left = 1_000_000

    def apply(self, changes: Mapping[bytes, bytes | None]) -> None:
        if self.left == 0:
            raise Died
        self.left -= 1
        super().apply(changes)
