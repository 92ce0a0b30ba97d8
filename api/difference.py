"""What a definition would change: which of its fields, and which occurrences, over a range that the answer states."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any

from api.views import Json

if TYPE_CHECKING:
    from api.services import Expected, Outlook

SECOND = timedelta(seconds=1)
FIELDS_MAX = 50  # of one answer: whoever changes more reads the file


def change_of(before: Mapping[str, Any] | None, after: Mapping[str, Any]) -> Json:
    """What an apply would do, and the fields that it would change."""
    if before is None:
        return {"change": "created"}
    fields = changed_fields(before, after)
    return {"change": "updated", "fields": fields} if fields else {"change": "unchanged"}


def changed_fields(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """JSON pointers of what differs, as many as an answer holds."""
    return list(islice(_fields(before, after, ""), FIELDS_MAX))


def of_occurrences(current: Outlook, wanted: Outlook, begin: datetime, end: datetime, limit: int) -> Json:
    """Occurrences more and fewer in [from, to).

    Where a side has more than an answer holds, the range ends with what is known of both. One more and one fewer on
    the same local day are one that is `moved`: it stands among the added and the removed too.
    """
    full = [each.occurrences[-1].nominal_time + SECOND for each in (current, wanted) if len(each.occurrences) >= limit]
    end = min((end, *full))
    before, after = _within(current, end), _within(wanted, end)
    added, removed = sorted(after.keys() - before.keys()), sorted(before.keys() - after.keys())
    moved = _moved((before[each] for each in removed), (after[each] for each in added))
    return {
        "from": begin,
        "to": end,
        "added": added,
        "removed": removed,
        "moved": list(moved),
        "unchanged": len(before.keys() & after.keys()),
    }


def _within(outlook: Outlook, end: datetime) -> dict[datetime, Expected]:
    return {each.nominal_time: each for each in outlook.occurrences if each.nominal_time < end}


def _moved(removed: Iterable[Expected], added: Iterable[Expected]) -> Iterator[Json]:
    gone, come = _by_day(removed), _by_day(added)
    for day, fewer in gone.items():
        more = come.get(day, ())
        if len(fewer) == len(more) == 1:
            yield {"from": fewer[0], "to": more[0]}


def _by_day(occurrences: Iterable[Expected]) -> dict[str, list[datetime]]:
    days: dict[str, list[datetime]] = defaultdict(list)
    for each in occurrences:
        days[each.local_time[:10]].append(each.nominal_time)
    return days


def _fields(before: Any, after: Any, pointer: str) -> Iterator[str]:
    if not (isinstance(before, Mapping) and isinstance(after, Mapping)):
        if before != after:
            yield pointer
        return
    for name in sorted(before.keys() | after.keys()):
        yield from _fields(before.get(name), after.get(name), f"{pointer}/{name.replace('~', '~0').replace('/', '~1')}")
