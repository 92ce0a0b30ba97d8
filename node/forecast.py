"""What a definition means, asked beforehand: the scheduler's own preview behind the API's port."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from api.services import NONE, Expected, Load, Outlook, Skipped
from projections.store.reader import Scope
from scheduler import load
from scheduler.occurrences import rules, tz_version
from scheduler.preview import adopted, nothing, preview

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from api.services import Definitions, Forecast, Planned
    from scheduler.calendars import Lookup

    Entry = Callable[[Scope, str, str], Mapping[str, Any] | None]  # an entry of the catalog: scope, kind, name


def forecast(now: Callable[[], datetime], entry: Entry, history: timedelta | None = None) -> Forecast:
    """A forecast that judges definitions as an apply at `now` would, by what the catalog says now.

    `history` is for how long decisions are kept.
    """

    def ask(  # noqa: PLR0913 -- a question of many parts, each said by name
        subject: str, definition: Mapping[str, Any], *, from_: datetime, to: datetime, limit: int,
        accepted: bool = False, since: datetime | None = None, by_catalog: bool = True, beside: Definitions = NONE,
    ) -> Outlook:  # fmt: skip
        tenant, _, name = subject.partition("/")
        found = preview(
            definition, from_=from_, to=to, limit=limit, now=now(), tenant=tenant, name=name,
            strict=not accepted, accepted=accepted, since=since, history=history,
            look=_look(partial(_or_beside, entry, beside)) if by_catalog else nothing,
        )  # fmt: skip
        return Outlook(
            words=found["words"], rule=found["rule"], tz_version=found["tz_version"], definition=found["definition"],
            occurrences=tuple(map(_expected, found["occurrences"])), skipped=tuple(map(_skipped, found["skipped"])),
            dst=tuple(found["dst"]), warnings=tuple(found["warnings"]),
        )  # fmt: skip

    return ask


def _or_beside(entry: Entry, beside: Definitions, scope: Scope, kind: str, name: str) -> Mapping[str, Any] | None:
    """What will stand in the catalog when `beside` has been put, as the version that it would be."""
    row, wanted = entry(scope, kind, name), beside.get((kind, str(scope.tenant), name))
    if wanted is None or (row is not None and row["definition"] == wanted):
        return row
    return {"version": 1 if row is None else row["version"] + 1, "definition": wanted}


def _look(entry: Entry) -> Lookup:
    def look(kind: str, tenant: str, name: str) -> bytes | None:
        row = entry(Scope(tenant=tenant), kind, name)
        return None if row is None else adopted(row["version"], row["definition"])

    return look


class Arithmetic:
    """`api.services.Arithmetic`, by what the catalog says now of calendars and freezes."""

    def __init__(self, entry: Entry) -> None:
        self._entry = entry

    def load(
        self, schedules: Iterable[Planned], from_: datetime, to: datetime, *, beside: Definitions = NONE
    ) -> Load:  # fmt: skip
        """See `Arithmetic.load`."""
        found = load.counted(
            (load.Planned(tenant=s.tenant, name=s.name, queue=s.queue, definition=s.definition) for s in schedules),
            from_, to,
            lru_cache(maxsize=None)(_look(partial(_or_beside, self._entry, beside))),  # a tenant is asked for once
        )  # fmt: skip
        return Load(
            minutes=found.minutes, schedules=found.schedules, occurrences=found.occurrences, cut=tuple(found.cut)
        )

    def zones(self) -> tuple[str, Mapping[str, str]]:
        """See `Arithmetic.zones`."""
        return tz_version(), rules.installed()


def _expected(occurrence: Mapping[str, str]) -> Expected:
    return Expected(
        nominal_time=datetime.fromisoformat(occurrence["nominal_time"]),
        local_time=occurrence["local_time"],
        note=occurrence.get("note", ""),
        due_at=datetime.fromisoformat(occurrence["due_at"]) if "due_at" in occurrence else None,
        held_until=datetime.fromisoformat(occurrence["held_until"]) if "held_until" in occurrence else None,
    )


def _skipped(entry: Mapping[str, Any]) -> Skipped:
    said = {name: value for name, value in entry.items() if name not in ("at", "reason")}
    return Skipped(at=datetime.fromisoformat(entry["at"]), reason=entry["reason"], said=said)
