"""What backfills made of occurrences: the outcome of the last run that one of them gave it, empty while it is open.

It stands beside the ledger and not in it. The ledger says what was decided when an occurrence was due, and that stays
so; and runs of a backfill come in any order, where the ledger only ever grows at its end. Fills stand in buckets of
a few minutes each, so that a run rewrites little: nine kilobytes at most, for a schedule of every second.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from scheduler import keys
from scheduler.instants import DAY_SECONDS
from schemas import codec
from schemas.frozen import frozen

if TYPE_CHECKING:
    from runtime.machine import Rows

BUCKET_SECONDS = 512
SLACK_SECONDS = DAY_SECONDS  # one step of forgetting a day, not one a bucket
FORGOTTEN_MAX = 2_000  # buckets in one step: eleven days
OPEN = ""


@frozen
class Bucket:
    """Outcomes by the seconds that their occurrences are behind the bucket's beginning."""

    outcomes: Mapping[str, str]


def put(rows: Rows, nominal: int, outcome: str) -> int:
    """Note what became of an occurrence; the number of its bucket."""
    number, second = divmod(nominal, BUCKET_SECONDS)
    row = keys.number(keys.FILLS, number)
    raw = rows.get(row)
    known = {} if raw is None else _bucket(raw).outcomes
    rows.put(row, codec.dump(Bucket(outcomes={**known, str(second): outcome})))
    return number


def look_up(rows: Rows, nominal: int) -> str | None:
    """What a backfill made of an occurrence; None where none touched it."""
    number, second = divmod(nominal, BUCKET_SECONDS)
    raw = rows.get(keys.number(keys.FILLS, number))
    return None if raw is None else _bucket(raw).outcomes.get(str(second))


def between(rows: Rows, first: int, last: int) -> Iterator[tuple[int, str]]:
    """Occurrences in [first, last] that a backfill touched, and what became of them; one bucket is read at a time."""
    start, end = first // BUCKET_SECONDS, last // BUCKET_SECONDS + 1
    for row, raw in rows.scan(keys.number(keys.FILLS, start), keys.number(keys.FILLS, end)):
        begins = _number(row) * BUCKET_SECONDS
        found = sorted((begins + int(second), outcome) for second, outcome in _bucket(raw).outcomes.items())
        yield from (each for each in found if first <= each[0] <= last)


def forget_at(filled_from: int | None, kept_seconds: int) -> int | None:
    """When the next step of forgetting is due."""
    return None if filled_from is None else (filled_from + 1) * BUCKET_SECONDS + kept_seconds + SLACK_SECONDS


def forget(rows: Rows, until: int) -> int | None:
    """Remove the buckets that end before an instant, as many as a step holds; the oldest one that is left."""
    for count, (row, _) in enumerate(list(_up_to(rows, until))):
        if count == FORGOTTEN_MAX:
            break
        rows.delete(row)
    left = next(iter(rows.scan(keys.FILLS, keys.end_of(keys.FILLS))), None)
    return None if left is None else _number(left[0])


def _up_to(rows: Rows, until: int) -> Iterator[tuple[bytes, bytes]]:
    return iter(rows.scan(keys.FILLS, keys.number(keys.FILLS, until // BUCKET_SECONDS)))


def _number(row: bytes) -> int:
    return int.from_bytes(row[len(keys.FILLS) :], "big")


def _bucket(raw: bytes) -> Bucket:
    return codec.load(Bucket, codec.parse(raw))
