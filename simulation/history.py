"""What callers of the API asked for and what they were told: the other half of every promise to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from schemas.frozen import frozen

OK, FAILED, UNKNOWN = "ok", "failed", "unknown"


@frozen
class Call:
    """One call.

    `kind` is the command's (`schedule.put`, `run.cancel` …) or `read`. `command_id` is the id of the command's record,
    with `source` its idempotency key. `result` ok: answered 2xx, as done. failed: refused for good, by the door
    (`reached_log` False) or by the owner. unknown: no answer, or one that leaves it open (202, 5xx, a broken
    connection). A call that is repeated with one key is one call to its caller, and one `Call` each time.
    """

    number: int
    kind: str
    tenant: str
    name: str
    started_at: datetime
    command_id: str = ""
    source: str = ""
    ended_at: datetime | None = None
    result: str = UNKNOWN
    status: int | None = None
    answer: Mapping[str, Any] = field(default_factory=dict)
    reached_log: bool = True


@dataclass(slots=True)
class History:
    """Calls as they are made. A call that never ends (its caller was killed) stays unknown."""

    now: Callable[[], datetime]
    _calls: dict[int, Call] = field(default_factory=dict)

    def began(self, kind: str, tenant: str, name: str, *, command_id: str = "", source: str = "") -> int:
        """Somebody asks; the number to end it by."""
        number = len(self._calls)
        self._calls[number] = Call(
            number=number, kind=kind, tenant=tenant, name=name, started_at=self.now(), command_id=command_id,
            source=source,
        )  # fmt: skip
        return number

    def ended(self, number: int, result: str, *, status: int | None = None, **told: Any) -> None:
        """What the caller was told; `told` are further fields of the call."""
        self._calls[number] = replace(
            self._calls[number], ended_at=self.now(), result=result, status=status, **told
        )  # fmt: skip

    @property
    def calls(self) -> tuple[Call, ...]:
        """All so far, in order of asking."""
        return tuple(self._calls.values())
