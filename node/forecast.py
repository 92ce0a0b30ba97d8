"""What a definition means, asked beforehand: the scheduler's own preview behind the API's port."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from api.services import Expected, Outlook
from scheduler.preview import preview

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from api.services import Forecast


def forecast(now: Callable[[], datetime]) -> Forecast:
    """A forecast that judges definitions as an apply at `now` would."""

    def ask(
        subject: str, definition: Mapping[str, Any], *, from_: datetime, to: datetime, limit: int,
        accepted: bool = False,
    ) -> Outlook:  # fmt: skip
        tenant, _, name = subject.partition("/")
        found = preview(
            definition, from_=from_, to=to, limit=limit, now=now(), tenant=tenant, name=name,
            strict=not accepted, accepted=accepted,
        )  # fmt: skip
        return Outlook(
            words=found["words"], occurrences=tuple(map(_expected, found["occurrences"])), dst=tuple(found["dst"])
        )

    return ask


def _expected(occurrence: Mapping[str, str]) -> Expected:
    return Expected(
        nominal_time=datetime.fromisoformat(occurrence["nominal_time"]),
        local_time=occurrence["local_time"],
        note=occurrence.get("note", ""),
    )
