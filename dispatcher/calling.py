"""What a shard among several told its workers last, and when it tells them again. `layouts` says what is told."""

from __future__ import annotations

from datetime import datetime, timedelta

from schemas.frozen import frozen

APART = timedelta(seconds=2)  # a shard whose slots are just enough would call with every run
EVERY = timedelta(seconds=5)  # between two reports of an idle worker: nobody could move to it much sooner


@frozen
class Told:
    """What was told last, and when. `resized_at`: since when the number of shards is another."""

    shards: int = 1
    queued: int = 0
    running: int = 0
    free: int = 0
    workers: int = 0
    at: datetime | None = None
    resized_at: datetime | None = None


def due(told: Told, wanting_at: datetime | None) -> datetime | None:
    """When there is something to tell; `wanting_at` is from when a run wants nothing but a slot."""
    if told.resized_at is not None:
        return told.resized_at if told.at is None else max(told.resized_at, told.at + APART)
    if told.at is None:
        return wanting_at
    if not told.queued:
        return None if wanting_at is None else max(wanting_at, told.at + APART)
    wants_still = wanting_at is not None and wanting_at <= told.at + APART
    return told.at + (EVERY if wants_still else APART)
