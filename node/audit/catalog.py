"""What the catalog said: every version of its entries that a log still tells of, the audit's own reading of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any

from node.audit import localtime
from node.audit.due import due, duration_seconds

Key = str  # kind/tenant/name


@dataclass(slots=True)
class Catalog:
    """Definitions by key and version. Compaction and retention may have taken older ones."""

    entries: dict[tuple[Key, int], Mapping[str, Any]] = field(default_factory=dict)

    def take(self, entry: Mapping[str, Any]) -> None:
        """One entry, as it stands on `catalog` or in `catalog.adopted`."""
        key = f"{entry['kind']}/{entry['tenant']}/{entry['name']}"
        self.entries[key, entry["version"]] = entry.get("definition") or {}

    def days(self, key: Key, version: int) -> frozenset[date] | None:
        """The days of a calendar; None where nobody can tell any more. Version 0 is one that was not there."""
        if version == 0:
            return frozenset()
        found = self.entries.get((key, version))
        return None if found is None else frozenset(date.fromisoformat(day) for day in found.get("dates", ()))


def calendars_of(definition: Mapping[str, Any], tenant: str) -> frozenset[Key]:
    """The calendars that a definition names, by their keys."""
    named = (definition["trigger"].get("exclude") or {}).get("calendars") or ()
    return frozenset(f"calendar/{tenant}/{name}" for name in named)


def closed(catalog: Catalog, used: Mapping[Key, int], zone: str, instant: int) -> bool | None:
    """Whether calendars take out an instant, by the versions that a decision names; None where that cannot be told."""
    day = datetime.fromtimestamp(instant + localtime.offset(zone, instant), UTC).date()
    known = list(_days(catalog, used))
    if any(days is not None and day in days for days in known):
        return True
    return None if None in known else False


SKIP, DEFER = "skip", "defer"


def frozen(catalog: Catalog, used: Mapping[Key, int], instant: int, *actions: str) -> bool | None:
    """Whether a freeze of a tenant or a queue that does one of these holds at an instant, by the versions that a
    decision names; None where that cannot be told.
    """
    held: bool | None = False
    for key, version in used.items():
        if key.startswith("calendar/"):
            continue
        known = catalog.entries.get((key, version))
        if known is None:
            held = None
        elif any(_holds(each, instant) for each in known.get("freezes", ()) if each.get("action", DEFER) in actions):
            return True
    return held


def _holds(freeze: Mapping[str, Any], instant: int) -> bool:
    if freeze.get("from") is not None:
        begins, ends = (int(datetime.fromisoformat(freeze[name]).timestamp()) for name in ("from", "to"))
        return begins <= instant < ends
    trigger = {**_CLOCKS, "cron": freeze["cron"], "timezone": freeze["timezone"]}
    behind = instant - duration_seconds(freeze["duration"])
    return any(True for _ in due({"trigger": trigger}, "freeze", behind, instant))


_CLOCKS = {"gap_policy": "shift", "fold_policy": "first", "day_rule": "vixie"}


def _days(catalog: Catalog, used: Mapping[Key, int]) -> Iterator[frozenset[date] | None]:
    return (catalog.days(key, version) for key, version in used.items() if key.startswith("calendar/"))
