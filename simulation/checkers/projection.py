"""I13: the read model converges.

The rows of a read model that followed the log through all faults are those of one that is made anew from it, and no
row that somebody looked at had a lower version than it had for anyone before. Of workers that were heard of an hour
ago the log may have let go: a read model that is made anew need not have them. What rows show is what happened (see
`shown`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

import orjson

from simulation.checkers import shown
from simulation.evidence import Evidence, Violation

ID = "I13"
SHOWN_MAX = 3  # differing rows of a table that are shown
WORKERS, HEARD_AT = "workers", "heard_at"
WORKERS_KEPT = timedelta(minutes=55)  # at least: an hour, less what clocks differ by and what is on its way


def observed(evidence: Evidence) -> int:
    """How many rows were compared, or looked at more than once."""
    return sum(map(len, evidence.rebuilt.values())) + len(evidence.glimpses)


def check(evidence: Evidence) -> Iterator[Violation]:
    """Every row that is another one when it is made anew, and every version that went back."""
    if evidence.rebuilt:
        for table in sorted(evidence.read_model.keys() | evidence.rebuilt.keys()):
            live, rebuilt = (
                _kept(table, rows.get(table, ()), evidence.ended_at) for rows in (evidence.read_model, evidence.rebuilt)
            )
            yield from _table(table, live, rebuilt)
    newest: dict[tuple[str, str], int] = {}
    for glimpse in evidence.glimpses:
        seen = (glimpse.table, glimpse.key)
        if glimpse.version < newest.get(seen, 0):
            what = f"{glimpse.key} goes from version {newest[seen]} back to {glimpse.version}"
            yield Violation(invariant=ID, what=what, where=f"read model, {glimpse.table}")
        newest[seen] = max(glimpse.version, newest.get(seen, 0))
    yield from shown.check(evidence)


def _kept(table: str, rows: Iterable[Mapping[str, Any]], ended_at: datetime | None) -> tuple[Mapping[str, Any], ...]:
    """Those that the log must still have."""
    if table != WORKERS or ended_at is None:
        return tuple(rows)
    since = (ended_at - WORKERS_KEPT).timestamp() * 1000
    return tuple(row for row in rows if row[HEARD_AT] >= since)


def _table(
    table: str, live: tuple[Mapping[str, Any], ...], rebuilt: tuple[Mapping[str, Any], ...]
) -> Iterator[Violation]:  # fmt: skip
    have, should = Counter(map(_text, live)), Counter(map(_text, rebuilt))
    for words, rows in (
        ("is not there when made anew", have - should),
        ("is there only when made anew", should - have),
    ):
        for row in sorted(rows)[:SHOWN_MAX]:
            what = f"a row {words} (one of {rows.total()}): {row}"
            yield Violation(invariant=ID, what=what, where=f"read model, {table}")


def _text(row: Mapping[str, Any]) -> str:
    return orjson.dumps(dict(row), option=orjson.OPT_SORT_KEYS, default=str).decode()
