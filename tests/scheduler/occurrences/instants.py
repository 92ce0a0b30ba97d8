"""How these tests write instants and triggers, so that a reader can check them by eye."""

from collections.abc import Iterable
from datetime import UTC, datetime

from scheduler.occurrences import CronTrigger, between, parse, zone
from scheduler.occurrences.triggers import FoldPolicy, GapPolicy


def at(text: str) -> int:
    """The instant that `2024-03-10T07:00Z` names; a reading is written the same way, without Z."""
    moment = datetime.fromisoformat(text)
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())


def written(instants: Iterable[int]) -> list[str]:
    """Instants as `2024-03-10T07:00Z`, with seconds only where they are not zero."""
    moments = [datetime.fromtimestamp(instant, UTC) for instant in instants]
    return [moment.isoformat().removesuffix("+00:00").removesuffix(":00") + "Z" for moment in moments]


def cron(text: str, timezone: str = "UTC", gap: GapPolicy = "shift", fold: FoldPolicy = "first") -> CronTrigger:
    return CronTrigger(parse(text), zone(timezone), gap, fold)


def due(trigger: CronTrigger, start: str, end: str) -> list[str]:
    """What is due in [start, end), as the reports write their ranges."""
    return written(between(trigger, at(start) - 1, at(end) - 1))
